"""What the client may be sent: its flow-control windows, and the frames that wait for them (RFC 9113 5.2, 6.9).

As long as nothing is changed the agent keeps to the client's windows by itself. Where the client was sent more octets
than the agent sent (`owed`), as much is taken from the client's next WINDOW_UPDATEs; until then the agent knows of a
window that is not there, and what exceeds the client's waits here. Where the client was sent fewer, the agent is told.
So at the end both have the same windows. What waits is never more than what is owed and what is held.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from a2a_proxy.relay.edits.http2_frames import (
    DATA,
    END_STREAM,
    FRAME_SIZE,
    HEAD,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    PADDED,
    WINDOW,
    HeaderBlockFrame,
    frame,
    settings_of,
    window_update,
)
from a2a_proxy.relay.edits.http2_headers import ResponseHeaders
from a2a_proxy.relay.edits.http2_scan import Http2Scanner
from a2a_proxy.wire.http2_frame import Violation, describe

QUEUE_LIMIT = 4096
"""Frames of one stream that wait."""
OWED_LIMIT = 1 << 20
"""Octets that may be owed before a longer card waits."""
SETTINGS_LIMIT = 1000
"""SETTINGS that the agent has not acknowledged."""
_UNTRACKED = 1 << 62


class Data(msgspec.Struct):
    """A DATA frame that waits."""

    owner: FlowController
    stream: HeldStream
    flags: int
    length: int
    """Octets of its payload."""
    missing: int
    raw: bytearray

    def grown(self) -> bytes:
        """More of it came: what to send now."""
        stream = self.stream
        return stream.hold.grown() if stream.hold is not None else self.owner.flush(stream)

    @property
    def ends(self) -> bool:
        """The agent sends nothing more on the stream after it."""
        return bool(self.flags & END_STREAM)

    @property
    def octets(self) -> bytes:
        """The data of it that has come, without padding."""
        if not self.flags & PADDED:
            return bytes(self.raw[HEAD:])
        padding = self.raw[HEAD] if len(self.raw) > HEAD else 0
        return bytes(self.raw[HEAD + 1 : HEAD + max(1, self.length - padding)])

    def hold(self, octets: bytes) -> None:
        """Become a frame of these octets, which is all there."""
        self.raw = bytearray(frame(DATA, self.flags, self.stream.number, octets))
        self.length = len(octets)


class Other(msgspec.Struct, frozen=True):
    """Another frame that waits behind DATA: RST_STREAM, or a header block."""

    raw: bytes
    """RST_STREAM, or the block as literals."""
    ends: bool = True
    """The agent sends nothing more on the stream after it."""
    block: HeaderBlockFrame | None = None


class Hold(Protocol):
    """Why nothing of a stream may go out, whatever the windows."""

    def begins(self, offset: int) -> None:
        """The first frame is held, after `offset` octets of the agent."""

    def grown(self) -> bytes:
        """More is held. What may go out now."""

    def retry(self) -> bytes:
        """The client's windows grew. What may go out now."""

    def release(self, reason: str) -> bytes:
        """What is held goes out as it came, as far as the windows let it."""


class HeldStream(msgspec.Struct, eq=False):
    """A stream whose DATA is looked at."""

    number: int
    window: int = _UNTRACKED
    """The client's."""
    owed: int = 0
    size: int = 0
    """Bytes of data in the queue, padding included."""
    queue: list[Data | Other] = msgspec.field(default_factory=list)
    hold: Hold | None = None


class FlowController:
    """The windows of the client, and the streams whose DATA is held or waits."""

    def __init__(self, headers: ResponseHeaders) -> None:
        self._headers = headers
        self.agent: Http2Scanner
        """What is sent to the agent."""
        self.client: Http2Scanner
        """What is sent to the client."""
        self.connection = WINDOW
        """The client's window for the connection, by what it was sent."""
        self.owed = 0
        """Octets that the client was sent and the agent does not know of."""
        self.streams: dict[int, HeldStream] = {}
        self._waiting: dict[int, HeldStream] = {}
        self._queued = 0
        self._initial = WINDOW
        self._frame_size = FRAME_SIZE
        self._unacknowledged: list[dict[int, int]] = []

    # From the client

    def settings(self, payload: bytes) -> None:
        """The client wants other settings. Raises `Violation` where too many wait for the agent's acknowledgement."""
        if len(self._unacknowledged) >= SETTINGS_LIMIT:
            raise Violation(0, f"at most {SETTINGS_LIMIT} SETTINGS without acknowledgement", "one more")
        self._unacknowledged.append(dict(settings_of(payload)))

    def update(self, number: int, octets: int) -> bytes | None:
        """WINDOW_UPDATE of the client: what the agent is to see of it, None for all."""
        if not number:
            self.connection += octets
            taken = min(self.owed, octets)
            self.owed -= taken
        elif (stream := self.streams.get(number)) is not None:
            stream.window += octets
            taken = min(stream.owed, octets)
            stream.owed -= taken
        else:
            return None
        if self._waiting:
            self.agent.budget -= len(self._waiting)
            self._pump()
        if not taken:
            return None
        return window_update(number, octets - taken) if octets > taken else b""

    def client_reset(self, number: int) -> None:
        """The client broke a stream: what it would have met on its way without us meets it now."""
        stream = self.streams.get(number)
        if stream is None:
            return
        stream.window = _UNTRACKED
        self.client.put(self.free(stream, "the client gave up"))
        if not stream.queue:
            self.forget(stream)

    # From the agent

    def acknowledged(self) -> bytes:
        """The agent follows the client's SETTINGS from here. Gives what must be sent before it says so."""
        if not self._unacknowledged:
            return b""
        wanted = self._unacknowledged.pop(0)
        self.client.budget -= len(self.streams)
        self._frame_size = max(FRAME_SIZE, wanted.get(MAX_FRAME_SIZE, self._frame_size))
        change = wanted.get(INITIAL_WINDOW_SIZE, self._initial) - self._initial
        self._initial += change
        released = self.free_all("the client made its windows smaller") if change < 0 else b""
        for stream in self.streams.values():
            if stream.window != _UNTRACKED:
                stream.window += change
        return released

    def begin(self, flags: int, number: int, length: int, offset: int) -> Data | None:
        """A DATA frame of the agent begins: None where it passes. Raises `Violation` where it exceeds the windows."""
        stream = self.streams.get(number) if self.streams else None
        if stream is None:
            left = self.connection - length
            if left >= 0 or not (self.owed or self._queued):
                self.connection = left
                return None
            stream = HeldStream(number)
        elif stream.hold is None and not stream.queue and length <= min(self.connection, stream.window):
            self._spend(stream, length)
            if flags & END_STREAM:
                self.forget(stream)
            return None
        return self._wait(stream, flags, length, offset)

    def waits(self, number: int) -> bool:
        """Something waits on this stream."""
        return number in self._waiting

    def behind(self, number: int, frame: Other) -> None:
        """Put a frame behind what waits on its stream. Raises `Violation` where that is too much."""
        queue = self._waiting[number].queue
        if len(queue) >= QUEUE_LIMIT:
            raise Violation(0, f"at most {QUEUE_LIMIT} waiting frames", "one more")
        queue.append(frame)

    def agent_reset(self, number: int, reset: bytes) -> bytes | None:
        """The agent breaks a stream: after a complete answer the client gets all of it first. What to send, or None."""
        stream = self.streams.get(number)
        if stream is None:
            return None
        released = b"" if stream.queue and stream.queue[-1].ends else self.free(stream, "the agent gave up")
        if stream.queue:
            self.behind(number, Other(reset))
            return released
        self.forget(stream)
        return released + reset

    # Streams

    def watch(self, number: int) -> HeldStream:
        """Look at the DATA of this stream from now on."""
        stream = self.streams[number] = HeldStream(number, self._initial)
        return stream

    def forget(self, stream: HeldStream) -> None:
        """Nothing more of this stream will be looked at."""
        self.streams.pop(stream.number, None)
        self._waiting.pop(stream.number, None)

    def covers(self, stream: HeldStream, size: int) -> bool:
        """The client's windows are that large, and not too much is owed."""
        return size <= self.connection and size <= stream.window and self.owed < OWED_LIMIT

    def replace(self, stream: HeldStream, octets: bytes) -> bytes:
        """Send this instead of the DATA that is held at the head of a stream, then what waits behind it.

        The windows must cover it.
        """
        held = [item for item in stream.queue if isinstance(item, Data)]
        flags, before = held[-1].flags & END_STREAM, sum(item.length for item in held)
        self._queued -= before
        stream.size -= before
        stream.hold = None
        stream.queue[: len(held)] = []
        self._spend(stream, len(octets))
        self._settle(stream, len(octets) - before, bool(flags))
        frames = [
            frame(DATA, 0, stream.number, octets[at : at + FRAME_SIZE]) for at in range(0, len(octets), FRAME_SIZE)
        ]
        frames[-1] = frame(DATA, flags, stream.number, frames[-1][HEAD:])
        rest = self.flush(stream)
        if flags:
            self.forget(stream)
        return b"".join([*frames, rest])

    def free(self, stream: HeldStream, reason: str) -> bytes:
        """Send what waits on a stream as it came, as far as the windows let it."""
        return stream.hold.release(reason) if stream.hold is not None else self.flush(stream)

    def free_all(self, reason: str) -> bytes:
        """Send what waits, as far as the windows let it."""
        return b"".join([self.free(stream, reason) for stream in self.in_order()])

    def let_all_go(self, reason: str) -> bytes:
        """Nothing is held from here: send what waits, as far as the windows let it."""
        released = self.free_all(reason)
        for stream in self.streams.values():
            stream.hold = None
        return released

    def in_order(self) -> list[HeldStream]:
        """The streams where something waits. The one whose frame is still coming is the last: nothing fits into it."""
        return sorted(self._waiting.values(), key=_incomplete)

    def flush(self, stream: HeldStream) -> bytes:
        """Send what waits on a stream and is not held, as far as the windows let it."""
        out: list[bytes] = []
        queue = stream.queue
        while queue:
            item = queue[0]
            sent, whole = self._send(stream, item)
            out.append(sent)
            if whole:
                del queue[0]
                if item.ends:
                    self.forget(stream)
            elif not sent:
                break
        if queue:
            self.streams[stream.number] = self._waiting[stream.number] = stream
        elif stream.window == _UNTRACKED:
            self.forget(stream)
        else:
            self._waiting.pop(stream.number, None)
        return b"".join(out)

    def dump(self) -> bytes:
        """Send all that waits, whatever the windows, and look at nothing more."""
        self._frame_size = self.connection = _UNTRACKED
        self.owed = 0
        for stream in self.streams.values():
            stream.window, stream.hold, stream.owed = _UNTRACKED, None, 0
        sent = b"".join([self.flush(stream) for stream in self.in_order()])
        self.streams.clear()
        return sent

    def _wait(self, stream: HeldStream, flags: int, length: int, offset: int) -> Data:
        queue = stream.queue
        room = min(self.connection - self._queued + self.owed, stream.window - stream.size + stream.owed)
        if length > room:
            raise Violation(offset, f"DATA of at most {room} octets, the window", describe(DATA, stream.number, length))
        if len(queue) >= QUEUE_LIMIT:
            raise Violation(offset, f"at most {QUEUE_LIMIT} waiting frames", "one more")
        waiting = Data(self, stream, flags, length, HEAD + length, bytearray())
        queue.append(waiting)
        self._queued += length
        stream.size += length
        self.streams[stream.number] = self._waiting[stream.number] = stream
        if stream.hold is not None and len(queue) == 1:
            stream.hold.begins(offset)
        return waiting

    def _send(self, stream: HeldStream, item: Data | Other) -> tuple[bytes, bool]:
        """As much of a frame as may be sent, and whether that is all of it."""
        if isinstance(item, Other):
            return (item.raw if item.block is None else self._headers.frames(item.block, item.raw)), True
        room = max(0, min(self.connection, stream.window, self._frame_size))
        if item.length <= room:
            self._take(stream, item.length)
            if item.missing:
                self.client.let_go()
            return bytes(item.raw), True
        if item.missing or not room:
            return b"", False
        if item.flags & PADDED:
            self._unpad(stream, item)
            return self._send(stream, item)
        octets = item.octets
        item.hold(octets[room:])
        self._take(stream, room)
        return frame(DATA, 0, stream.number, octets[:room]), False

    def _unpad(self, stream: HeldStream, item: Data) -> None:
        """Padding cannot be split: the client does without it."""
        octets = item.octets
        padding = item.length - len(octets)
        item.flags &= ~PADDED
        item.hold(octets)
        self._queued -= padding
        stream.size -= padding
        self._settle(stream, -padding, item.ends)

    def _take(self, stream: HeldStream, octets: int) -> None:
        self._queued -= octets
        stream.size -= octets
        self._spend(stream, octets)

    def _spend(self, stream: HeldStream, octets: int) -> None:
        self.connection -= octets
        if stream.window != _UNTRACKED:
            stream.window -= octets

    def _settle(self, stream: HeldStream, growth: int, ended: bool) -> None:
        """The client was sent that many octets more than the agent sent; fewer where it is negative."""
        self.owed += growth
        stream.owed += growth
        if self.owed < 0:
            self.agent.put(window_update(0, -self.owed))
            self.owed = 0
        if stream.owed < 0:
            if not ended:
                self.agent.put(window_update(stream.number, -stream.owed))
            stream.owed = 0

    def _pump(self) -> None:
        """The client's windows grew."""
        for stream in self.in_order():
            self.client.put(stream.hold.retry() if stream.hold is not None else self.flush(stream))


def _incomplete(stream: HeldStream) -> bool:
    last = stream.queue[-1]
    return isinstance(last, Data) and last.missing > 0
