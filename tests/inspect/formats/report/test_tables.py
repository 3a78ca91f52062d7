"""Tables in a page: any text is read back as text, and contains no markup for an HTML parser."""

from __future__ import annotations

import base64
import gzip
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_inspect.formats.report.tables import (
    MAX_BLOCK,
    MAX_BLOCK_RECORDS,
    RecordTables,
    make_value_visible,
)
from support_hostile import EVIL
from support_report import Page

MARKUP = [
    "</script>",
    "<!--<script>",
    "]]>",
    "--!>",
    "&lt;&#60;",
    "<img src=x onerror=alert(1)>",
    "\u2028\u2029",
    EVIL,
]
hostile = st.lists(st.sampled_from(MARKUP) | st.text(max_size=8), max_size=4).map("".join)
records = st.recursive(
    hostile | st.integers() | st.booleans() | st.none(), lambda inner: st.lists(inner, max_size=3)
)


@settings(max_examples=15)
@given(st.lists(records, max_size=5))
def test_added_records_are_read_back_from_the_page(values: list[object]) -> None:
    """Of every text what can be shown of it; the block is one element with letters in it, to any
    parser."""
    stream = io.BytesIO()
    tables = RecordTables(stream)
    assert [tables.add("row", value) for value in values] == list(range(len(values)))
    ends = tables.finish()
    page = Page(stream.getvalue())
    assert [tag for tag, _ in page.elements] == ["script"] * bool(values)
    assert ends == ({"row": [len(values)]} if values else {})
    if values:
        text = gzip.decompress(base64.b64decode(page.texts["row-0"], validate=True)).decode()
        assert json.loads(text) == make_value_visible(values)


def test_hiding_and_bidi_characters_are_removed() -> None:
    """But for the ends of lines."""
    visible = make_value_visible({EVIL: [EVIL, ("a\nb", 1)]})
    (name,) = visible
    assert name.isprintable()
    assert visible[name][0].replace("\n", "").isprintable()
    assert visible[name][1] == ["a\nb", 1]


@pytest.mark.parametrize(
    ("size", "count", "most"),
    [(1, 3 * MAX_BLOCK_RECORDS, MAX_BLOCK_RECORDS), (MAX_BLOCK // 4, 12, 4)],
)
def test_a_block_is_written_as_soon_as_it_is_full(size: int, count: int, most: int) -> None:
    """By number of records and by characters: no more than a block waits in memory."""
    stream = io.BytesIO()
    tables = RecordTables(stream)
    for number in range(count):
        assert tables.add("detail", "x" * size) == number
    written = stream.tell()
    ends = tables.finish()["detail"]
    assert ends[-1] == count
    assert max(b - a for a, b in zip([0, *ends], ends, strict=False)) <= most
    assert written > 0.9 * stream.tell(), "it was all written at the end"
