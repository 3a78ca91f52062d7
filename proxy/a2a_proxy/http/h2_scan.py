"""Forward the frames of one direction: most bytes unchanged, some frames as an editor returns them.

Frames may be inserted between others. The scanner does not depend on what is edited.
"""

from collections.abc import Callable, Mapping, Set, Sized
from typing import Protocol

from a2a_proxy.http import PREFACE
from a2a_proxy.http.h2 import (
    CONTINUATION,
    END_HEADERS,
    HEADERS,
    PUSH_PROMISE,
    UNLIMITED,
    WINDOW_UPDATE,
    WINDOW_UPDATE_SIZE,
    Frame,
    FrameHandler,
    FrameScanner,
    HeaderBlock,
    encode_frame,
)
from a2a_proxy.http.hpack import UNDECODABLE

EditFrame = Callable[[Frame], bytes | None]
"""Returns the bytes to send instead of a complete frame, or None for the frame unchanged. Raises
`Violation`."""
EditHeaderBlock = Callable[[HeaderBlock], bytes | None]
"""Returns the bytes to send instead of a complete header block, or None for its frames unchanged.
Raises `HpackError`.
"""
EditWindow = Callable[[int, int], bytes | None]
"""Gets the stream and the increment of a WINDOW_UPDATE, and returns what `EditFrame` does."""


class HeldData(Protocol):
    """A DATA frame that a handler holds."""

    raw: bytearray
    """The received bytes of the frame, head included."""
    missing: int
    """Bytes that have not arrived yet."""

    def on_more_data(self) -> bytes:
        """Handle more bytes of the frame and return the bytes to send now."""


BeginData = Callable[[int, int, bytes, int, int], int | None]
"""Gets what `FrameHandler.on_data` gets. Returns None if the frame is forwarded unchanged, or what
`Http2Scanner.hold_frame` returns. Raises `Violation`."""


class Http2Scanner(FrameScanner, FrameHandler, kw_only=True):
    """Scans one direction. Header blocks in `known`, which `blocks` keeps up to date, are forwarded
    unchanged without calling it while `watched` is empty."""

    whole: Mapping[int, EditFrame]
    blocks: EditHeaderBlock | None = None
    windows: EditWindow | None = None
    on_data: BeginData = lambda *_: None
    known: Set[bytes] = frozenset()
    watched: Sized = ()
    part_size: int = UNLIMITED
    """Bytes of a held frame at which its handler is called, without interruption, whatever the
    pieces in which they arrive. The handler then takes them."""
    handled: set[int] = set()
    opaque: bool = False
    """Whether bytes are forwarded without being scanned."""
    dumb: bool = False
    """Whether bytes are dropped, inserted frames included."""
    out: list[bytes] = []
    """The bytes to send; the owner empties it."""
    _data: bytes = b""
    """The bytes that are scanned; empty between scans."""
    _sent: int = 0
    """Index in them up to which `out` has them or what replaces them."""
    _put: list[bytes] = []
    """Frames to insert."""
    _kept: HeldData | None = None
    _loose: bool = False

    def __post_init__(self) -> None:
        kinds = () if self.blocks is None else (HEADERS, PUSH_PROMISE, CONTINUATION)
        self.handled = {*self.whole, *kinds}
        if self.windows is not None:
            self.handled.add(WINDOW_UPDATE)

    def feed(self, data: bytes, start: int = 0) -> int:
        """Scan bytes from `start` on. Return the index where it stopped: the end, or where the
        budget was spent.

        Raises `Violation`, with everything before the offending frame scanned and the rest kept.
        """
        if self.dumb:
            return len(data)
        if self.opaque and self.is_passing:
            self.out.append(data[start:])
            return len(data)
        if start or self.rest or self.preface:
            stop = self.scan(data, start, self)
        else:
            stop = self.scan_frames(data, start, self)
        if self.opaque and not self._put:
            self.out += self._take_rest()
        return stop

    @property
    def is_passing(self) -> bool:
        """Whether all further bytes are forwarded without being scanned."""
        return self.opaque and not self._put

    @property
    def is_inside_frame(self) -> bool:
        """Whether the next byte is not the first of a frame that may be forwarded."""
        return bool(self.flow or self.rest or self.dumb or self.block is not None)

    @property
    def missing_bytes(self) -> int:
        """Bytes of the held frame that have not arrived yet."""
        return 0 if self._kept is None else self._kept.missing

    def insert_frames(self, frames: bytes) -> None:
        """Send inserted frames as soon as no frame is in the middle."""
        if not frames or self.dumb:
            return
        if self._data or (self.flow and self._kept is None):
            self._put.append(frames)
        else:
            self.out.append(frames)
            self._pass_released_frame()

    def release_held_frame(self) -> None:
        """Stop holding the current frame: `insert_frames` or `on_more_data` sends its first bytes
        next, and the rest is forwarded as it arrives."""
        self._loose = True

    def hold_frame(self, held: HeldData, pos: int) -> int:
        """Hold the DATA frame at this index. Return the index up to which it was taken."""
        self._kept = held
        self._send_until(pos)
        stop = pos + held.missing
        end = min(stop, len(self._data))
        return self.on_more(self._data, pos, end, ends=end == stop)

    def pass_all(self) -> None:
        """Forward all further bytes without scanning them."""
        self.opaque = True
        self.out += self._take_rest()

    def drop_all(self) -> None:
        """Drop all further bytes."""
        self.dumb = True
        self._take_rest()

    def end_undecodable(self, stream: int) -> None:
        """Send a frame after which its receiver must end the connection with COMPRESSION_ERROR (RFC
        9113 4.3), and drop all further bytes."""
        self.drop_all()
        self.out.append(encode_frame(HEADERS, END_HEADERS, stream, UNDECODABLE))

    def feed_eof(self) -> None:
        """Handle the end of the direction: incomplete frames are forwarded, and nothing is inserted
        after them."""
        self.out += self._take_rest()
        self.dumb = True

    def _take_rest(self) -> list[bytes]:
        frames = [] if self.block is None else self.block.frames
        rest, self.block = [*frames, bytes(self.rest)], None
        self.rest.clear()
        return rest

    # Interface of `FrameHandler`

    def on_preface(self) -> None:
        """Send the preface."""
        self.out.append(PREFACE)

    def on_more(self, data: bytes, pos: int, stop: int, *, ends: bool) -> int:
        """Give the next bytes of a held frame to its handler, or insert frames after another."""
        while (held := self._kept) is not None:
            end = min(stop, pos + self.part_size - len(held.raw))
            held.raw += data[pos:end]
            held.missing -= end - pos
            self.out.append(held.on_more_data())
            if not self._loose:
                self._insert_waiting()
            self._sent = pos = end
            self._pass_released_frame()
            if pos == stop and ends:
                self._kept = None
            if pos == stop or self.budget <= 0:
                return pos
        if ends and self._put:
            self._replace_bytes(stop, stop, b"")
        return stop

    def on_frame(self, frame: Frame) -> None:
        """Send what the handler of the frame returns."""
        pos, instead = frame.start - self.offset, self.whole[frame.kind](frame)
        if instead is not None or self._put:
            instead = frame.raw if instead is None else instead
            self._replace_bytes(pos, pos + len(frame.raw), instead)

    def on_window_update(self, stream: int, increment: int, pos: int) -> None:
        """Send what the handler of the windows returns."""
        assert self.windows is not None
        instead = self.windows(stream, increment)
        if instead is not None or self._put:
            stop = pos + WINDOW_UPDATE_SIZE
            self._replace_bytes(pos, stop, self._data[pos:stop] if instead is None else instead)

    def on_block(self, block: HeaderBlock, pos: int, stop: int, *, ends: bool) -> None:
        """Send what the handler of the block returns, or nothing before its last frame."""
        assert self.blocks is not None
        instead = self.blocks(block) if ends else b""
        if instead is None and (block.frames or self._put):
            instead = b"".join([*block.frames, self._data[pos:stop]])
        if instead is not None:
            self._replace_bytes(pos, stop, instead)

    def scan_frames(self, data: bytes, pos: int, handler: FrameHandler) -> int:
        """Do the same as `FrameScanner`, and send the bytes that no handler replaced."""
        self._data, base = data, self.offset
        if self._sent != pos:
            self._sent = pos
        try:
            return FrameScanner.scan_frames(self, data, pos, handler)
        finally:
            stop, begin = self.offset - base, self._sent
            if begin < stop:
                self.out.append(data[begin:stop] if begin or stop < len(data) else data)
            if self._put and not self.flow:
                self._insert_waiting()
            self._data = b""

    def _replace_bytes(self, pos: int, stop: int, instead: bytes) -> None:
        self._send_until(pos)
        self._sent = stop
        self.out.append(instead)
        self._insert_waiting()

    def _send_until(self, pos: int) -> None:
        if self._sent < pos:
            self.out.append(self._data[self._sent : pos])
            self._sent = pos

    def _insert_waiting(self) -> None:
        if self._put:
            self.out += self._put
            self._put.clear()

    def _pass_released_frame(self) -> None:
        if self._loose:
            self._loose = False
            self._kept = None
