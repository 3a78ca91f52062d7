"""Whole bodies assembled from pieces."""

from __future__ import annotations

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.wire.body import BodyCollector
from support_wire import pieces_of, reload


def collect(
    data: bytes, cuts: list[int], restart: bool = False, limit: int = 20, keep: int = 5
) -> BodyCollector:
    collector = BodyCollector(limit, keep)
    at = 100
    for piece in pieces_of(data, cuts):
        collector.add(piece, at, at, at + len(piece))
        at += len(piece)
        if restart:
            collector = reload(collector)
    return collector


@settings(deadline=None)
@given(
    data=st.binary(min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=5),
    restart=st.booleans(),
)
def test_any_split_gives_the_same_body(data: bytes, cuts: list[int], restart: bool) -> None:
    """Whole up to the limit, beyond it the beginning, the true size and the hash, with times and
    span of all of it."""
    body = collect(data, cuts, restart)
    long = len(data) > 20
    assert (body.data, body.size, body.truncated) == (data[:5] if long else data, len(data), long)
    assert (body.began, body.start, body.end) == (100, 100, 100 + len(data))
    assert body.sha256 == (b"" if not long or restart else hashlib.sha256(data).digest())


def test_an_empty_body_has_no_time() -> None:
    """An empty body has no time."""
    body = BodyCollector()
    assert (body.data, body.size, body.began, body.at, body.truncated, body.sha256) == (
        b"",
        0,
        0,
        0,
        False,
        b"",
    )


def test_a_body_ends_at_the_time_of_its_last_piece() -> None:
    """`began` is the first piece's time, `at` the last one's, and `data` may be asked in
    between."""
    body = BodyCollector()
    body.add(b"a", 5, 10, 12)
    assert body.data == b"a"
    body.add(b"b", 6, 12, 15)
    assert (body.data, body.began, body.at, body.start, body.end) == (b"ab", 5, 6, 10, 15)


def test_memory_is_bounded() -> None:
    """Over the limit nothing more is kept."""
    body = BodyCollector(limit=1000, keep=10)
    for _ in range(100):
        body.add(b"x" * 100, 1, 0, 100)
    assert (body.size, body.data) == (10_000, b"x" * 10)
    assert len(encode_state(body)) < 200
