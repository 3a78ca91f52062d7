"""Links from a task to the rest of its conversation: equal if queried one by one or read at
once."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.lanes.links import SessionLinks, TaskLinks
from a2a_inspect.lanes.read import LaneConversation
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from support_thin import thin

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "recordings").glob("*.a2a.jsonl"))


@pytest.mark.parametrize("cassette", thin(SAMPLES, 5))
def test_task_links_and_session_links_agree(cassette: Path) -> None:
    """Of every task of the samples, and so of every conversation."""
    with open_recording_or_cassette(cassette) as recording:
        asked, read = TaskLinks(recording, 1), SessionLinks(recording, 1)
        tasks = [row.id for row in recording.read_tasks(1)]
        for task in tasks:
            assert list(asked.exchanges_of(task)) == list(read.exchanges_of(task))
            for table in ("segment", "interruption"):
                assert asked.row_keys(table, [task]) == read.row_keys(table, [task])
        assert asked.row_keys("segment", tasks) == read.row_keys("segment", tasks)
        assert asked.handoffs == read.handoffs
        for row in recording.read_exchanges(1):
            one, other = (
                LaneConversation(recording, row.key),
                LaneConversation(recording, row.key, links=read),
            )
            assert one.exchanges == other.exchanges
            assert one.read_rows(0, len(one.order)) == other.read_rows(0, len(other.order))


def test_some_of_a_conversation() -> None:
    """Only what was asked for: its lanes, rows and marks."""
    with open_recording_or_cassette(
        next(each for each in SAMPLES if each.name.startswith("lossy"))
    ) as recording:
        first, last = (row.key for row in recording.read_exchanges() if row.exchange.id in (8, 9))
        whole, part = (
            LaneConversation(recording, last),
            LaneConversation(recording, last, only_keys={last}),
        )
        assert whole.exchanges == {8, 9}
        assert part.exchanges == {9}
        assert {row.exchange for row in part.read_rows(0, len(part.order))} == {9}
        assert LaneConversation(recording, first, only_keys={first, last}).exchanges == {8, 9}
