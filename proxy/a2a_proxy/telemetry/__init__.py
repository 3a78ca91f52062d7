"""Traces, logs and metrics of OpenTelemetry from recorded traffic, live and later by the same code.

Only `sdk`, `metrics` and `partial_success` use the OpenTelemetry packages.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Exports:
- `__main__`: entry point of the live export process
- `consumer`: live export of a session
- `unsent`: sends the rest of an incomplete live export
- `offline`: export of a finished recording
- `supervisor`: starts the live export process

From recording to spans:
- `span_reader`: builds spans from the rows of a recording
- `span`: the span of a call, also with attribute names of other tools
- `segments`: long calls as several spans
- `logs`: log records
- `metrics`: metrics of live traffic
- `services`: the resources of spans, with the names of the services
- `attributes`: the attributes of a span
- `cards`: agent cards of a session
- `earlier_calls`: facts from earlier calls
- `events`: events of a span
- `steps`: steps that an agent reports about itself
- `links`: links from a call to another call
- `call_facts`: facts about a call
- `message_content`: message texts, if enabled

Sending:
- `retry_sender`: requests with retries
- `sdk`: conversion to OpenTelemetry types, and its exporters
- `request_outcome`: the outcome of a request, with advice on errors of libraries
- `otlp_json`: OTLP as JSON

Values and settings:
- `settings`: settings of a live export
- `target`: the destination of an export
- `span_options`: options of the content of spans
- `ids`: ids of traces and spans
- `values`: spans and log records as values
- `errors`: the error of a failed export
"""
