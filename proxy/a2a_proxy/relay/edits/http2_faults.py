"""Faults on one HTTP/2 connection: failing gRPC calls, and responses whose messages are lost,
repeated, moved or late.

Every header block is decoded and sent as literals, because a block that is left out or sent later
would put the receiver's dynamic table out of step. Frames are handled whole, except that a long
DATA frame is handled and sent as several ones. The windows stay right in both directions: bytes
that only the agent has sent are given back to the agent with WINDOW_UPDATE; bytes that only the
client was sent are owed, and subtracted from the client's next WINDOW_UPDATEs; DATA that the
client's windows do not cover waits.

A connection that cannot be followed any more is ended as in `edits.http2`: with an undecodable
header block.
"""

from collections import deque
from collections.abc import Callable
from itertools import islice

import msgspec

from a2a_proxy.faults.live import LiveFault
from a2a_proxy.faults.plan import CallFaults, FaultPlan, describe_mark
from a2a_proxy.faults.stream import FaultPiece, StreamFaults
from a2a_proxy.model.values import Binding
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.operations import GRPC_METHODS
from a2a_proxy.relay.edits.edit import OWN_ANSWER, UNLIMITED, EditFact, Output
from a2a_proxy.relay.edits.fault_answers import make_grpc_failure
from a2a_proxy.relay.edits.fault_events import EVENT_SHIFT, EVENT_WORK, MAX_MESSAGE_BYTES
from a2a_proxy.relay.edits.fault_messages import PREFIX_SIZE, GrpcEvents
from a2a_proxy.relay.edits.fault_output import (
    HOLD_SECONDS,
    LEAST_WORK,
    PIECE_WORK,
    TimedQueue,
    note_late,
)
from a2a_proxy.relay.edits.hpack_literals import never_indexed_fields
from a2a_proxy.relay.edits.http2_frames import (
    ACK,
    CONTINUATION,
    DATA,
    DEFAULT_FRAME_SIZE,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    FRAME_HEAD_SIZE,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PADDED,
    PING,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAM_MASK,
    WINDOW_UPDATE,
    HeaderBlockFrame,
    encode_block,
    encode_frame,
    encode_undecodable,
    encode_window_update,
    parse_block_start,
    unpack_frame_head,
    unpack_settings,
    unpack_uint32,
)
from a2a_proxy.relay.edits.http2_headers import FIELDS_LIMIT, LiteralWriter, encode_fields
from a2a_proxy.relay.edits.http2_scan import BLOCK_WORK, HANDLER_SHIFT, HANDLER_WORK
from a2a_proxy.wire.detect import PREFACE
from a2a_proxy.wire.hpack_decoder import Field, HpackDecoder, HpackError
from a2a_proxy.wire.http2_frame import Violation

MAX_SETTINGS = 1000
"""SETTINGS frames that the agent has not acknowledged."""
MAX_FRAME_BYTES = MAX_BLOCK_BYTES = 1 << 18
"""Bytes of a frame that must be whole, and of a header block."""
SHORT_DATA = 4096
"""Bytes of DATA with messages that faults concern, which are read without interruption."""
MAX_GONE_STREAMS = 10_000
"""Streams that a fault has ended and whose late frames are still dropped; the oldest is forgotten
first."""

RESET_DELAY = 0.05
"""Seconds from the last bytes before a cut to RST_STREAM: gRPC clients then drop messages that they
have not read."""

_NO_ERROR, _INTERNAL_ERROR, _CANCEL = 0, 2, 8
_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT
_UNLIMITED = 1 << 62


class _Frame(msgspec.Struct, frozen=True):
    kind: int
    flags: int
    stream: int
    raw: bytes
    offset: int
    """Bytes of the direction before the frame."""

    @property
    def payload(self) -> bytes:
        """The payload, with padding."""
        return self.raw[FRAME_HEAD_SIZE:]

    @property
    def data(self) -> bytes:
        """The payload of DATA, without padding."""
        payload = self.payload
        return (
            payload[1 : len(payload) - payload[0]] if self.flags & PADDED and payload else payload
        )


class _LongData(msgspec.Struct):
    """A DATA frame without padding that is handled in parts."""

    flags: int = 0
    stream: int = 0
    left: int = 0
    """Bytes that are not handled yet; 0 if there is no such frame."""


class _Side:
    """One direction: its incomplete frame, its header blocks as received and as sent."""

    def __init__(self, *, preface: bool) -> None:
        self.rest = bytearray()
        self.need = len(PREFACE) if preface else FRAME_HEAD_SIZE
        """Bytes of `rest` that can be handled."""
        self.offset = 0
        """Bytes before `rest`."""
        self.preface = preface
        self.data = _LongData()
        self.hpack = HpackDecoder()
        self.writer = LiteralWriter()
        self.block: HeaderBlockFrame | None = None
        self.highest = 0
        """The highest stream with a header block."""
        self.is_lost = False
        """Whether it cannot be followed any more; nothing is sent."""


class _Response:
    """The response to a call that faults concern."""

    def __init__(self, faults: CallFaults, path: str) -> None:
        self._path = path
        self.faults = faults
        self.events: GrpcEvents | None = None
        """None before the head of the response, and for a response that is not gRPC."""
        self.stream = StreamFaults(faults, self._change_generation)
        self._rest = bytearray()
        """Bytes of a message that is not complete."""
        self.work = 0
        """Units of work for the messages so far."""
        self.is_read = True

    def on_head(self, fields: list[Field]) -> None:
        """Handle the head of the response."""
        named = dict(fields)
        if self.events is None and named.get(b"content-type", b"").startswith(b"application/grpc"):
            self.events = GrpcEvents(self._path, named.get(b"grpc-encoding", b"identity"))

    def feed(self, data: bytes, end: int) -> list[FaultPiece]:
        """Return the pieces to send for bytes of the response. `end`: the offset after them in what
        the agent sent."""
        if self.events is None or not self.is_read:
            return [FaultPiece(data)]
        rest, at = self._rest, 0
        pieces: list[FaultPiece] = []
        rest += data
        while len(rest) - at >= PREFIX_SIZE:
            size = PREFIX_SIZE + int.from_bytes(rest[at + 1 : at + PREFIX_SIZE])
            if size > MAX_MESSAGE_BYTES:
                del rest[:at]
                return [*pieces, *self.release()]
            if len(rest) - at < size:
                break
            message, at = bytes(rest[at : at + size]), at + size
            self.work += EVENT_WORK + (size >> EVENT_SHIFT)
            pieces += self.stream.feed_event(
                message, self.events.read(message), end - len(rest) + at - 1
            )
        del rest[:at]
        return pieces

    @property
    def held_bytes(self) -> int:
        """Bytes that wait for the end of a message, or for another message."""
        return len(self._rest) + self.stream.held_bytes

    def release(self) -> list[FaultPiece]:
        """Return what waits, because no more is read."""
        self.is_read, rest = False, bytes(self._rest)
        self._rest.clear()
        return [*self.stream.finish(), *([FaultPiece(rest)] if rest else [])]

    def _change_generation(self, message: bytes, change: int) -> bytes | None:
        return None if self.events is None else self.events.change_generation(message, change)


class _Stream:
    """A stream with an open response."""

    def __init__(self, number: int, window: int) -> None:
        self.number = number
        self.window = window
        """The client's window for the stream."""
        self.owed = 0
        """Bytes that are subtracted from the client's next WINDOW_UPDATEs: the client was sent them
        and the agent did not send them, or the agent has got the window for them already."""
        self.advanced = 0
        """Bytes that are held, and for which the agent has got a larger window."""
        self.queue = TimedQueue()
        self.last_frames: list[bytes | tuple[HeaderBlockFrame, bytes]] = []
        """The frames that end the response, after the queue: whole, or a header block with its
        literals."""
        self.response: _Response | None = None
        self.is_over = False
        """Whether the agent has ended the stream."""
        self.counted = 0
        """Bytes of the stream in `Http2Faults.held_bytes`."""

    @property
    def held(self) -> int:
        """Bytes of the agent that are neither sent to the client nor in the queue, and still may
        be."""
        return 0 if self.response is None else self.response.held_bytes


class Http2Faults:
    """The faults of one HTTP/2 connection: a `FaultStage`."""

    is_active = True

    def __init__(self, plan: FaultPlan) -> None:
        self.budget = UNLIMITED
        self.position = 0
        self.held_bytes = (0, 0)
        """Bytes of each direction that wait for the end of a message, for their time or for the
        client's windows."""
        self._plan = plan
        self._facts: list[EditFact] = []
        self._sides = (_Side(preface=True), _Side(preface=False))
        self._out: tuple[list[bytes], list[bytes]] = ([], [])
        self._streams: dict[int, _Stream] = {}
        self._waiting: dict[int, _Stream] = {}
        """Streams with a queue."""
        self._gone: dict[int, None] = {}
        """Streams that a fault has ended."""
        self._window = DEFAULT_WINDOW
        """The client's window for the connection."""
        self._owed = 0
        """As in `_Stream`, for the connection."""
        self._initial_window = DEFAULT_WINDOW
        self._settings: deque[dict[int, int]] = deque()
        """SETTINGS of the client that the agent has not acknowledged."""
        self._now = 0.0
        self._held_since: dict[int, float] = {}
        """Streams that hold messages, and when one was complete before, the earliest first."""
        self._is_behind = False
        """Whether due bytes wait because the budget is spent."""
        self._has_sent_late = False
        """Whether the client was sent DATA since the agent last sent some."""
        self._handlers: dict[tuple[int, int], Callable[[_Frame], None]] = {
            (_TO_AGENT, DATA): self._on_client_data,
            (_TO_AGENT, PING): self._on_client_ping,
            (_TO_AGENT, RST_STREAM): self._on_client_reset,
            (_TO_AGENT, SETTINGS): self._on_client_settings,
            (_TO_AGENT, WINDOW_UPDATE): self._on_window_update,
            (_TO_CLIENT, DATA): self._on_agent_data,
            (_TO_CLIENT, RST_STREAM): self._on_agent_reset,
            (_TO_CLIENT, SETTINGS): self._on_agent_settings,
        }

    # Interface of `FaultStage`

    @property
    def deadline(self) -> float | None:
        """When the next bytes are due, or a message is held too long. Bytes that are due already
        wait for the client's windows."""
        if self._is_behind:
            return 0.0
        dues = [
            due
            for each in self._waiting.values()
            if (due := each.queue.deadline) is not None and due > self._now
        ]
        dues += [since + HOLD_SECONDS for since in islice(self._held_since.values(), 1)]
        return min(dues, default=None)

    @property
    def delays(self) -> tuple[bool, bool]:
        """Whether the agent must not be read: it is read while a stream waits, for the other
        streams."""
        return False, self._is_behind

    def take_edits(self) -> list[EditFact]:
        """Return what happened since the last call."""
        facts, self._facts = self._facts, []
        return facts

    def feed(self, direction: Direction, data: bytes, now: float, start: int = 0) -> list[Output]:
        """Handle bytes of one peer and return the bytes to write."""
        self._now, self.position = now, len(data)
        side = self._sides[direction]
        if not side.is_lost:
            try:
                self.position = self._read_frames(direction, side, data, start)
            except (Violation, HpackError):
                side.is_lost = True
                self._out[direction].append(
                    encode_undecodable(side.highest + (2 if direction is _TO_AGENT else 0))
                )
        self._pump_all()  # because `deadline` passes over what is due now
        return self._take_outputs()

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:
        """Handle a FIN of the sender of that direction: nothing waits any more."""
        self._now = now
        if direction is _TO_CLIENT:
            self._window = _UNLIMITED
            for stream in self._waiting.values():
                stream.window = _UNLIMITED
                stream.queue.hasten()
        self._pump_all()
        return self._take_outputs()

    def tick(self, now: float) -> list[Output]:
        """Return the bytes that are due, and those that were held too long."""
        self._now = now
        for number in [
            number for number, since in self._held_since.items() if since + HOLD_SECONDS <= now
        ]:
            stream = self._streams[number]
            assert stream.response is not None
            self._facts.append(note_late(_TO_CLIENT))
            held = stream.held
            self._add_pieces(stream, stream.response.release(), held)
            self._waiting[number] = stream
        self._pump_all()
        return self._take_outputs()

    def _take_outputs(self) -> list[Output]:
        outputs = [
            Output(way, b"".join(out)) for way, out in zip(Direction, self._out, strict=True) if out
        ]
        for out in self._out:
            out.clear()
        return outputs

    # Frames

    def _read_frames(self, direction: Direction, side: _Side, data: bytes, start: int) -> int:
        """Handle frames from `start` on, and return the index where the data end or the budget is
        spent."""
        shift = 0
        if side.rest:
            shift = len(side.rest) - start
            side.rest += memoryview(data)[start:]
            if len(side.rest) < side.need:
                return len(data)
            data, start = bytes(side.rest), 0
            side.rest.clear()
        pos, base, need, total = start, side.offset - start, FRAME_HEAD_SIZE, len(data)
        if side.preface:
            if not data.startswith(PREFACE[:total]):
                raise Violation(0, "HTTP/2 connection preface", repr(data[: len(PREFACE)]))
            side.preface, need = total < len(PREFACE), len(PREFACE)
            if not side.preface:
                self._out[direction].append(PREFACE)
                pos = len(PREFACE)
        self.budget = max(self.budget, 1)
        while not side.preface and self.budget > 0:
            long = side.data
            if long.left:
                stream = self._streams.get(long.stream) if direction is _TO_CLIENT else None
                concerned = stream is not None and stream.response is not None
                size = min(long.left, SHORT_DATA if concerned else DEFAULT_FRAME_SIZE)
                need, stop = size, pos + size
                if stop > total:
                    break
                long.left -= size
                flags = long.flags if not long.left else long.flags & ~END_STREAM
                raw = encode_frame(DATA, flags, long.stream, data[pos:stop])
                frame = _Frame(DATA, flags, long.stream, raw, base + pos - FRAME_HEAD_SIZE)
            else:
                need = FRAME_HEAD_SIZE
                if total - pos < need:
                    break
                word, flags, number = unpack_frame_head(data, pos)
                kind, number, stop = (
                    word & 0xFF,
                    number & STREAM_MASK,
                    pos + FRAME_HEAD_SIZE + (word >> 8),
                )
                if (
                    kind == DATA
                    and not flags & PADDED
                    and stop - pos > FRAME_HEAD_SIZE + SHORT_DATA
                ):
                    side.data, pos = _LongData(flags, number, word >> 8), pos + FRAME_HEAD_SIZE
                    continue
                need = stop - pos
                if need > MAX_FRAME_BYTES:
                    raise Violation(
                        base + pos, f"frame of at most {MAX_FRAME_BYTES} bytes", "a longer one"
                    )
                if stop > total:
                    break
                frame = _Frame(kind, flags, number, data[pos:stop], base + pos)
            pos = stop
            self.budget -= HANDLER_WORK + (need >> HANDLER_SHIFT)
            self._handle_frame(direction, side, frame)
        side.offset = base + pos
        if self.budget > 0:
            side.rest += memoryview(data)[pos:]
            side.need, pos = need, total
        return pos - shift

    def _handle_frame(self, direction: Direction, side: _Side, frame: _Frame) -> None:
        if frame.kind in (HEADERS, PUSH_PROMISE, CONTINUATION):
            self._read_block(direction, side, frame)
        elif (handler := self._handlers.get((direction, frame.kind))) is not None:
            handler(frame)
        else:
            self._out[direction].append(frame.raw)

    def _read_block(self, direction: Direction, side: _Side, frame: _Frame) -> None:
        if frame.kind == CONTINUATION:
            block = side.block
            if (
                block is None
                or block.stream != frame.stream
                or len(block.fragment) > MAX_BLOCK_BYTES
            ):
                raise Violation(frame.offset, "CONTINUATION of a header block", "another one")
            block.fragment = (
                block.fragment
                if isinstance(block.fragment, bytearray)
                else bytearray(block.fragment)
            )
            block.fragment += frame.payload
        else:
            block = parse_block_start(
                frame.kind, frame.flags, frame.stream, frame.payload, frame.offset
            )
        side.block = block
        if not frame.flags & END_HEADERS:
            return
        side.block = None
        side.highest = max(side.highest, block.stream)
        fragment = bytes(block.fragment)
        self.budget -= BLOCK_WORK + len(fragment)
        fields = side.hpack.decode_block(fragment)
        if len(fields) > FIELDS_LIMIT:
            raise HpackError(f"header block of {len(fields)} fields, limit {FIELDS_LIMIT}")
        encoded = encode_fields(fields, never_indexed_fields(fragment))
        if block.kind == PUSH_PROMISE:
            self._out[direction].append(side.writer.make_frames(block, encoded))
        elif direction is _TO_AGENT:
            self._on_request(block, fields, encoded)
        else:
            self._on_response(block, fields, encoded)

    # The client's frames

    def _on_request(self, block: HeaderBlockFrame, fields: list[Field], encoded: bytes) -> None:
        number = block.stream
        if number in self._gone:
            return
        if number not in self._streams and any(name == b":path" for name, _ in fields):
            stream = self._streams[number] = _Stream(number, self._initial_window)
            if self._open_call(stream, block, dict(fields)):
                return
        self._out[_TO_AGENT].append(self._sides[_TO_AGENT].writer.make_frames(block, encoded))

    def _open_call(
        self, stream: _Stream, block: HeaderBlockFrame, named: dict[bytes, bytes]
    ) -> bool:
        """Apply the faults of a call; return whether one has ended it."""
        path = named[b":path"].decode("latin-1")
        row = GRPC_METHODS.get(path)
        if row is None or not named.get(b"content-type", b"").startswith(b"application/grpc"):
            return False
        faults = self._plan.open_call(row[0].name, Binding.GRPC)
        if faults is None:
            return False
        fault = faults.refusal
        if fault is None:
            stream.response = _Response(faults, path)
            return False
        faults.count_refusal()
        if fault.verb == "reset":
            self._reset_client(stream, fault.text, "reset")
        else:
            self._answer_call(stream, fault, ended=bool(block.flags & END_STREAM))
        return True

    def _answer_call(self, stream: _Stream, fault: LiveFault, *, ended: bool) -> None:
        block = HeaderBlockFrame(HEADERS, END_HEADERS | END_STREAM, stream.number, 0, b"", b"")
        encoded = encode_fields(make_grpc_failure(fault), frozenset())
        # RFC 9113 8.1: a server that does not need the rest of the request resets the stream with
        # NO_ERROR.
        rest = b"" if ended else encode_frame(RST_STREAM, 0, stream.number, _NO_ERROR.to_bytes(4))
        note = describe_mark("answered", fault.text)
        self._facts.append(EditFact(_TO_CLIENT, "fault", OWN_ANSWER, {"note": note}))
        self._facts.append(
            EditFact(_TO_CLIENT, "answer", 0, {"data": encode_block(block, encoded)})
        )
        self._out[_TO_CLIENT].append(
            self._sides[_TO_CLIENT].writer.make_frames(block, encoded) + rest
        )
        self._end_stream(stream)

    def _on_client_data(self, frame: _Frame) -> None:
        if frame.stream not in self._gone:
            self._out[_TO_AGENT].append(frame.raw)
        elif length := len(frame.payload):
            self._out[_TO_CLIENT].append(encode_window_update(0, length))

    def _on_client_ping(self, frame: _Frame) -> None:
        """Answer a PING after late DATA: gRPC clients measure their connection with it, and gRPC
        servers that send no DATA end a connection after three PINGs."""
        if self._has_sent_late and not frame.flags & ACK:
            self._has_sent_late = False
            self._out[_TO_CLIENT].append(encode_frame(PING, ACK, 0, frame.payload))
        else:
            self._out[_TO_AGENT].append(frame.raw)

    def _on_client_reset(self, frame: _Frame) -> None:
        if frame.stream in self._gone:
            return
        if (stream := self._streams.get(frame.stream)) is not None:
            self._forget_stream(stream)
        self._out[_TO_AGENT].append(frame.raw)

    def _on_client_settings(self, frame: _Frame) -> None:
        if not frame.flags & ACK:
            wanted = dict(unpack_settings(_settings_payload(frame)))
            if len(self._settings) >= MAX_SETTINGS:
                raise Violation(
                    frame.offset,
                    f"at most {MAX_SETTINGS} SETTINGS without acknowledgement",
                    "one more",
                )
            self._settings.append(wanted)
            if HEADER_TABLE_SIZE in wanted:
                self._sides[_TO_CLIENT].hpack.allow_table_size(wanted[HEADER_TABLE_SIZE])
        self._out[_TO_AGENT].append(frame.raw)

    def _on_window_update(self, frame: _Frame) -> None:
        if len(frame.payload) != 4:
            raise Violation(frame.offset, "WINDOW_UPDATE of 4 bytes", f"{len(frame.payload)} bytes")
        increment, number = unpack_uint32(frame.payload)[0] & STREAM_MASK, frame.stream
        stream = self._streams.get(number)
        taken = 0
        if not number:
            self._window += increment
            taken = min(self._owed, increment)
            self._owed -= taken
        elif number in self._gone:
            return
        elif stream is not None:
            stream.window += increment
            taken = min(stream.owed, increment)
            stream.owed -= taken
        if not taken:
            self._out[_TO_AGENT].append(frame.raw)
        elif increment > taken:
            self._out[_TO_AGENT].append(encode_window_update(number, increment - taken))
        self._pump_all()

    # The agent's frames

    def _on_agent_settings(self, frame: _Frame) -> None:
        self._out[_TO_CLIENT].append(frame.raw)
        if not frame.flags & ACK:
            for name, value in unpack_settings(_settings_payload(frame)):
                if name == HEADER_TABLE_SIZE:
                    self._sides[_TO_AGENT].hpack.allow_table_size(value)
        elif self._settings:
            wanted = self._settings.popleft()
            change = wanted.get(INITIAL_WINDOW_SIZE, self._initial_window) - self._initial_window
            self._initial_window += change
            self.budget -= len(self._streams)
            for stream in self._streams.values():
                stream.window += change
            self._pump_all()

    def _on_response(self, block: HeaderBlockFrame, fields: list[Field], encoded: bytes) -> None:
        ends, stream = bool(block.flags & END_STREAM), self._streams.get(block.stream)
        if block.stream in self._gone:
            if ends:
                del self._gone[block.stream]
            return
        if stream is None:
            self._out[_TO_CLIENT].append(self._sides[_TO_CLIENT].writer.make_frames(block, encoded))
            return
        if stream.response is not None:
            stream.response.on_head(fields)
        if ends:
            self._finish_response(stream)
        stream.last_frames.append((block, encoded))
        self._pump(stream, ends=ends)

    def _on_agent_data(self, frame: _Frame) -> None:
        self._has_sent_late = False
        length, stream, ends = (
            len(frame.payload),
            self._streams.get(frame.stream),
            bool(frame.flags & END_STREAM),
        )
        if frame.stream in self._gone:
            if length:
                self._out[_TO_AGENT].append(encode_window_update(0, length))
            if ends:
                del self._gone[frame.stream]
            return
        if stream is None:
            self._window -= length
            self._out[_TO_CLIENT].append(frame.raw)
            return
        if (
            stream.response is None
            and not stream.queue
            and length <= min(self._window, stream.window)
        ):
            self._window -= length
            stream.window -= length
            self._out[_TO_CLIENT].append(frame.raw)
            if ends:
                del self._streams[frame.stream]
            return
        data, end = frame.data, frame.offset + len(frame.raw)
        if frame.flags & PADDED:
            end -= length - len(data) - 1
        held = stream.held
        response = stream.response
        pieces = [FaultPiece(data)] if response is None else response.feed(data, end)
        if pieces or not held:  # what is held from here on began now
            self._held_since.pop(stream.number, None)
        self._add_pieces(stream, pieces, held + length)
        if ends:
            self._finish_response(stream)
            stream.last_frames.append(encode_frame(DATA, END_STREAM, stream.number, b""))
        self._pump(stream, ends=ends)

    def _on_agent_reset(self, frame: _Frame) -> None:
        stream = self._streams.get(frame.stream)
        if frame.stream in self._gone:
            del self._gone[frame.stream]
        elif stream is None:
            self._out[_TO_CLIENT].append(frame.raw)
        elif stream.last_frames:  # after a complete response, which waits
            stream.last_frames.append(frame.raw)
        else:
            self._forget_stream(stream)
            self._out[_TO_CLIENT].append(frame.raw)

    # Streams

    def _finish_response(self, stream: _Stream) -> None:
        held = stream.held
        if stream.response is not None:
            self._add_pieces(stream, stream.response.release(), held)

    def _add_pieces(self, stream: _Stream, pieces: list[FaultPiece], arrived: int) -> None:
        """Queue pieces. `arrived`: bytes that the agent has sent and that were neither in the queue
        nor sent."""
        response = stream.response
        if response is not None:
            for mark in response.stream.marks:
                self._facts.append(
                    EditFact(_TO_CLIENT, "fault", mark.place, mark.make_detail(stream.number))
                )
            response.stream.marks.clear()
            self.budget -= response.work
            response.work = 0
        queued = sum([len(piece.data) for piece in pieces])
        most = 0 if response is None else response.faults.slice_size
        for piece in pieces:
            stream.queue.add(piece.data, self._now, piece.delay, most=most)
            if piece.cut:
                stream.queue.add(b"", self._now, RESET_DELAY, piece.cut)
        held = stream.held
        released = max(0, stream.advanced - held)
        self._settle(stream, queued + held - arrived + released)
        if (
            advance := held - stream.advanced
        ) > 0:  # or the rest of a message larger than the window could not arrive
            self._out[_TO_AGENT].append(
                encode_window_update(0, advance) + encode_window_update(stream.number, advance)
            )
        stream.advanced = held
        if held:
            self._held_since.setdefault(stream.number, self._now)
        else:
            self._held_since.pop(stream.number, None)
        self._count_held(stream)

    def _count_held(self, stream: _Stream) -> None:
        before, stream.counted = stream.counted, stream.held + stream.queue.size
        self.held_bytes = (0, self.held_bytes[1] + stream.counted - before)

    def _settle(self, stream: _Stream, growth: int) -> None:
        """Account for `growth` bytes that the client is sent and the agent did not send; negative
        if it is sent fewer."""
        stream.owed += growth
        if stream.owed < 0:
            self._out[_TO_AGENT].append(encode_window_update(stream.number, -stream.owed))
            stream.owed = 0
        self._settle_connection(growth)

    def _settle_connection(self, growth: int) -> None:
        self._owed += growth
        if self._owed < 0:
            self._out[_TO_AGENT].append(encode_window_update(0, -self._owed))
            self._owed = 0

    def _pump_all(self) -> None:
        out = self._out[_TO_CLIENT]
        before = len(out)
        self._is_behind = False
        self.budget -= len(self._waiting)
        for stream in list(self._waiting.values()):
            self._pump(stream)
        self._has_sent_late = self._has_sent_late or len(out) > before

    def _pump(self, stream: _Stream, *, ends: bool = False) -> None:
        """Send what is due on a stream, as far as the client's windows allow. `ends`: the agent has
        ended it."""
        stream.is_over = stream.is_over or ends
        out, queue, work = self._out[_TO_CLIENT], stream.queue, max(self.budget, LEAST_WORK)
        left = work
        while left > 0:
            piece = queue.take_due(self._now, min(self._window, stream.window, DEFAULT_FRAME_SIZE))
            if piece is None:
                break
            left -= PIECE_WORK
            if size := len(piece.data):
                out.append(encode_frame(DATA, 0, stream.number, piece.data))
                self._window -= size
                stream.window -= size
            if piece.cut:
                if not stream.is_over:
                    self._out[_TO_AGENT].append(
                        encode_frame(RST_STREAM, 0, stream.number, _CANCEL.to_bytes(4))
                    )
                self._reset_client(stream, piece.cut, "cut")
                return
        self._is_behind = self._is_behind or left <= 0
        self.budget -= work - left
        self._count_held(stream)
        if queue:
            self._waiting[stream.number] = stream
            return
        self._waiting.pop(stream.number, None)
        for each in stream.last_frames:
            out.append(
                each
                if isinstance(each, bytes)
                else self._sides[_TO_CLIENT].writer.make_frames(*each)
            )
        stream.last_frames.clear()
        if stream.is_over:
            self._streams.pop(stream.number, None)

    def _reset_client(self, stream: _Stream, text: str, what: str) -> None:
        detail = {"note": describe_mark(what, text), "stream": stream.number}
        self._facts.append(EditFact(_TO_CLIENT, "fault-end", 0, detail))
        self._out[_TO_CLIENT].append(
            encode_frame(RST_STREAM, 0, stream.number, _INTERNAL_ERROR.to_bytes(4))
        )
        self._end_stream(stream)

    def _end_stream(self, stream: _Stream) -> None:
        """Drop all further frames of a stream that a fault has ended."""
        is_over = stream.is_over
        self._forget_stream(stream)
        if not is_over:
            self._gone[stream.number] = None
            if len(self._gone) > MAX_GONE_STREAMS:
                del self._gone[next(iter(self._gone))]

    def _forget_stream(self, stream: _Stream) -> None:
        """Track a stream no more: what waits on it is not sent."""
        self._settle_connection(-stream.queue.size)
        self.held_bytes = (0, self.held_bytes[1] - stream.counted)
        stream.counted = 0
        self._held_since.pop(stream.number, None)
        self._streams.pop(stream.number, None)
        self._waiting.pop(stream.number, None)


def _settings_payload(frame: _Frame) -> bytes:
    if frame.stream or len(frame.payload) % 6:
        raise Violation(
            frame.offset, "SETTINGS on stream 0 of 6 bytes each", f"{len(frame.payload)} bytes"
        )
    return frame.payload
