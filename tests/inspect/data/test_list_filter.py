"""Filters of the list and their expressions, without a screen."""

from __future__ import annotations

import pytest

from a2a_inspect.data.list_filter import (
    INCOMPLETE,
    INVALID,
    VALID,
    FilterCheck,
    FilterHistory,
    ListFilter,
    check_filter,
)
from a2a_proxy.recording.query.errors import QueryError
from a2a_proxy.recording.query.parser import parse_expression


@pytest.mark.parametrize(
    ("narrowing", "expression"),
    [
        (ListFilter(), ""),
        (ListFilter("err"), "err:yes"),
        (
            ListFilter("a OR b", 2, "c 1", "t", True),
            'rec=2 ctx="c 1" task=t finding:* (text:a OR text:b)',
        ),
        (ListFilter(context="", task=""), "-ctx=* -task=*"),
    ],
)
def test_all_restrictions_form_one_expression(narrowing: ListFilter, expression: str) -> None:
    """As it could be typed; the same text means the same again."""
    assert narrowing.make_expression() == expression
    assert parse_expression(expression) == narrowing.make_node()


def test_an_invalid_expression_is_an_error() -> None:
    """Nothing is queried with half an expression."""
    with pytest.raises(QueryError, match="unknown field"):
        ListFilter("tsk:1", task="t").make_expression()


def test_restrictions_are_removed_step_by_step() -> None:
    """What was typed goes first, the session last."""
    now, steps = ListFilter("x", 1, "c", "t", True), []
    while now != ListFilter():
        now = now.without_narrowest()
        steps.append(now.make_expression())
    assert steps == [
        "rec=1 ctx=c task=t finding:*",
        "rec=1 ctx=c task=t",
        "rec=1 ctx=c",
        "rec=1",
        "",
    ]
    assert ListFilter().without_narrowest() == ListFilter()


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("", FilterCheck(VALID)),
        ("state:working", FilterCheck(VALID)),
        ("err tsk:1", FilterCheck(INVALID, 'unknown field "tsk"; did you mean "task"?', 4)),
        ("state:", FilterCheck(INCOMPLETE, "a value is missing", 6)),
    ],
)
def test_expressions_are_checked_while_typed(text: str, check: FilterCheck) -> None:
    """The result has a state and the position of the error."""
    assert check_filter(text) == check


def test_the_history_keeps_each_expression_once() -> None:
    """Each once, the newest last, followed by the text being typed."""
    past = FilterHistory()
    for text in ("a", "b", "", "a"):
        past.add(text)
    assert [
        past.previous_or_next(-1, "now"),
        past.previous_or_next(-1, "a"),
        past.previous_or_next(-1, "b"),
    ] == [
        "a",
        "b",
        "b",
    ]
    assert [
        past.previous_or_next(1, "b"),
        past.previous_or_next(1, "a"),
        past.previous_or_next(1, "now"),
    ] == [
        "a",
        "now",
        "now",
    ]
