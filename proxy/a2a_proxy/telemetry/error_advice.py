"""Why an export does not go out, in words for who typed the endpoint: exporters pass on what libraries say. Pure."""

from __future__ import annotations

_HEADER_ADVICE = "OTEL_EXPORTER_OTLP_HEADERS has what cannot be a header"
_ADVICE = (
    ("BadStatusLine", "it does not answer in HTTP/1.1; it may be a port for gRPC"),
    ("Expected SETTINGS frame", "it does not answer in HTTP/2; it may be a port for http/protobuf"),
    ("WRONG_VERSION_NUMBER", "it does not speak TLS; it may be http:// instead of https://"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted; OTEL_EXPORTER_OTLP_CERTIFICATE names one that is"),
    ("header value", _HEADER_ADVICE),
    ("header name", _HEADER_ADVICE),
    ("metadata was invalid", _HEADER_ADVICE),
    ("Header format invalid", _HEADER_ADVICE),
)
"""What a library says has this in it; some of them say the values of headers too, which are secrets."""


def explain_error(message: str) -> str:
    """The same in other words, where it has some."""
    return next((words for part, words in _ADVICE if part in message), message)


def is_header_error(message: str) -> bool:
    """It is about a header that was given."""
    return explain_error(message) == _HEADER_ADVICE
