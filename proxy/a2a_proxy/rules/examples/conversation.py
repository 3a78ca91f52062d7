"""Exchanges of examples: JSON-RPC, REST, gRPC and cards, with valid HTTP around them unless stated otherwise."""

from __future__ import annotations

import base64
import struct
from typing import Any, Literal

import hpack
import msgspec

from a2a_proto import from_dict, message_class
from a2a_proxy.model.chunk import ChunkKind, Direction
from a2a_proxy.rules.examples.annotations import HOST, header_notes, media_notes, request_notes, version_notes
from a2a_proxy.rules.examples.objects import Json, card, chunk, error_info
from a2a_proxy.rules.examples.script import MS, STEP, UPSTREAM, PeerStep, Script, ScriptConnection

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT

Fields = dict[str, str | None]
"""Header fields to add or change; None removes a field."""
Finish = Literal["end", "cut", "leave", "open"]
"""How a stream ends: cleanly, by a reset of the agent, by a client that leaves, or not at all."""


class EventPause(msgspec.Struct, frozen=True):
    """A pause between events."""

    seconds: float


class RawBytes(msgspec.Struct, frozen=True):
    """Bytes to send unchanged: an SSE block with its blank line, or gRPC DATA with its prefix."""

    data: bytes


class ClientMessage(msgspec.Struct, frozen=True):
    """A further message of the client on a gRPC stream."""

    message: Json


class HalfClosed(msgspec.Struct, frozen=True):
    """The end of the client's side of a gRPC stream."""


class LargeArtifactUpdate(msgspec.Struct, frozen=True):
    """An artifact update with at least this many bytes of text, in parts of 64 KiB."""

    text_bytes: int

    @property
    def event(self) -> Json:
        """The complete update; built only when sent, because examples are kept in memory."""
        made = chunk()
        made["artifactUpdate"]["artifact"]["parts"] = [{"text": "x" * 65536}] * (self.text_bytes // 65536 + 1)
        return made


class MergedMessage(msgspec.Struct, frozen=True):
    """One gRPC message concatenated from the bytes of several: objects as protobuf, bytes unchanged."""

    parts: tuple[Json | bytes, ...]


Event = Json | str | RawBytes | EventPause | LargeArtifactUpdate
"""One event of a stream: an object that the binding wraps, a text sent as the data of an event, or bytes."""


def json_text(value: object) -> str:
    """Return compact JSON with the members in their order."""
    return msgspec.json.encode(value).decode()


# --- HTTP/1.1 -----------------------------------------------------------------------------------------------------


class _Conversation:
    """Collects the steps of one connection."""

    def __init__(self, upstream: str = UPSTREAM, client: str = "127.0.0.1") -> None:
        self.steps: list[PeerStep] = []
        self.at = STEP
        self._upstream, self._client = upstream, client
        self.closes = True

    def add_step(self, direction: Direction, data: bytes, text: str = "", kind: ChunkKind = ChunkKind.DATA) -> None:
        """Add one step, followed by a short pause."""
        self.steps.append(PeerStep(self.at, direction, data, kind, text))
        self.at += STEP

    def add_pause(self, seconds: float) -> None:
        """Advance the time without a step."""
        self.at += int(seconds * 1000) * MS

    def to_connection(self) -> ScriptConnection:
        """Return the connection with all its steps."""
        return ScriptConnection(tuple(self.steps), self.at, self._upstream, self._client, self.closes)


def _header_block(first: str, fields: dict[str, str], changes: Fields | None) -> tuple[bytes, dict[str, str]]:
    made: dict[str, str] = dict(fields)
    for name, value in (changes or {}).items():
        made = {key: item for key, item in made.items() if key.lower() != name.lower()}
        if value is not None:
            made[name] = value
    lines = [first, *(f"{name}: {item}" for name, value in made.items() for item in value.split("\0"))]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), made


def _reason_phrase(status: int) -> str:
    return {200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}.get(
        status, "Status"
    )


def http(
    method: str,
    target: str,
    body: str | bytes = "",
    *,
    headers: Fields | None = None,
    status: int = 200,
    answer: str | bytes | None = "",
    reply_headers: Fields | None = None,
    host: str = HOST,
    version: str = "1.0",
    seconds: float = 0,
    upstream: str = UPSTREAM,
    client: str = "127.0.0.1",
    media: str = "application/json",
) -> Script:
    """Return one HTTP/1.1 exchange. `seconds` is the agent's delay; with `answer` None it never answers."""

    def make() -> ScriptConnection:
        talk = _Conversation(upstream, client)
        data = body.encode() if isinstance(body, str) else body
        fields = {"Host": host}
        if version:
            fields["A2A-Version"] = version
        if data:
            fields |= {"Content-Type": media, "Content-Length": str(len(data))}
        head, _ = _header_block(f"{method} {target} HTTP/1.1", fields, headers)
        text = data.decode("latin-1")
        odd = request_notes(target, text, headers, version=version, media=media, host=host, upstream=upstream)
        talk.add_step(UP, head + data, f"{method} {target}{header_notes(headers, *odd)}  {text}".rstrip())
        talk.add_pause(seconds)
        if answer is None:
            talk.closes = False
            return talk.to_connection()
        said = answer.encode() if isinstance(answer, str) else answer
        fields = {"Content-Type": media, "Content-Length": str(len(said))} if said else {"Content-Length": "0"}
        head, _ = _header_block(f"HTTP/1.1 {status} {_reason_phrase(status)}", fields, reply_headers)
        odd = media_notes(media, reply_headers) if said else []
        talk.add_step(
            DOWN, head + said, f"{status}{header_notes(reply_headers, *odd)}  {said.decode('latin-1')}".rstrip()
        )
        return talk.to_connection()

    return Script.of(make)


def rpc(
    method: str,
    params: Any = None,
    result: Any = None,
    *,
    error: Json | None = None,
    id: Any = 1,
    envelope: Json | None = None,
    answer: Any = None,
    target: str = "/",
    **http_options: Any,
) -> Script:
    """Return a JSON-RPC call with its answer. `envelope` changes members of the request, `answer` is the whole
    response.
    """
    request = _without_none({"jsonrpc": "2.0", "id": id, "method": method, "params": params} | (envelope or {}))
    if answer is None:
        said: Json = {"jsonrpc": "2.0", "id": id}
        answer = said | ({"error": error} if error is not None else {"result": result})
    text = answer if isinstance(answer, str) else json_text(answer)
    return http("POST", target, json_text(request), answer=text, **http_options)


def _without_none(value: Json) -> Json:
    return {name: item for name, item in value.items() if item is not None}


def rpc_stream(
    method: str,
    params: Any,
    *events: Event,
    id: Any = 1,
    **options: Any,
) -> Script:
    """Return a JSON-RPC call answered by an event stream of results, `{"error": ...}`, texts and bytes."""
    request = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}

    def wrap(event: Json) -> str:
        return json_text({"jsonrpc": "2.0", "id": id} | (event if "error" in event else {"result": event}))

    return _stream_exchange("POST", "/", json_text(request), events, wrap, **options)


def rest(method: str, target: str, body: Any = None, result: Any = None, **http_options: Any) -> Script:
    """Return a REST call with its answer; `result` may be text."""
    text = "" if body is None else body if isinstance(body, str) else json_text(body)
    said = "" if result is None else result if isinstance(result, str) else json_text(result)
    return http(
        method, target, text, answer=said, media=http_options.pop("media", "application/a2a+json"), **http_options
    )


def rest_stream(method: str, target: str, body: Any, *events: Event, **options: Any) -> Script:
    """Return a REST call answered by an event stream."""
    text = "" if body is None else json_text(body)
    return _stream_exchange(method, target, text, events, json_text, media="application/a2a+json", **options)


def rest_error(
    code: int, status: str, reason: str, text: str = "it failed", *, details: Any = None, **metadata: str
) -> Json:
    """Return the body of a REST error."""
    found = [error_info(reason, **metadata)] if details is None else details
    return {"error": {"code": code, "status": status, "message": text, "details": found}}


def rpc_error(code: int, reason: str = "", text: str = "it failed", **metadata: str) -> Json:
    """Return a JSON-RPC error with its ErrorInfo."""
    made: Json = {"code": code, "message": text}
    return made | ({"data": [error_info(reason, **metadata)]} if reason else {})


def _stream_exchange(
    method: str,
    target: str,
    body: str,
    events: tuple[Event, ...],
    wrap: Any,
    *,
    headers: Fields | None = None,
    reply_headers: Fields | None = None,
    finish: Finish = "end",
    seconds: float = 0,
    version: str = "1.0",
    host: str = HOST,
    media: str = "application/json",
    upstream: str = UPSTREAM,
    client: str = "127.0.0.1",
) -> Script:
    def make() -> ScriptConnection:
        talk = _Conversation(upstream, client)
        data = body.encode()
        fields = {"Host": host, "Accept": "text/event-stream"}
        if version:
            fields["A2A-Version"] = version
        if data:
            fields |= {"Content-Type": media, "Content-Length": str(len(data))}
        head, _ = _header_block(f"{method} {target} HTTP/1.1", fields, headers)
        odd = request_notes(target, body, headers, version=version, media=media, host=host, upstream=upstream)
        talk.add_step(UP, head + data, f"{method} {target}{header_notes(headers, *odd)}  {body}".rstrip())
        talk.add_pause(seconds)
        fields = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "Transfer-Encoding": "chunked"}
        head, _ = _header_block("HTTP/1.1 200 OK", fields, reply_headers)
        talk.add_step(DOWN, head, f"200 text/event-stream{header_notes(reply_headers)}")
        for event in events:
            if isinstance(event, EventPause):
                talk.add_pause(event.seconds)
                continue
            block = _sse_block(event, wrap)
            text = (
                block.decode("utf-8", "backslashreplace").strip()
                if isinstance(event, RawBytes)
                else _event_text(event, wrap)
            )
            talk.add_step(DOWN, b"%x\r\n%s\r\n" % (len(block), block), f"event  {text}")
        _finish_conversation(talk, finish, b"0\r\n\r\n")
        return talk.to_connection()

    return Script.of(make)


def _event_text(event: Event, wrap: Any) -> str:
    if isinstance(event, LargeArtifactUpdate):
        event = event.event
    return wrap(event) if isinstance(event, dict) else str(event)


def _sse_block(event: Event, wrap: Any) -> bytes:
    if isinstance(event, RawBytes):
        return event.data
    return b"data: " + _event_text(event, wrap).encode() + b"\n\n"


def _finish_conversation(conversation: _Conversation, finish: Finish, last: bytes) -> None:
    if finish == "end":
        conversation.add_step(DOWN, last, "end of stream")
    elif finish == "cut":
        conversation.add_step(DOWN, b"", "resets the connection", ChunkKind.RESET)
    elif finish == "leave":
        conversation.add_step(UP, b"", "resets the connection", ChunkKind.RESET)
    else:
        conversation.closes = False


def fetch_card(
    value: Json | str | None = None, *, path: str = "/.well-known/agent-card.json", **options: Any
) -> Script:
    """Return a fetch of the agent card."""
    text = value if isinstance(value, str) else json_text(value if value is not None else card())
    caching: Fields = {"Cache-Control": "max-age=3600", "ETag": '"1"'}
    fields = caching | options.pop("reply_headers", {})
    return http("GET", path, version="", answer=text, reply_headers=fields, **options)


# --- gRPC ---------------------------------------------------------------------------------------------------------

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA_FRAME, _HEADERS_FRAME, _RST_FRAME, _SETTINGS_FRAME, _GOAWAY_FRAME = 0, 1, 3, 4, 7
_END_STREAM, _END_HEADERS = 1, 4
_MEDIA_LIVE = ("LiveRequest", "LiveResponse")
"""The messages of `SendLiveMessage` in the proposal with media."""
_RESET_CODES = {0: "NO_ERROR", 2: "INTERNAL_ERROR", 7: "REFUSED_STREAM", 8: "CANCEL"}
_ANSWER_MESSAGES = {
    "SendMessage": "SendMessageResponse",
    "SendStreamingMessage": "StreamResponse",
    "SubscribeToTask": "StreamResponse",
    "SendLiveMessage": "StreamResponse",
    "ReconnectToTask": "StreamResponse",
    "GetTask": "Task",
    "CancelTask": "Task",
    "ListTasks": "ListTasksResponse",
    "GetExtendedAgentCard": "AgentCard",
    "CreateTaskPushNotificationConfig": "TaskPushNotificationConfig",
    "GetTaskPushNotificationConfig": "TaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs": "ListTaskPushNotificationConfigsResponse",
    "DeleteTaskPushNotificationConfig": "google.protobuf.Empty",
}
_REQUEST_MESSAGES = {
    "SendStreamingMessage": "SendMessageRequest",
    "SendLiveMessage": "SendMessageRequest",
    "ReconnectToTask": "SendMessageRequest",
    "CreateTaskPushNotificationConfig": "TaskPushNotificationConfig",
}


def _http2_frame(kind: int, flags: int, stream: int, data: bytes) -> bytes:
    return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data


def _with_grpc_prefix(data: bytes) -> bytes:
    return b"\0" + struct.pack(">I", len(data)) + data


def _grpc_message(name: str, value: Json | str | bytes | RawBytes | MergedMessage) -> bytes:
    if isinstance(value, RawBytes):
        return value.data
    return _with_grpc_prefix(
        b"".join(_message_bytes(name, each) for each in (value.parts if isinstance(value, MergedMessage) else (value,)))
    )


def _grpc_message_text(value: Json | bytes | RawBytes | MergedMessage) -> str:
    """Return a gRPC message as text: JSON, or bytes in hexadecimal; `RawBytes` with its prefix."""
    if isinstance(value, MergedMessage):
        return " followed by ".join(map(_grpc_message_text, value.parts))
    data = value.data if isinstance(value, RawBytes) else value
    if isinstance(data, bytes):
        return f"bytes {data.hex(' ')}" if data else "no bytes"
    return json_text(data)


def _message_bytes(name: str, value: Json | str | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    assert isinstance(value, dict)
    name, _, line = name.partition("@")
    line = line or ("live-1975" if name in _MEDIA_LIVE else "1.0")
    return from_dict(line, name, value).SerializeToString()  # type: ignore[arg-type]


def grpc(
    method: str,
    request: Json | bytes | RawBytes,
    *answers: Json | bytes | RawBytes | EventPause | ClientMessage | HalfClosed | LargeArtifactUpdate | MergedMessage,
    status: int | None = 0,
    text: str = "",
    details: list[Json] | None = None,
    details_code: int | None = None,
    headers: Fields | None = None,
    reply_headers: Fields | None = None,
    trailers: Fields | None = None,
    finish: Finish = "end",
    seconds: float = 0,
    path: str = "",
    version: str = "1.0",
    http_status: int = 200,
    upstream: str = UPSTREAM,
    client: str = "127.0.0.1",
    half_close: bool = True,
    reset: int = 2,
    asks: str = "",
    tells: str = "",
) -> Script:
    """Return a gRPC call: its request, its answers, its trailers (`status` None: no trailers).

    `details` are ErrorInfo objects, `reset` is the code used with the finish "cut". `asks` and `tells` are the message
    types if they differ from 1.0; `StreamRequest@live-2153` includes the schema set.
    """
    asks = asks or _REQUEST_MESSAGES.get(method, f"{method}Request")
    tells = tells or _ANSWER_MESSAGES.get(method, "StreamResponse")

    def make() -> ScriptConnection:
        talk = _Conversation(upstream, client)
        encoder = hpack.Encoder()
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":path": path or f"/lf.a2a.v1.A2AService/{method}",
            ":authority": HOST,
            "content-type": "application/grpc",
            "te": "trailers",
        }
        if version:
            fields["a2a-version"] = version
        block = _encode_headers(encoder, fields, headers)
        first = _grpc_message(asks, request)
        flags = _END_STREAM if half_close else 0
        opening = (
            _PREFACE + _http2_frame(_SETTINGS_FRAME, 0, 0, b"") + _http2_frame(_HEADERS_FRAME, _END_HEADERS, 1, block)
        )
        odd = version_notes(version, "" if fields[":path"].startswith("/a2a.v1.") else "1.0", headers)
        called = f"{fields[':path']}{header_notes(headers, *odd)}"
        talk.add_step(
            UP, opening + _http2_frame(_DATA_FRAME, flags, 1, first), f"{called}  {_grpc_message_text(request)}"
        )
        talk.add_pause(seconds)
        back = hpack.Encoder()
        settings = _http2_frame(_SETTINGS_FRAME, 0, 0, b"")
        ending = _grpc_trailers(status, text, details, details_code)
        only = not answers and status not in (None, 0)
        heads = {":status": str(http_status), "content-type": "application/grpc"}
        if only and finish == "end":
            block = _encode_headers(back, heads | ending, (reply_headers or {}) | (trailers or {}))
            told = f"trailers only  {_headers_text(ending)}{header_notes(trailers)}"
            talk.add_step(DOWN, settings + _http2_frame(_HEADERS_FRAME, _END_HEADERS | _END_STREAM, 1, block), told)
            return talk.to_connection()
        block = _encode_headers(back, heads, reply_headers)
        talk.add_step(
            DOWN, settings + _http2_frame(_HEADERS_FRAME, _END_HEADERS, 1, block), header_notes(reply_headers).strip()
        )
        for answer in answers:
            if isinstance(answer, EventPause):
                talk.add_pause(answer.seconds)
            elif isinstance(answer, ClientMessage):
                talk.add_step(
                    UP, _http2_frame(_DATA_FRAME, 0, 1, _grpc_message(asks, answer.message)), json_text(answer.message)
                )
            elif isinstance(answer, HalfClosed):
                talk.add_step(UP, _http2_frame(_DATA_FRAME, _END_STREAM, 1, b""), "END_STREAM")
            else:
                answer = answer.event if isinstance(answer, LargeArtifactUpdate) else answer
                talk.add_step(
                    DOWN, _http2_frame(_DATA_FRAME, 0, 1, _grpc_message(tells, answer)), _grpc_message_text(answer)
                )
        if finish == "cut":
            name = _RESET_CODES.get(reset, str(reset))
            talk.add_step(DOWN, _http2_frame(_RST_FRAME, 0, 1, struct.pack(">I", reset)), f"RST_STREAM {name}")
        elif finish == "leave":
            talk.add_step(UP, _http2_frame(_RST_FRAME, 0, 1, struct.pack(">I", 8)), "RST_STREAM CANCEL")
        elif finish == "open":
            talk.closes = False
        elif status is None:
            talk.add_step(DOWN, _http2_frame(_DATA_FRAME, _END_STREAM, 1, b""), "END_STREAM without trailers")
        else:
            block = _encode_headers(back, ending, trailers)
            flags = _END_HEADERS | _END_STREAM
            talk.add_step(
                DOWN,
                _http2_frame(_HEADERS_FRAME, flags, 1, block),
                f"trailers  {_headers_text(ending)}{header_notes(trailers)}",
            )
        return talk.to_connection()

    return Script.of(make)


def _encode_headers(encoder: hpack.Encoder, fields: dict[str, str], changes: Fields | None) -> bytes:
    made = dict(fields)
    for name, value in (changes or {}).items():
        made.pop(name, None)
        if value is not None:
            made[name] = value
    pairs = [(name, item) for name, value in made.items() for item in value.split("\0")]
    return bytes(encoder.encode(pairs))


def _grpc_trailers(status: int | None, text: str, details: list[Json] | None, code: int | None) -> dict[str, str]:
    made = {"grpc-status": str(status)}
    if text:
        made["grpc-message"] = text
    if details is not None:
        value: Any = message_class("rpc", "google.rpc.Status")(code=status if code is None else code, message=text)
        for each in details:
            info: Any = message_class("rpc", "google.rpc.ErrorInfo")(
                reason=each.get("reason", ""), domain=each.get("domain", ""), metadata=each.get("metadata", {})
            )
            value.details.add(type_url=each.get("@type", ""), value=info.SerializeToString())
        made["grpc-status-details-bin"] = base64.b64encode(value.SerializeToString()).decode().rstrip("=")
    return made


def _headers_text(fields: dict[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in fields.items())
