"""Errors of export libraries, explained."""

from __future__ import annotations

import pytest

from a2a_proxy.telemetry.request_outcome import explain_error


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("('Connection aborted.', BadStatusLine('\\x00\\x00\\x18'))", "its port may be for grpc"),
        (
            (
                "UNAVAILABLE: ipv4:127.0.0.1:4318: Failed parsing "
                "HTTP/2 (Expected SETTINGS frame as the first frame)"
            ),
            "its port may be for http/protobuf",
        ),
        (
            "SSLError(1, '[SSL: WRONG_VERSION_NUMBER] wrong version number')",
            "http:// instead of https://",
        ),
        (
            "SSLError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] unable to get')",
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
        ),
        ("connection refused", "connection refused"),
    ],
)
def test_errors_are_explained(message: str, words: str) -> None:
    assert words in explain_error(message)


def test_header_values_are_not_repeated() -> None:
    explanation = explain_error(
        "Invalid leading whitespace, or return character(s) in header value: 'Bearer s3cret\\r'"
    )
    assert "OTEL_EXPORTER_OTLP_HEADERS" in explanation
    assert "s3cret" not in explanation
