"""The editors, which change bytes on their way: the request authority, the URLs of agent cards and,
if enabled, `traceparent`, the URLs of webhooks and faults on purpose. Nothing else in the relay
changes bytes.

`edit` holds the types common to all editors, `card` reads and writes agent cards, `push_config`
push configurations, `http1` and `http2` find them in the traffic, `http1_faults` and `http2_faults`
make faults. Sans-I/O: an editor takes bytes and the time and returns the bytes to send. The
captured copy is never edited.
"""
