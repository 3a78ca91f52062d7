from __future__ import annotations

import pytest

from a2a_proxy.wire.stdio_head import parse_block


@pytest.mark.parametrize(
    ("value", "length"),
    [
        (b"0", 0),
        (b" 12\t", 12),
        (b"9" * 18, 10**18 - 1),
        (b"9" * 19, -1),
        (b"-1", -1),
        (b"1.0", -1),
        (b"", -1),
    ],
)
def test_a_content_length_has_at_most_18_digits(value: bytes, length: int) -> None:
    """Any other value counts as missing."""
    assert parse_block(b"Content-Length:" + value + b"\r\n\r\n").length == length


def test_different_content_lengths_count_as_missing() -> None:
    assert parse_block(b"Content-Length: 1\r\ncontent-length: 1\r\n\r\n").length == 1
    assert parse_block(b"Content-Length: 1\r\ncontent-length: 2\r\n\r\n").length == -1
