"""The SQLite file: schema, column codecs, payload blocks, and safe opening."""
