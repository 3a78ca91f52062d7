"""Traces, logs and metrics of OpenTelemetry from recorded traffic, live and later by the same code.

`span` builds a span from the facts about a call (without I/O, like `values`, `ids`, `attributes`, `events` and
`otlp_json`); `span_reader` reads these facts from a recording; `sdk` is the only module that uses the OpenTelemetry
packages; `retry_sender` sends with retries; `consumer` follows a recording.
"""
