"""Two real HTTP/2 peers (`h2`) with an editor between them, without sockets; the test moves the
bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event
from h2.exceptions import ProtocolError

from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.edit import CardOutcome, EditPlan, Output
from a2a_proxy.relay.edits.http2 import Http2Editor

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT
Cut = Callable[[bytes], list[bytes]]
Field = tuple[bytes, bytes]
Log = Iterable[tuple[Direction | None, bytes, float]]
CARD_PATH = b"/lf.a2a.v1.A2AService/GetExtendedAgentCard"
PLAIN_PATH = b"/lf.a2a.v1.A2AService/SendMessage"


def request(
    path: bytes = PLAIN_PATH, *more: Field, authority: bytes = b"proxy:9000"
) -> list[Field]:
    return [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path),
        (b":authority", authority),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
        *more,
    ]


RESPONSE = [(b":status", b"200"), (b"content-type", b"application/grpc")]
TRAILERS = [(b"grpc-status", b"0"), (b"grpc-message", b"")]


def message(payload: bytes, compressed: int = 0) -> bytes:
    return bytes([compressed]) + len(payload).to_bytes(4, "big") + payload


def rewriter(change: Callable[[bytes], bytes | None]) -> Any:
    """Return a card rewriter that applies `change` to the payload; None leaves it unchanged."""

    def rewrite(payload: bytes, form: str, authority: str) -> CardOutcome:
        return CardOutcome(payload=change(payload), urls=(("before", "after"),))

    return rewrite


def whole(data: bytes) -> list[bytes]:
    return [data]


def single(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


class Pair:
    """A client, an agent, and the editor between them. `move` moves the bytes, `cut` into
    pieces."""

    def __init__(self, plan: EditPlan | None = None, cut: Cut = whole, editor: Any = None) -> None:
        self.client = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self.agent = H2Connection(
            H2Configuration(client_side=False, header_encoding=None, validate_inbound_headers=False)
        )
        self.editor = editor or Http2Editor(plan or EditPlan())
        self.cut = cut
        self.now = 100.0
        self.client_events: list[Event] = []
        self.agent_events: list[Event] = []
        self.sent = {UP: bytearray(), DOWN: bytearray()}
        """What left the editor."""
        self.given = {UP: bytearray(), DOWN: bytearray()}
        """What went into it."""
        self.log: list[tuple[Direction | None, bytes, float]] = []
        """What the editor was told, and when; no direction for a tick."""
        self.consume = True
        """The client grants as many bytes as it got, at once."""
        self.client.initiate_connection()
        self.agent.initiate_connection()

    def take(self, sent: list[Output]) -> None:
        for item in sent:
            self.sent[item.direction] += item.data
            if item.direction is UP:
                self.agent_events += self.agent.receive_data(item.data)
            else:
                self._client_gets(item.data)

    def _client_gets(self, data: bytes) -> None:
        events = self.client.receive_data(data)
        self.client_events += events
        for event in events:
            if self.consume and isinstance(event, DataReceived) and event.flow_controlled_length:
                self.grant(event.flow_controlled_length, event.stream_id)

    def grant(self, data: int, stream: int | None = None) -> None:
        self.client.increment_flow_control_window(data)
        if stream is not None:
            with contextlib.suppress(ProtocolError, KeyError):  # the stream may already be closed
                self.client.increment_flow_control_window(data, stream)

    def feed(self, direction: Direction, data: bytes) -> None:
        self.given[direction] += data
        self.log.append((direction, data, self.now))
        for piece in self.cut(data):
            self.take(self.editor.feed(direction, piece, self.now))

    def move(self) -> None:
        """Move bytes until no peer sends more."""
        while (up := self.client.data_to_send()) or (down := self.agent.data_to_send()):
            if up:
                self.feed(UP, up)
            elif down:
                self.feed(DOWN, down)

    def tick(self, seconds: float) -> None:
        self.now += seconds
        if self.editor.deadline is not None and self.editor.deadline <= self.now:
            self.log.append((None, b"", self.now))
            self.take(self.editor.tick(self.now))

    def answer(self, stream: int, payload: bytes, compressed: int = 0) -> None:
        """Send the agent's complete answer to a unary call."""
        self.agent.send_headers(stream, RESPONSE)
        self.send(stream, message(payload, compressed))
        self.agent.send_headers(stream, TRAILERS, end_stream=True)

    def send(self, stream: int, data: bytes) -> None:
        size = self.agent.max_outbound_frame_size
        for at in range(0, len(data), size):
            self.agent.send_data(stream, data[at : at + size])

    def got(self, stream: int) -> bytes:
        """Return the data of a stream that the client has received."""
        return b"".join(
            e.data
            for e in self.client_events
            if isinstance(e, DataReceived) and e.stream_id == stream
        )

    def windows(self) -> tuple[int, int]:
        """Return the connection's window for the agent's bytes, at the client and at the agent."""
        return self.client.inbound_flow_control_window, self.agent.outbound_flow_control_window


def replayed(log: Log, plan: EditPlan, cut: Cut) -> dict[Direction, bytes]:
    """Return what a new editor sends in each direction for the same input in other pieces."""
    editor, out = Http2Editor(plan), {UP: b"", DOWN: b""}
    for direction, data, now in log:
        for piece in cut(data) if direction is not None else [b""]:
            sent = editor.tick(now) if direction is None else editor.feed(direction, piece, now)
            for item in sent:
                out[item.direction] += item.data
    return out
