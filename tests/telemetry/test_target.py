"""The endpoint of an export."""

from __future__ import annotations

import pytest

from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.target import bypass_proxies, otlp_target


@pytest.mark.parametrize(
    ("typed", "protocol", "environ", "found"),
    [
        ("http://c:4318", "", {}, ("http/protobuf", "http://c:4318/v1/traces", "c:4318")),
        ("c:4317", "", {}, ("grpc", "http://c:4317", "c:4317")),
        ("http://c:9/v1/traces", "", {}, ("http/protobuf", "http://c:9/v1/traces", "c:9")),
        ("https://u:p@c/otlp/", "", {}, ("http/protobuf", "https://u:p@c/otlp/v1/traces", "c")),
        ("c:9", "grpc", {}, ("grpc", "http://c:9", "c:9")),
        ("c:9", "", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ("grpc", "http://c:9", "c:9")),
        ("", "", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317"}, ("grpc", None, "c:4317")),
        ("", "", {}, ("http/protobuf", None, "localhost:4318")),
        ("", "grpc", {}, ("grpc", None, "localhost:4317")),
        (" http://[::1]:4317 ", "", {}, ("grpc", "http://[::1]:4317", "[::1]:4317")),
    ],
)
def test_options_precede_environment_variables(
    typed: str, protocol: str, environ: dict[str, str], found: tuple[str, str | None, str]
) -> None:
    made = otlp_target(typed, protocol, environ)
    assert (made.protocol, made.endpoint_of_signal("traces"), made.shown) == found


def test_each_signal_has_its_own_path() -> None:
    made = otlp_target("http://c:1/v1/traces", "", {})
    assert (made.endpoint_of_signal("logs"), made.endpoint_of_signal("metrics")) == (
        "http://c:1/v1/logs",
        "http://c:1/v1/metrics",
    )


@pytest.mark.parametrize(
    ("typed", "environ"),
    [
        ("ftp://c", {}),
        ("http://", {}),
        ("c:port", {}),
        ("c:1", {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}),
    ],
)
def test_an_invalid_endpoint_is_refused_with_a_hint(typed: str, environ: dict[str, str]) -> None:
    with pytest.raises(TelemetryError) as error:
        otlp_target(typed, "", environ)
    assert error.value.hint


@pytest.mark.parametrize("typed", ["http://me:s3cret@c:port", "ftp://me:s3cret@c"])
def test_errors_do_not_repeat_a_password(typed: str) -> None:
    with pytest.raises(TelemetryError) as error:
        otlp_target(typed, "", {})
    assert "s3cret" not in error.value.message


@pytest.mark.parametrize(
    ("environ", "without"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:1"}, "localhost,127.0.0.1,::1"),
        (
            {"http_proxy": "http://p:1", "NO_PROXY": "inner,localhost"},
            "inner,localhost,127.0.0.1,::1",
        ),
        ({"http_proxy": "http://p:1", "no_proxy": "*"}, "*"),
    ],
)
def test_loopback_bypasses_http_proxies(environ: dict[str, str], without: str | None) -> None:
    bypass_proxies(environ)
    assert environ.get("no_proxy") == without
