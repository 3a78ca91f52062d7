"""Observes HTTP/2 (RFC 9113) with prior knowledge: both directions of one connection, bytes in,
wire events out.

The observer is not a peer: it sends nothing, enforces neither flow control nor frame size, and
tolerates what real peers tolerate. DATA is emitted as it arrives and never held; every other frame
is held, bounded, until it is complete. Bytes that cannot be decoded make their direction opaque
with one `Undecodable`; the other direction continues.

The bytes of a `Body` are the last ones of its byte range; trailing padding follows as a `Body`
without bytes. An `End` starts at the offset just past the frame that ended the direction.
"""

import contextlib
from collections import Counter
from typing import Any

import msgspec

from a2a_proxy.http import PREFACE
from a2a_proxy.http.h2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_STREAM,
    FRAME_HEAD_SIZE,
    GOAWAY,
    PADDED,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAM_MASK,
    UNLIMITED,
    Frame,
    FrameHandler,
    HeaderBlock,
    Violation,
    decode_settings,
    describe_frame_head,
    unpack_uint32,
)
from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import OPAQUE_COUNTERS
from a2a_proxy.model.wire import (
    Body,
    Control,
    Cut,
    Direction,
    End,
    Head,
    HeadRole,
    Undecodable,
    WireEvent,
)
from a2a_proxy.wire.http2_side import DataFrame, DirectionState, HeaderFields

MAX_FRAME_SIZE = 1 << 20
"""Maximum bytes of a frame other than DATA, and of a compressed header block. The length of a frame
that begins with text is larger."""
MAX_DEBUG_DATA = 4096
"""Characters kept of a GOAWAY's debug data."""

MAX_STREAMS = 1 << 18
"""Maximum number of streams open at the same time on one connection."""
_LEAST_BUDGET = UNLIMITED >> 1
"""A budget that no read spends, whatever frames it holds: the scanner reads to its end."""

# State bits of a stream: header block seen (1 toward the agent, 2 toward the client), ended (4, 8),
# cut (16).
_CLOSED_BITS = 4 | 8
_CUT_BIT = 16


class Http2Decoder(State, FrameHandler, tag="h2c"):
    """Decodes both directions of one connection. Never raises, whatever the bytes."""

    handled: frozenset[int] = frozenset(range(CONTINUATION + 1)) - {PRIORITY}

    counters: Counter[str] = msgspec.field(default_factory=Counter)
    """Frames too common to be events: `data_frames`, `ping`, `window_update`, `settings_ack`,
    `priority`, `unknown_frames`, `rst_no_error`, and `late_frames` for frames of streams that were
    already closed; and `OPAQUE_COUNTERS`."""
    _sides: list[DirectionState] = msgspec.field(
        default_factory=lambda: [
            DirectionState(MAX_FRAME_SIZE, preface=True),
            DirectionState(MAX_FRAME_SIZE, direction=Direction.TO_CLIENT),
        ]
    )
    _streams: dict[int, int] = {}
    _highest: int = 0

    _at: int = 0
    """The time the bytes arrived that are decoded, ns."""

    _direction: Direction = Direction.TO_AGENT
    """Their direction."""
    _out: list[Any] = []
    """Their events; empty between reads."""

    def begin_after_upgrade(self, settings: bytes) -> None:
        """Continue an HTTP/1.1 connection, whose request is that of stream 1; `settings` is the
        value of its field HTTP2-Settings (RFC 7540 3.2)."""
        agent, client = self._sides
        self._streams[1], self._highest = agent.head_bit | agent.ended_bit, 1
        with contextlib.suppress(ValueError):
            client.hpack.apply_settings(decode_settings(settings))

    def begin_direction(self, direction: Direction, offset: int) -> None:
        """Begin one direction at this byte offset."""
        self._sides[direction].offset = offset

    def feed(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Decode bytes of one direction that arrived at `at` (ns) and append events to `out`."""
        side = self._sides[direction]
        if side.opaque:
            side.offset += len(data)
            self.counters[OPAQUE_COUNTERS[direction]] += len(data)
            return
        self._at = at
        if self._direction is not direction:
            self._direction = direction
        if side.budget < _LEAST_BUDGET:
            side.budget = UNLIMITED
        try:
            if side.rest or side.preface:
                side.scan(data, 0, self)
            else:
                side.scan_frames(data, 0, self)
            if side.rest and side.offset != side.base:
                side.base, side.began = side.offset, at
        except Violation as wrong:
            self._report_violation(side, wrong, at, self._out)
            self._silence_direction(side)
        out += self._out
        self._out.clear()

    def feed_ours(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Decode whole frames that the proxy sent in one direction, also in the middle of a frame
        of the peer. Their header blocks use no dynamic table, and their bytes do not count."""
        side = self._sides[direction]
        self._sides[direction] = DirectionState(
            MAX_FRAME_SIZE, offset=side.offset, direction=direction
        )
        self.feed(direction, data, at, out)
        self._sides[direction] = side

    def feed_eof(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle FIN from the sender of this direction. Every stream that is open in either
        direction is cut once.

        The other direction is still decoded, because a client may half-close its connection and
        continue to read.
        """
        side = self._sides[direction]
        if not side.opaque and (wrong := _find_incomplete(side)):
            self._report_violation(side, wrong, at, out)
        self._cut_all_streams(side, at, "eof", out)
        self._silence_direction(side)

    def feed_reset(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle RST from the sender of this direction: every open stream is cut and forgotten."""
        self._cut_all_streams(self._sides[direction], at, "reset", out)
        self._close_connection()

    def feed_loss(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle missing bytes: open streams are cut, and the whole connection is opaque from
        here."""
        self._cut_all_streams(self._sides[direction], at, "lost", out)
        self._close_connection()

    # DATA and other frames that are not held

    def on_data(self, flags: int, stream: int, data: bytes, pos: int, stop: int) -> None:
        """Emit the DATA, as far as it has arrived."""
        side, first, padded = self._sides[self._direction], pos + FRAME_HEAD_SIZE, flags & PADDED
        length = stop - first
        self.counters["data_frames"] += 1
        if padded:
            padding = data[first] + 1 if length else 1
            if padding > length:
                got = f"{length} bytes, padding {padding - 1}"
                raise Violation(side.offset + pos, "DATA that holds its padding", got)
            first = min(first + 1, stop)
            length -= padding
        if self._streams.get(stream, _CLOSED_BITS) & side.ended_bit:
            if not stream:
                got = describe_frame_head(DATA, stream, stop - pos - FRAME_HEAD_SIZE)
                raise Violation(side.offset + pos, "DATA on a stream", got)
            self.counters["late_frames"] += 1  # sent before its sender saw the end
        elif padded or stop > len(data):
            ends = bool(flags & END_STREAM)
            side.data = DataFrame(stream, length, ends, length > 0, side.offset + pos)
            self.on_more(data, first, min(stop, len(data)), ends=stop <= len(data))
        else:
            start, end = side.offset + pos, side.offset + stop
            if length:
                self._out.append(
                    Body(stream, side.direction, self._at, start, end, data[first:stop])
                )
            if flags & END_STREAM:
                self._end_direction(side, stream, end)

    def on_more(self, data: bytes, pos: int, stop: int, *, ends: bool) -> None:
        """Emit the next part of a DATA frame, first data, then padding."""
        side = self._sides[self._direction]
        frame = side.data
        if frame is None:  # late, or of a kind that is skipped
            return
        is_open = not self._streams.get(frame.stream, _CLOSED_BITS) & side.ended_bit
        split = min(pos + frame.data, stop)
        frame.data -= split - pos
        for piece, last in ((data[pos:split], split), (b"", stop)):
            if pos < last and frame.emits and is_open:
                end = side.offset + last
                self._out.append(
                    Body(frame.stream, side.direction, self._at, frame.start, end, piece)
                )
                frame.start = end
            pos = last
        if ends:
            side.data = None
            if frame.ends and is_open:
                self._end_direction(side, frame.stream, side.offset + stop)

    def on_skip(self, kind: int, pos: int, stop: int) -> None:
        """Count a frame of a kind that has no meaning here. Its bytes are not read, so they must
        come from a peer that has begun as RFC 9113 3.4 demands."""
        side, length = self._sides[self._direction], stop - pos - FRAME_HEAD_SIZE
        if not side.has_settings or length > MAX_FRAME_SIZE:
            expected = f"frame of at most {MAX_FRAME_SIZE} bytes"
            got = f"frame of type {kind} with {length} bytes"
            raise Violation(
                side.offset + pos, expected if side.has_settings else "SETTINGS first", got
            )
        side.skipped_from, side.skipped_to = side.offset + pos, side.offset + stop
        self.counters["priority" if kind == PRIORITY else "unknown_frames"] += 1

    def on_preface(self) -> None:
        """Emit the preface, the client's first bytes."""
        start = self._sides[Direction.TO_AGENT].offset
        end = start + len(PREFACE)
        self._out.append(Control(Direction.TO_AGENT, self._at, start, end, "preface", {}))

    # Header blocks

    def on_block(
        self,
        block: HeaderBlock,
        pos: int,  # noqa: ARG002 (the interface)
        stop: int,
        *,
        ends: bool,
    ) -> None:
        """Emit a header block when it is complete."""
        side = self._sides[self._direction]
        began = block.began
        if not began:
            began = self._at if block.start != side.base else side.began
        if not ends:
            block.began = began
            return
        fields, end = side.decode_fields(block.fragment), side.offset + stop
        if len(self._streams) >= MAX_STREAMS:
            raise Violation(block.start, f"at most {MAX_STREAMS} open streams", "one more")
        if block.kind == PUSH_PROMISE:
            self._emit_promise(side, block, fields, end)
        else:
            self._emit_head(side, block, fields, began, end)

    def _emit_head(
        self, side: DirectionState, block: HeaderBlock, fields: HeaderFields, began: int, end: int
    ) -> None:
        stream = block.stream
        bits = self._open_stream(stream)
        if bits & side.ended_bit:
            self.counters["late_frames"] += 1
            return
        role = _head_role(side, bits, fields.status)
        if role is not HeadRole.INFORMATIONAL:
            self._streams[stream] = bits | side.head_bit
        self._out.append(
            Head(
                stream,
                side.direction,
                self._at,
                began,
                block.start,
                end,
                role,
                fields.headers,
                fields.method,
                fields.target,
                fields.authority,
                fields.scheme,
                fields.status,
                b"",
                "2",
            )
        )
        if block.flags & END_STREAM:
            self._end_direction(side, stream, end)

    def _emit_promise(
        self, side: DirectionState, block: HeaderBlock, fields: HeaderFields, end: int
    ) -> None:
        promised = unpack_uint32(block.fixed)[0] & STREAM_MASK
        self._streams.setdefault(promised, self._sides[Direction.TO_AGENT].ended_bit)
        detail: dict[str, object] = {
            "stream": block.stream,
            "promised": promised,
            "method": fields.method.decode("latin-1"),
            "target": fields.target.decode("latin-1"),
            "authority": fields.authority.decode("latin-1"),
        }
        self._out.append(
            Control(side.direction, self._at, block.start, end, "push_promise", detail)
        )

    # Streams

    def _open_stream(self, stream: int) -> int:
        """Return the bits of a stream, opened if its number is new. Of a closed stream only the
        number is known."""
        bits = self._streams.get(stream)
        if bits is not None:
            return bits
        if stream <= self._highest or not stream & 1:
            return _CLOSED_BITS
        self._highest = stream
        bits = sum(side.ended_bit for side in self._sides if side.opaque)
        self._streams[stream] = bits
        return bits

    def _end_direction(self, side: DirectionState, stream: int, start: int) -> None:
        self._out.append(End(stream, side.direction, self._at, start))
        self._close_direction(stream, side.ended_bit)

    def _close_direction(self, stream: int, ended_bit: int) -> None:
        bits = self._streams[stream] | ended_bit
        if bits & _CLOSED_BITS == _CLOSED_BITS:
            del self._streams[stream]
        else:
            self._streams[stream] = bits

    def _cut_all_streams(
        self, side: DirectionState, at: int, how: str, out: list[WireEvent]
    ) -> None:
        start = side.offset + len(side.rest)
        for stream, bits in self._streams.items():
            if not bits & _CUT_BIT:
                out.append(Cut(stream, side.direction, at, start, how))
                self._streams[stream] = bits | _CUT_BIT

    def _report_violation(
        self, side: DirectionState, wrong: Violation, at: int, out: list[WireEvent]
    ) -> None:
        """Emit a violation, and count the bytes from its offset on as not decoded."""
        side.offset += len(side.rest)
        side.rest.clear()
        self.counters[OPAQUE_COUNTERS[side.direction]] += side.offset - wrong.offset
        out.append(Undecodable(side.direction, at, wrong.offset, wrong.expected, wrong.got))

    def _silence_direction(self, side: DirectionState) -> None:
        side.make_opaque()
        for stream in list(self._streams):
            self._close_direction(stream, side.ended_bit)

    def _close_connection(self) -> None:
        self._streams.clear()
        for side in self._sides:
            side.make_opaque()

    # Frames

    def on_frame(self, frame: Frame) -> None:
        """Handle a frame of a stream's end or of the connection."""
        side = self._sides[self._direction]
        if frame.kind == RST_STREAM:
            self._on_rst_stream(side, frame)
        elif frame.kind == SETTINGS:
            settings, side.has_settings = frame.read_settings(), True
            if frame.flags & ACK:
                self.counters["settings_ack"] += 1
                return
            self._sides[1 - side.direction].hpack.apply_settings(settings)
            self._add_control(side, frame, {str(name): value for name, value in settings})
        elif frame.kind == PING:
            data = frame.check_size(8).hex()
            self.counters["ping"] += 1
            if not side.pinged:
                side.pinged = True
                self._add_control(side, frame, {"ack": bool(frame.flags & ACK), "data": data})
        elif frame.kind == GOAWAY:
            self._on_goaway(side, frame)

    def on_window_update(self, stream: int, increment: int, pos: int) -> None:  # noqa: ARG002
        """Count a WINDOW_UPDATE."""
        self.counters["window_update"] += 1

    def _add_control(self, side: DirectionState, frame: Frame, detail: dict[str, object]) -> None:
        end = frame.start + len(frame.raw)
        name = _CONTROLS[frame.kind]
        self._out.append(Control(side.direction, self._at, frame.start, end, name, detail))

    def _on_rst_stream(self, side: DirectionState, frame: Frame) -> None:
        if not frame.stream:
            raise frame.make_violation("a frame on a stream")
        code = unpack_uint32(frame.check_size(4))[0]
        bits = self._streams.pop(frame.stream, _CLOSED_BITS)
        if bits & _CLOSED_BITS == _CLOSED_BITS:
            self.counters["late_frames"] += 1
        elif not code and bits & self._sides[Direction.TO_CLIENT].ended_bit:
            # RFC 9113 8.1: after a complete response a server may make the client stop sending.
            # Nothing was cut.
            self.counters["rst_no_error"] += 1
        elif not bits & _CUT_BIT:
            self._add_cut(side, frame, frame.stream, code, "rst_stream")

    def _on_goaway(self, side: DirectionState, frame: Frame) -> None:
        payload = frame.payload
        if len(payload) < 8:
            raise frame.make_violation("GOAWAY of 8 bytes or more")
        last, code = unpack_uint32(payload)[0] & STREAM_MASK, unpack_uint32(payload, 4)[0]
        debug = payload[8 : 8 + MAX_DEBUG_DATA].decode("utf-8", "backslashreplace")
        self._add_control(side, frame, {"last_stream": last, "code": code, "debug": debug})
        if side.direction is Direction.TO_CLIENT:
            # RFC 9113 6.8: the agent will not process the client's streams above the last one.
            for stream in [each for each in self._streams if each > last and each & 1]:
                if not self._streams.pop(stream) & _CUT_BIT:
                    self._add_cut(side, frame, stream, code, "goaway")

    def _add_cut(
        self, side: DirectionState, frame: Frame, stream: int, code: int, how: str
    ) -> None:
        self._out.append(Cut(stream, side.direction, self._at, frame.start, how, code))


_CONTROLS = {SETTINGS: "settings", PING: "ping", GOAWAY: "goaway"}


def _head_role(side: DirectionState, bits: int, status: int) -> HeadRole:
    if bits & side.head_bit:
        return HeadRole.TRAILERS
    if side.direction is Direction.TO_AGENT:
        return HeadRole.REQUEST
    return HeadRole.INFORMATIONAL if 100 <= status < 200 else HeadRole.RESPONSE


def _find_incomplete(side: DirectionState) -> Violation | None:
    """Return a violation for a frame, preface or header block cut off by FIN, which no stream's Cut
    reports, or None."""
    start, size = side.offset, len(side.rest)
    if side.block is not None:
        start, expected = side.block.start, f"CONTINUATION of stream {side.block.stream}"
    elif side.rest:
        what = "HTTP/2 connection preface" if side.preface else "frame"
        expected = f"{what} of {side.need} bytes or more"
    elif side.skipped_to > side.offset:
        start = side.skipped_from
        expected = f"frame of {side.skipped_to - start} bytes"
    else:
        return None
    return Violation(start, expected, f"end after {side.offset + size - start} bytes")
