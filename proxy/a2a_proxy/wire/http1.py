"""Observes one HTTP/1.1 connection: pairs requests with responses and assigns every byte to an
event.

`http1_head` parses heads, `http1_body` counts bodies. This module holds the state shared by both
directions: which request a response answers, when a connection stops being HTTP, and which peer
broke off which stream.

Each stream has at most one `Cut`. A client that sends FIN while a response is pending counts as
gone, because HTTP clients leave this way; if it only half-closed, the rest of the response and its
`End` still follow the `Cut`. An `Undecodable` names the stream that was being read, 0 between
messages; no more events follow for its direction.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from a2a_proxy.http.h1 import (
    UNTIL_CLOSE,
    HeadScanner,
    Http1Error,
    body_framing,
    is_bodiless,
    quote_sample,
)
from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import OPAQUE_COUNTERS
from a2a_proxy.model.wire import (
    Control,
    Cut,
    Direction,
    End,
    Framed,
    Head,
    HeadRole,
    Line,
    Undecodable,
    WireEvent,
)
from a2a_proxy.wire.http1_body import BodyReader
from a2a_proxy.wire.http1_head import (
    MAX_HEAD_SIZE,
    MIN_SNIFFED,
    HeadError,
    Leniencies,
    ParsedHead,
    is_plausible,
    parse_request,
    parse_response,
)
from a2a_proxy.wire.http2 import Http2Decoder
from a2a_proxy.wire.websocket import WebSocketDecoder, agreed_extensions

MAX_PIPELINED = 1 << 16
"""Maximum number of unanswered requests; no client pipelines more than a handful."""

_H2C, _WEBSOCKET = "h2c", "websocket"
_TO_AGENT = Direction.TO_AGENT
_TO_CLIENT = Direction.TO_CLIENT
_EXPECTED_HEADS = ("an HTTP/1.1 request head", "an HTTP/1.1 response head")
_HEAD_TOO_LONG = f"no end within {MAX_HEAD_SIZE} bytes"


class _Http1Direction(State):
    """State of one direction."""

    direction: Direction
    offset: int = 0
    """Offset of the next byte."""
    head: HeadScanner = msgspec.field(default_factory=lambda: HeadScanner(MAX_HEAD_SIZE))
    start: int = 0
    began: int = 0
    body: BodyReader | None = None
    opaque: bool = False
    """Whether no more is read as HTTP/1.1."""
    opaque_from: int = 0
    has_switched: bool = False
    """Whether the rest is read by the decoder of another protocol."""
    ended: bool = False

    def make_opaque(self, offset: int) -> None:
        """Stop decoding this direction at `offset`."""
        if not self.opaque:
            self.opaque = True
            self.opaque_from = offset
        self.body = None
        self.head.held.clear()


class Http1Decoder(State, tag="http/1.1"):
    """Both directions of one HTTP/1.1 connection. Never raises because of a peer's bytes."""

    _sides: tuple[_Http1Direction, _Http1Direction] = msgspec.field(
        default_factory=lambda: (_Http1Direction(_TO_AGENT), _Http1Direction(_TO_CLIENT))
    )
    _pending: deque[tuple[int, bytes]] = msgspec.field(default_factory=deque)
    """(stream, method) of requests whose final response head has not arrived, oldest first."""
    _next_stream: int = 1
    _cut_up_to: int = 0
    """Streams up to this number that were open at a break have their `Cut`."""
    _left_up_to: int = 0
    """The same if only the client has closed its side: a break by the agent is still reported."""
    _is_tunnel: bool = False
    _offer: bytes = b""
    """The latest value of `Upgrade` in a request."""
    _http2_settings: bytes = b""
    """`HTTP2-Settings` of the last request that has it."""
    _next: Http2Decoder | WebSocketDecoder | None = None
    """Decodes the bytes after a switch to HTTP/2 (RFC 7540 3.2) or to a WebSocket (RFC 6455)."""
    _shift: int = 0
    """Added to its stream numbers: its stream 1 is that of the request that asked for the
    switch."""
    _leniencies: Leniencies = msgspec.field(default_factory=Leniencies)

    def __post_init__(self) -> None:
        for side in self._sides:
            if side.body is not None:
                side.body.leniencies = self._leniencies

    @property
    def counters(self) -> dict[str, int]:
        """`OPAQUE_COUNTERS`, and those of another protocol after a switch."""
        unread = {
            OPAQUE_COUNTERS[s.direction]: s.offset - s.opaque_from
            for s in self._sides
            if s.opaque and not s.has_switched
        }
        found = {name: count for name, count in unread.items() if count}
        return found if self._next is None else found | self._next.counters

    @property
    def protocol(self) -> str:
        """`http/1.1`, or what the connection has switched to: `h2c` or `websocket`."""
        if self._next is None:
            return "http/1.1"
        return _H2C if isinstance(self._next, Http2Decoder) else _WEBSOCKET

    def feed(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Read bytes that arrived at `at` (ns) in one direction and append events to `out`."""
        side = self._sides[direction]
        base = side.offset
        size = len(data)
        side.offset = base + size
        pos = 0
        while pos < size and not side.opaque:
            body = side.body
            if body is None:
                pos = self._collect_head(side, data, pos, base, at, out)
                continue
            try:
                pos = body.feed(data, pos, base, at, out)
            except Http1Error as error:
                offset = base + error.start
                self._stop_decoding(side, at, offset, error.expected, error.got, body.stream, out)
                return
            if not body.left:
                self._end_message(side, base + pos)
        if side.has_switched and pos < size:
            assert self._next is not None
            self._feed_next(partial(self._next.feed, direction, data[pos:], at), out)

    def feed_ours(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Read bytes that the proxy sent in one direction, between those of the peer."""
        if self._next is not None:
            self._feed_next(partial(self._next.feed_ours, direction, data, at), out)
        else:
            self.feed(direction, data, at, out)

    def feed_eof(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle FIN from the sender of this direction."""
        if self._next is not None:
            self._feed_next(partial(self._next.feed_eof, direction, at), out)
            return
        side = self._sides[direction]
        if side.opaque or side.ended:
            return
        side.ended = True
        body = side.body
        if body is not None and body.left == UNTIL_CLOSE:
            side.body = None
            out.append(End(body.stream, direction, at, side.offset, by_eof=True))
        self._cut_streams(side, at, "eof", out)

    def feed_reset(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle RST from the sender of this direction, which ends both directions."""
        if self._next is not None:
            self._feed_next(partial(self._next.feed_reset, direction, at), out)
            return
        side = self._sides[direction]
        if side.opaque:
            return
        side.ended = True
        self._cut_streams(side, at, "reset", out)

    def feed_loss(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle missing bytes: requests and responses can no longer be paired, so both directions
        become opaque."""
        if self._next is not None:
            self._feed_next(partial(self._next.feed_loss, direction, at), out)
            return
        self._cut_streams(self._sides[direction], at, "lost", out)
        for side in self._sides:
            side.make_opaque(side.offset)
        self._pending.clear()

    def _feed_next(self, feed: Callable[[list[WireEvent]], None], out: list[WireEvent]) -> None:
        """Append the events of a method of the next decoder; their streams are numbered after those
        of HTTP/1.1."""
        if not self._shift:
            feed(out)
            return
        events: list[WireEvent] = []
        feed(events)
        for event in events:
            if isinstance(event, Control | Framed | Line) or not event.stream:
                out.append(event)
            else:
                out.append(replace(event, stream=event.stream + self._shift))

    # Heads

    def _collect_head(
        self, side: _Http1Direction, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]
    ) -> int:
        """Collect a head from `data[pos:]` and return the position after the consumed bytes."""
        if not side.head.held:
            pos = _skip_empty_lines(data, pos)
            if pos == len(data):
                return pos
            side.start, side.began = base + pos, at
        try:
            head, pos = side.head.scan(data, pos)
        except Http1Error:
            self._reject_head(side, at, _HEAD_TOO_LONG, out)
            return len(data)
        begin = head or side.head.held
        if len(begin) >= MIN_SNIFFED and not is_plausible(side.direction, begin):
            self._reject_head(side, at, quote_sample(begin), out)
        elif head:
            self._read_head(side, head, at, out)
        return pos

    def _read_head(self, side: _Http1Direction, head: bytes, at: int, out: list[WireEvent]) -> None:
        end = side.start + len(head)
        try:
            if side.direction is _TO_AGENT:
                parsed = parse_request(head)
            else:
                parsed = parse_response(head)
        except HeadError as error:
            self._reject_head(side, at, str(error), out)
            return
        if side.direction is _TO_AGENT:
            self._on_request_head(side, parsed, end, at, out)
        else:
            self._on_response_head(side, parsed, end, at, out)
        if parsed.leniency and not isinstance(out[-1], Undecodable):
            self._leniencies.report_leniency(
                parsed.leniency, parsed.complaint, side.direction, at, side.start, end, out
            )

    def _on_request_head(
        self, side: _Http1Direction, parsed: ParsedHead, end: int, at: int, out: list[WireEvent]
    ) -> None:
        if len(self._pending) >= MAX_PIPELINED:
            self._stop_decoding(
                side, at, side.start, f"at most {MAX_PIPELINED} unanswered requests", "more", 0, out
            )
            return
        stream = self._open_stream(parsed.method)
        self._offer = parsed.upgrade or self._offer
        if parsed.http2_settings:
            self._http2_settings = parsed.http2_settings
        out.append(_make_head_event(side, parsed, HeadRole.REQUEST, stream, end, at))
        self._begin_body(side, stream, parsed, 0, end, at, out)

    def _on_response_head(
        self, side: _Http1Direction, parsed: ParsedHead, end: int, at: int, out: list[WireEvent]
    ) -> None:
        pending = self._pending
        if not pending:
            self._open_stream(
                b""
            )  # a response without a request, such as a 408 on an idle connection
        stream, method = pending[0]
        protocol = known = ""
        if parsed.status == 101:
            protocol = (parsed.upgrade or self._offer).decode("latin-1")
            known = "" if self._sides[_TO_AGENT].opaque else protocol.lower()
        to_http2 = known == _H2C
        if to_http2 or (parsed.status < 200 and parsed.status != 101):
            out.append(_make_head_event(side, parsed, HeadRole.INFORMATIONAL, stream, end, at))
            if to_http2:
                self._begin_http2(side, stream, end, at, out)
            return
        pending.popleft()
        out.append(_make_head_event(side, parsed, HeadRole.RESPONSE, stream, end, at))
        if known == _WEBSOCKET:
            self._next = WebSocketDecoder.after_handshake(parsed.headers)
            if self._next is not None:
                self._begin_tunnel(side, stream, _WEBSOCKET, end, at, out)
                return
            protocol = f"{protocol} with {', '.join(agreed_extensions(parsed.headers))}"
        connects = method == b"CONNECT" and parsed.status < 300
        if connects or is_bodiless(parsed.status, to_head=method == b"HEAD"):
            self._end_body(side, stream, end, at, out)
        else:
            self._begin_body(side, stream, parsed, UNTIL_CLOSE, end, at, out)
        if parsed.status == 101:
            self._begin_tunnel(side, stream, protocol, end, at, out)
        elif connects:
            self._begin_tunnel(side, stream, "connect", end, at, out)

    def _open_stream(self, method: bytes) -> int:
        stream = self._next_stream
        self._next_stream = stream + 1
        if not self._sides[_TO_CLIENT].opaque:
            self._pending.append((stream, method))
        return stream

    # Messages

    def _begin_body(
        self,
        side: _Http1Direction,
        stream: int,
        parsed: ParsedHead,
        otherwise: int,
        end: int,
        at: int,
        out: list[WireEvent],
    ) -> None:
        """Begin the body after a head; `otherwise` is its framing if no field delimits it."""
        try:
            framing = body_framing(parsed.length, parsed.coding, otherwise)
        except Http1Error as error:
            self._stop_decoding(
                side, at, side.start, "one way to delimit the body", str(error), stream, out
            )
            return
        if framing:
            side.body = BodyReader(stream, side.direction, framing, end, self._leniencies)
        else:
            self._end_body(side, stream, end, at, out)

    def _end_body(
        self, side: _Http1Direction, stream: int, end: int, at: int, out: list[WireEvent]
    ) -> None:
        out.append(End(stream, side.direction, at, end))
        self._end_message(side, end)

    def _end_message(self, side: _Http1Direction, end: int) -> None:
        side.body = None
        if self._is_tunnel:
            self._leave_http1(side, end)

    def _leave_http1(self, side: _Http1Direction, end: int) -> None:
        """Read no more HTTP/1.1 in this direction from `end` on."""
        side.make_opaque(end)
        if self._next is not None:
            self._next.begin_direction(side.direction, end)
            side.has_switched = True

    def _begin_http2(
        self, side: _Http1Direction, stream: int, end: int, at: int, out: list[WireEvent]
    ) -> None:
        """Read HTTP/2 after the head of the response and after the request."""
        self._next = http2 = Http2Decoder()
        http2.begin_after_upgrade(self._http2_settings)
        self._begin_tunnel(side, stream, _H2C, end, at, out)

    def _begin_tunnel(
        self,
        side: _Http1Direction,
        stream: int,
        protocol: str,
        end: int,
        at: int,
        out: list[WireEvent],
    ) -> None:
        """Stop reading HTTP: at once for the agent's direction, after the request's body for the
        client's."""
        detail: dict[str, object] = {"protocol": protocol, "stream": stream}
        out.append(Control(side.direction, at, side.start, end, "upgrade", detail))
        self._is_tunnel = True
        if self._next is not None:
            self._shift = stream - 1
        for each in self._sides:
            if each.body is None:
                held = bytes(each.head.held)
                self._leave_http1(
                    each, end if each is side else each.start if held else each.offset
                )
                if held and self._next is not None:
                    self._feed_next(partial(self._next.feed, each.direction, held, at), out)

    # Ends

    def _cut_streams(self, side: _Http1Direction, at: int, how: str, out: list[WireEvent]) -> None:
        """Emit one `Cut` per open stream that has none; a break by the agent also cuts streams
        whose client has left."""
        leaves = how == "eof" and side.direction is _TO_AGENT
        for stream in sorted(self._streams_to_cut(side, how)):
            if stream <= self._cut_up_to or (
                stream <= self._left_up_to and side.direction is _TO_AGENT
            ):
                continue
            if leaves:
                self._left_up_to = stream
            else:
                self._cut_up_to = stream
            out.append(Cut(stream, side.direction, at, side.offset, how))

    def _streams_to_cut(self, side: _Http1Direction, how: str) -> set[int]:
        streams = {stream for stream, _ in self._pending}
        for each in self._sides:
            # An agent that answered early and ends its side does not end the client's upload.
            if each.body is not None and (
                each is side or how != "eof" or side.direction is _TO_AGENT
            ):
                streams.add(each.body.stream)
        if side.head.held and (side.direction is _TO_AGENT or not streams):
            streams.add(self._next_stream)
            self._next_stream += 1
        return streams

    def _reject_head(self, side: _Http1Direction, at: int, got: str, out: list[WireEvent]) -> None:
        stream = self._pending[0][0] if side.direction is _TO_CLIENT and self._pending else 0
        self._stop_decoding(side, at, side.start, _EXPECTED_HEADS[side.direction], got, stream, out)

    def _stop_decoding(
        self,
        side: _Http1Direction,
        at: int,
        offset: int,
        expected: str,
        got: str,
        stream: int,
        out: list[WireEvent],
    ) -> None:
        out.append(Undecodable(side.direction, at, offset, expected, got, stream))
        side.make_opaque(offset)
        if side.direction is _TO_CLIENT:
            self._pending.clear()


def _skip_empty_lines(data: bytes, pos: int) -> int:
    """Return the position after empty lines, which peers may send between messages (RFC 9112,
    2.2)."""
    while data[pos : pos + 1] in (b"\r", b"\n"):
        pos += 1
    return pos


def _make_head_event(
    side: _Http1Direction, parsed: ParsedHead, role: HeadRole, stream: int, end: int, at: int
) -> Head:
    target = parsed.target
    return Head(
        stream=stream,
        direction=side.direction,
        at=at,
        began=side.began,
        start=side.start,
        end=end,
        role=role,
        headers=parsed.headers,
        method=parsed.method,
        target=target,
        authority=parsed.host,
        scheme=b""
        if target[:1] == b"/"
        else target.partition(b"://")[0]
        if b"://" in target
        else b"",
        status=parsed.status,
        reason=parsed.reason,
        version=parsed.version,
    )
