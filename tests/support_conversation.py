"""Byte conversations for tests: HTTP/1.1 and gRPC as scripts, decoded by the wire decoder and the
protocol package."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, Self

from hpack import Encoder

from a2a_proxy.model.values import Exchange, Finding, Frame
from a2a_proxy.model.wire import ConnectionFacts, Direction
from a2a_proxy.protocol.conversation import (
    ConnectionConversation,
    ConnectionLink,
    open_conversation,
)
from a2a_proxy.protocol.session_facts import SessionContext
from a2a_proxy.wire.connection import ConnectionDecoder
from support_wire import reload

FACTS = ConnectionFacts(client="127.0.0.1:5000", listen="127.0.0.1:9000", upstream="agent:8000")

Step = tuple[str, Direction, bytes]
"""(`data`, `eof` or `reset`), direction, bytes."""

TO_AGENT, TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT


class Script:
    """The bytes of both peers, in order; the time of a step is its number, in ns from 1000."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def client(self, data: bytes) -> Self:
        self.steps.append(("data", TO_AGENT, data))
        return self

    def agent(self, data: bytes) -> Self:
        self.steps.append(("data", TO_CLIENT, data))
        return self

    def end(self, what: str, direction: Direction) -> Self:
        self.steps.append((what, direction, b""))
        return self


class Http(Script):
    """HTTP/1.1."""

    def request(
        self, line: str, body: bytes | dict[str, Any] | list[Any] = b"", **fields: str
    ) -> Http:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if data:
            fields.setdefault("content_type", "application/json")
            fields["content_length"] = str(len(data))
        elif line.startswith("POST"):
            fields["content_length"] = "0"
        self.client(f"{line} HTTP/1.1\r\nHost: agent:8000\r\n{_fields(fields)}\r\n".encode() + data)
        return self

    def call(
        self, method: str, params: Any, rpc_id: Any = 1, path: str = "/", **fields: str
    ) -> Http:
        """Add a JSON-RPC request."""
        body = {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params}
        return self.request(f"POST {path}", body, **fields)

    def answer(
        self, body: bytes | dict[str, Any] | list[Any] = b"", status: str = "200 OK", **fields: str
    ) -> Http:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        fields.setdefault("content_type", "application/json")
        fields["content_length"] = str(len(data))
        self.agent(f"HTTP/1.1 {status}\r\n{_fields(fields)}\r\n".encode() + data)
        return self

    def result(self, result: Any, rpc_id: Any = 1) -> Http:
        """Add a JSON-RPC response."""
        return self.answer({"jsonrpc": "2.0", "id": rpc_id, "result": result})

    def stream(self, **fields: str) -> Http:
        """Start an event stream with chunked encoding."""
        head = {"content_type": "text/event-stream", "transfer_encoding": "chunked", **fields}
        self.agent(f"HTTP/1.1 200 OK\r\n{_fields(head)}\r\n".encode())
        return self

    def chunk(self, data: bytes) -> Http:
        self.agent(b"%x\r\n%s\r\n" % (len(data), data))
        return self

    def event(self, body: Any, extra: str = "") -> Http:
        """Add one event in the style of the Python SDK."""
        return self.chunk(f"{extra}data: {json.dumps(body)}\r\n\r\n".encode())

    def rpc_event(self, result: Any, rpc_id: Any = 1) -> Http:
        return self.event({"jsonrpc": "2.0", "id": rpc_id, "result": result})

    def done(self) -> Http:
        """Add the last chunk."""
        self.agent(b"0\r\n\r\n")
        return self


def _fields(fields: dict[str, str]) -> str:
    return "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())


class Grpc(Script):
    """gRPC over HTTP/2 with prior knowledge."""

    def __init__(self) -> None:
        super().__init__()
        self._encoders = {TO_AGENT: Encoder(), TO_CLIENT: Encoder()}
        self.client(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
        self.agent(frame(4, 0, 0, b"") + frame(4, 1, 0, b""))

    def open(self, path: str, stream: int = 1, **metadata: str) -> Grpc:
        fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "agent:8000"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            *((name.replace("_", "-"), value) for name, value in metadata.items()),
        ]
        self.client(self._headers(TO_AGENT, fields, stream, 4))
        return self

    def send(self, message: bytes, stream: int = 1, end: bool = True) -> Grpc:
        self.client(frame(0, 1 if end else 0, stream, prefixed(message)))
        return self

    def half_close(self, stream: int = 1) -> Grpc:
        self.client(frame(0, 1, stream, b""))
        return self

    def respond(self, stream: int = 1, **metadata: str) -> Grpc:
        fields = [
            (":status", "200"),
            ("content-type", "application/grpc"),
            *((name.replace("_", "-"), value) for name, value in metadata.items()),
        ]
        self.agent(self._headers(TO_CLIENT, fields, stream, 4))
        return self

    def give(self, message: bytes, stream: int = 1) -> Grpc:
        self.agent(frame(0, 0, stream, prefixed(message)))
        return self

    def trailers(self, status: int = 0, stream: int = 1, **metadata: str | bytes) -> Grpc:
        fields: list[tuple[str, str | bytes]] = [("grpc-status", str(status))]
        fields += [(name.replace("_", "-"), value) for name, value in metadata.items()]
        self.agent(self._headers(TO_CLIENT, fields, stream, 5))
        return self

    def trailers_only(self, status: int, stream: int = 1, **metadata: str | bytes) -> Grpc:
        fields: list[tuple[str, str | bytes]] = [
            (":status", "200"),
            ("content-type", "application/grpc"),
            ("grpc-status", str(status)),
            *((name.replace("_", "-"), value) for name, value in metadata.items()),
        ]
        self.agent(self._headers(TO_CLIENT, fields, stream, 5))
        return self

    def rst(self, direction: Direction, code: int, stream: int = 1) -> Grpc:
        self.steps.append(("data", direction, frame(3, 0, stream, struct.pack(">I", code))))
        return self

    def _headers(self, direction: Direction, fields: Any, stream: int, flags: int) -> bytes:
        return frame(1, flags, stream, self._encoders[direction].encode(fields))


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return one HTTP/2 frame."""
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes((kind, flags))
        + struct.pack(">I", stream)
        + payload
    )


def prefixed(message: bytes, flag: int = 0) -> bytes:
    """Return one gRPC message with its prefix."""
    return struct.pack(">BI", flag, len(message)) + message


class Player:
    """A wire decoder and the conversation that receives its events."""

    def __init__(
        self,
        shared: SessionContext | None = None,
        facts: ConnectionFacts = FACTS,
        connection: int = 1,
    ) -> None:
        self.shared = shared or SessionContext()
        self.decoder = ConnectionDecoder()
        self.conversation = open_conversation(connection, facts, self.shared)
        self.out: list[Frame | Finding] = []

    def step(self, what: str, direction: Direction, data: bytes, at: int) -> None:
        events: list[Any] = []
        if what == "data":
            self.decoder.feed(direction, data, at, events)
        elif what == "eof":
            self.decoder.feed_eof(direction, at, events)
        else:
            self.decoder.feed_reset(direction, at, events)
        self.conversation.feed(events, self.out)

    def restart(self) -> None:
        """Save all state as bytes and continue with the restored state."""
        self.shared, self.decoder = reload(self.shared), reload(self.decoder)
        self.conversation = reload_conversation(self.conversation, self.shared)


def reload_conversation(
    conversation: ConnectionConversation, shared: SessionContext
) -> ConnectionConversation:
    """Return the conversation restored from its state."""
    again: ConnectionConversation = reload(conversation)
    again.attach(ConnectionLink(conversation.link.connection, conversation.link.facts, shared))
    return again


class Played:
    """The result of a script."""

    def __init__(
        self, out: list[Frame | Finding], exchanges: list[Exchange], shared: SessionContext
    ) -> None:
        self.frames = [each for each in out if isinstance(each, Frame) and each.exchange]
        self.connection_frames = [
            each for each in out if isinstance(each, Frame) and not each.exchange
        ]
        self.findings = [each for each in out if isinstance(each, Finding)]
        self.exchanges = exchanges
        self.shared = shared

    @property
    def exchange(self) -> Exchange:
        (only,) = self.exchanges
        return only


def play(script: Script, shared: SessionContext | None = None) -> Played:
    """Decode a script, each step whole."""
    player = Player(shared)
    for number, (what, direction, data) in enumerate(script.steps):
        player.step(what, direction, data, 1000 + number)
    return Played(player.out, player.conversation.pop_changed_exchanges(), player.shared)


def play_split(script: Script, step: int, at: int, restart: bool) -> Played:
    """Decode a script with one step split before byte `at`, with `restart` after the first part if
    requested."""
    player = Player()
    for number, (what, direction, data) in enumerate(script.steps):
        when = 1000 + number
        if number != step:
            player.step(what, direction, data, when)
            continue
        player.step(what, direction, data[:at], when)
        if restart:
            player.restart()
        player.step(what, direction, data[at:], when)
    return Played(player.out, player.conversation.pop_changed_exchanges(), player.shared)


def play_bytewise(script: Script) -> Played:
    """Decode a script byte by byte."""
    player = Player()
    for number, (what, direction, data) in enumerate(script.steps):
        for index in range(max(1, len(data))):
            player.step(what, direction, data[index : index + 1], 1000 + number)
    return Played(player.out, player.conversation.pop_changed_exchanges(), player.shared)


def splits(script: Script) -> Iterator[tuple[int, int]]:
    """Yield every position at which a step can be split."""
    for number, (what, _, data) in enumerate(script.steps):
        if what == "data":
            yield from ((number, at) for at in range(1, len(data)))
