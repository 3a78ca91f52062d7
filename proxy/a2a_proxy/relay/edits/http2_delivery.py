"""The frames of one direction that are held or wait for the receiver's windows.

Never more bytes wait than are owed and held.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from a2a_proxy.http.h2 import (
    DATA,
    DEFAULT_FRAME_SIZE,
    END_STREAM,
    FRAME_HEAD_SIZE,
    PADDED,
    HeaderBlock,
    Violation,
    describe_frame_head,
    encode_frame,
)
from a2a_proxy.http.h2_flow import UNTRACKED_WINDOW, FlowAccount, StreamWindow
from a2a_proxy.relay.edits.http2_headers import ResponseHeaders

MAX_QUEUED_FRAMES = 4096
"""Frames of one stream that wait."""
MAX_OWED_BYTES = 1 << 20
"""Bytes that may be owed before a longer card waits."""


class QueuedData(msgspec.Struct):
    """A DATA frame that waits."""

    owner: FlowController
    stream: HeldStream
    flags: int
    length: int
    """Bytes of its payload."""
    missing: int
    raw: bytearray

    def on_more_data(self) -> bytes:
        """Handle more bytes of the frame and return the bytes to send now."""
        stream = self.stream
        return (
            stream.hold.on_more_data()
            if stream.hold is not None
            else self.owner.flush_stream(stream)
        )

    @property
    def ends(self) -> bool:
        """Whether the frame is the sender's last one on the stream."""
        return bool(self.flags & END_STREAM)

    @property
    def payload(self) -> bytes:
        """The received data of the frame, without padding."""
        if not self.flags & PADDED:
            return bytes(self.raw[FRAME_HEAD_SIZE:])
        padding = self.raw[FRAME_HEAD_SIZE] if len(self.raw) > FRAME_HEAD_SIZE else 0
        return bytes(
            self.raw[FRAME_HEAD_SIZE + 1 : FRAME_HEAD_SIZE + max(1, self.length - padding)]
        )

    def set_payload(self, payload: bytes) -> None:
        """Replace the frame with a complete one that holds these bytes."""
        self.raw = bytearray(encode_frame(DATA, self.flags, self.stream.number, payload))
        self.length = len(payload)

    def take_payload(self, size: int) -> bytes:
        """Remove the first bytes of a complete frame without padding, and return them as a
        frame."""
        payload = bytes(self.raw[FRAME_HEAD_SIZE : FRAME_HEAD_SIZE + size])
        del self.raw[:size]  # takes constant time
        self.length -= size
        head = encode_frame(DATA, self.flags, self.stream.number, b"")
        self.raw[:FRAME_HEAD_SIZE] = self.length.to_bytes(3) + head[3:]
        return encode_frame(DATA, 0, self.stream.number, payload)


class QueuedFrame(msgspec.Struct, frozen=True):
    """Another frame that waits after DATA: RST_STREAM, or a header block."""

    raw: bytes
    """RST_STREAM, or the block as literals."""
    ends: bool = True
    """Whether the frame is the sender's last one on the stream."""
    block: HeaderBlock | None = None


class StreamHold(Protocol):
    """The reason why frames of a stream are held, whatever the windows."""

    def on_first_data(self, offset: int) -> None:
        """Handle the first held frame, which follows `offset` bytes of the sender."""

    def on_more_data(self) -> bytes:
        """Handle more held bytes and return the bytes to send now."""

    def on_window_growth(self) -> bytes:
        """Handle a growth of the receiver's windows and return the bytes to send now."""

    def release_bytes(self, reason: str) -> bytes:
        """Return the held bytes unchanged, as far as the windows allow."""

    def fail(self) -> None:
        """Note that the call failed without DATA."""


class HeldStream(StreamWindow):
    """A stream whose DATA is tracked."""

    size: int = 0
    """Bytes of data in the queue, padding included."""
    queue: list[QueuedData | QueuedFrame] = msgspec.field(default_factory=list)
    hold: StreamHold | None = None


class FlowController(FlowAccount[HeldStream]):
    """The windows of the receiver, and the streams whose DATA is held or waits."""

    def __init__(
        self, headers: ResponseHeaders, sender: str = "agent", receiver: str = "client"
    ) -> None:
        """Create the controller. `headers` write the header blocks that wait; `sender` and
        `receiver` are the names of the peers."""
        self._headers = headers
        self._sender, self._receiver = sender, receiver
        super().__init__()
        self._waiting_streams: dict[int, HeldStream] = {}
        self.queued_bytes = 0
        """Bytes of the DATA frames that are held or wait, complete or not, padding included."""

    # From the receiver

    def on_receiver_reset(self, number: int) -> None:
        """Release a stream that the receiver reset, as it would have been without the proxy."""
        stream = self.streams.get(number)
        if stream is None:
            return
        stream.window = UNTRACKED_WINDOW
        self.to_receiver.insert_frames(self.release_stream(stream, f"the {self._receiver} gave up"))
        if not stream.queue:
            self.forget_stream(stream)

    # From the sender

    def release_before(self, change: int) -> bytes:
        """Return all waiting frames, as far as the windows allow, if these become smaller."""
        reason = f"the {self._receiver} made its windows smaller"
        return self.release_all(reason) if change < 0 else b""

    def begin_data(self, flags: int, number: int, _: bytes, pos: int, stop: int) -> int | None:
        """Handle the start of a DATA frame of the sender: a `BeginData`. Raises `Violation` if it
        exceeds the windows."""
        length = stop - pos - FRAME_HEAD_SIZE
        stream = self.streams.get(number) if self.streams else None
        if stream is None:
            left = self.connection - length
            if left >= 0 or not (self.owed or self.queued_bytes):
                self.connection = left
                return None
            stream = HeldStream(number)
        elif (
            stream.hold is None
            and not stream.queue
            and length <= min(self.connection, stream.window)
        ):
            self.spend_window(stream, length)
            if flags & END_STREAM:
                self.forget_stream(stream)
            return None
        held = self._queue_data(stream, flags, length, self.to_receiver.offset + pos)
        return self.to_receiver.hold_frame(held, pos)

    def is_waiting(self, number: int) -> bool:
        """Return whether frames wait on this stream."""
        return number in self._waiting_streams

    def queue_frame(self, number: int, frame: QueuedFrame) -> None:
        """Append a frame to those that wait on its stream. Raises `Violation` if they are too
        many."""
        queue = self._waiting_streams[number].queue
        if len(queue) >= MAX_QUEUED_FRAMES:
            raise Violation(0, f"at most {MAX_QUEUED_FRAMES} waiting frames", "one more")
        queue.append(frame)

    def on_sender_reset(self, number: int, reset: bytes) -> bytes | None:
        """Handle a reset by the sender: after a complete message the receiver gets the whole
        message first. Return the bytes to send, or None for the frame unchanged."""
        stream = self.streams.get(number)
        if stream is None:
            return None
        released = (
            b""
            if stream.queue and stream.queue[-1].ends
            else self.release_stream(stream, f"the {self._sender} gave up")
        )
        if stream.queue:
            self.queue_frame(number, QueuedFrame(reset))
            return released
        self.forget_stream(stream)
        return released + reset

    # Streams

    def hold_head(self, stream: HeldStream, block: HeaderBlock, encoded: bytes) -> None:
        """Hold the header block of a response, as literals, before its DATA."""
        self._headers.start_rewriting()
        stream.queue.append(QueuedFrame(encoded, False, block))
        self._waiting_streams[stream.number] = stream

    def watch_stream(self, number: int) -> HeldStream:
        """Track the DATA of this stream from now on."""
        stream = self.streams[number] = HeldStream(number, self.initial_window)
        return stream

    def hold_untracked(self, number: int) -> HeldStream:
        """Hold the DATA of this stream until its hold ends, and do not track its window."""
        stream = self.streams[number] = HeldStream(number)
        return stream

    def forget_stream(self, stream: HeldStream) -> None:
        """Track this stream no more."""
        self.streams.pop(stream.number, None)
        self._waiting_streams.pop(stream.number, None)

    def room_of(self, stream: HeldStream) -> int:
        """Return the bytes of DATA that the sender may still send on a stream."""
        return min(
            self.connection - self.queued_bytes + self.owed,
            stream.window - stream.size + stream.owed,
        )

    def has_window(self, stream: HeldStream, size: int) -> bool:
        """Return whether the receiver's windows cover `size` bytes and the owed bytes are within
        their limit."""
        return size <= self.connection and size <= stream.window and self.owed < MAX_OWED_BYTES

    def replace_held_data(self, stream: HeldStream, message: bytes) -> bytes:
        """Return the held head of a stream, `message` in place of the DATA held first, and the
        frames that wait after it.

        The windows must cover the message.
        """
        first = stream.queue[0]
        head = b""
        if isinstance(first, QueuedFrame):
            head = self._send_frame(stream, first)[0]
            del stream.queue[0]
        held = [item for item in stream.queue if isinstance(item, QueuedData)]
        flags, before = held[-1].flags & END_STREAM, sum(item.length for item in held)
        self.queued_bytes -= before
        stream.size -= before
        stream.hold = None
        stream.queue[: len(held)] = []
        self.spend_window(stream, len(message))
        self.settle_owed(len(message) - before, None if flags else stream)
        frames = [
            encode_frame(DATA, 0, stream.number, message[at : at + DEFAULT_FRAME_SIZE])
            for at in range(0, len(message), DEFAULT_FRAME_SIZE)
        ]
        frames[-1] = encode_frame(DATA, flags, stream.number, frames[-1][FRAME_HEAD_SIZE:])
        rest = self.flush_stream(stream)
        if flags:
            self.forget_stream(stream)
        return b"".join([head, *frames, rest])

    def release_stream(self, stream: HeldStream, reason: str) -> bytes:
        """Return the frames that wait on a stream unchanged, as far as the windows allow."""
        return (
            stream.hold.release_bytes(reason)
            if stream.hold is not None
            else self.flush_stream(stream)
        )

    def release_all(self, reason: str) -> bytes:
        """Return all waiting frames, as far as the windows allow."""
        return b"".join([self.release_stream(stream, reason) for stream in self.waiting_in_order()])

    def release_all_holds(self, reason: str) -> bytes:
        """End all holds and return the waiting frames, as far as the windows allow."""
        released = self.release_all(reason)
        for stream in self.streams.values():
            stream.hold = None
        return released

    def waiting_in_order(self) -> list[HeldStream]:
        """Return the streams with waiting frames. A stream whose frame is incomplete is the last:
        nothing can be sent inside it."""
        return sorted(self._waiting_streams.values(), key=_is_incomplete)

    def flush_stream(self, stream: HeldStream) -> bytes:
        """Return the frames that wait on a stream and are not held, as far as the windows allow."""
        out: list[bytes] = []
        queue = stream.queue
        while queue:
            item = queue[0]
            sent, whole = self._send_frame(stream, item)
            out.append(sent)
            if whole:
                del queue[0]
                if item.ends:
                    self.forget_stream(stream)
            elif not sent:
                break
        if queue:
            self.streams[stream.number] = self._waiting_streams[stream.number] = stream
        elif stream.window == UNTRACKED_WINDOW:
            self.forget_stream(stream)
        else:
            self._waiting_streams.pop(stream.number, None)
        return b"".join(out)

    def flush_unbounded(self) -> bytes:
        """Return all waiting frames, whatever the windows, and track nothing more."""
        self.frame_size = self.connection = UNTRACKED_WINDOW
        self.owed = 0
        for stream in self.streams.values():
            stream.window, stream.hold, stream.owed = UNTRACKED_WINDOW, None, 0
        sent = b"".join([self.flush_stream(stream) for stream in self.waiting_in_order()])
        self.streams.clear()
        return sent

    def _queue_data(self, stream: HeldStream, flags: int, length: int, offset: int) -> QueuedData:
        queue = stream.queue
        room = self.room_of(stream)
        if length > room:
            raise Violation(
                offset,
                f"DATA of at most {room} bytes, the window",
                describe_frame_head(DATA, stream.number, length),
            )
        if len(queue) >= MAX_QUEUED_FRAMES:
            raise Violation(offset, f"at most {MAX_QUEUED_FRAMES} waiting frames", "one more")
        waiting = QueuedData(self, stream, flags, length, FRAME_HEAD_SIZE + length, bytearray())
        queue.append(waiting)
        self.queued_bytes += length
        stream.size += length
        self.streams[stream.number] = self._waiting_streams[stream.number] = stream
        if stream.hold is not None and len(queue) == 1:
            stream.hold.on_first_data(offset)
        return waiting

    def _send_frame(self, stream: HeldStream, item: QueuedData | QueuedFrame) -> tuple[bytes, bool]:
        """Return as much of a frame as may be sent, and whether that is the whole frame."""
        if isinstance(item, QueuedFrame):
            return (
                item.raw if item.block is None else self._headers.make_frames(item.block, item.raw)
            ), True
        room = max(0, min(self.connection, stream.window, self.frame_size))
        if item.length <= room:
            self._spend_queued(stream, item.length)
            if item.missing:
                self.to_receiver.release_held_frame()
            return bytes(item.raw), True
        if item.missing or not room:
            return b"", False
        if item.flags & PADDED:
            self._remove_padding(stream, item)
            return self._send_frame(stream, item)
        self._spend_queued(stream, room)
        return item.take_payload(room), False

    def _remove_padding(self, stream: HeldStream, item: QueuedData) -> None:
        """Remove the padding of a frame, because it cannot be split."""
        payload = item.payload
        padding = item.length - len(payload)
        item.flags &= ~PADDED
        item.set_payload(payload)
        self.queued_bytes -= padding
        stream.size -= padding
        self.settle_owed(-padding, None if item.ends else stream)

    def _spend_queued(self, stream: HeldStream, byte_count: int) -> None:
        self.queued_bytes -= byte_count
        stream.size -= byte_count
        self.spend_window(stream, byte_count)

    def retry_waiting(self) -> None:
        """Send waiting frames, because the receiver's windows grew."""
        if not self._waiting_streams:  # the usual case
            return
        self.to_sender.budget -= len(self._waiting_streams)
        for stream in self.waiting_in_order():
            self.to_receiver.insert_frames(
                stream.hold.on_window_growth()
                if stream.hold is not None
                else self.flush_stream(stream)
            )


def _is_incomplete(stream: HeldStream) -> bool:
    last = stream.queue[-1]
    return isinstance(last, QueuedData) and last.missing > 0
