"""The frames of one direction of an HTTP/2 connection (RFC 9113 4, 6): their bounds, their header
blocks, and encoders.

`FrameScanner` gives frames to a `FrameHandler`, each with its place in the bytes, so that a handler
can decode them or forward them unchanged. DATA and frames that the handler does not want are never
held; other frames wait until they are complete, and the frames of a header block for its last one.
"""

from base64 import urlsafe_b64decode
from collections.abc import Set, Sized
from struct import Struct

import msgspec

from a2a_proxy.http import PREFACE
from a2a_proxy.http.hpack import MAX_KNOWN_BLOCK, HpackError
from a2a_proxy.model.saved_state import State

(
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
) = range(10)
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITISED = 0x20
INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 4, 5
FRAME_HEAD_SIZE = 9
STREAM_MASK = 0x7FFFFFFF
WINDOW_UPDATE_SIZE = FRAME_HEAD_SIZE + 4
DEFAULT_FRAME_SIZE = 16_384
"""Bytes of payload that every receiver accepts, and its limit before it announces another."""
DEFAULT_WINDOW = 65_535
"""Bytes of a receiver's window before it announces another."""

UNLIMITED = (1 << 30) - 1
"""A budget that no bytes of one read spend; larger integers are slower."""
HANDLER_WORK, BLOCK_WORK = 4, 16
"""Units of the budget for a frame passed to a handler, and for a frame of a header block; each
frame costs one more."""
HANDLER_SHIFT = 5
"""A frame passed to a handler costs one more unit for each 2 ** HANDLER_SHIFT bytes; a frame of a
block one for each byte."""
KNOWN_SHIFT = 8
"""A known block costs one unit, and one more for each 2 ** KNOWN_SHIFT bytes."""

_WHOLE_BLOCK = END_HEADERS | END_STREAM
_BLOCK_KINDS = (HEADERS, PUSH_PROMISE, CONTINUATION)

unpack_uint32 = Struct(">I").unpack_from
_unpack_head = Struct(">IBi").unpack_from
_iter_settings = Struct(">HI").iter_unpack
_pack_head = Struct(">IBI").pack
_pack_update = Struct(">IBII").pack


class Violation(Exception):
    """Bytes after which the direction cannot be followed."""

    def __init__(self, offset: int, expected: str, got: str) -> None:
        super().__init__(offset, expected, got)
        self.offset = offset
        self.expected = expected
        self.got = got


def describe_frame_head(kind: int, stream: int, length: int) -> str:
    """Return a frame's head in words."""
    return f"frame of type {kind} on stream {stream} with {length} bytes"


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A complete frame."""

    kind: int
    flags: int
    stream: int
    start: int
    """Bytes of the direction before the frame."""
    raw: bytes
    """The whole frame, head included."""

    @property
    def payload(self) -> bytes:
        """The bytes after the head."""
        return self.raw[FRAME_HEAD_SIZE:]

    def make_violation(self, expected: str) -> Violation:
        """Return the violation for this frame."""
        length = len(self.raw) - FRAME_HEAD_SIZE
        return Violation(self.start, expected, describe_frame_head(self.kind, self.stream, length))

    def check_size(self, size: int) -> bytes:
        """Return the payload. Raises `Violation` if it does not have exactly `size` bytes."""
        if len(self.raw) != FRAME_HEAD_SIZE + size:
            raise self.make_violation(f"{size} bytes")
        return self.payload

    def read_settings(self) -> list[tuple[int, int]]:
        """Return the names and values of SETTINGS. Raises `Violation`."""
        payload = self.payload
        if self.stream or len(payload) % 6:
            raise self.make_violation("SETTINGS on stream 0 of 6 bytes each")
        return list(_iter_settings(payload))


def decode_settings(field: bytes) -> list[tuple[int, int]]:
    """Return the settings in the value of a field HTTP2-Settings. Raises `ValueError`."""
    payload = urlsafe_b64decode(field + b"=" * (-len(field) % 4))
    return list(_iter_settings(payload[: len(payload) // 6 * 6]))


class HeaderBlock(msgspec.Struct):
    """A header block of HEADERS or PUSH_PROMISE."""

    kind: int
    flags: int
    """Those of its first frame, without PADDED."""
    stream: int
    start: int
    """Bytes of the direction before the block."""
    fixed: bytes
    """The priority, or the promised stream."""
    fragment: bytes
    """The compressed fields; of an incomplete block those in its first frame."""
    frames: list[bytes] = []
    """Its frames as received, except the last one."""
    size: int = 0
    """Bytes of `frames`."""
    largest: int = DEFAULT_FRAME_SIZE
    """Bytes of payload of its largest frame if that exceeds the default frame size, else the
    default."""
    began: int = 0
    """For the owner of the handler: the time its first byte arrived."""


class FrameHandler:
    """What happens to the frames of one direction. Its methods may raise `Violation`."""

    __slots__ = ()

    handled: Set[int] = frozenset()
    """The kinds of frames that `on_block`, `on_frame` and `on_window_update` get, which must be
    complete."""
    known: Set[bytes] = frozenset()
    """Header blocks that `on_block` need not get while `watched` is empty."""
    watched: Sized = ()

    def on_preface(self) -> None:
        """Handle the preface of the connection."""

    def on_data(self, flags: int, stream: int, data: bytes, pos: int, stop: int, /) -> int | None:
        """Handle the DATA frame at `data[pos:stop]`, which may end after `data`, but has the length
        of its padding. Return the index up to which it was taken, or None for all of it."""

    def on_more(self, data: bytes, pos: int, stop: int, *, ends: bool) -> int | None:
        """Handle the next bytes of the frame in the middle, `ends` if they are its last ones.
        Return the index up to which they were taken, or None for all of them."""

    def on_skip(self, kind: int, pos: int, stop: int, /) -> None:
        """Handle the head of the frame at `data[pos:stop]`, which may end after `data`, of a kind
        that is not in `handled`."""

    def on_frame(self, frame: Frame) -> None:
        """Handle a complete frame, other than those below."""

    def on_window_update(self, stream: int, increment: int, pos: int) -> None:
        """Handle the complete WINDOW_UPDATE at this index of the data."""

    def on_block(self, block: HeaderBlock, pos: int, stop: int, *, ends: bool) -> None:
        """Handle a frame of a header block, which is at these indexes of the data, `ends` if it is
        the last one. May raise `HpackError`."""


class FrameScanner(State):
    """Finds the frames of one direction."""

    max_payload: int = 1 << 18
    """Bytes of payload of a frame that is waited for, and of the frames of a header block. Decoding
    a block cannot be interrupted: one of this size takes up to 25 ms."""
    preface: bool = False
    """Whether the client's preface is still to come."""
    offset: int = 0
    """Bytes of the direction before `rest`; during a scan, before the first byte of the data."""
    rest: bytearray = bytearray()
    """An incomplete frame (or its head, or the preface)."""
    need: int = 0
    """Bytes that `rest` must have before another attempt to read it makes sense."""
    flow: int = 0
    """Bytes still to come of a frame in the middle, which is handled as it arrives."""
    block: HeaderBlock | None = None
    """The header block whose last frame has not arrived."""
    highest_stream: int = 0
    """The highest stream with a header block."""
    budget: int = UNLIMITED
    """Units of work that `scan` may do before it returns; it subtracts what it does, and always
    handles at least one frame."""

    def scan(self, data: bytes, start: int, handler: FrameHandler) -> int:
        """Give the frames from `start` on to the handler. Return the index where it stopped: the
        end, or where the budget was spent.

        Raises `Violation`, with everything before the offending frame handled and the rest kept.
        """
        before = 0
        if self.rest:
            before = len(self.rest) - start
            self.rest += memoryview(data)[start:]
            if len(self.rest) < self.need:
                return len(data)
            data, start = bytes(self.rest), 0
            self.rest.clear()
        self.offset -= start
        if self.preface:
            if not data.startswith(PREFACE):
                self.rest += data
                self.need = len(PREFACE)
                if not PREFACE.startswith(data):
                    got = repr(data[: len(PREFACE)])
                    raise Violation(self.offset, "HTTP/2 connection preface", got)
                return len(data) - before
            handler.on_preface()
            self.preface, start = False, len(PREFACE)
        return self.scan_frames(data, start, handler) - before

    def scan_frames(self, data: bytes, pos: int, handler: FrameHandler) -> int:
        """Do the same as `scan`, without the preface and after no incomplete frame; `offset` is
        already that of `data`."""
        total, need, before = len(data), FRAME_HEAD_SIZE, self.budget
        left = before if before > 0 else 1
        try:
            if self.flow:
                pos = self._continue_frame(data, pos, handler)
                left, before = self.budget - before + left, self.budget
                left = min(left, 0) if self.flow and pos < total else left
            while total - pos >= FRAME_HEAD_SIZE and left > 0:
                left -= 1
                word, flags, stream = _unpack_head(data, pos)
                kind, stop = word & 0xFF, pos + FRAME_HEAD_SIZE + (word >> 8)
                if stream < 0:  # its reserved bit is set
                    stream &= STREAM_MASK
                if (
                    kind == HEADERS
                    and flags | END_STREAM == _WHOLE_BLOCK
                    and stop <= total
                    and stop - pos <= MAX_KNOWN_BLOCK
                    and data[pos + FRAME_HEAD_SIZE : stop] in handler.known
                    and not (handler.watched or self.block is not None)
                    and stream
                ):
                    left -= stop - pos >> KNOWN_SHIFT
                    highest = self.highest_stream
                    self.highest_stream = stream if stream > highest else highest
                    pos = stop
                    continue
                if self.block is not None and (kind != CONTINUATION or stream != self.block.stream):
                    raise self._refuse_frame(kind, stream, pos, stop)
                if kind == DATA:
                    if flags & PADDED and total - pos == FRAME_HEAD_SIZE < stop - pos:
                        need = FRAME_HEAD_SIZE + 1
                        break
                    taken = handler.on_data(flags, stream, data, pos, stop)
                    if taken is not None:
                        left -= HANDLER_WORK + (taken - pos >> HANDLER_SHIFT)
                        left, before = self.budget - before + left, self.budget
                        self.flow, pos = stop - taken, taken
                        left = min(left, 0) if stop > taken < total else left
                        continue
                elif kind in handler.handled:
                    if kind == WINDOW_UPDATE and stop - pos == WINDOW_UPDATE_SIZE and stop <= total:
                        left -= HANDLER_WORK
                        increment = unpack_uint32(data, pos + FRAME_HEAD_SIZE)[0] & STREAM_MASK
                        handler.on_window_update(stream, increment, pos)
                    elif not self._read_frame(kind, flags, stream, data, pos, stop, handler):
                        need = stop - pos
                        break
                    left, before = self.budget - before + left, self.budget
                else:
                    handler.on_skip(kind, pos, stop)
                if stop > total:
                    self.flow = stop - total
                    stop = total
                pos = stop
        except Violation:
            self._keep_rest(data, pos, FRAME_HEAD_SIZE)
            raise
        self.budget = left
        if pos < total:
            return self._stop_scan(data, pos, need)
        self.offset += pos
        return total

    def _stop_scan(self, data: bytes, pos: int, need: int) -> int:
        """Keep an incomplete frame, or return where the budget was spent."""
        if self.budget <= 0 and (self.flow or len(data) - pos >= need == FRAME_HEAD_SIZE):
            self.offset += pos
            return pos
        self._keep_rest(data, pos, need)
        return len(data)

    def _continue_frame(self, data: bytes, pos: int, handler: FrameHandler) -> int:
        stop = min(pos + self.flow, len(data))
        taken = handler.on_more(data, pos, stop, ends=stop == pos + self.flow)
        if taken is None:
            taken = stop
        self.flow -= taken - pos
        return taken

    def _read_frame(
        self,
        kind: int,
        flags: int,
        stream: int,
        data: bytes,
        pos: int,
        stop: int,
        handler: FrameHandler,
    ) -> bool:
        """Handle a frame that must be complete, and return whether it is."""
        length = stop - pos - FRAME_HEAD_SIZE
        if length > self.max_payload or (kind == WINDOW_UPDATE and length != 4):
            raise self._refuse_frame(kind, stream, pos, stop)
        if stop > len(data):
            return False
        if kind in _BLOCK_KINDS:
            self.budget -= BLOCK_WORK + stop - pos
            self._read_block(kind, flags, stream, data, pos, stop, handler)
        else:
            self.budget -= HANDLER_WORK + (stop - pos >> HANDLER_SHIFT)
            handler.on_frame(Frame(kind, flags, stream, self.offset + pos, data[pos:stop]))
        return True

    def _refuse_frame(self, kind: int, stream: int, pos: int, stop: int) -> Violation:
        length = stop - pos - FRAME_HEAD_SIZE
        if self.block is not None and (kind, stream) != (CONTINUATION, self.block.stream):
            expected = f"CONTINUATION of stream {self.block.stream}"
        elif kind == WINDOW_UPDATE:
            expected = "WINDOW_UPDATE of 4 bytes"
        else:
            expected = f"frame of at most {self.max_payload} bytes"
        return Violation(self.offset + pos, expected, describe_frame_head(kind, stream, length))

    def _keep_rest(self, data: bytes, pos: int, need: int) -> None:
        self.offset += pos
        self.rest += memoryview(data)[pos:]
        self.need = need

    def _read_block(
        self,
        kind: int,
        flags: int,
        stream: int,
        data: bytes,
        pos: int,
        stop: int,
        handler: FrameHandler,
    ) -> None:
        payload, ends = data[pos + FRAME_HEAD_SIZE : stop], bool(flags & END_HEADERS)
        if (block := self.block) is None:
            block = _begin_block(kind, flags, stream, payload, self.offset + pos)
        else:
            block.largest = max(block.largest, len(payload))
        if block.frames or not ends:
            block.size += stop - pos
            if block.size > self.max_payload:
                expected = f"header block of at most {self.max_payload} bytes"
                raise Violation(block.start, expected, f"{block.size} bytes")
            if ends:
                pieces = [frame[FRAME_HEAD_SIZE:] for frame in block.frames[1:]]
                block.fragment += b"".join([*pieces, payload])
        try:
            handler.on_block(block, pos, stop, ends=ends)
        except HpackError as error:
            raise Violation(block.start, "header block in HPACK", str(error)) from None
        if not ends:
            block.frames.append(data[pos:stop])
            self.block = block
            return
        if block.frames:
            self.block = None
        if block.stream > self.highest_stream:
            self.highest_stream = block.stream


def _begin_block(kind: int, flags: int, stream: int, payload: bytes, start: int) -> HeaderBlock:
    """Return the block that begins with this frame, padding removed. Raises `Violation`."""
    length, expected = len(payload), ""
    padded, prioritised = flags & PADDED, flags & PRIORITISED
    if kind == HEADERS and stream and not (padded or prioritised) and length <= DEFAULT_FRAME_SIZE:
        return HeaderBlock(kind, flags, stream, start, b"", payload)
    first, last = 0, length
    if padded:
        first = 1
        last -= payload[0] if payload else 0
    content = first + (4 if kind == PUSH_PROMISE else 5 if prioritised else 0)
    if kind == CONTINUATION:
        expected = "HEADERS before CONTINUATION"
    elif not stream:
        expected = "a frame on a stream"
    elif content > last:
        expected = "a frame that holds its fields and padding"
    if expected:
        raise Violation(start, expected, describe_frame_head(kind, stream, length))
    fixed, fragment = payload[first:content], payload[content:last]
    block = HeaderBlock(kind, flags & ~PADDED, stream, start, fixed, fragment)
    block.largest = max(block.largest, length)
    return block


def encode_frame(kind: int, flags: int, stream: int, payload: bytes | memoryview) -> bytes:
    """Return one frame."""
    return _pack_head(len(payload) << 8 | kind, flags, stream) + payload


def encode_window_update(stream: int, increment: int) -> bytes:
    """Return a WINDOW_UPDATE frame; `stream` is 0 for the connection."""
    return _pack_update(4 << 8 | WINDOW_UPDATE, 0, stream, increment)


def encode_block(block: HeaderBlock, fragment: bytes) -> bytes:
    """Return the frames of `block` with another fragment, none larger than the largest frame of its
    sender."""
    payload, size = block.fixed + fragment, block.largest
    if len(payload) <= size:
        return encode_frame(block.kind, block.flags | END_HEADERS, block.stream, payload)
    frames, kind, flags = [], block.kind, block.flags & ~END_HEADERS
    for at in range(0, len(payload), size):
        flags |= END_HEADERS if at + size >= len(payload) else 0
        frames.append(encode_frame(kind, flags, block.stream, payload[at : at + size]))
        kind, flags = CONTINUATION, 0
    return b"".join(frames)
