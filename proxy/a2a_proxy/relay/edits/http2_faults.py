"""Faults on one HTTP/2 connection: failing gRPC calls, and responses whose messages are lost,
repeated, moved or late.

Every header block is decoded and sent as literals, because a block that is left out or sent later
would put the receiver's dynamic table out of step. DATA that faults concern, or that the client's
windows do not cover, is handled as it arrives and sent in frames of the proxy.

A connection that cannot be followed any more is ended as in `edits.http2`: with an undecodable
header block.
"""

from collections.abc import Callable
from functools import partial
from itertools import islice

import msgspec

from a2a_proxy.faults.live import LiveFault
from a2a_proxy.faults.plan import CallFaults, FaultPlan, describe_mark
from a2a_proxy.faults.stream import FaultPiece, StreamFaults
from a2a_proxy.http.h2 import (
    ACK,
    DATA,
    DEFAULT_FRAME_SIZE,
    END_HEADERS,
    END_STREAM,
    FRAME_HEAD_SIZE,
    HEADERS,
    PADDED,
    PING,
    RST_STREAM,
    SETTINGS,
    Frame,
    HeaderBlock,
    encode_block,
    encode_frame,
    encode_window_update,
)
from a2a_proxy.http.h2_flow import FlowAccount, StreamWindow
from a2a_proxy.http.h2_scan import Http2Scanner
from a2a_proxy.http.hpack import Field, encode_literals
from a2a_proxy.model.values import Binding
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.operations import GRPC_METHODS
from a2a_proxy.relay.edits.edit import OWN_ANSWER, EditFact, Output
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
from a2a_proxy.relay.edits.http2_headers import ResponseHeaders
from a2a_proxy.relay.edits.http2_stage import Http2Stage

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


class _Stream(StreamWindow):
    """A stream with an open response."""

    advanced: int = 0
    """Bytes that are held, and for which the agent has got a larger window."""
    queue: TimedQueue = msgspec.field(default_factory=TimedQueue)
    last_frames: list[bytes | tuple[HeaderBlock, bytes]] = []
    """The frames that end the response, after the queue: whole, or a header block with its
    literals."""
    response: _Response | None = None
    is_over: bool = False
    """Whether the agent has ended the stream."""
    counted: int = 0
    """Bytes of the stream in `Http2Faults.held_bytes`."""

    @property
    def held(self) -> int:
        """Bytes of the agent that are neither sent to the client nor in the queue, and still may
        be."""
        return 0 if self.response is None else self.response.held_bytes


class _TakenData(msgspec.Struct):
    """A DATA frame that is not forwarded: a `HeldData`."""

    take: Callable[[bytes, int, int, bool], None]
    """Gets data, the number of bytes that have arrived with it, the offset after it in what the
    peer sent, and whether they are the last ones of the stream."""
    flags: int
    offset: int
    missing: int
    raw: bytearray = bytearray()
    _left: int = -1
    """Bytes of data that have not arrived; negative before the head of the frame has."""

    def on_more_data(self) -> bytes:
        """Take the bytes that have arrived if they are enough, and send none."""
        raw, first = self.raw, 0
        if self.missing and len(raw) < SHORT_DATA:
            return b""
        size = len(raw)
        if self._left < 0:
            first, padding = FRAME_HEAD_SIZE, 0
            size -= FRAME_HEAD_SIZE
            length = self.missing + size
            if self.flags & PADDED and length:
                padding = raw[first] + 1
                first += 1
            self._left = max(0, length - padding)
        data = bytes(raw[first : first + self._left])
        self._left -= len(data)
        self.offset += first + len(data)
        raw.clear()
        self.take(data, size, self.offset, bool(self.flags & END_STREAM) and not self.missing)
        return b""


class Http2Faults(Http2Stage, FlowAccount[_Stream]):
    """The faults of one HTTP/2 connection: a `FaultStage`."""

    is_active = True

    def __init__(self, plan: FaultPlan) -> None:
        FlowAccount.__init__(self)
        self.held_bytes = (0, 0)
        """Bytes of each direction that wait for the end of a message, for their time or for the
        client's windows."""
        self._plan = plan
        self._requests, self._responses = ResponseHeaders(), ResponseHeaders()
        for headers in (self._requests, self._responses):
            headers.start_rewriting()
        to_agent = {
            PING: self._on_client_ping,
            RST_STREAM: self._on_client_reset,
            SETTINGS: self._on_client_settings,
        }
        self.to_sender = Http2Scanner(
            whole=to_agent,
            blocks=self._on_request,
            windows=self.apply_window_update,
            on_data=self._begin_client_data,
            preface=True,
        )
        self.to_receiver = Http2Scanner(
            whole={RST_STREAM: self._on_agent_reset, SETTINGS: self._on_agent_settings},
            blocks=self._on_response,
            on_data=self._begin_agent_data,
            part_size=SHORT_DATA,
        )
        super().__init__(self.to_sender, self.to_receiver)
        self._waiting: dict[int, _Stream] = {}
        """Streams with a queue."""
        self._gone: dict[int, None] = {}
        """Streams that a fault has ended."""
        self._held_since: dict[int, float] = {}
        """Streams that hold messages, and when one was complete before, the earliest first."""
        self._is_behind = False
        """Whether due bytes wait because the budget is spent."""
        self._has_sent_late = False
        """Whether the client was sent DATA since the agent last sent some."""

    # Interface of `FaultStage`

    @property
    def budget(self) -> int:
        """See `Editor.budget`."""
        return self._scanner.budget

    @budget.setter
    def budget(self, units: int) -> None:
        self._scanner.budget = units

    @property
    def deadline(self) -> float | None:
        """When the next bytes are due, or a message is held too long. Bytes that are due already
        wait for the client's windows."""
        if self._is_behind:
            return 0.0
        dues = [
            due
            for each in self._waiting.values()
            if (due := each.queue.deadline) is not None and due > self.now
        ]
        dues += [since + HOLD_SECONDS for since in islice(self._held_since.values(), 1)]
        return min(dues, default=None)

    @property
    def delays(self) -> tuple[bool, bool]:
        """Whether the agent must not be read: it is read while a stream waits, for the other
        streams."""
        return False, self._is_behind

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:
        """Handle a FIN of the sender of that direction: nothing waits any more."""
        self.now = now
        if direction is _TO_CLIENT:
            self.connection = _UNLIMITED
            for stream in self._waiting.values():
                stream.window = _UNLIMITED
                stream.queue.hasten()
        return self._collect_outputs()

    def tick(self, now: float) -> list[Output]:
        """Return the bytes that are due, and those that were held too long."""
        self.now = now
        for number in [
            number for number, since in self._held_since.items() if since + HOLD_SECONDS <= now
        ]:
            stream = self.streams[number]
            assert stream.response is not None
            self.facts.append(note_late(_TO_CLIENT))
            held = stream.held
            self._add_pieces(stream, stream.response.release(), held)
            self._waiting[number] = stream
        return self._collect_outputs()

    def _collect_outputs(self) -> list[Output]:
        self.retry_waiting()  # because `deadline` passes over what is due now
        return super()._collect_outputs()

    # The client's frames

    def _on_request(self, block: HeaderBlock) -> bytes:
        head, number = self._requests.read(block.fragment), block.stream
        if number in self._gone:
            return b""
        if number not in self.streams and any(name == b":path" for name, _ in head.fields):
            stream = self.streams[number] = _Stream(number, self.initial_window)
            if self._open_call(stream, block, dict(head.fields)):
                return b""
        return self._requests.make_frames(block, head.encode_head())

    def _open_call(self, stream: _Stream, block: HeaderBlock, named: dict[bytes, bytes]) -> bool:
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
        block = HeaderBlock(HEADERS, END_HEADERS | END_STREAM, stream.number, 0, b"", b"")
        encoded = encode_literals(make_grpc_failure(fault))
        # RFC 9113 8.1: a server that does not need the rest of the request resets the stream with
        # NO_ERROR.
        rest = b"" if ended else encode_frame(RST_STREAM, 0, stream.number, _NO_ERROR.to_bytes(4))
        note = describe_mark("answered", fault.text)
        self.facts.append(EditFact(_TO_CLIENT, "fault", OWN_ANSWER, {"note": note}))
        self.facts.append(EditFact(_TO_CLIENT, "answer", 0, {"data": encode_block(block, encoded)}))
        self.to_receiver.insert_frames(self._responses.make_frames(block, encoded) + rest)
        self._end_stream(stream)

    def _begin_client_data(
        self, _: int, number: int, _data: bytes, pos: int, stop: int
    ) -> int | None:
        return self._drop_data(pos, stop) if number in self._gone else None

    def _drop_data(self, pos: int, stop: int) -> int:
        """Drop the DATA of a stream that a fault has ended, whose sender gets the window back."""
        scanner = self._scanner
        other = self.to_receiver if scanner is self.to_sender else self.to_sender
        if stop - pos > FRAME_HEAD_SIZE:
            other.insert_frames(encode_window_update(0, stop - pos - FRAME_HEAD_SIZE))
        return scanner.hold_frame(_TakenData(lambda *_: None, 0, 0, stop - pos), pos)

    def _on_client_ping(self, frame: Frame) -> bytes | None:
        """Answer a PING after late DATA: gRPC clients measure their connection with it, and gRPC
        servers that send no DATA end a connection after three PINGs."""
        if not self._has_sent_late or frame.flags & ACK:
            return None
        self._has_sent_late = False
        self.to_receiver.insert_frames(encode_frame(PING, ACK, 0, frame.payload))
        return b""

    def _on_client_reset(self, frame: Frame) -> bytes | None:
        if frame.stream in self._gone:
            return b""
        if (stream := self.streams.get(frame.stream)) is not None:
            self._forget_stream(stream)
        return None

    def _on_client_settings(self, frame: Frame) -> None:
        if not frame.flags & ACK:
            self.apply_settings(frame)
            self._responses.apply_settings(frame.read_settings())

    def apply_window_update(self, number: int, increment: int) -> bytes | None:
        """Drop the WINDOW_UPDATE of a stream that a fault has ended."""
        return b"" if number in self._gone else super().apply_window_update(number, increment)

    # The agent's frames

    def _on_agent_settings(self, frame: Frame) -> None:
        if frame.flags & ACK:
            self.on_settings_ack()
            self.retry_waiting()
        else:
            self._requests.apply_settings(frame.read_settings())

    def _on_response(self, block: HeaderBlock) -> bytes:
        head, number = self._responses.read(block.fragment), block.stream
        ends, stream = bool(block.flags & END_STREAM), self.streams.get(number)
        encoded = head.encode_head()
        if block.kind == HEADERS and number in self._gone:
            if ends:
                del self._gone[number]
            return b""
        if block.kind != HEADERS or stream is None:
            return self._responses.make_frames(block, encoded)
        if stream.response is not None:
            stream.response.on_head(head.fields)
        if ends:
            self._finish_response(stream)
        stream.last_frames.append((block, encoded))
        self._pump(stream, ends=ends)
        return b""

    def _begin_agent_data(
        self, flags: int, number: int, _: bytes, pos: int, stop: int
    ) -> int | None:
        self._has_sent_late = False
        stream, ends = self.streams.get(number), flags & END_STREAM
        length = stop - pos - FRAME_HEAD_SIZE
        if number in self._gone:
            if ends:
                del self._gone[number]
            return self._drop_data(pos, stop)
        if stream is None:
            self.connection -= length
        elif (
            stream.response is None
            and not stream.queue
            and length <= min(self.connection, stream.window)
        ):
            self.spend_window(stream, length)
            if ends:
                del self.streams[number]
        else:
            take, scanner = partial(self._on_agent_data, stream), self.to_receiver
            taken = _TakenData(take, flags, scanner.offset + pos, stop - pos)
            return scanner.hold_frame(taken, pos)
        return None

    def _on_agent_data(self, stream: _Stream, data: bytes, size: int, end: int, ends: bool) -> None:
        if self.streams.get(stream.number) is not stream:  # it was reset in the middle of a frame
            if size:
                self.to_sender.insert_frames(encode_window_update(0, size))
            if ends:
                self._gone.pop(stream.number, None)
        elif size or ends:
            held, response = stream.held, stream.response
            pieces = [FaultPiece(data)] if response is None else response.feed(data, end)
            if pieces or not held:  # what is held from here on began now
                self._held_since.pop(stream.number, None)
            self._add_pieces(stream, pieces, held + size)
            if ends:
                self._finish_response(stream)
                stream.last_frames.append(encode_frame(DATA, END_STREAM, stream.number, b""))
            self._pump(stream, ends=ends)

    def _on_agent_reset(self, frame: Frame) -> bytes | None:
        stream = self.streams.get(frame.stream)
        if frame.stream in self._gone:
            del self._gone[frame.stream]
            return b""
        if stream is not None:
            if stream.last_frames:  # after a complete response, which waits
                stream.last_frames.append(frame.raw)
                return b""
            self._forget_stream(stream)
        return None

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
                self.facts.append(
                    EditFact(_TO_CLIENT, "fault", mark.place, mark.make_detail(stream.number))
                )
            response.stream.marks.clear()
            self.budget -= response.work
            response.work = 0
        queued = sum([len(piece.data) for piece in pieces])
        most = 0 if response is None else response.faults.slice_size
        for piece in pieces:
            stream.queue.add(piece.data, self.now, piece.delay, most=most)
            if piece.cut:
                stream.queue.add(b"", self.now, RESET_DELAY, piece.cut)
        held = stream.held
        released = max(0, stream.advanced - held)
        self.settle_owed(queued + held - arrived + released, stream)
        if (
            advance := held - stream.advanced
        ) > 0:  # or the rest of a message larger than the window could not arrive
            self.to_sender.insert_frames(
                encode_window_update(0, advance) + encode_window_update(stream.number, advance)
            )
        stream.advanced = held
        if held:
            self._held_since.setdefault(stream.number, self.now)
        else:
            self._held_since.pop(stream.number, None)
        self._count_held(stream)

    def _count_held(self, stream: _Stream) -> None:
        before, stream.counted = stream.counted, stream.held + stream.queue.size
        self.held_bytes = (0, self.held_bytes[1] + stream.counted - before)

    def retry_waiting(self) -> None:
        """Send what is due on all streams, as far as the client's windows allow."""
        self._is_behind = False
        self.budget -= len(self._waiting)
        for stream in list(self._waiting.values()):
            self._has_sent_late = self._pump(stream) or self._has_sent_late

    def _pump(self, stream: _Stream, *, ends: bool = False) -> bool:
        """Send what is due on a stream, as far as the client's windows allow, and return whether
        that is anything. `ends`: the agent has ended it."""
        stream.is_over = stream.is_over or ends
        out: list[bytes] = []
        queue, work = stream.queue, max(self.budget, LEAST_WORK)
        left = work
        while left > 0:
            most = min(self.connection, stream.window, DEFAULT_FRAME_SIZE)
            piece = queue.take_due(self.now, most)
            if piece is None:
                break
            left -= PIECE_WORK
            if piece.data:
                out.append(encode_frame(DATA, 0, stream.number, piece.data))
                self.spend_window(stream, len(piece.data))
            if piece.cut:
                self.to_receiver.insert_frames(b"".join(out))
                if not stream.is_over:
                    cancel = encode_frame(RST_STREAM, 0, stream.number, _CANCEL.to_bytes(4))
                    self.to_sender.insert_frames(cancel)
                self._reset_client(stream, piece.cut, "cut")
                return True
        self._is_behind = self._is_behind or left <= 0
        self.budget -= work - left
        self._count_held(stream)
        if queue:
            self._waiting[stream.number] = stream
        else:
            self._waiting.pop(stream.number, None)
            out += [
                each if isinstance(each, bytes) else self._responses.make_frames(*each)
                for each in stream.last_frames
            ]
            stream.last_frames.clear()
            if stream.is_over:
                self.streams.pop(stream.number, None)
        self.to_receiver.insert_frames(b"".join(out))
        return bool(out)

    def _reset_client(self, stream: _Stream, text: str, what: str) -> None:
        detail = {"note": describe_mark(what, text), "stream": stream.number}
        self.facts.append(EditFact(_TO_CLIENT, "fault-end", 0, detail))
        reset = encode_frame(RST_STREAM, 0, stream.number, _INTERNAL_ERROR.to_bytes(4))
        self.to_receiver.insert_frames(reset)
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
        self.settle_owed(-stream.queue.size)
        self.held_bytes = (0, self.held_bytes[1] - stream.counted)
        stream.counted = 0
        self._held_since.pop(stream.number, None)
        self.streams.pop(stream.number, None)
        self._waiting.pop(stream.number, None)
