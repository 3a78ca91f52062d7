"""a2a-proxy: relay A2A traffic untouched, decode the copy, keep the recording."""

__version__ = "0.1.0.dev0"
