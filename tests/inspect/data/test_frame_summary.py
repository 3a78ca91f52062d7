"""A frame in one line: the size of a large payload, and only printable characters."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.data.frame_summary import flatten_line_ends, summarize_frame
from a2a_proxy.recording.read.reader import Recording
from support_inspect import MS, changes, exchange, request, status, writer
from support_recording import STARTED


def test_a_large_payload_is_summarized_by_its_size(tmp_path: Path) -> None:
    """It is not read for one line; a small one is."""
    made = writer(tmp_path / "r.db")
    call = exchange(1)
    made.write(
        [request(1), status(1, 1, "W" * 100_000), status(1, 2, "short")], changes=changes(call)
    )
    made.finish(STARTED + 10_000 * MS)
    with Recording(tmp_path / "r.db") as recording:
        (row,) = recording.read_exchanges()
        summaries = [
            summarize_frame(recording, frame, call)
            for frame in recording.read_frames(row.key, payloads=False)
        ]
    assert summaries[0] == 'message user "Plan a day"'
    assert summaries[1].startswith("status working (97.")
    assert summaries[2] == 'status working "short"'


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("a\nb\t c", "a b c"),
        ('status "line one␊line two␊"', 'status "line one line two"'),
        ("", ""),
    ],
)
def test_line_ends_become_spaces(words: str, line: str) -> None:
    assert flatten_line_ends(words) == line
