"""A recorded message in another binding or dialect: `replay.convert` writes it, here it gets its envelope."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from a2a_proto import RenderError
from a2a_proxy.drive.call import CallError
from a2a_proxy.drive.request import DriveRequest
from a2a_proxy.drive.target import CallTarget
from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.operations import BY_NAME
from a2a_proxy.replay.convert.protobuf_bytes import request_octets
from a2a_proxy.replay.convert.requests import grpc_path, request, rest_call, rpc_method

FRAMING = "Content-Length: \1\r\nContent-Type: application/json\r\n{version}\r\n\0"
_KEPT = ("a2a-", "x-", "authorization", "proxy-authorization", "cookie", "traceparent", "tracestate", "baggage")
"""Headers, by how they begin, that a client sends on any binding."""
_VERSIONED = frozenset({Dialect.V1_0, Dialect.V1_1})


def translate(value: Any, speech: CallTarget, headers: Headers, number: int) -> DriveRequest:
    """A request in the 1.0 form, made for another binding or dialect. `number` becomes the JSON-RPC id.

    Raises:
        LineError: it cannot be said there.
    """
    try:
        if speech.binding is Binding.GRPC:
            path = grpc_path(speech.operation, speech.dialect)
            octets = request_octets(value, speech.operation, speech.dialect)
            return DriveRequest(octets, _headers(headers, speech), path, "POST")
        if speech.binding is Binding.REST:
            call = rest_call(value, speech.operation, speech.dialect)
            body = b"" if call.body is None else msgspec.json.encode(call.body)
            kind = "application/json" if speech.dialect not in _VERSIONED else "application/a2a+json"
            fields = _headers(headers, speech, kind if call.body is not None else "")
            return DriveRequest(body, fields, call.target, call.method)
        params = request(value, speech.operation, speech.dialect, speech.binding)
        method = rpc_method(speech.operation, speech.dialect)
    except (LookupError, RenderError) as wrong:
        told = f"{speech.operation} cannot be said in {speech.dialect} over {speech.binding}: {wrong}"
        raise CallError(told) from wrong
    envelope = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    octets = msgspec.json.encode(envelope)
    version = f"A2A-Version: {speech.dialect}\r\n" if speech.dialect in _VERSIONED else ""
    fields = _headers(headers, speech, "application/json")
    return DriveRequest(octets, fields, "/", "POST", json.dumps(number), FRAMING.format(version=version))


def _headers(recorded: Headers, speech: CallTarget, content_type: str = "") -> Headers:
    """Those that mean the same everywhere, and what the new binding wants."""
    kept = [
        (name, value)
        for name, value in recorded
        if name.lower().decode("latin-1").startswith(_KEPT) and name.lower() not in (b"a2a-version", b"x-a2a-version")
    ]
    if speech.dialect in _VERSIONED:
        kept.append((b"A2A-Version", str(speech.dialect).encode()))
    if speech.binding is not Binding.GRPC:
        streams = BY_NAME[speech.operation].streams
        kept.append((b"Accept", b"text/event-stream" if streams else b"application/json, */*"))
    if content_type:
        kept.append((b"Content-Type", content_type.encode()))
    return tuple(kept)
