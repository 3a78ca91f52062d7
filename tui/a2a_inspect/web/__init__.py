"""The screen in a browser: a small HTTP server on the loopback address, with one application
process per tab."""
