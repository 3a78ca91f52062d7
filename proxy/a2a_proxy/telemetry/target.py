"""Destination of an export: the user's options, then the variables of OpenTelemetry. No I/O."""

from collections.abc import Mapping, MutableMapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from a2a_proxy.telemetry.errors import TelemetryError

Signal = Literal["traces", "logs", "metrics"]
OtlpProtocol = Literal["grpc", "http/protobuf"]

GRPC_PORT, HTTP_PORT = 4317, 4318
"""Usual ports of collectors."""
_PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class OtlpTarget(msgspec.Struct, frozen=True):
    """A backend."""

    protocol: OtlpProtocol
    endpoint: str = ""
    """Endpoint as typed; empty if the exporters read it from their variables."""
    shown: str = ""
    """Name for users: host and port, without anything that could be a secret."""

    def endpoint_of_signal(self, signal: Signal) -> str | None:
        """Return the endpoint of one signal, or None if the exporter determines it."""
        if not self.endpoint:
            return None
        if self.protocol == "grpc":
            return self.endpoint
        base = self.endpoint.rstrip("/")
        for each in ("traces", "logs", "metrics"):
            base = base.removesuffix(f"/v1/{each}")
        return f"{base}/v1/{signal}"


def otlp_target(typed_endpoint: str, protocol: str, environ: Mapping[str, str]) -> OtlpTarget:
    """Return the target from the options (both may be empty), then the environment. Raises
    TelemetryError."""
    variable = next((environ[name] for name in _ENDPOINT_VARIABLES if environ.get(name)), "")
    typed_endpoint = typed_endpoint.strip()
    endpoint = (
        typed_endpoint
        if "://" in typed_endpoint or not typed_endpoint
        else f"http://{typed_endpoint}"
    )
    shown, port = _split_endpoint(endpoint or variable or "http://localhost")
    protocol = protocol or next(
        (environ[name] for name in _PROTOCOL_VARIABLES if environ.get(name)), ""
    )
    protocol = protocol or ("grpc" if port == GRPC_PORT else "http/protobuf")
    if protocol not in ("grpc", "http/protobuf"):
        raise TelemetryError(f"unknown OTLP protocol {protocol!r}", "use grpc or http/protobuf")
    usual = GRPC_PORT if protocol == "grpc" else HTTP_PORT
    return OtlpTarget(protocol, endpoint, shown if endpoint or variable else f"localhost:{usual}")  # type: ignore[arg-type]


def sdk_disabled(environ: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry is turned off for all programs with this environment."""
    return environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def bypass_proxies(environ: MutableMapping[str, str]) -> None:
    """Exclude this machine from the proxies in the variables, because a proxy cannot reach this
    machine's loopback."""
    known = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    if known.strip() == "*" or not any(
        environ.get(each) or environ.get(each.upper()) for each in _PROXY_VARIABLES
    ):
        return
    listed = [each for each in known.split(",") if each]
    environ["no_proxy"] = ",".join(
        [*listed, *(each for each in _LOCAL_HOSTS if each not in listed)]
    )


def _split_endpoint(endpoint: str) -> tuple[str, int | None]:
    hint = "write a URL: http://localhost:4318 (HTTP), or http://localhost:4317 (gRPC)"
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError:
        raise TelemetryError(
            f"{_endpoint_without_password(endpoint)!r} is not an OTLP endpoint", hint
        ) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TelemetryError(
            f"{_endpoint_without_password(endpoint)!r} is not an OTLP endpoint", hint
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return (f"{host}:{port}" if port else host), port


def _endpoint_without_password(endpoint: str) -> str:
    """Return the endpoint without a user name and password."""
    scheme, found, rest = endpoint.rpartition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2]}"
