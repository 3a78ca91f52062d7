"""Request to send for a recorded message: other identifiers and credentials, everything else as
recorded.

An open call to the live agent, independent of its transport.

Binding and dialect of a call: as recorded, or as the user requests.

A recorded message in another binding or dialect: `replay.convert` converts it, this module adds
the envelope.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from a2a_proto import ParseError, RenderError, parse
from a2a_proxy.drive.ids import DriveIds
from a2a_proxy.drive.plan import ClientAction, ClientTurn, PlannedCall
from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, Dialect, Frame, FrameKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.canonical_form import canonical_payload
from a2a_proxy.protocol.operations import LIVE_OPERATIONS, OPERATION_BY_NAME
from a2a_proxy.protocol.schema import JSON, is_protobuf, split_schema
from a2a_proxy.replay.convert.protobuf_bytes import encode_request
from a2a_proxy.replay.convert.requests import convert_request, grpc_path, rest_call, rpc_method

_LABEL_PATTERN = re.compile(rb"redacted-[0-9a-f]{12}")
_CONNECTION_FIELDS = frozenset(
    {
        *(
            "host",
            "content-length",
            "connection",
            "transfer-encoding",
            "accept-encoding",
            "te",
            "expect",
            "upgrade",
        ),
        *("keep-alive", "http2-settings", "proxy-connection", "trailer"),
    }
)
"""Fields that belong to the connection and are set by the new one."""
_EVENT_OBJECTS = ("task", "statusUpdate", "artifactUpdate", "message")


_FIXED_BINDINGS = (Binding.CARD, Binding.OTHER)
"""Bindings that are not translated, because their requests are the same for all."""
_DIALECTS_WITHOUT_REST = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.VENDOR})


class CallTarget(msgspec.Struct, frozen=True):
    """How a call is made."""

    binding: Binding
    dialect: Dialect
    operation: str
    is_translated: bool = False
    """Whether binding or dialect differ from the recording."""


class RequestedTarget(msgspec.Struct, frozen=True):
    """The user's choice; None: as recorded."""

    binding: Binding | None = None
    dialect: Dialect | None = None

    def target_of(self, step: PlannedCall) -> CallTarget:
        """Return how this call is made."""
        exchange = step.exchange
        if exchange.binding in _FIXED_BINDINGS or not exchange.operation:
            return CallTarget(exchange.binding, exchange.dialect, exchange.operation)
        binding, dialect = self.binding or exchange.binding, self.dialect or exchange.dialect
        same = binding is exchange.binding and dialect is exchange.dialect
        return CallTarget(binding, dialect, exchange.operation, not same)

    def obstacle_of(self, step: PlannedCall) -> str:
        """Return why a call cannot be made like this; empty if it can."""
        target = self.target_of(step)
        return self._pipe_obstacle(target) or _target_obstacle(step, target)

    def _pipe_obstacle(self, target: CallTarget) -> str:
        """Return why a call that keeps its binding cannot be made: it is that of a WebSocket, or
        only one of agent and call uses a pipe."""
        if target.binding is Binding.WEBSOCKET:
            return (
                "calls cannot be sent over a WebSocket; choose another binding: --binding jsonrpc"
            )
        if self.binding is Binding.STDIO and target.binding is not Binding.STDIO:
            return "it is an HTTP request, which a stdio agent does not answer"
        if self.binding not in (None, Binding.STDIO) and target.binding is Binding.STDIO:
            return f"it is not an A2A operation, so it cannot be sent over {self.binding}"
        return ""


def _target_obstacle(step: PlannedCall, target: CallTarget) -> str:
    if not target.is_translated:
        return ""
    if target.operation in LIVE_OPERATIONS and target.binding is not Binding.GRPC:
        return f"live streams are sent over gRPC only, not over {target.binding}"
    if step.exchange.live_payload not in ("", "bidi"):
        return "the messages of this live proposal exist in no other binding or dialect"
    try:
        _operation_name(target)
    except LookupError:
        return f"{target.operation} is not in {target.dialect} over {target.binding}"
    return ""


def _operation_name(target: CallTarget) -> str:
    """Return the name of the operation in the dialect and binding. Raises LookupError if it has
    none."""
    if target.operation not in OPERATION_BY_NAME:
        raise LookupError
    if target.binding is Binding.GRPC:
        if target.dialect in _DIALECTS_WITHOUT_REST:
            raise LookupError
        return grpc_path(target.operation, target.dialect)
    if target.binding is Binding.REST:
        if target.dialect in _DIALECTS_WITHOUT_REST or (
            target.dialect is Dialect.V0_3 and target.operation == "ListTasks"
        ):
            raise LookupError
        return target.operation
    return rpc_method(target.operation, target.dialect)


class ReceivedMessage(msgspec.Struct, frozen=True):
    """One message of the live agent."""

    payload: bytes
    schema: str
    kind: FrameKind


class OpenCall(Protocol):
    """One open call. Its methods raise CallError if the call fails."""

    async def send_message(self, request: DriveRequest) -> None:
        """Send a message of the client; the first one opens the call."""

    async def half_close(self) -> None:
        """Half-close the call: the client sends nothing more."""

    async def cancel(self) -> None:
        """Cancel the call, as a client does that is no longer interested."""

    def iter_answers(self) -> AsyncIterator[ReceivedMessage]:
        """Yield the messages of the agent until the call is over."""


class CallTransport(Protocol):
    """Opens calls of one binding."""

    def open_call(self, step: PlannedCall, target: CallTarget, /) -> OpenCall:
        """Return a call like the recorded one; nothing is sent yet."""

    async def close(self) -> None:
        """Close all connections."""


class CallError(Exception):
    """The call failed; the message says how."""


class DriveRequest(msgspec.Struct, frozen=True):
    """One message of the client, ready to be sent."""

    payload: bytes
    headers: Headers
    """Headers of the call, without those of the connection."""
    target: str
    """The request target on HTTP, the path of the method on gRPC."""
    method: str = "POST"
    """The HTTP method."""
    rpc_id: str = ""
    """The JSON-RPC id as JSON text."""
    framing: str = ""


class Credentials(msgspec.Struct, frozen=True):
    """Headers given by the user, which replace the recorded ones."""

    headers: Headers = ()
    everywhere: frozenset[bytes] = frozenset()
    """Names, in lower case, of the given headers that no recorded call had; every call gets them.
    For the other headers, a recorded call without one may be a call that the agent had to
    refuse."""
    secrets: dict[bytes, bytes] = {}
    """Secret for each label, replaced anywhere in a recorded header, so that calls of several users
    keep their own."""

    def apply_to(self, recorded: Headers) -> tuple[Headers, tuple[str, ...]]:
        """Return the headers to send, and the names of recorded headers that are left out because
        they hold labels."""
        given_names = {name.lower() for name, _ in self.headers}
        recorded_names = {name.lower() for name, _ in recorded} | self.everywhere
        sent_headers: list[tuple[bytes, bytes]] = []
        omitted_names: list[str] = []
        for name, value in recorded:
            low = name.lower()
            if (
                low in given_names
                or low.decode("latin-1") in _CONNECTION_FIELDS
                or low.startswith(b":")
            ):
                continue
            value = _LABEL_PATTERN.sub(lambda label: self.secrets.get(label[0], label[0]), value)
            if _LABEL_PATTERN.search(value):
                omitted_names.append(name.decode("latin-1"))
            else:
                sent_headers.append((name, value))
        sent_headers += [
            (name, value) for name, value in self.headers if name.lower() in recorded_names
        ]
        return tuple(sent_headers), tuple(omitted_names)

    def for_plan(self, steps: Iterable[PlannedCall]) -> Credentials:
        """Return a copy that lists in `everywhere` the headers that none of these calls had."""
        recorded_names = {
            name.lower() for step in steps for name, _ in step.exchange.request_headers
        }
        new_names = frozenset(name.lower() for name, _ in self.headers) - recorded_names
        return Credentials(self.headers, new_names, self.secrets)

    def replaced_names(self, steps: Iterable[PlannedCall]) -> frozenset[str]:
        """Return the names, in lower case, of all headers that get other values in these calls."""
        recorded = (header for step in steps for header in step.exchange.request_headers)
        filled = {
            name
            for name, value in recorded
            if any(label in self.secrets for label in _LABEL_PATTERN.findall(value))
        }
        return frozenset(
            name.decode("latin-1").lower() for name in filled | {name for name, _ in self.headers}
        )


def header_labels(step: PlannedCall) -> Iterator[tuple[str, str]]:
    """Yield the names, in lower case, and labels of the recorded headers that have labels."""
    for name, value in step.exchange.request_headers:
        for label in _LABEL_PATTERN.findall(value):
            yield name.decode("latin-1").lower(), label.decode()


def make_request(
    step: PlannedCall, turn: ClientTurn, ids: DriveIds, credentials: Credentials
) -> DriveRequest:
    """Return the request for a recorded message, with its recorded bytes if no identifier in them
    changes."""
    assert turn.frame is not None
    exchange, frame = step.exchange, turn.frame
    headers, _ = credentials.apply_to(exchange.request_headers)
    method = "POST" if exchange.binding is Binding.JSONRPC else exchange.method
    data = _request_payload(frame, exchange.binding, ids)
    # The target; REST calls have identifiers in their path and query.
    target = step.exchange.target
    return DriveRequest(
        data,
        headers,
        ids.rename_text(target) if step.exchange.binding is Binding.REST else target,
        method,
        frame.rpc_id,
        frame.framing,
    )


def make_text_turn(step: PlannedCall, text: str, event: dict[str, Any]) -> ClientTurn:
    """Return the turn that sends a message with this text, about the task of the agent's newest
    event (in the 1.0 form), else about that of the recorded message. Live calls are sent over gRPC
    only."""
    turn = next(turn for turn in reversed(step.turns) if turn.action is ClientAction.SAY)
    assert turn.frame is not None
    recorded: Any = canonical_payload(turn.frame, step.exchange)
    ids = _object_ids(event) or (_object_ids(recorded) if isinstance(recorded, dict) else {})
    message = {
        "messageId": str(uuid.uuid4()),
        "role": "ROLE_USER",
        **ids,
        "parts": [{"text": text}],
    }
    value = {"message": message}
    exchange, schema = step.exchange, turn.frame.schema
    data = encode_request(value, exchange.operation, exchange.dialect, schema)
    frame = msgspec.structs.replace(turn.frame, payload=data, size=len(data), redacted=())
    return ClientTurn(ClientAction.SAY, -1, turn.at, 0, 0, (), frame)


def _request_payload(frame: Frame, binding: Binding, ids: DriveIds) -> bytes:
    if is_protobuf(frame.schema):
        return _protobuf_payload(frame, ids)
    if frame.schema != JSON:
        return frame.payload
    try:
        value: Any = msgspec.json.decode(frame.payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return frame.payload
    if binding in JSONRPC_BINDINGS:
        # The envelope has an `id` of its own, which is not a task id.
        renamed = (
            {**value, "params": ids.rename_json(value["params"])}
            if isinstance(value, dict) and "params" in value
            else value
        )
    else:
        renamed = ids.rename_json(value)
    return frame.payload if renamed == value else msgspec.json.encode(renamed)


def _protobuf_payload(frame: Frame, ids: DriveIds) -> bytes:
    line, name = split_schema(frame.schema)
    try:
        message = parse(line, name, frame.payload)  # type: ignore[arg-type]
    except (ParseError, KeyError):
        return frame.payload
    before = message.SerializeToString(deterministic=True)
    ids.rename_protobuf(message)
    after = message.SerializeToString(deterministic=True)
    return frame.payload if after == before else after


def _object_ids(event: dict[str, Any]) -> dict[str, str]:
    """Return the members of a message that name the task and context of an event."""
    name = next((name for name in _EVENT_OBJECTS if isinstance(event.get(name), dict)), "")
    holder = event[name] if name else {}
    found = {
        "taskId": holder.get("id" if name == "task" else "taskId"),
        "contextId": holder.get("contextId"),
    }
    return {member: value for member, value in found.items() if isinstance(value, str) and value}


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
