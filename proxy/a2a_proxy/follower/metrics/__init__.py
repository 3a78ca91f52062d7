"""`--metrics`: counts the recording for Prometheus and reports readiness, served by a process of
its own.

`numbers` holds the metrics, `session_reader` fills them, `server` serves the three pages,
`supervisor` is the proxy's side. The process stores nothing: restarted, it counts the
session from its start again.
"""
