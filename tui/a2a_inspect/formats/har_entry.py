"""An exchange as an entry of HAR 1.2.

A2A data is in the member `_a2a`, because custom members begin with an underscore.
"""

import base64
import contextlib
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote

from a2a_inspect.data.finding_words import finding_facts
from a2a_inspect.data.frame_objects import frame_object
from a2a_proxy.model.values import (
    JSONRPC_BINDINGS,
    Binding,
    Connection,
    Exchange,
    Finding,
    Frame,
    FrameKind,
)
from a2a_proxy.model.wire import Direction, Headers
from a2a_proxy.present import text
from a2a_proxy.present.text import exchange_object
from a2a_proxy.protocol.schema import is_protobuf
from a2a_proxy.redaction.labels import is_withheld
from a2a_proxy.wire.sse import rebuild_event

_BODIES = frozenset(
    (
        FrameKind.REQUEST,
        FrameKind.RESPONSE,
        FrameKind.EVENT,
        FrameKind.ERROR,
        FrameKind.COMMENT,
        FrameKind.OTHER,
        FrameKind.UNDECODABLE,
    )
)
"""Kinds of frames whose payload was part of a body."""
_MS = 1_000_000
"""One millisecond in ns."""
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


def format_time(at: int) -> str:
    """Return a time, ns since the epoch, in ISO 8601 with milliseconds."""
    return f"{text.format_utc(at)[:-7]}Z"


def har_entry(
    exchange: Exchange,
    connection: Connection | None,
    frames: Sequence[Frame],
    findings: Sequence[Finding],
) -> dict[str, Any]:
    """Return the entry without its page."""
    timings = _timings_object(exchange, frames)
    to_agent = [
        frame for frame in frames if frame.direction is Direction.TO_AGENT and frame.kind in _BODIES
    ]
    to_client = [
        frame
        for frame in frames
        if frame.direction is Direction.TO_CLIENT and frame.kind in _BODIES
    ]
    peer = connection.peer.rpartition(":")[0].strip("[]") if connection is not None else ""
    return {
        "startedDateTime": format_time(exchange.started),
        "time": sum(timings.values()),
        "request": _request_object(exchange, connection, to_agent),
        "response": _response_object(exchange, to_client),
        "cache": {},
        "timings": {"blocked": -1, "dns": -1, "connect": -1, "ssl": -1, **timings},
        **({"serverIPAddress": peer} if peer else {}),
        "connection": str(exchange.connection),
        # Chromium's own values; without them Chromium guesses from names.
        "_resourceType": "websocket" if _is_on_websocket(exchange) else "fetch",
        "_a2a": {
            **exchange_object(exchange),
            "frames": [_frame_details(frame, exchange) for frame in frames],
            "findings": [finding_facts(each) for each in findings],
        },
    }


def _is_on_websocket(exchange: Exchange) -> bool:
    """Return whether it is a call on a WebSocket, or the handshake with the other messages."""
    return exchange.binding is Binding.WEBSOCKET or exchange.status == 101


def _timings_object(exchange: Exchange, frames: Sequence[Frame]) -> dict[str, float]:
    """Return the known durations in milliseconds: the request, until the response began, until it
    ended.

    A stream may be answered before its request has ended.
    """
    last = exchange.closed or max((frame.at for frame in frames), default=exchange.started)
    response_start = exchange.response_started or exchange.first_event or last
    request_end = min(exchange.request_ended or response_start, response_start)
    parts = {
        "send": request_end - exchange.started,
        "wait": response_start - request_end,
        "receive": last - response_start,
    }
    return {name: max(ns, 0) / _MS for name, ns in parts.items()}


def _request_object(
    exchange: Exchange, connection: Connection | None, frames: Sequence[Frame]
) -> dict[str, Any]:
    body, data = _body_object(exchange, frames), _body_size(exchange, frames)
    posted: dict[str, Any] = {}
    if frames and (data or "comment" in body):
        how = (
            {"_encoding": body.pop("encoding")} if "encoding" in body else {}
        )  # HAR has no encoding for requests
        posted["postData"] = {
            "mimeType": _header_value(exchange.request_headers, b"content-type"),
            "text": "",
            **body,
            **how,
        }
    pairs = parse_qsl(exchange.target.partition("?")[2], keep_blank_values=True)
    return {
        "method": _http_method(exchange),
        "url": _request_url(exchange, connection),
        "httpVersion": _http_version(exchange),
        "cookies": [],
        "headers": _header_objects(exchange.request_headers),
        "queryString": [{"name": name, "value": value} for name, value in pairs],
        **posted,
        "headersSize": -1,
        "bodySize": data,
    }


def _response_object(exchange: Exchange, frames: Sequence[Frame]) -> dict[str, Any]:
    headers = _header_objects(exchange.response_headers) + _header_objects(exchange.trailers)
    status, data = exchange.status, _body_size(exchange, frames)
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    content = {
        "mimeType": _header_value(exchange.response_headers, b"content-type"),
        **_body_object(exchange, frames),
    }
    return {
        "status": status,
        "statusText": phrase,
        "httpVersion": _http_version(exchange),
        "cookies": [],
        "headers": headers,
        "content": {"size": data, **content},
        "redirectURL": _header_value(exchange.response_headers, b"location"),
        "headersSize": -1,
        "bodySize": -1,
        "_transferSize": data,  # Chromium shows this as the size
        **({"_error": exchange.error} if exchange.error else {}),
    }


def _http_method(exchange: Exchange) -> str:
    """Return the HTTP method; `exchange.method` has the JSON-RPC or gRPC method if there is one."""
    is_rpc = exchange.binding in JSONRPC_BINDINGS | {Binding.GRPC}
    return "POST" if is_rpc else exchange.method


def _request_url(exchange: Exchange, connection: Connection | None) -> str:
    """Return the URL as requested by the client. A stdio call has no URL and gets one that names
    its operation."""
    if exchange.binding is Binding.STDIO:
        return f"stdio://agent/{_percent_encode(exchange.method)}"
    target = _percent_encode(exchange.target)
    if "://" in target.partition("?")[0]:
        return target
    listen = connection.listen if connection is not None else ""
    return f"http://{_percent_encode(exchange.authority or listen or 'unknown')}{target}"


def _percent_encode(text: str) -> str:
    """Percent-encode all characters except printable ASCII."""
    return quote(text, safe=_PRINTABLE, errors="replace")


def _http_version(exchange: Exchange) -> str:
    return (
        "stdio"
        if exchange.binding is Binding.STDIO
        else f"HTTP/{exchange.http_version}".removesuffix("/")
    )


def _header_objects(headers: Headers) -> list[dict[str, str]]:
    return [
        {"name": name.decode("latin-1"), "value": value.decode("latin-1")}
        for name, value in headers
    ]


def _header_value(headers: Headers, lowercase_name: bytes) -> str:
    return next(
        (value.decode("latin-1") for name, value in headers if name.lower() == lowercase_name), ""
    )


def _body_size(exchange: Exchange, frames: Sequence[Frame]) -> int:
    """Return the full size of the body in bytes, including parts that were not recorded, without
    content coding, with framing.
    """
    return sum(
        len(_wire_bytes(exchange, frame)) - len(frame.payload) + frame.size for frame in frames
    )


def _body_object(exchange: Exchange, frames: Sequence[Frame]) -> dict[str, str]:
    """Return `text` as sent but without content coding, `encoding` if it is not text, and `comment`
    if a part is missing.
    """
    lacking = [
        *["payload not recorded"] * any(map(is_withheld, frames)),
        *["cut"] * any(f.truncated for f in frames),
    ]
    comment = {"comment": ", ".join(lacking)} if lacking else {}
    data = b"".join(_wire_bytes(exchange, frame) for frame in frames)
    if not data:
        return comment
    if exchange.binding is not Binding.GRPC:
        with contextlib.suppress(UnicodeDecodeError):
            return {"text": data.decode(), **comment}
    return {"text": base64.b64encode(data).decode(), "encoding": "base64", **comment}


def _wire_bytes(exchange: Exchange, frame: Frame) -> bytes:
    if exchange.binding is Binding.GRPC:
        return b"\0" + len(frame.payload).to_bytes(4, "big") + frame.payload
    has_framing = exchange.binding is not Binding.STDIO and not _is_on_websocket(exchange)
    if has_framing and frame.framing:
        with contextlib.suppress(UnicodeEncodeError):  # a framing that was never on a wire
            return rebuild_event(frame.framing, frame.payload)
    return frame.payload


def _frame_details(frame: Frame, exchange: Exchange) -> dict[str, object]:
    """Return the facts of a frame; its payload only if the entry's text has it as bytes."""
    facts = frame_object(frame, exchange)
    if not is_protobuf(frame.schema):
        facts.pop("payload", None)
    return facts
