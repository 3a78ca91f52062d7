"""Heads and masks of WebSocket frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.http.websocket import (
    MAX_HEAD_SIZE,
    FrameError,
    FrameScanner,
    apply_mask,
    parse_frame_head,
)
from support_websocket import BINARY, KEY, PING, TEXT, frame


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 0xFFFF, 0x10000, 70_000])
@pytest.mark.parametrize("key", [b"", KEY, bytes(4)])
def test_heads(size: int, key: bytes) -> None:
    """All three forms of the size; None while the head is incomplete."""
    data = frame(BINARY, bytes(size), key=key, last=False, reserved=5)
    if key:
        assert data[1] & 0x80
    head = parse_frame_head(data)
    assert head is not None
    assert (head.opcode, head.is_last, head.reserved, head.key) == (BINARY, False, 5, key)
    assert (head.size, head.head_size) == (size, len(data) - size)
    assert head.head_size <= MAX_HEAD_SIZE
    for count in range(head.head_size):
        assert parse_frame_head(data[:count]) is None


@pytest.mark.parametrize(
    ("size", "got"),
    [
        (b"\x7e\0\x7d", "125 in 2 bytes"),
        (b"\x7f" + bytes(6) + b"\xff\xff", "65535 in 8 bytes"),
        (b"\x7f\x80" + bytes(7), "9223372036854775808"),
    ],
)
def test_sizes_in_another_form(size: bytes, got: str) -> None:
    """The size must be written in the shortest form, and its first bit is 0 (RFC 6455 5.2)."""
    with pytest.raises(FrameError, match="size") as caught:
        parse_frame_head(frame(TEXT, size=size))
    assert caught.value.got == got


@given(st.binary(max_size=300), st.binary(min_size=4, max_size=4), st.integers(0, 9))
def test_masks(data: bytes, key: bytes, position: int) -> None:
    """Byte i is combined with byte i mod 4 of the key (RFC 6455 5.3)."""
    expected = bytes(byte ^ key[(position + i) % 4] for i, byte in enumerate(data))
    assert apply_mask(data, key, position) == expected


@given(
    st.lists(st.tuples(st.sampled_from([TEXT, PING]), st.binary(max_size=140)), max_size=6),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_pieces(frames: list[tuple[int, bytes]], sizes: list[int]) -> None:
    """The same frames in pieces of any size, each with its range of bytes."""
    data = b"".join(frame(opcode, payload, key=KEY) for opcode, payload in frames)
    scanner, base, found = FrameScanner(), 0, []
    payload, start = b"", 0
    while base < len(data):
        piece = data[base : base + sizes[base % len(sizes)]]
        pos = 0
        while pos < len(piece):
            part = scanner.read_part(piece, pos)
            if part is None:
                break
            payload = part.data if part.is_first else payload + part.data
            start = base + part.start if part.is_first else start
            pos = part.end
            if part.is_last:
                found.append((part.head.opcode, payload))
                assert data[start : base + part.end] == frame(part.head.opcode, payload, key=KEY)
        base += len(piece)
    assert found == frames
    assert scanner.is_between_frames
