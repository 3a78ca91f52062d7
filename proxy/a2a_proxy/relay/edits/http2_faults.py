"""Faults on one HTTP/2 connection: failing gRPC calls, and responses whose messages are lost, repeated, moved or late.

Every header block is decoded and sent as literals, because a block that is left out or sent later would put the
receiver's dynamic table out of step. Frames are handled whole. The windows stay right in both directions: bytes that
only the agent has sent are given back to the agent with WINDOW_UPDATE; bytes that only the client was sent are owed,
and subtracted from the client's next WINDOW_UPDATEs; DATA that the client's windows do not cover waits.

A connection that cannot be followed any more is ended as in `edits.http2`: with an undecodable header block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from a2a_proxy.faults.live import LiveFault
from a2a_proxy.faults.plan import CallFaults, FaultPlan, describe_mark
from a2a_proxy.faults.stream import FaultPiece, StreamFaults
from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import Binding
from a2a_proxy.protocol.operations import GRPC_METHODS
from a2a_proxy.relay.edits.edit import OWN_ANSWER, EditFact, Output
from a2a_proxy.relay.edits.fault_answers import make_grpc_failure
from a2a_proxy.relay.edits.fault_events import MAX_MESSAGE_BYTES
from a2a_proxy.relay.edits.fault_messages import PREFIX_SIZE, GrpcEvents
from a2a_proxy.relay.edits.fault_output import TimedQueue
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
from a2a_proxy.relay.edits.http2_headers import LiteralWriter, encode_fields
from a2a_proxy.wire.detect import PREFACE
from a2a_proxy.wire.hpack_decoder import Field, HpackDecoder, HpackError
from a2a_proxy.wire.http2_frame import Violation

MAX_SETTINGS = 1000
"""SETTINGS frames that the agent has not acknowledged."""
MAX_BLOCK_BYTES = 1 << 18
MAX_GONE_STREAMS = 10_000
"""Streams that a fault has ended and whose late frames are still dropped; the oldest is forgotten first."""

RESET_DELAY = 0.05
"""Seconds from the last bytes before a cut to RST_STREAM: gRPC clients then drop messages that they have not read."""

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
        return payload[1 : len(payload) - payload[0]] if self.flags & PADDED and payload else payload


class _Side:
    """One direction: its incomplete frame, its header blocks as received and as sent."""

    def __init__(self, *, preface: bool) -> None:
        self.rest = b""
        self.offset = 0
        """Bytes before `rest`."""
        self.preface = preface
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
        self.rest = b""
        """Bytes of a message that is not complete."""
        self.is_read = True

    def on_head(self, fields: list[Field]) -> None:
        """Handle the head of the response."""
        named = dict(fields)
        if self.events is None and named.get(b"content-type", b"").startswith(b"application/grpc"):
            self.events = GrpcEvents(self._path, named.get(b"grpc-encoding", b"identity"))

    def feed(self, data: bytes, end: int) -> list[FaultPiece]:
        """Return the pieces to send for bytes of the response. `end`: the offset after them in what the agent sent."""
        if self.events is None or not self.is_read:
            return [FaultPiece(data)]
        self.rest += data
        pieces: list[FaultPiece] = []
        while len(self.rest) >= PREFIX_SIZE:
            size = PREFIX_SIZE + int.from_bytes(self.rest[1:PREFIX_SIZE])
            if size > MAX_MESSAGE_BYTES:
                self.is_read = False
                return [*pieces, *self.finish()]
            if len(self.rest) < size:
                break
            message, self.rest = self.rest[:size], self.rest[size:]
            pieces += self.stream.feed_event(message, self.events.read(message), end - len(self.rest) - 1)
        return pieces

    def finish(self) -> list[FaultPiece]:
        """Return the last pieces, because the response is complete."""
        rest, self.rest = self.rest, b""
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
        """Bytes that are subtracted from the client's next WINDOW_UPDATEs: the client was sent them and the agent did
        not send them, or the agent has got the window for them already."""
        self.advanced = 0
        """Bytes that are held, and for which the agent has got a larger window."""
        self.queue = TimedQueue()
        self.last_frames: list[bytes | tuple[HeaderBlockFrame, bytes]] = []
        """The frames that end the response, after the queue: whole, or a header block with its literals."""
        self.response: _Response | None = None
        self.is_over = False
        """Whether the agent has ended the stream."""

    @property
    def held(self) -> int:
        """Bytes of the agent that are neither sent to the client nor in the queue, and still may be."""
        return 0 if self.response is None else len(self.response.rest) + self.response.stream.held_bytes


class Http2Faults:
    """The faults of one HTTP/2 connection: a `FaultStage`."""

    is_active = True
    is_delaying = False
    """The agent is read on while a stream waits, for the other streams."""

    def __init__(self, plan: FaultPlan) -> None:
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
        """When the next bytes are due. Bytes that are due already wait for the client's windows."""
        dues = [due for each in self._waiting.values() if (due := each.queue.deadline) is not None and due > self._now]
        return min(dues) if dues else None

    def take_edits(self) -> list[EditFact]:
        """Return what happened since the last call."""
        facts, self._facts = self._facts, []
        return facts

    def feed(self, direction: Direction, data: bytes, now: float) -> list[Output]:
        """Handle bytes of one peer and return the bytes to write."""
        self._now = now
        side = self._sides[direction]
        if not side.is_lost:
            try:
                self._read_frames(direction, side, data)
            except (Violation, HpackError):
                side.is_lost = True
                self._out[direction].append(encode_undecodable(side.highest + (2 if direction is _TO_AGENT else 0)))
        self._pump_all()  # because `deadline` passes over what is due now
        return self._take_outputs()

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:
        """Handle a FIN of the sender of that direction: nothing waits any more."""
        self._now = now
        if direction is _TO_CLIENT:
            self._window = _UNLIMITED
            for stream in list(self._waiting.values()):
                stream.window = _UNLIMITED
                stream.queue.hasten()
        self._pump_all()
        return self._take_outputs()

    def tick(self, now: float) -> list[Output]:
        """Return the bytes that are due."""
        self._now = now
        self._pump_all()
        return self._take_outputs()

    def _take_outputs(self) -> list[Output]:
        outputs = [Output(way, b"".join(out)) for way, out in zip(Direction, self._out, strict=True) if out]
        for out in self._out:
            out.clear()
        return outputs

    # Frames

    def _read_frames(self, direction: Direction, side: _Side, data: bytes) -> None:
        data, pos = side.rest + data, 0
        if side.preface:
            if len(data) < len(PREFACE):
                side.rest = data
                return
            side.preface = False
            pos = len(PREFACE)
            self._out[direction].append(data[:pos])
        base = side.offset
        while len(data) - pos >= FRAME_HEAD_SIZE:
            word, flags, stream = unpack_frame_head(data, pos)
            stop = pos + FRAME_HEAD_SIZE + (word >> 8)
            if stop > len(data):
                break
            frame = _Frame(word & 0xFF, flags, stream & STREAM_MASK, data[pos:stop], base + pos)
            pos = stop
            self._handle_frame(direction, side, frame)
        side.offset = base + pos
        side.rest = data[pos:]

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
            if block is None or block.stream != frame.stream or len(block.fragment) > MAX_BLOCK_BYTES:
                raise Violation(frame.offset, "CONTINUATION of a header block", "another one")
            block.fragment = bytes(block.fragment) + frame.payload
        else:
            block = parse_block_start(frame.kind, frame.flags, frame.stream, frame.payload, frame.offset)
        side.block = block
        if not frame.flags & END_HEADERS:
            return
        side.block = None
        side.highest = max(side.highest, block.stream)
        fragment = bytes(block.fragment)
        fields = side.hpack.decode_block(fragment)
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

    def _open_call(self, stream: _Stream, block: HeaderBlockFrame, named: dict[bytes, bytes]) -> bool:
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
        # RFC 9113 8.1: a server that does not need the rest of the request resets the stream with NO_ERROR.
        rest = b"" if ended else encode_frame(RST_STREAM, 0, stream.number, _NO_ERROR.to_bytes(4))
        note = describe_mark("answered", fault.text)
        self._facts.append(EditFact(_TO_CLIENT, "fault", OWN_ANSWER, {"note": note}))
        self._facts.append(EditFact(_TO_CLIENT, "answer", 0, {"data": encode_block(block, encoded)}))
        self._out[_TO_CLIENT].append(self._sides[_TO_CLIENT].writer.make_frames(block, encoded) + rest)
        self._end_stream(stream)

    def _on_client_data(self, frame: _Frame) -> None:
        if frame.stream not in self._gone:
            self._out[_TO_AGENT].append(frame.raw)
        elif length := len(frame.payload):
            self._out[_TO_CLIENT].append(encode_window_update(0, length))

    def _on_client_ping(self, frame: _Frame) -> None:
        """Answer a PING after late DATA: gRPC clients measure their connection with it, and gRPC servers that send no
        DATA end a connection after three PINGs."""
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
                raise Violation(frame.offset, f"at most {MAX_SETTINGS} SETTINGS without acknowledgement", "one more")
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
        length, stream, ends = len(frame.payload), self._streams.get(frame.stream), bool(frame.flags & END_STREAM)
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
        if stream.response is None and not stream.queue and length <= min(self._window, stream.window):
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
        self._add_pieces(stream, [FaultPiece(data)] if response is None else response.feed(data, end), held + length)
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
            self._add_pieces(stream, stream.response.finish(), held)

    def _add_pieces(self, stream: _Stream, pieces: list[FaultPiece], arrived: int) -> None:
        """Queue pieces. `arrived`: bytes that the agent has sent and that were neither in the queue nor sent."""
        response = stream.response
        if response is not None:
            for mark in response.stream.marks:
                self._facts.append(EditFact(_TO_CLIENT, "fault", mark.place, mark.make_detail(stream.number)))
            response.stream.marks.clear()
        queued = sum([len(piece.data) for piece in pieces])
        for piece in pieces:
            stream.queue.add(piece.data, self._now, piece.delay)
            if piece.cut:
                stream.queue.add(b"", self._now, RESET_DELAY, piece.cut)
        held = stream.held
        released = max(0, stream.advanced - held)
        self._settle(stream, queued + held - arrived + released)
        if (advance := held - stream.advanced) > 0:  # or the rest of a message larger than the window could not arrive
            self._out[_TO_AGENT].append(encode_window_update(0, advance) + encode_window_update(stream.number, advance))
        stream.advanced = held

    def _settle(self, stream: _Stream, growth: int) -> None:
        """Account for `growth` bytes that the client is sent and the agent did not send; negative if it is sent
        fewer."""
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
        for stream in list(self._waiting.values()):
            self._pump(stream)
        self._has_sent_late = self._has_sent_late or len(out) > before

    def _pump(self, stream: _Stream, *, ends: bool = False) -> None:
        """Send what is due on a stream, as far as the client's windows allow. `ends`: the agent has ended it."""
        stream.is_over = stream.is_over or ends
        out, queue, response = self._out[_TO_CLIENT], stream.queue, stream.response
        limit = DEFAULT_FRAME_SIZE if response is None else response.faults.slice_size or DEFAULT_FRAME_SIZE
        while (piece := queue.take_due(self._now)) is not None:
            size = min(len(piece.data), self._window, stream.window, limit)
            if piece.data and size <= 0:
                queue.put_back(piece)
                break
            if size:
                out.append(encode_frame(DATA, 0, stream.number, piece.data[:size]))
                self._window -= size
                stream.window -= size
            if size < len(piece.data):
                queue.put_back(msgspec.structs.replace(piece, data=piece.data[size:]))
            elif piece.cut:
                if not stream.is_over:
                    self._out[_TO_AGENT].append(encode_frame(RST_STREAM, 0, stream.number, _CANCEL.to_bytes(4)))
                self._reset_client(stream, piece.cut, "cut")
                return
        if queue:
            self._waiting[stream.number] = stream
            return
        self._waiting.pop(stream.number, None)
        for each in stream.last_frames:
            out.append(each if isinstance(each, bytes) else self._sides[_TO_CLIENT].writer.make_frames(*each))
        stream.last_frames.clear()
        if stream.is_over:
            self._streams.pop(stream.number, None)

    def _reset_client(self, stream: _Stream, text: str, what: str) -> None:
        detail = {"note": describe_mark(what, text), "stream": stream.number}
        self._facts.append(EditFact(_TO_CLIENT, "fault-end", 0, detail))
        self._out[_TO_CLIENT].append(encode_frame(RST_STREAM, 0, stream.number, _INTERNAL_ERROR.to_bytes(4)))
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
        self._streams.pop(stream.number, None)
        self._waiting.pop(stream.number, None)


def _settings_payload(frame: _Frame) -> bytes:
    if frame.stream or len(frame.payload) % 6:
        raise Violation(frame.offset, "SETTINGS on stream 0 of 6 bytes each", f"{len(frame.payload)} bytes")
    return frame.payload
