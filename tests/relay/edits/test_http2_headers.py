"""The results of header blocks are cached only while the dynamic table is unchanged."""

from __future__ import annotations

import pytest

from a2a_proxy.http import hpack
from a2a_proxy.http.hpack import FIELDS_LIMIT, HeaderMemo, HpackError
from a2a_proxy.relay.edits.http2_headers import RequestHeaders, ResponseHeaders


def literal(name: bytes, value: bytes, kind: int) -> bytes:
    """A field with a new name; kind 0x40 adds it to the table, 0x00 does not."""
    return bytes([kind, len(name)]) + name + bytes([len(value)]) + value


ADD_X, ADD_Y, PLAIN = literal(b"x", b"1", 0x40), literal(b"y", b"2", 0x40), literal(b"z", b"3", 0)


class Reader:
    """A memo whose results are the fields, and how many blocks were decoded."""

    def __init__(self) -> None:
        self.decoded = 0
        self.memo = HeaderMemo(self._make, lambda fields: (b"z", b"3") in fields)

    def _make(self, fields: list[tuple[bytes, ...]], never: object) -> list[tuple[bytes, bytes]]:
        self.decoded += 1
        return [(each[0], each[1]) for each in fields]

    def read(self, *blocks: bytes) -> list[list[tuple[bytes, bytes]]]:
        return [self.memo.read(block) for block in blocks]


def test_a_block_that_changes_the_table_changes_it_each_time() -> None:
    reader = Reader()
    reader.read(ADD_X, ADD_X, ADD_Y)
    assert reader.decoded == 3
    assert reader.read(b"\xbe", b"\xbf", b"\xc0") == [
        [(b"y", b"2")],
        [(b"x", b"1")],
        [(b"x", b"1")],
    ]
    with pytest.raises(HpackError):
        reader.read(b"\xc1")


def test_a_block_means_something_else_after_a_change_of_the_table() -> None:
    reader = Reader()
    reader.read(ADD_X)
    assert reader.read(b"\xbe", b"\xbe") == [[(b"x", b"1")]] * 2
    assert reader.decoded == 2
    reader.read(ADD_Y)
    assert reader.read(b"\xbe", PLAIN, b"\xbe", PLAIN) == [[(b"y", b"2")], [(b"z", b"3")]] * 2
    assert reader.decoded == 5


def test_only_short_blocks_and_only_a_number_of_them_are_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hpack, "_MAX_BLOCKS", 2)
    monkeypatch.setattr(hpack, "MAX_KNOWN_BLOCK", 5)
    short, long = (literal(b"z", b"3", 0), literal(b"z", b"33", 0))
    reader = Reader()
    reader.read(short, short, long, long)
    assert reader.decoded == 3
    blocks = [literal(b"z", b"%d" % number, 0) for number in range(3)]
    reader.read(*blocks)
    before = reader.decoded
    reader.read(blocks[-1])
    assert reader.decoded == before
    reader.read(blocks[0])
    assert reader.decoded == before + 1


def test_blocks_that_stay_unchanged_are_known_until_the_table_changes() -> None:
    reader = Reader()
    unchanged = reader.memo.unchanged
    reader.read(literal(b"z", b"4", 0), literal(b"z", b"3", 0x40))
    assert unchanged == set()
    reader.read(PLAIN, b"\xbe")
    assert unchanged == {PLAIN, b"\xbe"}
    reader.read(ADD_Y)
    assert unchanged == set()
    assert reader.read(b"\xbe", b"\xbf", b"\xbf") == [
        [(b"y", b"2")],
        [(b"z", b"3")],
        [(b"z", b"3")],
    ]
    assert unchanged == {b"\xbf"}


def test_no_response_is_known_once_responses_are_rewritten() -> None:
    responses = ResponseHeaders()
    responses.read(PLAIN)
    assert responses.unchanged == {PLAIN}
    responses.start_rewriting()
    responses.read(literal(b"z", b"4", 0))
    assert responses.unchanged == set()


@pytest.mark.parametrize("authority", [None, b"agent.example"])
def test_requests_for_a_card_and_rewritten_ones_are_never_known(authority: bytes | None) -> None:
    requests = RequestHeaders(authority, trace=False)
    card = literal(b":path", b"/lf.a2a.v1.A2AService/GetExtendedAgentCard", 0)
    requests.read(PLAIN)
    requests.read(card)
    assert requests.unchanged == ({PLAIN} if authority is None else set())


def test_a_block_has_a_limited_number_of_fields() -> None:
    reader = Reader()
    reader.read(b"\x82" * FIELDS_LIMIT)
    with pytest.raises(HpackError, match=f"{FIELDS_LIMIT + 1} fields"):
        reader.read(b"\x82" * (FIELDS_LIMIT + 1))
