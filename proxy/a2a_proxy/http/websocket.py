"""Find where the WebSocket frames of one direction begin and end, and remove their masks (RFC 6455
5.2, 5.3)."""

from enum import IntEnum

import msgspec

from a2a_proxy.model.saved_state import State

MAX_CONTROL_SIZE = 125
"""Maximum number of bytes of a control frame's payload (RFC 6455 5.5)."""
RESERVED_1 = 4
"""The first of the reserved bits (RSV1), as in `FrameHead.reserved`."""
MAX_HEAD_SIZE = 14
"""Bytes of the longest frame head."""

_KEY_SIZE = 4
_IS_LAST, _IS_MASKED = 0x80, 0x80
_SIZE_16, _SIZE_64 = 126, 127
_MAX_SIZE_16 = 0xFFFF


class Opcode(IntEnum):
    """Kind of a frame (RFC 6455 11.8)."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


OPCODES = frozenset(Opcode)
FIRST_CONTROL = Opcode.CLOSE
"""This opcode and all above it are those of control frames."""


class FrameError(Exception):
    """Bytes that are not a WebSocket frame: what was expected there, and what is there. Without
    `is_fault` they may be one, but are beyond a limit of the recorder."""

    def __init__(self, expected: str, got: str, *, is_fault: bool = True) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected = expected
        self.got = got
        self.is_fault = is_fault


class FrameHead(msgspec.Struct):
    """The head of one frame."""

    opcode: int
    is_last: bool
    """Whether it ends its message (FIN)."""
    reserved: int
    """The three reserved bits; `RESERVED_1` is the highest."""
    key: bytes
    """The masking key; empty if the payload is not masked."""
    size: int
    """Size of the payload, bytes."""
    head_size: int
    """Size of the head, bytes."""

    @property
    def is_control(self) -> bool:
        """Whether it is a control frame."""
        return self.opcode >= FIRST_CONTROL


def parse_frame_head(data: bytes | bytearray) -> FrameHead | None:
    """Return the frame head at the beginning of `data`, or None if it is incomplete.

    Raises `FrameError` if the size is not written in the shortest form, or is 2**63 or more.
    """
    if len(data) < 2:
        return None
    first, second = data[0], data[1]
    size, end = second & 0x7F, 2
    if size >= _SIZE_16:
        end += 2 if size == _SIZE_16 else 8
        if len(data) < end:
            return None
        least = _SIZE_16 if size == _SIZE_16 else _MAX_SIZE_16 + 1
        size = int.from_bytes(data[2:end], "big")
        if size < least:
            raise FrameError("a size in the shortest form", f"{size} in {end - 2} bytes")
        if size >> 63:
            raise FrameError("a size below 2**63", str(size))
    key = b""
    if second & _IS_MASKED:
        end += _KEY_SIZE
        if len(data) < end:
            return None
        key = bytes(data[end - _KEY_SIZE : end])
    return FrameHead(first & 0xF, bool(first & _IS_LAST), first >> 4 & 7, key, size, end)


def apply_mask(data: bytes, key: bytes, position: int) -> bytes:
    """Return `data` masked, or unmasked, with `key`; it begins at this position of the payload."""
    if not key or not any(key):
        return data
    shift = position % _KEY_SIZE
    turned = (key[shift:] + key[:shift]) * (len(data) // _KEY_SIZE + 1)
    mask = int.from_bytes(turned[: len(data)], "big")
    return (int.from_bytes(data, "big") ^ mask).to_bytes(len(data), "big")


class FramePart(msgspec.Struct, gc=False):
    """A piece of one frame: all of it, unless it arrived in several reads."""

    head: FrameHead
    data: bytes
    """Part of the payload, without mask."""
    start: int
    end: int
    """Range of bytes in the data that was read; from the head on for the first piece."""
    is_first: bool
    is_last: bool
    """Whether it ends the frame."""


class FrameScanner(State):
    """Splits one direction into frames. Keeps only an incomplete head."""

    held: bytearray = bytearray()
    """Bytes of an incomplete head."""
    _head: FrameHead | None = None
    """Head of the frame whose payload is incomplete."""
    _taken: int = 0
    """Bytes of its payload that were read."""

    @property
    def is_between_frames(self) -> bool:
        """Whether the next byte begins a frame."""
        return self._head is None and not self.held

    def read_part(self, data: bytes, pos: int) -> FramePart | None:
        """Return the piece of a frame at `data[pos:]`, which must not be empty; None if the head is
        incomplete, after keeping the rest of `data`.

        `start` is negative if the head began in earlier data. Raises `FrameError`.
        """
        head, start = self._head, pos
        is_first = head is None
        if head is None:
            before = len(self.held)
            self.held += data[pos : pos + MAX_HEAD_SIZE - before]
            head = parse_frame_head(self.held)
            if head is None:
                return None
            start -= before
            pos = start + head.head_size
            self.held.clear()
            self._taken = 0
        end = min(pos + head.size - self._taken, len(data))
        payload = data[pos:end]
        if head.key:
            payload = apply_mask(payload, head.key, self._taken)
        self._taken += end - pos
        is_last = self._taken == head.size
        self._head = None if is_last else head
        return FramePart(head, payload, start, end, is_first, is_last)
