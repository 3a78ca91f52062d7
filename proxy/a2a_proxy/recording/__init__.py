"""The recording: SQLite as the working store, cassettes (JSON lines) as the file that people commit.

`writer` stores what the observer yields, `reader` gives the same values back, `cassette` carries them between files.
Nothing here decodes traffic.
"""
