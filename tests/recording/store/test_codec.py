"""Each value in its column and back."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.recording.store import codec

_uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"


@given(st.text(alphabet=st.characters()) | st.uuids().map(str) | st.uuids().map(lambda u: f'"{u}"'))
def test_any_text_survives_sqlite(value: str):
    """As text and as identifier, lone surrogates and NUL included."""
    db = sqlite3.connect(":memory:")
    for pack, unpack in (
        (codec.pack_text, codec.unpack_text),
        (codec.pack_ident, codec.unpack_ident),
    ):
        stored = db.execute("SELECT ?", (pack(value),)).fetchone()[0]
        assert unpack(stored) == value
    db.close()


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (_uuid, 16),
        (f'"{_uuid}"', 17),
        (_uuid.upper(), None),
        (_uuid.replace("-", ""), None),
        ("-" * 36, None),
    ],
)
def test_only_canonical_uuids_are_bytes(value: str, size: int | None):
    """16 bytes for a UUID, 17 for one in JSON quotes, else text."""
    packed = codec.pack_ident(value)
    assert (len(packed) if isinstance(packed, bytes) else None) == size
    assert codec.unpack_ident(packed) == value


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("0", -1),
        ("7", -8),
        ("1099511627775", -(2**40)),
        ("1099511627776", None),
        ("07", None),
        ("-1", None),
    ],
)
def test_plain_numbers_need_no_row(value: str, number: int | None):
    """And nothing else does without."""
    assert codec.pack_decimal(value) == number
    assert codec.pack_decimal("٣") is codec.pack_decimal("") is codec.pack_decimal("²") is None


@given(st.integers())
def test_any_number_survives(value: int):
    """Also beyond 64 bits."""
    db = sqlite3.connect(":memory:")
    assert codec.unpack_int(db.execute("SELECT ?", (codec.pack_int(value),)).fetchone()[0]) == value
    db.close()


@given(
    st.recursive(
        st.integers() | st.text(alphabet=st.characters()), lambda inner: st.lists(inner, max_size=3)
    )
)
def test_any_json_survives(value: object):
    """Also what msgspec cannot write."""
    assert json.loads(codec.pack_json([value])) == [value]


def test_headers_keep_bytes_and_order():
    """Names and values need not be text."""
    lists = (((b"X-A", b"caf\xe9"), (b"x-a", b"")), (), ((b"\xff\x00", b"\n"),))
    assert codec.unpack_headers(codec.pack_headers(lists)) == lists
