"""The only places where the relay changes bytes on their way: the request authority, the URLs of agent
cards and, where asked for, `traceparent`.

`edit` is what all editors have in common, `card` knows agent cards, `http1` and `http2` know how they travel. Sans-I/O:
an editor takes bytes and the time, and says what to send. Nothing here ever touches the captured copy.
"""
