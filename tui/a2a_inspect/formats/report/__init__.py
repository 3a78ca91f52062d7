"""A recording as one HTML file that needs only a browser: no network, no server.

The file has the recording as compressed blocks of JSON (`tables`) and a page (`page/`) that renders
the displayed part.
"""
