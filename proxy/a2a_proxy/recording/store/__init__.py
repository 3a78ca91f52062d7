"""The SQLite file: schema, migrations, column codecs, payload blocks, and safe opening."""
