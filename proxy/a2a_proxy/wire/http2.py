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
from collections.abc import Callable
from struct import Struct

import msgspec

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
from a2a_proxy.wire.detect import PREFACE
from a2a_proxy.wire.http2_frame import RawFrame, Violation, describe_frame_head
from a2a_proxy.wire.http2_side import DirectionState, Flow, HeaderBlock, HeaderFields

MAX_FRAME_SIZE = 1 << 20
"""Maximum bytes of a frame other than DATA, and of a compressed header block."""
MAX_DEBUG_DATA = 4096
"""Characters kept of a GOAWAY's debug data."""

MAX_STREAMS = 1 << 18
"""Maximum number of streams open at the same time on one connection."""

_FRAME_HEAD_SIZE = 9
(
    _DATA,
    _HEADERS,
    _PRIORITY,
    _RST_STREAM,
    _SETTINGS,
    _PUSH_PROMISE,
    _PING,
    _GOAWAY,
    _WINDOW_UPDATE,
    _CONTINUATION,
) = range(10)
_END_STREAM = _ACK = 0x1
_END_HEADERS = 0x4
_PADDED = 0x8
_PRIORITISED = 0x20
_HEADER_TABLE_SIZE = 1
_STREAM_MASK = 0x7FFFFFFF

_PASSED_THROUGH = (_DATA, _PRIORITY)

# State bits of a stream: header block seen (1 toward the agent, 2 toward the client), ended (4, 8),
# cut (16).
_CLOSED_BITS = 4 | 8
_CUT_BIT = 16

_unpack_frame_head = Struct(">IBI").unpack_from
_unpack_uint32 = Struct(">I").unpack_from
_iter_settings = Struct(">HI").iter_unpack


class Http2Decoder(State, tag="h2c"):
    """Decodes both directions of one connection. Never raises, whatever the bytes."""

    counters: dict[str, int] = {}
    """Frames too common to be events: `data_frames`, `ping`, `window_update`, `settings_ack`,
    `priority`, `unknown_frames`, `rst_no_error`, and `late_frames` for frames of streams that were
    already closed; and `OPAQUE_COUNTERS`."""
    _sides: tuple[DirectionState, DirectionState] = msgspec.field(
        default_factory=lambda: (
            DirectionState(Direction.TO_AGENT, preface=True),
            DirectionState(Direction.TO_CLIENT),
        )
    )
    _streams: dict[int, int] = {}
    _highest: int = 0

    def feed(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Decode bytes of one direction that arrived at `at` (ns) and append events to `out`."""
        side = self._sides[direction]
        if side.opaque:
            side.offset += len(data)
            self._add_to_counter(OPAQUE_COUNTERS[direction], len(data))
            return
        began = at
        if side.incomplete:
            side.incomplete += data
            if len(side.incomplete) < side.need:
                return
            data, began = bytes(side.incomplete), side.began
            side.incomplete.clear()
        end = side.offset + len(data)
        try:
            self._read_frames(side, data, at, began, out)
        except Violation as wrong:
            side.offset = end
            self._add_to_counter(OPAQUE_COUNTERS[direction], end - wrong.offset)
            out.append(Undecodable(direction, at, wrong.offset, wrong.expected, wrong.got))
            self._silence_direction(side)

    def feed_ours(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Decode whole frames that the proxy sent in one direction, also in the middle of a frame
        of the peer. Their header blocks use no dynamic table, and their bytes do not count."""
        side = DirectionState(direction, offset=self._sides[direction].offset)
        with contextlib.suppress(Violation):
            self._read_frames(side, data, at, at, out)

    def feed_eof(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle FIN from the sender of this direction. Every stream that is open in either
        direction is cut once.

        The other direction is still decoded, because a client may half-close its connection and
        continue to read.
        """
        side = self._sides[direction]
        if not side.opaque and (wrong := _find_incomplete(side)):
            out.append(Undecodable(direction, at, wrong.offset, wrong.expected, wrong.got))
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

    # Frames

    def _read_frames(
        self, side: DirectionState, buf: bytes, at: int, began: int, out: list[WireEvent]
    ) -> None:
        """Read the frames of `buf`, whose first byte arrived at `began` (ns), and keep the
        incomplete rest."""
        direction, ended, base, total = side.direction, side.ended_bit, side.offset, len(buf)
        streams, append = self._streams, out.append
        pos, need, whole = 0, _FRAME_HEAD_SIZE, 0
        if side.preface:
            if total < len(PREFACE):
                _keep_incomplete(side, buf, 0, len(PREFACE), began)
                return
            pos = self._read_preface(side, buf, at, out)
        try:
            if side.flow is not None:
                pos = self._pass_flow(side, side.flow, buf, pos, at, out)
            while total - pos >= _FRAME_HEAD_SIZE:
                word, flags, stream = _unpack_frame_head(buf, pos)
                kind, length = word & 0xFF, word >> 8
                stream &= _STREAM_MASK
                stop = pos + _FRAME_HEAD_SIZE + length
                if not kind and stop <= total and not flags & _PADDED and side.block is None:
                    whole += 1
                    if streams.get(stream, _CLOSED_BITS) & ended:
                        self._count_late_data(stream, length, base + pos)
                    else:
                        if length:
                            append(
                                Body(
                                    stream,
                                    direction,
                                    at,
                                    base + pos,
                                    base + stop,
                                    buf[pos + _FRAME_HEAD_SIZE : stop],
                                )
                            )
                        if flags & _END_STREAM:
                            self._end_direction(side, stream, at, base + stop, out)
                    pos = stop
                    continue
                _check_frame_head(side, kind, stream, length, base + pos)
                if kind in _PASSED_THROUGH or kind > _CONTINUATION:
                    if not kind and flags & _PADDED and length and total - pos == _FRAME_HEAD_SIZE:
                        need = _FRAME_HEAD_SIZE + 1
                        break
                    pos = self._start_flow(side, buf, pos, at, out)
                elif stop > total:
                    need = stop - pos
                    break
                elif kind == _WINDOW_UPDATE:
                    self._add_to_counter("window_update")
                    pos = stop
                else:
                    began = at if pos else began
                    payload = buf[pos + _FRAME_HEAD_SIZE : stop]
                    frame = RawFrame(
                        kind, flags, stream, payload, base + pos, base + stop, at, began
                    )
                    _FRAME_HANDLERS[kind](self, side, frame, out)
                    pos = stop
        finally:
            if whole:
                self._add_to_counter("data_frames", whole)
        _keep_incomplete(side, buf, pos, need, at if pos else began)

    def _read_preface(self, side: DirectionState, buf: bytes, at: int, out: list[WireEvent]) -> int:
        got = buf[: len(PREFACE)]
        if got != PREFACE:
            raise Violation(side.offset, "HTTP/2 connection preface", repr(got))
        side.preface = False
        out.append(
            Control(side.direction, at, side.offset, side.offset + len(PREFACE), "preface", {})
        )
        return len(PREFACE)

    # DATA and skipped frames

    def _start_flow(
        self, side: DirectionState, buf: bytes, pos: int, at: int, out: list[WireEvent]
    ) -> int:
        """Start a DATA frame that is padded or incomplete, or a frame of unknown type."""
        word, flags, stream = _unpack_frame_head(buf, pos)
        stream &= _STREAM_MASK
        start, length, padding = side.offset + pos, word >> 8, 0
        pos += _FRAME_HEAD_SIZE
        if kind := word & 0xFF:
            self._add_to_counter("priority" if kind == _PRIORITY else "unknown_frames")
            return self._pass_flow(
                side, Flow(stream, length, 0, False, False, start), buf, pos, at, out
            )
        self._add_to_counter("data_frames")
        if flags & _PADDED:
            padding = buf[pos] if length else 0
            length -= padding + 1
            pos += 1
            if length < 0:
                raise Violation(
                    start,
                    "DATA that holds its padding",
                    f"{length + padding + 1} bytes, padding {padding}",
                )
        if late := bool(self._streams.get(stream, _CLOSED_BITS) & side.ended_bit):
            self._count_late_data(stream, word >> 8, start)
        ends = bool(flags & _END_STREAM) and not late
        return self._pass_flow(
            side, Flow(stream, length, padding, ends, length > 0, start), buf, pos, at, out
        )

    def _pass_flow(
        self, side: DirectionState, flow: Flow, buf: bytes, pos: int, at: int, out: list[WireEvent]
    ) -> int:
        """Emit the part of a flow that is in `buf`, first data, then padding. Return the position
        after it."""
        emits = flow.emits and not self._streams.get(flow.stream, _CLOSED_BITS) & side.ended_bit
        taken = min(flow.data, len(buf) - pos)
        stop = pos + taken
        flow.data -= taken
        if taken and emits:
            out.append(
                Body(flow.stream, side.direction, at, flow.start, side.offset + stop, buf[pos:stop])
            )
            flow.start = side.offset + stop
        padding = min(flow.padding, len(buf) - stop)
        flow.padding -= padding
        pos, stop = stop, stop + padding
        if padding and emits:
            out.append(Body(flow.stream, side.direction, at, flow.start, side.offset + stop, b""))
            flow.start = side.offset + stop
        side.flow = flow if flow.data or flow.padding else None
        if (
            side.flow is None
            and flow.ends
            and not self._streams.get(flow.stream, _CLOSED_BITS) & side.ended_bit
        ):
            self._end_direction(side, flow.stream, at, side.offset + stop, out)
        return stop

    # Header blocks

    def _on_headers(self, side: DirectionState, frame: RawFrame, out: list[WireEvent]) -> None:
        frame.check_stream()
        _, fragment = frame.split_content(
            bool(frame.flags & _PADDED), 5 if frame.flags & _PRIORITISED else 0
        )
        ends = bool(frame.flags & _END_STREAM)
        self._add_to_block(
            side,
            HeaderBlock(frame.stream, 0, ends, frame.start, frame.began, bytearray(fragment)),
            frame,
            out,
        )

    def _on_push_promise(self, side: DirectionState, frame: RawFrame, out: list[WireEvent]) -> None:
        frame.check_stream()
        first, fragment = frame.split_content(bool(frame.flags & _PADDED), 4)
        promised = _unpack_uint32(frame.payload, first)[0] & _STREAM_MASK
        self._add_to_block(
            side,
            HeaderBlock(
                frame.stream, promised, False, frame.start, frame.began, bytearray(fragment)
            ),
            frame,
            out,
        )

    def _on_continuation(self, side: DirectionState, frame: RawFrame, out: list[WireEvent]) -> None:
        block = side.block
        if block is None:
            raise frame.make_violation("HEADERS before CONTINUATION")
        block.fragment += frame.payload
        if len(block.fragment) > MAX_FRAME_SIZE:
            raise Violation(
                block.start,
                f"header block of at most {MAX_FRAME_SIZE} bytes",
                f"{len(block.fragment)} bytes",
            )
        self._add_to_block(side, block, frame, out)

    def _add_to_block(
        self, side: DirectionState, block: HeaderBlock, frame: RawFrame, out: list[WireEvent]
    ) -> None:
        """Add a frame to a header block, which is complete at END_HEADERS."""
        if not frame.flags & _END_HEADERS:
            side.block = block
            return
        side.block = None
        fields = side.decode_fields(block)
        if len(self._streams) >= MAX_STREAMS:
            raise Violation(block.start, f"at most {MAX_STREAMS} open streams", "one more")
        if block.promised:
            self._emit_promise(side, block, fields, frame, out)
        else:
            self._emit_head(side, block, fields, frame, out)

    def _emit_head(
        self,
        side: DirectionState,
        block: HeaderBlock,
        fields: HeaderFields,
        frame: RawFrame,
        out: list[WireEvent],
    ) -> None:
        stream = block.stream
        bits = self._open_stream(stream)
        if bits & side.ended_bit:
            self._add_to_counter("late_frames")
            return
        role = _head_role(side, bits, fields.status)
        if role is not HeadRole.INFORMATIONAL:
            self._streams[stream] = bits | side.head_bit
        out.append(
            Head(
                stream,
                side.direction,
                frame.at,
                block.began,
                block.start,
                frame.end,
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
        if block.ends:
            self._end_direction(side, stream, frame.at, frame.end, out)

    def _emit_promise(
        self,
        side: DirectionState,
        block: HeaderBlock,
        fields: HeaderFields,
        frame: RawFrame,
        out: list[WireEvent],
    ) -> None:
        self._streams.setdefault(block.promised, self._sides[Direction.TO_AGENT].ended_bit)
        detail: dict[str, object] = {
            "stream": block.stream,
            "promised": block.promised,
            "method": fields.method.decode("latin-1"),
            "target": fields.target.decode("latin-1"),
            "authority": fields.authority.decode("latin-1"),
        }
        out.append(
            Control(side.direction, frame.at, block.start, frame.end, "push_promise", detail)
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

    def _end_direction(
        self, side: DirectionState, stream: int, at: int, start: int, out: list[WireEvent]
    ) -> None:
        out.append(End(stream, side.direction, at, start))
        self._close_direction(stream, side.ended_bit)

    def _close_direction(self, stream: int, ended_bit: int) -> None:
        bits = self._streams[stream] | ended_bit
        if bits & _CLOSED_BITS == _CLOSED_BITS:
            del self._streams[stream]
        else:
            self._streams[stream] = bits

    def _on_rst_stream(self, side: DirectionState, frame: RawFrame, out: list[WireEvent]) -> None:
        frame.check_stream()
        frame.check_size(4)
        code = _unpack_uint32(frame.payload)[0]
        bits = self._streams.pop(frame.stream, _CLOSED_BITS)
        if bits & _CLOSED_BITS == _CLOSED_BITS:
            self._add_to_counter("late_frames")
        elif not code and bits & self._sides[Direction.TO_CLIENT].ended_bit:
            # RFC 9113 8.1: after a complete response a server may make the client stop sending.
            # Nothing was cut.
            self._add_to_counter("rst_no_error")
        elif not bits & _CUT_BIT:
            out.append(Cut(frame.stream, side.direction, frame.at, frame.start, "rst_stream", code))

    def _cut_all_streams(
        self, side: DirectionState, at: int, how: str, out: list[WireEvent]
    ) -> None:
        start = side.offset + len(side.incomplete)
        for stream, bits in self._streams.items():
            if not bits & _CUT_BIT:
                out.append(Cut(stream, side.direction, at, start, how))
                self._streams[stream] = bits | _CUT_BIT

    def _silence_direction(self, side: DirectionState) -> None:
        side.make_opaque()
        for stream in list(self._streams):
            self._close_direction(stream, side.ended_bit)

    def _close_connection(self) -> None:
        self._streams.clear()
        for side in self._sides:
            side.make_opaque()

    # The connection

    def _on_settings(self, side: DirectionState, frame: RawFrame, out: list[WireEvent]) -> None:
        if frame.stream or len(frame.payload) % 6:
            raise frame.make_violation("SETTINGS on stream 0 of 6 bytes each")
        if frame.flags & _ACK:
            self._add_to_counter("settings_ack")
            return
        detail: dict[str, object] = {}
        for name, value in _iter_settings(frame.payload):
            detail[str(name)] = value
            if name == _HEADER_TABLE_SIZE:
                self._sides[1 - side.direction].hpack.allow_table_size(value)
        out.append(Control(side.direction, frame.at, frame.start, frame.end, "settings", detail))

    def _on_ping(self, side: DirectionState, frame: RawFrame, out: list[WireEvent]) -> None:
        frame.check_size(8)
        self._add_to_counter("ping")
        if not side.pinged:
            side.pinged = True
            detail: dict[str, object] = {
                "ack": bool(frame.flags & _ACK),
                "data": frame.payload.hex(),
            }
            out.append(Control(side.direction, frame.at, frame.start, frame.end, "ping", detail))

    def _on_goaway(self, side: DirectionState, frame: RawFrame, out: list[WireEvent]) -> None:
        if len(frame.payload) < 8:
            raise frame.make_violation("GOAWAY of 8 bytes or more")
        last = _unpack_uint32(frame.payload)[0] & _STREAM_MASK
        code = _unpack_uint32(frame.payload, 4)[0]
        debug = frame.payload[8 : 8 + MAX_DEBUG_DATA].decode("utf-8", "backslashreplace")
        detail: dict[str, object] = {"last_stream": last, "code": code, "debug": debug}
        out.append(Control(side.direction, frame.at, frame.start, frame.end, "goaway", detail))
        if side.direction is Direction.TO_CLIENT:
            self._refuse_after(last, code, frame, out)

    def _refuse_after(self, last: int, code: int, frame: RawFrame, out: list[WireEvent]) -> None:
        """Cut the client's streams above the last one, which the agent will not process (RFC 9113
        6.8)."""
        refused = [stream for stream in self._streams if stream > last and stream & 1]
        out.extend(
            Cut(stream, Direction.TO_CLIENT, frame.at, frame.start, "goaway", code)
            for stream in refused
            if not self._streams.pop(stream) & _CUT_BIT
        )

    def _count_late_data(self, stream: int, length: int, offset: int) -> None:
        """Count DATA of a closed stream, sent before its sender saw the end. Raises `Violation` on
        stream 0."""
        if not stream:
            raise Violation(offset, "DATA on a stream", describe_frame_head(_DATA, stream, length))
        self._add_to_counter("late_frames")

    def _add_to_counter(self, name: str, number: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + number


_FrameHandler = Callable[[Http2Decoder, DirectionState, RawFrame, "list[WireEvent]"], None]
_FRAME_HANDLERS: dict[int, _FrameHandler] = {
    _HEADERS: Http2Decoder._on_headers,
    _RST_STREAM: Http2Decoder._on_rst_stream,
    _SETTINGS: Http2Decoder._on_settings,
    _PUSH_PROMISE: Http2Decoder._on_push_promise,
    _PING: Http2Decoder._on_ping,
    _GOAWAY: Http2Decoder._on_goaway,
    _CONTINUATION: Http2Decoder._on_continuation,
}


def _check_frame_head(
    side: DirectionState, kind: int, stream: int, length: int, offset: int
) -> None:
    """Check a frame by its head. Raises `Violation`."""
    expected = ""
    if side.block is not None and (kind != _CONTINUATION or stream != side.block.stream):
        expected = f"CONTINUATION of stream {side.block.stream}"
    elif kind == _WINDOW_UPDATE and length != 4:
        expected = "WINDOW_UPDATE of 4 bytes"
    elif length > MAX_FRAME_SIZE and kind not in _PASSED_THROUGH and kind <= _CONTINUATION:
        expected = f"frame of at most {MAX_FRAME_SIZE} bytes"
    if expected:
        raise Violation(offset, expected, describe_frame_head(kind, stream, length))


def _keep_incomplete(side: DirectionState, buf: bytes, pos: int, need: int, began: int) -> None:
    side.offset += pos
    if pos < len(buf):
        side.incomplete += memoryview(buf)[pos:]
        side.need = need
        side.began = began


def _head_role(side: DirectionState, bits: int, status: int) -> HeadRole:
    if bits & side.head_bit:
        return HeadRole.TRAILERS
    if side.direction is Direction.TO_AGENT:
        return HeadRole.REQUEST
    return HeadRole.INFORMATIONAL if 100 <= status < 200 else HeadRole.RESPONSE


def _find_incomplete(side: DirectionState) -> Violation | None:
    """Return a violation for a frame, preface or header block cut off by FIN, which no stream's Cut
    reports, or None."""
    got = f"end after {len(side.incomplete)} bytes"
    if side.incomplete:
        what = "HTTP/2 connection preface" if side.preface else "frame"
        return Violation(side.offset, f"{what} of {side.need} bytes or more", got)
    if side.block is not None:
        return Violation(side.offset, f"CONTINUATION of stream {side.block.stream}", got)
    return None
