"""Advice for the errors of libraries that exporters pass on, for the user who chose the endpoint. No I/O."""

from __future__ import annotations

_HEADER_ADVICE = "OTEL_EXPORTER_OTLP_HEADERS contains an invalid header"
_ADVICE = (
    ("BadStatusLine", "the backend does not answer in HTTP/1.1; its port may be for grpc"),
    ("Expected SETTINGS frame", "the backend does not answer in HTTP/2; its port may be for http/protobuf"),
    ("WRONG_VERSION_NUMBER", "the backend does not speak TLS; its URL may be http:// instead of https://"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted; OTEL_EXPORTER_OTLP_CERTIFICATE can name its issuer"),
    ("header value", _HEADER_ADVICE),
    ("header name", _HEADER_ADVICE),
    ("metadata was invalid", _HEADER_ADVICE),
    ("Header format invalid", _HEADER_ADVICE),
)
"""Part of a library's error -> advice. Header values in these errors are secrets, so they must not be printed."""


def explain_error(message: str) -> str:
    """Return advice for the error, or the error itself if there is none."""
    return next((words for part, words in _ADVICE if part in message), message)


def is_header_error(message: str) -> bool:
    """Whether the error is about a header that the user set."""
    return explain_error(message) == _HEADER_ADVICE
