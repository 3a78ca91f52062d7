"""Exchanges of examples: JSON-RPC, REST, gRPC and cards, with valid HTTP around them unless stated
otherwise."""

import base64
import re
import struct
from collections.abc import Callable
from typing import Any, Literal

import hpack
import msgspec

from a2a_proto import from_dict, message_class
from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.rules.examples.objects import (
    Json,
    agent_reply,
    artifact,
    card,
    error_info,
    input_required,
    send,
    snapshot,
)
from a2a_proxy.rules.examples.script import MS, STEP, UPSTREAM, PeerStep, Script, ScriptConnection

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT
HOST = "localhost:8000"
WEBHOOK_URL = "https://client.example.com/hook"
_WEBHOOK_PATH = "/hook"
_JSON_TYPES = ("application/json", "application/a2a+json")
_OLD_METHOD = re.compile(r'"method":"\w+/')
"""A JSON-RPC method of 0.x."""

Fields = dict[str, str | None]
"""Header fields to add or change; None removes a field."""
Finish = Literal["end", "cut", "leave", "open", "fault", "stop"]
"""How a stream ends: cleanly, by a reset of the agent, by a client that leaves, not at all, by a
fault on purpose, or with the proxy."""
_FAULT_EDIT = b'{"kind":"fault-end","stream":1,"note":"cut by --fault: cut=2"}'


class EventPause(msgspec.Struct, frozen=True):
    """A pause between events."""

    seconds: float


class ClientLeaves(msgspec.Struct, frozen=True):
    """The client closes its connection in the middle of an event stream."""


class RawBytes(msgspec.Struct, frozen=True):
    """Bytes to send unchanged: an SSE block with its blank line, or gRPC DATA with its prefix."""

    data: bytes


class ClientMessage(msgspec.Struct, frozen=True):
    """A further message of the client on a gRPC stream."""

    message: Json


class HalfClosed(msgspec.Struct, frozen=True):
    """The end of the client's side of a gRPC stream."""


class MergedMessage(msgspec.Struct, frozen=True):
    """One gRPC message concatenated from the bytes of several: objects as protobuf, bytes
    unchanged."""

    parts: tuple[Json | bytes, ...]


Event = Json | str | RawBytes | EventPause | ClientLeaves
"""One event of a stream: an object that the binding wraps, a text sent as the data of an event, or
bytes."""


def json_text(value: object) -> str:
    """Return compact JSON with the members in their order."""
    return msgspec.json.encode(value).decode()


# --- HTTP/1.1


class _Conversation:
    """Collects the steps of one connection."""

    def __init__(
        self, upstream: str = UPSTREAM, client: str = "127.0.0.1", *, is_delivery: bool = False
    ) -> None:
        self.steps: list[PeerStep] = []
        self.at = STEP
        self._upstream, self._client, self._is_delivery = upstream, client, is_delivery
        self.closes = True

    def add_step(
        self, direction: Direction, data: bytes, text: str = "", kind: ChunkKind = ChunkKind.DATA
    ) -> None:
        """Add one step, followed by a short pause."""
        self.steps.append(PeerStep(self.at, direction, data, kind, text, self._is_delivery))
        self.at += STEP

    def add_pause(self, seconds: float) -> None:
        """Advance the time without a step."""
        self.at += int(seconds * 1000) * MS

    def to_connection(self) -> ScriptConnection:
        """Return the connection with all its steps."""
        return ScriptConnection(
            tuple(self.steps), self.at, self._upstream, self._client, self.closes
        )


def _header_block(first: str, fields: dict[str, str], changes: Fields | None) -> bytes:
    """Return the first line and the header fields with their changes; a changed field replaces
    those of any case."""
    changed = {name.lower() for name in changes or {}}
    kept = {name: value for name, value in fields.items() if name.lower() not in changed}
    kept |= {name: value for name, value in (changes or {}).items() if value is not None}
    lines = [
        first,
        *(f"{name}: {item}" for name, value in kept.items() for item in value.split("\0")),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _reason_phrase(status: int) -> str:
    return {
        200: "OK",
        204: "No Content",
        400: "Bad Request",
        401: "Unauthorized",
        404: "Not Found",
    }.get(status, "Status")


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The unusual properties of an HTTP/1.1 exchange."""

    headers: Fields | None = None
    """Changes of the header fields of the request."""
    status: int = 200
    reply_headers: Fields | None = None
    """Changes of the header fields of the response."""
    host: str = HOST
    version: str = "1.0"
    """`A2A-Version`; empty for none."""
    seconds: float = 0
    """The agent's delay."""
    upstream: str = UPSTREAM
    client: str = "127.0.0.1"
    media: str = "application/json"
    """The content type of the bodies."""
    finish: Finish = "end"
    """How a stream ends; another end than "end" is that of a call without an answer."""
    unreachable: str = ""
    """Why the proxy cannot reach the agent: it answers in the agent's place."""


def http(
    method: str,
    target: str,
    body: str | bytes = "",
    answer: str | bytes | None = "",
    **options: Any,
) -> Script:
    """Return one HTTP/1.1 exchange; `options` are the members of `HttpOptions`. With `answer` None
    the agent never answers, and with a `finish` it does not either.
    """
    chosen = HttpOptions(**options)

    def make() -> ScriptConnection:
        talk = _Conversation(chosen.upstream, chosen.client)
        _add_http_request(talk, f"{method} {target}", {"Host": chosen.host}, body, chosen)
        if chosen.unreachable:
            _add_refusal(talk, chosen)
            return talk.to_connection()
        if answer is None or chosen.finish != "end":
            _finish_conversation(talk, "open" if chosen.finish == "end" else chosen.finish, b"")
            return talk.to_connection()
        data = answer.encode() if isinstance(answer, str) else answer
        fields = (
            {"Content-Type": chosen.media, "Content-Length": str(len(data))}
            if data
            else {"Content-Length": "0"}
        )
        first = f"HTTP/1.1 {chosen.status} {_reason_phrase(chosen.status)}"
        changes = chosen.reply_headers
        notes = _media_notes(chosen.media, changes) if data else []
        text = f"{chosen.status}{_header_notes(changes, *notes)}  {data.decode('latin-1')}".rstrip()
        talk.add_step(DOWN, _header_block(first, fields, changes) + data, text)
        return talk.to_connection()

    return Script.of(make)


def _add_refusal(talk: _Conversation, options: HttpOptions) -> None:
    """Add the answer of the proxy to a request whose agent it cannot reach."""
    where = options.upstream.partition("://")[2]
    detail = f"a2a-proxy cannot reach the upstream agent {where}: {options.unreachable}"
    body = json_text({"title": "Bad Gateway", "status": 502, "detail": detail}).encode()
    fields = {"Content-Type": "application/problem+json", "Content-Length": str(len(body))}
    head = _header_block("HTTP/1.1 502 Bad Gateway", fields, None)
    talk.add_step(DOWN, head + body, f"502 (sent by the proxy)  {detail}", ChunkKind.OURS)


def _add_http_request(
    talk: _Conversation, line: str, fields: dict[str, str], body: str | bytes, options: HttpOptions
) -> None:
    """Add the request, and the agent's delay after it. `line` is the request line without its
    version."""
    data = body.encode() if isinstance(body, str) else body
    if options.version:
        fields = fields | {"A2A-Version": options.version}
    if data:
        fields = fields | {"Content-Type": options.media, "Content-Length": str(len(data))}
    text = data.decode("latin-1" if isinstance(body, bytes) else "utf-8")
    notes = _header_notes(options.headers, *_request_notes(line.partition(" ")[2], text, options))
    talk.add_step(
        UP,
        _header_block(f"{line} HTTP/1.1", fields, options.headers) + data,
        f"{line}{notes}  {text}".rstrip(),
    )
    talk.add_pause(options.seconds)


def _header_notes(changes: Fields | None, *more: str) -> str:
    """Return the header fields changed by an example, and further notes, in brackets. A field with
    several values is listed once for each.
    """
    notes = [*more]
    for name, value in (changes or {}).items():
        notes += (
            [f"(no {name})"] if value is None else [f"{name}: {item}" for item in value.split("\0")]
        )
    return f" [{'; '.join(notes)}]" if notes else ""


def _request_notes(target: str, body: str, options: HttpOptions) -> list[str]:
    """Return the unusual properties of an HTTP request: the version, the content type of a body
    that is not JSON, the host, and the agent's URL if it is not the usual one.
    """
    notes = [f"to {options.upstream}"] if options.upstream != UPSTREAM else []
    if options.host not in (HOST, options.upstream.partition("://")[2]):
        notes.append(f"Host: {options.host}")
    expected = (
        ""
        if target.startswith(("/.well-known/", "/v1/", _WEBHOOK_PATH)) or _OLD_METHOD.search(body)
        else "1.0"
    )
    notes += _version_notes(options.version, expected, options.headers)
    return notes + (_media_notes(options.media, options.headers) if body else [])


def _version_notes(version: str, expected: str, changes: Fields | None) -> list[str]:
    """Return the version if it is not the expected one."""
    if version == expected or _is_changed(changes, "a2a-version"):
        return []
    return [f"A2A-Version: {version}" if version else "(no A2A-Version)"]


def _media_notes(media: str, changes: Fields | None) -> list[str]:
    """Return the content type if it is not JSON."""
    return (
        []
        if media in _JSON_TYPES or _is_changed(changes, "content-type")
        else [f"Content-Type: {media}"]
    )


def _is_changed(changes: Fields | None, name: str) -> bool:
    """Whether the example changes this field, which is then shown anyway."""
    return any(each.lower() == name for each in changes or {})


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
    """Return a JSON-RPC call with its answer. `envelope` changes members of the request, `answer`
    is the whole response.
    """
    request = _without_none(
        {"jsonrpc": "2.0", "id": id, "method": method, "params": params} | (envelope or {})
    )
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
    """Return a JSON-RPC call answered by an event stream of results, `{"error": ...}`, texts and
    bytes."""
    request = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}

    def wrap(event: Json) -> str:
        return json_text(
            {"jsonrpc": "2.0", "id": id} | (event if "error" in event else {"result": event})
        )

    return _stream_exchange("POST /", json_text(request), events, wrap, **options)


def rest(
    method: str, target: str, body: Any = None, result: Any = None, **http_options: Any
) -> Script:
    """Return a REST call with its answer; `result` may be text."""
    text = "" if body is None else body if isinstance(body, str) else json_text(body)
    said = "" if result is None else result if isinstance(result, str) else json_text(result)
    return http(
        method,
        target,
        text,
        answer=said,
        media=http_options.pop("media", "application/a2a+json"),
        **http_options,
    )


def rest_stream(method: str, target: str, body: Any, *events: Event, **options: Any) -> Script:
    """Return a REST call answered by an event stream."""
    text = "" if body is None else json_text(body)
    return _stream_exchange(
        f"{method} {target}", text, events, json_text, media="application/a2a+json", **options
    )


def rest_error(
    code: int,
    status: str,
    reason: str,
    text: str = "it failed",
    *,
    details: Any = None,
    **metadata: str,
) -> Json:
    """Return the body of a REST error."""
    found = [error_info(reason, **metadata)] if details is None else details
    return {"error": {"code": code, "status": status, "message": text, "details": found}}


def rpc_error(code: int, reason: str = "", text: str = "it failed", **metadata: str) -> Json:
    """Return a JSON-RPC error with its ErrorInfo."""
    made: Json = {"code": code, "message": text}
    return made | ({"data": [error_info(reason, **metadata)]} if reason else {})


def _stream_exchange(
    line: str, body: str, events: tuple[Event, ...], wrap: Callable[[Json], str], **options: Any
) -> Script:
    """Return an exchange answered by an event stream; `options` are the members of
    `HttpOptions`."""
    chosen = HttpOptions(**options)

    def make() -> ScriptConnection:
        talk = _Conversation(chosen.upstream, chosen.client)
        _add_http_request(
            talk, line, {"Host": chosen.host, "Accept": "text/event-stream"}, body, chosen
        )
        fields = {
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-store",
            "Transfer-Encoding": "chunked",
        }
        head = _header_block("HTTP/1.1 200 OK", fields, chosen.reply_headers)
        talk.add_step(DOWN, head, f"200 text/event-stream{_header_notes(chosen.reply_headers)}")
        for event in events:
            if isinstance(event, EventPause):
                talk.add_pause(event.seconds)
                continue
            if isinstance(event, ClientLeaves):
                talk.add_step(UP, b"", "closes the connection", ChunkKind.EOF)
                continue
            block = _sse_block(event, wrap)
            text = _block_text(block) if isinstance(event, RawBytes) else _event_text(event, wrap)
            talk.add_step(DOWN, b"%x\r\n%s\r\n" % (len(block), block), f"event  {text}")
        _finish_conversation(talk, chosen.finish, b"0\r\n\r\n")
        return talk.to_connection()

    return Script.of(make)


def _block_text(block: bytes) -> str:
    """Return a block as text, with its line ends if they are CR alone."""
    text = block.decode("utf-8", "backslashreplace")
    return text.strip() if b"\n" in block else text.replace("\r", "\N{SYMBOL FOR CARRIAGE RETURN}")


def _event_text(event: Event, wrap: Callable[[Json], str]) -> str:
    return wrap(event) if isinstance(event, dict) else str(event)


def _sse_block(event: Event, wrap: Callable[[Json], str]) -> bytes:
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
    elif finish == "fault":
        conversation.add_step(DOWN, _FAULT_EDIT, "cut by --fault: cut=2", ChunkKind.EDIT)
    elif finish == "stop":
        conversation.add_step(DOWN, b"", "the proxy stops")
    else:
        conversation.closes = False


def deliver(
    body: Json | str,
    status: int | None = 204,
    *,
    headers: Fields | None = None,
    target: str = _WEBHOOK_PATH,
    **options: Any,
) -> Script:
    """Return a push notification to `WEBHOOK_URL` and the status of the receiver, None if it never
    answers.

    `options` are members of `HttpOptions`: `client` is the agent's address, `seconds` the delay of
    the receiver.
    """
    host = WEBHOOK_URL.partition("://")[2].partition("/")[0]
    defaults = {
        "host": host,
        "upstream": f"https://{host}",
        "version": "",
        "media": "application/a2a+json",
    }
    chosen = HttpOptions(headers=headers, status=status or 0, **(defaults | options))

    def make() -> ScriptConnection:
        talk = _Conversation(chosen.upstream, chosen.client, is_delivery=True)
        text = body if isinstance(body, str) else json_text(body)
        _add_http_request(talk, f"POST {target}", {"Host": chosen.host}, text, chosen)
        if status is None:
            if chosen.finish != "end":
                _finish_conversation(talk, chosen.finish, b"")
            else:
                talk.closes = False
            return talk.to_connection()
        fields = {} if status == 204 else {"Content-Length": "0"}
        head = _header_block(
            f"HTTP/1.1 {status} {_reason_phrase(status)}", fields, chosen.reply_headers
        )
        talk.add_step(DOWN, head, f"{status}{_header_notes(chosen.reply_headers)}")
        return talk.to_connection()

    return Script.of(make)


def fetch_card(
    value: Json | str | None = None, *, path: str = "/.well-known/agent-card.json", **options: Any
) -> Script:
    """Return a fetch of the agent card."""
    text = value if isinstance(value, str) else json_text(value if value is not None else card())
    caching: Fields = {"Cache-Control": "max-age=3600", "ETag": '"1"'}
    fields = caching | options.pop("reply_headers", {})
    return http("GET", path, version="", answer=text, reply_headers=fields, **options)


# --- gRPC

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA_FRAME, _HEADERS_FRAME, _RST_FRAME, _SETTINGS_FRAME = 0, 1, 3, 4
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
    return (
        struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data
    )


def _with_grpc_prefix(data: bytes) -> bytes:
    return b"\0" + struct.pack(">I", len(data)) + data


def _grpc_message(name: str, value: Json | str | bytes | RawBytes | MergedMessage) -> bytes:
    if isinstance(value, RawBytes):
        return value.data
    return _with_grpc_prefix(
        b"".join(
            _message_bytes(name, each)
            for each in (value.parts if isinstance(value, MergedMessage) else (value,))
        )
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


class GrpcOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The unusual properties of a gRPC call."""

    status: int | None = 0
    """`grpc-status`; None for no trailers."""
    text: str = ""
    """`grpc-message`."""
    details: list[Json] | None = None
    """Objects of `grpc-status-details-bin` in ProtoJSON."""
    details_code: int | None = None
    """The status in the details if it is another one."""
    headers: Fields | None = None
    reply_headers: Fields | None = None
    trailers: Fields | None = None
    finish: Finish = "end"
    seconds: float = 0
    """The agent's delay."""
    path: str = ""
    version: str = "1.0"
    """`a2a-version`; empty for none."""
    http_status: int = 200
    upstream: str = UPSTREAM
    client: str = "127.0.0.1"
    half_close: bool = True
    """Whether the request ends the client's side of the stream."""
    reset: int = 2
    """The error code of RST_STREAM for the finish "cut"."""
    request_type: str = ""
    """The message type of requests if it differs from 1.0; `StreamRequest@live-2153` includes the
    schema set."""
    answer_type: str = ""
    """The same of answers."""


_Answer = Json | bytes | RawBytes | EventPause | ClientMessage | HalfClosed | MergedMessage


def grpc(
    method: str, request: Json | bytes | RawBytes, *answers: _Answer, **options: Any
) -> Script:
    """Return a gRPC call: its request, its answers, its trailers; `options` are the members of
    `GrpcOptions`."""
    return Script.of(_GrpcExample(method, request, answers, GrpcOptions(**options)).to_connection)


class _GrpcExample(msgspec.Struct, frozen=True):
    """A gRPC call that is built when its script is used."""

    method: str
    request: Json | bytes | RawBytes
    answers: tuple[_Answer, ...]
    options: GrpcOptions

    def to_connection(self) -> ScriptConnection:
        """Return the connection that carries only this call."""
        options = self.options
        talk = _Conversation(options.upstream, options.client)
        self._add_request(talk)
        talk.add_pause(options.seconds)
        encoder = hpack.Encoder()
        settings = _http2_frame(_SETTINGS_FRAME, 0, 0, b"")
        fields = {":status": str(options.http_status), "content-type": "application/grpc"}
        if not self.answers and options.status not in (None, 0) and options.finish == "end":
            ending = _grpc_trailers(options)
            changes = (options.reply_headers or {}) | (options.trailers or {})
            block = _encode_headers(encoder, fields | ending, changes)
            text = f"trailers only  {_headers_text(ending)}{_header_notes(options.trailers)}"
            talk.add_step(
                DOWN,
                settings + _http2_frame(_HEADERS_FRAME, _END_HEADERS | _END_STREAM, 1, block),
                text,
            )
            return talk.to_connection()
        frame = _http2_frame(
            _HEADERS_FRAME, _END_HEADERS, 1, _encode_headers(encoder, fields, options.reply_headers)
        )
        talk.add_step(DOWN, settings + frame, _header_notes(options.reply_headers).strip())
        for answer in self.answers:
            self._add_answer(talk, answer)
        self._add_ending(talk, encoder)
        return talk.to_connection()

    @property
    def _request_type(self) -> str:
        return self.options.request_type or _REQUEST_MESSAGES.get(
            self.method, f"{self.method}Request"
        )

    def _add_request(self, talk: _Conversation) -> None:
        options = self.options
        path = options.path or f"/lf.a2a.v1.A2AService/{self.method}"
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":path": path,
            ":authority": HOST,
            "content-type": "application/grpc",
            "te": "trailers",
        }
        if options.version:
            fields["a2a-version"] = options.version
        block = _encode_headers(hpack.Encoder(), fields, options.headers)
        opening = _PREFACE + _http2_frame(_SETTINGS_FRAME, 0, 0, b"")
        opening += _http2_frame(_HEADERS_FRAME, _END_HEADERS, 1, block)
        flags = _END_STREAM if options.half_close else 0
        data = _http2_frame(_DATA_FRAME, flags, 1, _grpc_message(self._request_type, self.request))
        expected = "" if path.startswith("/a2a.v1.") else "1.0"
        notes = _header_notes(
            options.headers, *_version_notes(options.version, expected, options.headers)
        )
        talk.add_step(UP, opening + data, f"{path}{notes}  {_grpc_message_text(self.request)}")

    def _add_answer(self, talk: _Conversation, answer: _Answer) -> None:
        """Add an answer of the agent, a pause, or something that the client sends in between."""
        if isinstance(answer, EventPause):
            talk.add_pause(answer.seconds)
        elif isinstance(answer, ClientMessage):
            data = _grpc_message(self._request_type, answer.message)
            talk.add_step(UP, _http2_frame(_DATA_FRAME, 0, 1, data), json_text(answer.message))
        elif isinstance(answer, HalfClosed):
            talk.add_step(UP, _http2_frame(_DATA_FRAME, _END_STREAM, 1, b""), "END_STREAM")
        else:
            name = self.options.answer_type or _ANSWER_MESSAGES.get(self.method, "StreamResponse")
            frame = _http2_frame(_DATA_FRAME, 0, 1, _grpc_message(name, answer))
            talk.add_step(DOWN, frame, _grpc_message_text(answer))

    def _add_ending(self, talk: _Conversation, encoder: hpack.Encoder) -> None:
        options = self.options
        if options.finish == "cut":
            frame = _http2_frame(_RST_FRAME, 0, 1, struct.pack(">I", options.reset))
            talk.add_step(
                DOWN, frame, f"RST_STREAM {_RESET_CODES.get(options.reset, str(options.reset))}"
            )
        elif options.finish == "leave":
            talk.add_step(
                UP, _http2_frame(_RST_FRAME, 0, 1, struct.pack(">I", 8)), "RST_STREAM CANCEL"
            )
        elif options.finish == "open":
            talk.closes = False
        elif options.status is None:
            talk.add_step(
                DOWN, _http2_frame(_DATA_FRAME, _END_STREAM, 1, b""), "END_STREAM without trailers"
            )
        else:
            ending = _grpc_trailers(options)
            frame = _http2_frame(
                _HEADERS_FRAME,
                _END_HEADERS | _END_STREAM,
                1,
                _encode_headers(encoder, ending, options.trailers),
            )
            talk.add_step(
                DOWN, frame, f"trailers  {_headers_text(ending)}{_header_notes(options.trailers)}"
            )


def _encode_headers(
    encoder: hpack.Encoder, fields: dict[str, str], changes: Fields | None
) -> bytes:
    made = dict(fields)
    for name, value in (changes or {}).items():
        made.pop(name, None)
        if value is not None:
            made[name] = value
    pairs = [(name, item) for name, value in made.items() for item in value.split("\0")]
    return bytes(encoder.encode(pairs))


def _grpc_trailers(options: GrpcOptions) -> dict[str, str]:
    fields = {"grpc-status": str(options.status)}
    if options.text:
        fields["grpc-message"] = options.text
    if options.details is not None:
        code = options.status if options.details_code is None else options.details_code
        value: Any = message_class("rpc", "google.rpc.Status")(code=code, message=options.text)
        for each in options.details:
            kind = each.get("@type", "").rpartition("/")[2]
            name = kind if kind.startswith("google.rpc.") else "google.rpc.ErrorInfo"
            members = {key: member for key, member in each.items() if key != "@type"}
            info = from_dict("rpc", name, members)
            value.details.add(type_url=each.get("@type", ""), value=info.SerializeToString())
        fields["grpc-status-details-bin"] = (
            base64.b64encode(value.SerializeToString()).decode().rstrip("=")
        )
    return fields


def _headers_text(fields: dict[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in fields.items())


CLEAN_SEND = rpc("SendMessage", send(), agent_reply())
"""A message and the agent's answer, without a fault."""
STARTED_CALL = rpc(
    "SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING")
)
QUESTION_CALL = rpc("SendMessage", send(), snapshot("INPUT_REQUIRED", status=input_required()))
COMPLETED_CALL = rpc("SendMessage", send(), snapshot("COMPLETED", artifacts=[artifact()]))
