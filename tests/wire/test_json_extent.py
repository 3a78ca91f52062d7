"""The end of a JSON value is found in any split of the bytes, and bytes that are certainly not JSON
are refused."""

from __future__ import annotations

import pytest

from a2a_proxy.wire.json_extent import JsonExtent, scan_value
from support_wire import reload

WHOLE = [
    b"{}",
    b"[]",
    b" \t\r\n{}",
    b'{"a":1}',
    b'{"a":{"b":[1,2,{}]},"c":"d"}',
    b'["}", "]", "\\"}", "\\\\", ""]',
    b'[true,false,null,-1.5e+3,"\xc3\xa9"]',
    b'{"a" : [ ] }',
]


def scan(data: bytes, *cuts: int) -> tuple[bool, bool, int]:
    """Feed the bytes in pieces; each reader is restored from the state of the one before."""
    extent, pos = JsonExtent(), 0
    for end in (*cuts, len(data)):
        extent = reload(extent)
        pos = extent.feed(data, pos, end)
        if extent.done or extent.broken:
            break
    return extent.done, extent.broken, pos


@pytest.mark.parametrize("value", WHOLE)
@pytest.mark.parametrize("after", [b"", b"{", b"x", b"\n"])
def test_a_value_ends_after_its_last_bracket(value: bytes, after: bytes) -> None:
    data = value + after
    expected = True, False, len(value)
    assert scan(data) == expected
    assert scan(data, *range(1, len(data))) == expected
    for cut in range(1, len(data)):
        assert scan(data, cut) == expected


@pytest.mark.parametrize("value", WHOLE)
def test_a_beginning_is_neither_done_nor_broken(value: bytes) -> None:
    for end in range(len(value)):
        assert scan(value[:end]) == (False, False, end)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"x", 0),
        (b"1", 0),
        (b'"a"', 0),
        (b"]", 0),
        (b"true{}", 0),
        (b" 1", 0),
        (b"[x]", 1),
        (b"{'a':1}", 1),
        (b"{Content-Length: 1", 1),
        (b'{"a\n":1}', 3),
        (b'{"a":"b\r\n', 7),
        (b'["\x1f"]', 2),
        (b'["\\\x00\x00"]', 4),
        (b"[1;2]", 2),
    ],
)
def test_other_bytes_are_refused_at_their_place(data: bytes, fault: int) -> None:
    done, broken, pos = scan(data)
    assert (done, broken, pos) == (False, True, fault)
    assert scan(data, *range(1, len(data)))[:2] == (False, True)


def test_nothing_is_read_after_the_end_or_a_fault() -> None:
    extent, pos = scan_value(b"{}{}")
    assert (extent.done, pos) == (True, 2)
    assert extent.feed(b"{}", 0, 2) == 0
    extent, pos = scan_value(b"}")
    assert extent.broken
    assert extent.feed(b"{}", 0, 2) == 0


def test_reading_is_bounded_by_the_end() -> None:
    extent = JsonExtent()
    assert extent.feed(b"[1]x", 0, 2) == 2
    assert not extent.done
    assert extent.feed(bytearray(b"[1]x"), 2, 4) == 3
    assert extent.done
