"""Texts and JSON shared by the command lines and the screens: durations, sizes, labels, layouts.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Output:
- `output`: the one writer of both programs

Layouts and reports:
- `difference`: differences as text and JSON (package)
- `generations`: generations as text and JSON
- `junit`: JUnit XML

Elements:
- `tls`: TLS handshakes in words
- `text`: times, sizes, ids and outcomes as text
"""
