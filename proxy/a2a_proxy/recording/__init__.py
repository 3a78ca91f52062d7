"""Recordings: SQLite is the working store, cassettes (JSON lines) are the files that people commit.

`write` stores the values that the observer yields, `read` returns the same values, `cassette` converts between the two
kinds of file. Nothing here decodes traffic.
"""
