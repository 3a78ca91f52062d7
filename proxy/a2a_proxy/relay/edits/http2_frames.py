"""HTTP/2 frames as bytes: their numbers, and encoders for the frames that an editor sends (RFC 9113
4.1, 6)."""

from struct import Struct

import msgspec

from a2a_proxy.relay.edits.hpack_literals import UNDECODABLE
from a2a_proxy.wire.http2_frame import Violation, describe_frame_head

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
HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 1, 4, 5
FRAME_HEAD_SIZE = 9
STREAM_MASK = 0x7FFFFFFF
DEFAULT_FRAME_SIZE = 16_384
"""Bytes of payload that every receiver accepts, and its limit before it announces another."""
DEFAULT_WINDOW = 65_535
"""Bytes of a receiver's window before it announces another."""

unpack_frame_head = Struct(">IBI").unpack_from
unpack_uint32 = Struct(">I").unpack_from
unpack_settings = Struct(">HI").iter_unpack
_pack_head = Struct(">IBI").pack
_pack_update = Struct(">IBII").pack


class Http2Frame(msgspec.Struct, frozen=True, gc=False):
    """A complete frame."""

    flags: int
    stream: int
    start: int
    """Bytes of the direction before the frame."""
    raw: bytes
    """The whole frame, head included."""


class HeaderBlockFrame(msgspec.Struct):
    """A header block of HEADERS or PUSH_PROMISE."""

    kind: int
    flags: int
    stream: int
    start: int
    """Bytes of the direction before the block."""
    fixed: bytes
    """The priority, or the promised stream."""
    fragment: bytes | bytearray
    raw: bytearray | None = None
    """Its frames as received, except the last one; None if there is only one."""
    largest: int = DEFAULT_FRAME_SIZE
    """Bytes of payload of its largest frame if that exceeds the default frame size, else the
    default."""


def encode_frame(kind: int, flags: int, stream: int, payload: bytes | memoryview) -> bytes:
    """Return one frame."""
    return _pack_head(len(payload) << 8 | kind, flags, stream) + payload


def encode_window_update(stream: int, increment: int) -> bytes:
    """Return a WINDOW_UPDATE frame; `stream` is 0 for the connection."""
    return _pack_update(4 << 8 | WINDOW_UPDATE, 0, stream, increment)


def parse_block_start(
    kind: int, flags: int, stream: int, payload: bytes, start: int
) -> HeaderBlockFrame:
    """Return the block that begins with this HEADERS or PUSH_PROMISE frame, padding removed. Raises
    `Violation`."""
    if (
        kind == HEADERS
        and stream
        and not flags & (PADDED | PRIORITISED)
        and len(payload) <= DEFAULT_FRAME_SIZE
    ):
        return HeaderBlockFrame(kind, flags, stream, start, b"", payload)
    fixed = 4 if kind == PUSH_PROMISE else 5 if flags & PRIORITISED else 0
    first, last = 0, len(payload)
    if flags & PADDED:
        first = 1
        last -= payload[0] if payload else 0
    if not stream or first + fixed > last:
        raise Violation(
            start,
            "a frame on a stream that holds its fields and padding",
            describe_frame_head(kind, stream, last),
        )
    fragment = payload[first + fixed : last]
    block = HeaderBlockFrame(
        kind, flags & ~PADDED, stream, start, payload[first : first + fixed], fragment
    )
    if len(payload) > DEFAULT_FRAME_SIZE:
        block.largest = len(payload)
    return block


def encode_block(block: HeaderBlockFrame, fragment: bytes) -> bytes:
    """Return the frames of `block` with another fragment, none larger than the largest frame of its
    sender."""
    payload = block.fixed + fragment
    if len(payload) <= block.largest:
        return encode_frame(block.kind, block.flags | END_HEADERS, block.stream, payload)
    size = block.largest
    pieces = [payload[at : at + size] for at in range(0, len(payload), size)]
    frames = [encode_frame(block.kind, block.flags & ~END_HEADERS, block.stream, pieces[0])]
    frames += [encode_frame(CONTINUATION, 0, block.stream, piece) for piece in pieces[1:-1]]
    return b"".join([*frames, encode_frame(CONTINUATION, END_HEADERS, block.stream, pieces[-1])])


def encode_undecodable(stream: int) -> bytes:
    """Return a frame after which its receiver must end the connection with COMPRESSION_ERROR (RFC
    9113 4.3)."""
    return encode_frame(HEADERS, END_HEADERS, stream, UNDECODABLE)
