"""The parts of a call that count, by the names of `--match-on`, and functions that compare
answers."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.drive.compare_policy import apply_matchers, is_selected
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.difference.exchanges import compare_exchanges
from a2a_proxy.recording.difference.fields import DifferenceRow, ExchangePart, Path, ValueChange
from a2a_proxy.recording.difference.runs import CallPair
from a2a_proxy.replay.core.match_rules import MatchedRequest, MatchName
from support_drive import SAMPLES

STATUS = ("statusUpdate", "status")
EVENT = {"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_WORKING"}}}


def changed(
    path: Path, after: Any = "b", part: ExchangePart = ExchangePart.EVENTS
) -> DifferenceRow:
    return DifferenceRow(ValueChange.CHANGED, path, path, "a", after, part=part)


def added(value: Any) -> DifferenceRow:
    return DifferenceRow(ValueChange.RIGHT, None, (1,), None, value, part=ExchangePart.EVENTS)


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (changed((*STATUS, "message", "parts", 0, "text")), "text parts"),
        (changed((*STATUS, "message", "parts", 0, "data", "n"), 3), "data parts"),
        (changed((*STATUS, "message", "parts", 0, "url")), "files parts"),
        (changed((*STATUS, "message", "parts", 0, "metadata", "n")), "metadata"),
        (changed((*STATUS, "message", "parts", 0), {"text": "b"}), "files text parts"),
        (changed((*STATUS, "message", "parts"), [{"data": {}}]), "data parts"),
        (changed((*STATUS, "state")), "parameters"),
        (changed((*STATUS, "message", "messageId")), "message_id"),
        (changed(("task", "contextId")), "context"),
        (changed(("task", "id")), "task"),
        (changed(("task", "metadata", "parts", 0, "text")), "metadata"),
        (added(EVENT), "task parameters"),
        (added({"message": {"parts": [{"text": "x"}, {"url": "y"}]}}), "text files parts"),
        (changed(("plan", "text"), "b", ExchangePart.ARTIFACTS), "text parts"),
        (changed(("plan", "complete"), False, ExchangePart.ARTIFACTS), "parameters"),
        (changed(("response_headers", "x-team"), "b", ExchangePart.HEADERS), "headers"),
        (changed(("A2A-VER-001",), "b", ExchangePart.FINDINGS), ""),
        (changed(("states",), "b", ExchangePart.CALL), " ".join(MatchName)),
    ],
    ids=str,
)
def test_a_difference_counts_if_its_part_is_named(row: DifferenceRow, names: str) -> None:
    assert {name for name in MatchName if is_selected(row, frozenset({name}))} == set(
        map(MatchName, names.split())
    )


def test_a_function_compares_the_answers_of_each_call() -> None:
    """All events of a stream; what it finds is a difference of the call."""
    seen: list[tuple[MatchedRequest, MatchedRequest]] = []

    def same_end(recorded: MatchedRequest, live: MatchedRequest) -> None:
        seen.append((recorded, live))
        if isinstance(live.value, list):
            raise AssertionError(
                f"{len(live.value)} events"
            )  # pytest adds nothing to the text of a raised one

    with open_recording_or_cassette(SAMPLES / "demo.a2a.jsonl") as recording:
        rows = [row for row in recording.read_exchanges() if row.exchange.operation]
        pairs = [
            apply_matchers(
                CallPair(
                    row, row, difference=compare_exchanges((recording, row), (recording, row))
                ),
                recording,
                recording,
                (same_end,),
            )
            for row in rows
        ]
        alone = CallPair(rows[0], None)
        assert apply_matchers(alone, recording, recording, (same_end,)) is alone
    for pair, (recorded, live), row in zip(pairs, seen, rows, strict=True):
        assert (recorded, recorded.operation) == (live, row.exchange.operation)
        assert isinstance(live.value, list) == row.exchange.streaming
        assert pair.count == row.exchange.streaming
        if pair.difference is not None and pair.count:
            assert pair.difference.rows[0].after == f"{len(live.value)} events"
    assert {row.exchange.streaming for row in rows} == {True, False}
