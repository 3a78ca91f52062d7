from __future__ import annotations

import pytest

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind
from a2a_proxy.protocol.summary import (
    NO_SUMMARY,
    STATE_LABELS,
    UNKNOWN_SUMMARY,
    generation_number,
    generation_or_none,
    make_summary,
    state_number,
    to_int64,
)


@pytest.mark.parametrize(
    ("spelling", "number"),
    [
        ("TASK_STATE_WORKING", 2),
        ("working", 2),
        ("input-required", 6),
        ("INPUT_REQUIRED", 6),
        ("TASK_STATE_CANCELLED", 5),
        ("canceled", 5),
        ("cancelled", 5),
        ("unknown", 0),
        ("task_state_failed", 4),
        ("8", 8),
        (8, 8),
        (9, 0),
        (-1, 0),
        ("", 0),
        (None, 0),
        ([], 0),
    ],
)
def test_states(spelling: object, number: int) -> None:
    """Every spelling of every line is the same number (manual/protocol.md "Task states")."""
    assert state_number(spelling) == number


def test_labels() -> None:
    """Numbers are said as people say them."""
    assert STATE_LABELS[TaskState.INPUT_REQUIRED] == "input-required"
    assert [state_number(label) for label in STATE_LABELS[1:]] == list(range(1, 9))


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("7", 7),
        (7, 7),
        ("-1", -1),
        ("x", 0),
        ("9" * 30, 0),
        (None, 0),
        (1.5, 0),
        ("٣", 0),
        ("--1", 0),
        ("-", 0),
        (2**63, 0),
        (str(2**63), 0),
    ],
)
def test_generations(value: object, number: int) -> None:
    """int64 comes as a string or a number (Q-31)."""
    assert generation_number(value) == number


@pytest.mark.parametrize("value", [-(2**63), -(2**62), 2**63 - 1])
def test_every_64_bit_number_is_kept(value: int) -> None:
    assert to_int64(value) == generation_or_none(value) == generation_or_none(str(value)) == value


@pytest.mark.parametrize("value", [-(2**63) - 1, 2**63, "7", None])
def test_a_value_that_is_not_a_64_bit_number_counts_as_0(value: object) -> None:
    assert to_int64(value) == 0


def test_a_summary_without_further_facts_has_no_generation() -> None:
    assert generation_number(make_summary(EventKind.TASK, "t")[6]) == 0


def test_an_unknown_object_tells_nothing_but_its_kind() -> None:
    assert (UNKNOWN_SUMMARY[0], NO_SUMMARY[0]) == (EventKind.UNKNOWN, EventKind.NONE)
    assert (
        [each for each in UNKNOWN_SUMMARY[1:] if each]
        == [each for each in NO_SUMMARY[1:] if each]
        == []
    )
