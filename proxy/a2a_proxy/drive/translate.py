"""A recorded message in another binding or dialect: `replay.convert` converts it, this module adds
the envelope."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from a2a_proto import RenderError
from a2a_proxy.drive.request import CallError, CallTarget, DriveRequest
from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.operations import OPERATION_BY_NAME
from a2a_proxy.replay.convert.protobuf_bytes import encode_request
from a2a_proxy.replay.convert.requests import convert_request, grpc_path, rest_call, rpc_method

STDIO_FRAMING = "Content-Length: \1\r\nContent-Type: application/json\r\n{version}\r\n\0"
_KEPT_PREFIXES = (
    "a2a-",
    "x-",
    "authorization",
    "proxy-authorization",
    "cookie",
    "traceparent",
    "tracestate",
    "baggage",
)
"""Prefixes of headers that a client sends on any binding."""
_VERSIONED_DIALECTS = frozenset({Dialect.V1_0, Dialect.V1_1})


def translate_request(
    value: Any, target: CallTarget, headers: Headers, number: int
) -> DriveRequest:
    """Return a request in the 1.0 form, converted to another binding or dialect. `number` becomes
    the JSON-RPC id.

    Raises CallError if it cannot be expressed there.
    """
    try:
        if target.binding is Binding.GRPC:
            path = grpc_path(target.operation, target.dialect)
            data = encode_request(value, target.operation, target.dialect)
            return DriveRequest(data, _translate_headers(headers, target), path, "POST")
        if target.binding is Binding.REST:
            call = rest_call(value, target.operation, target.dialect)
            body = b"" if call.body is None else msgspec.json.encode(call.body)
            kind = (
                "application/json"
                if target.dialect not in _VERSIONED_DIALECTS
                else "application/a2a+json"
            )
            fields = _translate_headers(headers, target, kind if call.body is not None else "")
            return DriveRequest(body, fields, call.target, call.method)
        params = convert_request(value, target.operation, target.dialect, target.binding)
        method = rpc_method(target.operation, target.dialect)
    except (LookupError, RenderError) as wrong:
        reason = (
            f"{target.operation} cannot be expressed in {target.dialect} over {target.binding}: "
            f"{wrong}"
        )
        raise CallError(reason) from wrong
    envelope = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    data = msgspec.json.encode(envelope)
    version = f"A2A-Version: {target.dialect}\r\n" if target.dialect in _VERSIONED_DIALECTS else ""
    fields = _translate_headers(headers, target, "application/json")
    return DriveRequest(
        data, fields, "/", "POST", json.dumps(number), STDIO_FRAMING.format(version=version)
    )


def _translate_headers(recorded: Headers, target: CallTarget, content_type: str = "") -> Headers:
    """Return the headers that mean the same on all bindings, and those that the new binding
    requires."""
    translated = [
        (name, value)
        for name, value in recorded
        if name.lower().decode("latin-1").startswith(_KEPT_PREFIXES)
        and name.lower() not in (b"a2a-version", b"x-a2a-version")
    ]
    if target.dialect in _VERSIONED_DIALECTS:
        translated.append((b"A2A-Version", str(target.dialect).encode()))
    if target.binding is not Binding.GRPC:
        streams = OPERATION_BY_NAME[target.operation].is_streaming
        translated.append(
            (b"Accept", b"text/event-stream" if streams else b"application/json, */*")
        )
    if content_type:
        translated.append((b"Content-Type", content_type.encode()))
    return tuple(translated)
