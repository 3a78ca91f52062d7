"""The timeline of a task: its entries, the ranges of its artifacts, and the user's messages."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.protocol.timeline import EntryKind, Timeline, TimelineEntry, read_timeline

STATUS = {"generation": "1", "status": {"state": "TASK_STATE_WORKING"}}
SAID = {"generation": 3, "message": {"messageId": "m1"}}


def test_entries_are_statuses_messages_or_unknown() -> None:
    odd: list[Any] = [
        {"generation": "4"},
        {"generation": "5", "message": {}},
        {"status": {}},
        {"generation": 0},
        "x",
    ]
    assert read_timeline({"timeline": [STATUS, SAID, *odd]}, 5) == Timeline(
        5,
        (
            TimelineEntry(1, EntryKind.STATUS),
            TimelineEntry(3, EntryKind.MESSAGE, "m1"),
            TimelineEntry(4, EntryKind.UNKNOWN),
            TimelineEntry(5, EntryKind.MESSAGE, ""),
        ),
        (),
        (),
    )


@pytest.mark.parametrize(
    ("artifact", "ranges"),
    [
        ({"startGeneration": "1", "endGeneration": "2"}, ((1, 2),)),
        ({"startGeneration": 1}, ((1, 9),)),
        ({"startGeneration": "3", "endGeneration": "0"}, ((3, 9),)),
        ({"startGeneration": "0", "endGeneration": "2"}, ()),
        ({"endGeneration": "2"}, ()),
    ],
)
def test_artifacts_have_ranges_of_generations(
    artifact: dict[str, Any], ranges: tuple[tuple[int, int], ...]
) -> None:
    found = read_timeline({"timeline": [STATUS], "artifacts": [artifact, "x"]}, 9)
    assert found is not None
    assert found.artifact_ranges == ranges


def test_the_history_has_the_messages_of_the_user() -> None:
    history = [
        {"role": "ROLE_USER", "messageId": "m1"},
        {"role": "ROLE_AGENT", "messageId": "m2"},
        {"role": "ROLE_USER"},
    ]
    assert read_timeline({"history": history}, 2) == Timeline(2, (), (), ("m1",))


@pytest.mark.parametrize(
    "task", [{}, {"timeline": []}, {"timeline": "x", "history": {}}, {"artifacts": [{}]}]
)
def test_a_task_without_timeline_and_history_has_none(task: dict[str, Any]) -> None:
    assert read_timeline(task, 2) is None
