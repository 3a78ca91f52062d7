"""Recordings: SQLite is the working store, cassettes (JSON lines) are the files that people commit.

`write` stores the values that the observer yields, and `read` returns the same values. Nothing here
decodes traffic.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Operations:
- `tools`: merge, prune, trim, scan, redact, recheck (package)
- `joined`: several recordings joined live into one (package)
- `difference`: differences between payloads, exchanges, tasks or runs (package)
- `sqlite_utils_plugin`: plug-in of `sqlite-utils`

Files:
- `query`: the filter language (package)
- `read`: reading of one recording, or of several as one (package)
- `write`: writing of a session (package)
- `cassette`: recordings as JSON lines (package)
- `store`: the SQLite file: schema, codecs, blocks (package)

Common:
- `names`: names of recording files
- `errors`: errors of a recording file
"""
