"""The SQLite file: schema, migrations, column codecs, payload blocks, and opening it safely."""
