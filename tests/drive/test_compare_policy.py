"""Which differences count."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.drive.compare_policy import ComparePolicy, add_skipped, apply_policy
from a2a_proxy.model.values import Binding
from a2a_proxy.recording.difference.exchanges import Difference
from a2a_proxy.recording.difference.fields import (
    DifferenceRow,
    ExchangePart,
    Ignored,
    Path,
    ValueChange,
)
from a2a_proxy.recording.difference.paths import PathError, parse_path
from a2a_proxy.recording.difference.runs import CallPair, RunDifference
from support_drive import step

TEXT: Path = ("statusUpdate", "status", "message", "parts", 0, "text")
STATE: Path = ("statusUpdate", "status", "state")


def changed(
    path: Path,
    before: Any,
    after: Any,
    part: ExchangePart = ExchangePart.EVENTS,
    ignored: Ignored = Ignored.NOT,
) -> DifferenceRow:
    return DifferenceRow(ValueChange.CHANGED, path, path, before, after, ignored, part)


def only(
    change: ValueChange, value: Any, part: ExchangePart = ExchangePart.EVENTS
) -> DifferenceRow:
    left, right = (None, value) if change is ValueChange.RIGHT else (value, None)
    return DifferenceRow(
        change, () if left else None, () if right else None, left, right, Ignored.NOT, part
    )


def count(row: DifferenceRow, counting: ComparePolicy, how: str = "complete") -> int:
    """How many differences a call with this one has."""
    call = step(1, 1, 2, how=how).row
    found = RunDifference(
        [CallPair(call, call, difference=Difference(call, call, (row,)), inside=1)], []
    )
    return apply_policy(found, counting).count


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
def test_ignored_paths_do_not_count(words: str, path: Path, counts: bool) -> None:
    assert count(changed(path, "a", "b"), ComparePolicy(ignore=(parse_path(words),))) == counts


def test_normalized_texts_are_equal() -> None:
    row = changed(TEXT, "order-17 for you", "order-4 for you")
    assert count(row, ComparePolicy())
    assert not count(row, ComparePolicy(normalize=("order-[0-9]+",)))
    assert count(row, ComparePolicy(normalize=("[0-9]x",)))


@pytest.mark.parametrize("words", ["", "$", "a..b", "[x", "status message"])
def test_invalid_paths_are_refused(words: str) -> None:
    with pytest.raises(PathError):
        parse_path(words)


@pytest.mark.parametrize(
    ("row", "counts"),
    [
        (changed(TEXT, "a", "b"), False),
        (changed(TEXT, "a", 3), True),
        (changed(STATE, "TASK_STATE_COMPLETED", "TASK_STATE_FAILED"), True),
        (changed(("error",), "INTERNAL -32603: a", "INTERNAL -32603: b", ExchangePart.CALL), False),
        (changed(("error",), "", "INTERNAL -32603: b", ExchangePart.CALL), True),
        (changed(("content-type",), "a", "b", ExchangePart.HEADERS), False),
        (changed(("plan", "text"), "a", "b", ExchangePart.ARTIFACTS), False),
        (only(ValueChange.LEFT, "plan", ExchangePart.ARTIFACTS), True),
        (
            only(ValueChange.RIGHT, {"statusUpdate": {"status": {"state": "TASK_STATE_WORKING"}}}),
            False,
        ),
        (
            only(ValueChange.LEFT, {"statusUpdate": {"status": {"state": "TASK_STATE_COMPLETED"}}}),
            True,
        ),
        (only(ValueChange.RIGHT, {"artifactUpdate": {"append": True}}), False),
        (only(ValueChange.RIGHT, {"artifactUpdate": {}}), True),
    ],
)
def test_shape_compares_only_kinds_states_and_structure(row: DifferenceRow, counts: bool) -> None:
    """How often a model says that it is at work, in how many chunks it writes and what, is up to
    it."""
    assert count(row, ComparePolicy(shape=True)) == counts
    assert count(row, ComparePolicy()) == 1


@pytest.mark.parametrize(
    ("why", "counts"), [(Ignored.ARTIFACT, True), (Ignored.DEFAULT, True), (Ignored.ID, False)]
)
def test_strict_counts_ignored_differences(why: Ignored, counts: bool) -> None:
    row = changed(TEXT, "a", "b", ignored=why)
    assert count(row, ComparePolicy(strict=True)) == counts
    assert count(row, ComparePolicy()) == 0


def test_frames_after_the_client_broke_off_do_not_count() -> None:
    more = only(ValueChange.RIGHT, {"statusUpdate": {"status": {"state": "TASK_STATE_COMPLETED"}}})
    assert count(more, ComparePolicy(), "client cancel") == 0
    assert count(more, ComparePolicy()) == 1
    states = changed(("states",), "submitted", "submitted > working", ExchangePart.CALL)
    assert count(states, ComparePolicy(), "client gone") == 0
    assert (
        count(
            changed(("states",), "working", "failed", ExchangePart.CALL),
            ComparePolicy(),
            "client gone",
        )
        == 1
    )


def test_headers_from_options_are_no_difference() -> None:
    row = DifferenceRow(
        ValueChange.RIGHT, (), ("request_headers", "x-key"), None, "k", part=ExchangePart.HEADERS
    )
    assert count(row, ComparePolicy(given_headers=frozenset({"x-key"}))) == 0
    assert count(row, ComparePolicy()) == 1


def test_skipped_calls_are_listed_in_their_place() -> None:
    rows = [step(number, 1, 2).row for number in (1, 2, 3)]
    found = add_skipped(
        RunDifference([CallPair(rows[0], rows[0]), CallPair(rows[2], rows[2])], []), [rows[1]]
    )
    assert [(match.left, match.change) for match in found.matches] == [
        (rows[0], None),
        (rows[1], ValueChange.LEFT),
        (rows[2], None),
    ]


@pytest.mark.parametrize(("binding", "counts"), [(Binding.GRPC, 0), (Binding.JSONRPC, 1)])
def test_rules_of_another_binding_are_no_difference(binding: Binding, counts: int) -> None:
    left, right = step(1, 1, 2).row, step(1, 1, 2, binding=binding).row
    row = only(ValueChange.RIGHT, {"A2A-GRPC-018": "x"}, ExchangePart.FINDINGS)
    match = CallPair(left, right, difference=Difference(left, right, (row,)), inside=1)
    assert apply_policy(RunDifference([match], []), ComparePolicy()).count == counts


def test_the_text_of_a_finding_is_not_compared() -> None:
    """Another version of the proxy says it otherwise; that it says something counts."""
    assert (
        count(
            changed(("A2A-ERR-004",), "is no string", "is not a string", ExchangePart.FINDINGS),
            ComparePolicy(),
        )
        == 0
    )
    assert (
        count(only(ValueChange.RIGHT, {"A2A-ERR-004": "x"}, ExchangePart.FINDINGS), ComparePolicy())
        == 1
    )
