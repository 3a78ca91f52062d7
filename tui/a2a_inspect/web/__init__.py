"""The screen in a browser: a small HTTP server on the loopback address, one process of the application per tab."""
