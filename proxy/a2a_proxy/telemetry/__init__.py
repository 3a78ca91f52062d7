"""What was recorded as traces, logs and metrics of OpenTelemetry, live and long after by the same code.

`span` makes a span of what is known of a call (pure, as are `values`, `ids`, `attributes`, `events`, `otlp_json`);
`reading` gets that from a recording; `sdk` is the only place that knows the OpenTelemetry packages; `sender` keeps on
trying; `consumer` follows a recording.
"""
