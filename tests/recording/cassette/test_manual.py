"""The manual's page of the format against the code that writes and reads it."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from a2a_proxy.recording.cassette.exporter import (
    COUNTED_KINDS,
    FORMAT_VERSION,
    MIN_BLOB_BYTES,
    STATE_FIELDS,
)
from a2a_proxy.recording.cassette.importer import MAX_LINE_BYTES
from a2a_proxy.recording.cassette.json_objects import MEMBER_NAMES
from a2a_proxy.recording.read.rows import SessionFacts

PAGE = (Path(__file__).parents[3] / "proxy" / "a2a_proxy" / "manual" / "cassette.md").read_text()
TABLES = {
    "### First line": ("cassette", "version", "tool", "sessions"),
    "### A session": (*SessionFacts.__struct_fields__, *STATE_FIELDS),
    "### A connection": MEMBER_NAMES["connection"],
    "### An exchange": MEMBER_NAMES["exchange"],
    "### A frame": MEMBER_NAMES["frame"],
    "### A task": MEMBER_NAMES["task"],
    "Of each of its `artifacts`:": MEMBER_NAMES["artifact"],
    "Of each run of generations that it `missed`:": MEMBER_NAMES["missed"],
    "### A finding": MEMBER_NAMES["finding"],
    "### A note": MEMBER_NAMES["note"],
    "### Last line": ("end", "payloads", "sha256"),
}


@pytest.mark.parametrize("title", TABLES)
def test_the_manual_describes_every_member(title: str) -> None:
    """Each member has its row, in the order of the file, and no row describes what is not there."""
    table = PAGE.partition(f"\n{title}\n")[2].lstrip("\n").partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \| .+ \|$", table, re.MULTILINE) == list(TABLES[title])


def test_numbers_in_the_manual_equal_the_code() -> None:
    """Versions, limits and the kinds that are counted."""
    assert f"of the format: {FORMAT_VERSION} |" in PAGE
    assert f"A line has {MAX_LINE_BYTES >> 20} MiB at most" in PAGE
    assert f"payloads of {MIN_BLOB_BYTES >> 10} KiB or more" in PAGE
    assert ", ".join(f"`{kind}s`" for kind in COUNTED_KINDS) in PAGE
    assert {each.name for each in msgspec.structs.fields(SessionFacts)} >= {"uuid", "redaction"}
