"""Scan the frames of one direction: most bytes are forwarded unchanged, some frames are passed to
an editor.

Bytes without a handler are forwarded as they arrive, also in the middle of a frame. Frames with a
handler wait until they are complete; the frames of a header block wait for its last one. Frames may
be inserted between others. The scanner does not depend on what is edited.
"""

from collections.abc import Callable, Mapping, Set, Sized
from typing import Protocol

from a2a_proxy.relay.edits.edit import UNLIMITED
from a2a_proxy.relay.edits.http2_frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_HEAD_SIZE,
    HEADERS,
    PUSH_PROMISE,
    STREAM_MASK,
    HeaderBlockFrame,
    Http2Frame,
    parse_block_start,
    unpack_frame_head,
)
from a2a_proxy.wire.detect import PREFACE
from a2a_proxy.wire.hpack_decoder import HpackError
from a2a_proxy.wire.http2_frame import Violation, describe_frame_head

MAX_WHOLE_FRAME = 1 << 18
"""Bytes of a frame that is waited for, and of the frames of a header block. Decoding a block cannot
be interrupted: one of this size takes up to 25 ms."""

HANDLER_WORK, BLOCK_WORK = 4, 16
"""Units of the budget for a frame passed to a handler, and for a frame of a header block; each
frame costs one more."""
HANDLER_SHIFT = 5
"""A frame passed to a handler costs one more unit for each 2 ** HANDLER_SHIFT bytes; a frame of a
block one for each byte."""

MAX_KNOWN_BLOCK = 4096
"""Bytes of a header block that is compared with those known to stay unchanged."""
KNOWN_SHIFT = 8
"""A known block costs one unit, and one more for each 2 ** KNOWN_SHIFT bytes."""

_WHOLE_BLOCK = END_HEADERS | END_STREAM
_BLOCK_KINDS = (HEADERS, PUSH_PROMISE, CONTINUATION)

EditFrame = Callable[[Http2Frame], bytes | None]
"""Returns the bytes to send instead of a complete frame, or None for the frame unchanged. Raises
`Violation`."""
EditHeaderBlock = Callable[[HeaderBlockFrame], bytes | None]
"""Returns the bytes to send instead of a complete header block, or None for its frames unchanged.
Raises `HpackError`.
"""


class HeldData(Protocol):
    """A DATA frame that a handler holds."""

    raw: bytearray
    """The received bytes of the frame, head included."""
    missing: int
    """Bytes that have not arrived yet."""

    def on_more_data(self) -> bytes:
        """Handle more bytes of the frame and return the bytes to send now."""


BeginData = Callable[[int, int, int, int], HeldData | None]
"""`(flags, stream, length, offset)` of a DATA frame. Returns None if it is forwarded unchanged.
Raises `Violation`."""


class Http2Scanner:
    """Scans one direction. `out` collects the bytes to send; its owner empties it."""

    __slots__ = (
        "_block",
        "_blocks",
        "_data",
        "_flow",
        "_handled",
        "_kept",
        "_known",
        "_loose",
        "_need",
        "_preface",
        "_put",
        "_rest",
        "_scanning",
        "_watched",
        "_whole",
        "budget",
        "dumb",
        "highest_stream",
        "offset",
        "opaque",
        "out",
    )

    def __init__(
        self,
        whole: Mapping[int, EditFrame],
        blocks: EditHeaderBlock | None = None,
        data: BeginData | None = None,
        preface: bool = False,
        known: Set[bytes] = frozenset(),
        watched: Sized = (),
    ) -> None:
        """Create a scanner. Header blocks in `known`, which `blocks` keeps up to date, are
        forwarded unchanged without calling it while `watched` is empty.
        """
        self._whole = whole
        self._blocks = blocks
        self._handled = frozenset(whole).union(_BLOCK_KINDS if blocks is not None else ())
        self._data = data
        self._known, self._watched = known, watched
        self._preface = preface
        self._rest = bytearray()
        self._need = len(PREFACE) if preface else FRAME_HEAD_SIZE
        self._flow = 0
        self._scanning = False
        self._put: list[bytes] = []
        self._block: HeaderBlockFrame | None = None
        self._kept: HeldData | None = None
        self._loose = False
        self.budget = UNLIMITED
        """See `Editor.budget`."""
        self.highest_stream = 0
        """The highest stream with a header block."""
        self.offset = 0
        """Bytes of this direction before those being scanned."""
        self.opaque = False
        """Whether bytes are forwarded without being scanned."""
        self.dumb = False
        """Whether bytes are dropped, inserted frames included."""
        self.out: list[bytes] = []

    def feed(self, data: bytes, start: int = 0) -> int:
        """Scan bytes from `start` on. Return the index where it stopped: the end, or where the
        budget was spent.

        Raises `Violation`, with everything before the offending frame scanned and the rest kept.
        """
        if self.dumb:
            return len(data)
        if self.opaque and not self._put:
            self.out.append(data[start:])
            return len(data)
        before = len(self._rest)
        if before:
            self._rest += memoryview(data)[start:]
            if len(self._rest) < self._need:
                return len(data)
            data = bytes(self._rest)
            self._rest.clear()
            before, start = before - start, 0
        self._scanning = True
        try:
            return (
                self._scan_preface(data) if self._preface else self._scan_frames(data, start, start)
            ) - before
        finally:
            self._scanning = False

    @property
    def missing_bytes(self) -> int:
        """Bytes of the held frame that have not arrived yet."""
        return 0 if self._kept is None else self._kept.missing

    def insert_frames(self, frames: bytes) -> None:
        """Send inserted frames as soon as no frame is in the middle."""
        if not frames or self.dumb:
            return
        if self._scanning or (self._flow and self._kept is None):
            self._put.append(frames)
        else:
            self.out.append(frames)
            self._pass_released_frame()

    def release_held_frame(self) -> None:
        """Stop holding the current frame: `insert_frames` or `on_more_data` sends its first bytes
        next, and the rest is forwarded as it arrives."""
        self._loose = True

    def pass_all(self) -> None:
        """Forward all further bytes without scanning them."""
        self.opaque = True
        self._pass_rest()

    def drop_all(self) -> None:
        """Drop all further bytes."""
        self.dumb = True
        self._rest.clear()
        self._block = None

    def feed_eof(self) -> None:
        """Handle the end of the direction: incomplete frames are forwarded, and nothing is inserted
        after them."""
        self._pass_rest()
        self.dumb = True

    def _pass_rest(self) -> None:
        if self._block is not None:
            self.out.append(bytes(self._block.raw or b""))
            self._block = None
        self.out.append(bytes(self._rest))
        self._rest.clear()

    def _scan_preface(self, data: bytes) -> int:
        if not data.startswith(PREFACE[: len(data)]):
            self._rest += data
            raise Violation(self.offset, "HTTP/2 connection preface", repr(data[: len(PREFACE)]))
        if len(data) < len(PREFACE):
            self._keep_remainder(data, 0, len(PREFACE))
            return len(data)
        self._preface = False
        return self._scan_frames(data, 0, len(PREFACE))

    def _scan_frames(self, data: bytes, begin: int, pos: int) -> int:
        """Scan from `pos` on; the bytes between `begin` and `pos` are forwarded."""
        out, total, need, left = self.out, len(data), FRAME_HEAD_SIZE, max(self.budget, 1)
        handled, editor, known = self._handled, self._data, self._known
        self.offset -= begin
        if self._flow:
            begin, pos = self._continue_frame(data)
        while total - pos >= FRAME_HEAD_SIZE and left > 0:
            left -= 1
            word, flags, stream = unpack_frame_head(data, pos)
            kind, stop = word & 0xFF, pos + FRAME_HEAD_SIZE + (word >> 8)
            stream &= STREAM_MASK
            if (
                kind == HEADERS
                and flags | END_STREAM == _WHOLE_BLOCK
                and stop <= total
                and stop - pos <= MAX_KNOWN_BLOCK
                and data[pos + FRAME_HEAD_SIZE : stop] in known
                and not (self._watched or self._put or self._block is not None)
                and stream
            ):
                left -= stop - pos >> KNOWN_SHIFT
                if stream > self.highest_stream:
                    self.highest_stream = stream
                pos = stop
                continue
            try:
                if self._block is not None and (
                    kind != CONTINUATION or stream != self._block.stream
                ):
                    raise Violation(
                        self.offset + pos,
                        "CONTINUATION",
                        describe_frame_head(kind, stream, word >> 8),
                    )
                if kind == DATA:
                    if (
                        editor is not None
                        and (kept := editor(flags, stream, word >> 8, self.offset + pos))
                        is not None
                    ):
                        left -= HANDLER_WORK
                        out.append(data[begin:pos])
                        begin = pos = self._hold_frame(kept, data, pos, stop)
                        continue
                    instead = None
                elif kind in handled:
                    if stop > total:
                        need = self._whole_size(kind, stream, pos, stop)
                        break
                    self.budget = left
                    instead = self._edit_frame(kind, flags, stream, data, pos, stop)
                    left = self.budget
                else:
                    instead = None
            except Violation:
                out.append(data[begin:pos])
                self._keep_remainder(data, pos, FRAME_HEAD_SIZE)
                raise
            if instead is not None or self._put:
                self._replace_frame(data[begin:pos], data[pos:stop] if instead is None else instead)
                begin = stop
            if stop > total:
                self._flow = stop - total
                stop = total
            pos = stop
        if begin < pos:
            out.append(data[begin:pos] if begin or pos < total else data)
        self.budget = left
        if left <= 0 and need == FRAME_HEAD_SIZE and total - pos >= FRAME_HEAD_SIZE:
            self.offset += pos
            return pos
        self._keep_remainder(data, pos, need)
        return total

    def _edit_frame(
        self, kind: int, flags: int, stream: int, data: bytes, pos: int, stop: int
    ) -> bytes | None:
        """Pass a complete frame to its handler and return what it returns."""
        if self._blocks is not None and kind in _BLOCK_KINDS:
            self.budget -= BLOCK_WORK + stop - pos
            return self._on_header_frame(kind, flags, stream, data, pos, stop)
        self.budget -= HANDLER_WORK + (stop - pos >> HANDLER_SHIFT)
        return self._whole[kind](Http2Frame(flags, stream, self.offset + pos, data[pos:stop]))

    def _replace_frame(self, before: bytes, frame: bytes) -> None:
        """Send the bytes before a frame, then the frame or what replaces it, then the frames to
        insert."""
        if before:
            self.out.append(before)
        if self._put:
            frame = b"".join([frame, *self._put])
            self._put.clear()
        self.out.append(frame)

    def _continue_frame(self, data: bytes) -> tuple[int, int]:
        """Handle the bytes of the frame in the middle. Return two indexes: of the bytes to send,
        and of the next frame."""
        pos = min(self._flow, len(data))
        self._flow -= pos
        if self._kept is not None:
            self.out.append(self._grow_held_frame(self._kept, data[:pos]))
            return pos, pos
        if self._flow or not self._put:
            return 0, pos
        self.out.append(data[:pos])
        self.out.extend(self._put)
        self._put.clear()
        return pos, pos

    def _hold_frame(self, held: HeldData, data: bytes, pos: int, stop: int) -> int:
        here = min(stop, len(data))
        self._kept = held
        self._flow = stop - here
        self.out.append(self._grow_held_frame(held, data[pos:here]))
        return here

    def _grow_held_frame(self, held: HeldData, data: bytes) -> bytes:
        held.raw += data
        held.missing -= len(data)
        sent = held.on_more_data()
        self._pass_released_frame()
        if not self._flow:
            self._kept = None
        return sent

    def _pass_released_frame(self) -> None:
        if self._loose:
            self._loose = False
            self._kept = None

    def _on_header_frame(
        self, kind: int, flags: int, stream: int, data: bytes, pos: int, stop: int
    ) -> bytes | None:
        """Handle a frame of a header block, which is kept until the last one has arrived."""
        payload, block = data[pos + FRAME_HEAD_SIZE : stop], self._block
        if block is None:
            if kind == CONTINUATION:
                raise Violation(
                    self.offset + pos,
                    "HEADERS before CONTINUATION",
                    describe_frame_head(kind, stream, len(payload)),
                )
            block = parse_block_start(kind, flags, stream, payload, self.offset + pos)
        else:
            block.fragment = (
                block.fragment
                if isinstance(block.fragment, bytearray)
                else bytearray(block.fragment)
            )
            block.fragment += payload
            block.largest = max(block.largest, len(payload))
        if flags & END_HEADERS:
            return self._on_whole_block(block, data, pos, stop)
        if block.raw is None:
            block.raw = bytearray()
        if len(block.raw) + stop - pos > MAX_WHOLE_FRAME:
            raise Violation(block.start, f"header block of at most {MAX_WHOLE_FRAME} bytes", "more")
        block.raw += memoryview(data)[pos:stop]
        self._block = block
        return b""

    def _on_whole_block(
        self, block: HeaderBlockFrame, data: bytes, pos: int, stop: int
    ) -> bytes | None:
        assert self._blocks is not None
        try:
            instead = self._blocks(block)
        except HpackError as error:
            raise Violation(block.start, "header block in HPACK", str(error)) from None
        self._block = None
        self.highest_stream = max(self.highest_stream, block.stream)
        return (
            instead
            if instead is not None or block.raw is None
            else bytes(block.raw) + data[pos:stop]
        )

    def _whole_size(self, kind: int, stream: int, pos: int, stop: int) -> int:
        if stop - pos > MAX_WHOLE_FRAME:
            raise Violation(
                self.offset + pos,
                f"frame of at most {MAX_WHOLE_FRAME} bytes",
                describe_frame_head(kind, stream, stop - pos - FRAME_HEAD_SIZE),
            )
        return stop - pos

    def _keep_remainder(self, data: bytes, pos: int, need: int) -> None:
        self.offset += pos
        if pos < len(data):
            self._rest += memoryview(data)[pos:]
            self._need = need
