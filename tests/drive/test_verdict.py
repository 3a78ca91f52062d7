"""What of a difference counts."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.drive.verdict import BadPath, Counting, counted, place, with_skipped
from a2a_proxy.model.exchange import Binding
from a2a_proxy.recording.difference.exchanges import Difference
from a2a_proxy.recording.difference.runs import Match, RunDifference
from a2a_proxy.recording.difference.values import Change, Ignored, Part, Path, Row
from support_drive import step

TEXT: Path = ("statusUpdate", "status", "message", "parts", 0, "text")
STATE: Path = ("statusUpdate", "status", "state")


def changed(path: Path, before: Any, after: Any, part: Part = Part.EVENTS, ignored: Ignored = Ignored.NOT) -> Row:
    return Row(Change.CHANGED, path, path, before, after, ignored, part)


def only(change: Change, value: Any, part: Part = Part.EVENTS) -> Row:
    left, right = (None, value) if change is Change.RIGHT else (value, None)
    return Row(change, () if left else None, () if right else None, left, right, Ignored.NOT, part)


def count(row: Row, counting: Counting, how: str = "complete") -> int:
    """How many differences a call with this one has."""
    call = step(1, 1, 2, how=how).row
    found = RunDifference([Match(call, call, difference=Difference(call, call, (row,)), inside=1)], [])
    return counted(found, counting).count


@pytest.mark.parametrize(
    ("words", "path", "counts"),
    [
        ("text", TEXT, False),
        ("$.statusUpdate.status.message", TEXT, False),
        ("parts[*].text", TEXT, False),
        ("parts[1].text", TEXT, True),
        ("$.status", TEXT, True),
        ("events", TEXT, False),
        ("headers", TEXT, True),
        ('$["statusUpdate"].*.message', TEXT, False),
    ],
)
def test_places_that_do_not_count(words: str, path: Path, counts: bool) -> None:
    assert count(changed(path, "a", "b"), Counting(ignore=(place(words),))) == counts


@pytest.mark.parametrize("words", ["", "$", "a..b", "[x", "status message"])
def test_what_is_no_place(words: str) -> None:
    with pytest.raises(BadPath):
        place(words)


@pytest.mark.parametrize(
    ("row", "counts"),
    [
        (changed(TEXT, "a", "b"), False),
        (changed(TEXT, "a", 3), True),
        (changed(STATE, "TASK_STATE_COMPLETED", "TASK_STATE_FAILED"), True),
        (changed(("error",), "INTERNAL -32603: a", "INTERNAL -32603: b", Part.CALL), False),
        (changed(("error",), "", "INTERNAL -32603: b", Part.CALL), True),
        (changed(("content-type",), "a", "b", Part.HEADERS), False),
        (changed(("plan", "text"), "a", "b", Part.ARTIFACTS), False),
        (only(Change.LEFT, "plan", Part.ARTIFACTS), True),
        (only(Change.RIGHT, {"statusUpdate": {"status": {"state": "TASK_STATE_WORKING"}}}), False),
        (only(Change.LEFT, {"statusUpdate": {"status": {"state": "TASK_STATE_COMPLETED"}}}), True),
        (only(Change.RIGHT, {"artifactUpdate": {"append": True}}), False),
        (only(Change.RIGHT, {"artifactUpdate": {}}), True),
    ],
)
def test_of_the_shape_only_kinds_states_and_structure_count(row: Row, counts: bool) -> None:
    """How often a model says that it is at work, in how many chunks it writes and what, is up to it."""
    assert count(row, Counting(shape=True)) == counts
    assert count(row, Counting()) == 1


@pytest.mark.parametrize(("why", "counts"), [(Ignored.ARTIFACT, True), (Ignored.DEFAULT, True), (Ignored.ID, False)])
def test_strict_counts_what_two_runs_need_not_differ_in(why: Ignored, counts: bool) -> None:
    row = changed(TEXT, "a", "b", ignored=why)
    assert count(row, Counting(strict=True)) == counts
    assert count(row, Counting()) == 0


def test_after_the_client_broke_off_it_is_chance_what_comes() -> None:
    more = only(Change.RIGHT, {"statusUpdate": {"status": {"state": "TASK_STATE_COMPLETED"}}})
    assert count(more, Counting(), "client cancel") == 0
    assert count(more, Counting()) == 1
    states = changed(("states",), "submitted", "submitted > working", Part.CALL)
    assert count(states, Counting(), "client gone") == 0
    assert count(changed(("states",), "working", "failed", Part.CALL), Counting(), "client gone") == 1


def test_headers_that_were_given_are_no_difference() -> None:
    row = Row(Change.RIGHT, (), ("request_headers", "x-key"), None, "k", part=Part.HEADERS)
    assert count(row, Counting(given=frozenset({"x-key"}))) == 0
    assert count(row, Counting()) == 1


def test_a_call_that_was_not_made_stands_in_its_place() -> None:
    rows = [step(number, 1, 2).row for number in (1, 2, 3)]
    found = with_skipped(RunDifference([Match(rows[0], rows[0]), Match(rows[2], rows[2])], []), [rows[1]])
    assert [(match.left, match.change) for match in found.matches] == [
        (rows[0], None),
        (rows[1], Change.LEFT),
        (rows[2], None),
    ]


@pytest.mark.parametrize(("binding", "counts"), [(Binding.GRPC, 0), (Binding.JSONRPC, 1)])
def test_rules_of_another_binding_are_no_difference(binding: Binding, counts: int) -> None:
    left, right = step(1, 1, 2).row, step(1, 1, 2, binding=binding).row
    row = only(Change.RIGHT, {"A2A-GRPC-018": "x"}, Part.FINDINGS)
    match = Match(left, right, difference=Difference(left, right, (row,)), inside=1)
    assert counted(RunDifference([match], []), Counting()).count == counts


def test_the_words_of_a_rule_are_ours() -> None:
    """Another version of the proxy says it otherwise; that it says something counts."""
    assert count(changed(("A2A-ERR-004",), "is no string", "is not a string", Part.FINDINGS), Counting()) == 0
    assert count(only(Change.RIGHT, {"A2A-ERR-004": "x"}, Part.FINDINGS), Counting()) == 1
