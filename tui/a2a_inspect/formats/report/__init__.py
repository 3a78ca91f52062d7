"""A recording as one HTML file that needs nothing else: no network, no server, no program but a browser.

The file holds the recording as compressed blocks of JSON (`tables`), and a page (`page/`) that draws what is looked at.
"""
