"""Differences of JSON values: empty for equal values, complete, and symmetric."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.recording.difference.fields import (
    CanonicalFields,
    DifferenceRow,
    Ignored,
    Path,
    ValueChange,
    format_path,
)
from a2a_proxy.recording.difference.ids import PairedIds
from a2a_proxy.recording.difference.structure import CompareLimits, compare_values

NAMES = [
    "id",
    "taskId",
    "contextId",
    "messageId",
    "timestamp",
    "text",
    "data",
    "metadata",
    "url",
    "token",
    "parts",
    "a",
]
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.5, 1.0]),
    st.sampled_from(["", "x", "y", "t-000001", "t-000002"]),
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    ),
    max_leaves=25,
)


def applied(left: Any, rows: list[DifferenceRow], at: Path = (), to: Path = ()) -> Any:
    """The left value as the rows say: written without looking at how they were found."""
    for row in rows:
        if row.change is ValueChange.CHANGED and row.left == at and row.right == to:
            return copy.deepcopy(row.after)
    if isinstance(left, dict):
        return _object(left, rows, at, to)
    return _items(left, rows, at, to) if isinstance(left, list) else left


def _object(left: dict[str, Any], rows: list[DifferenceRow], at: Path, to: Path) -> Any:
    gone = {
        row.left[-1]
        for row in rows
        if row.change is ValueChange.LEFT and row.left and row.left[:-1] == at
    }
    made = {
        name: applied(item, rows, (*at, name), (*to, name))
        for name, item in left.items()
        if name not in gone
    }
    for row in rows:
        if (
            row.change is ValueChange.RIGHT
            and row.right
            and row.right[:-1] == to
            and isinstance(row.right[-1], str)
        ):
            made[row.right[-1]] = row.after
    return made


def _items(left: list[Any], rows: list[DifferenceRow], at: Path, to: Path) -> Any:
    gone = {
        row.left[-1]
        for row in rows
        if row.change is ValueChange.LEFT and row.left and row.left[:-1] == at
    }
    new = {
        row.right[-1]: row.after
        for row in rows
        if row.change is ValueChange.RIGHT and row.right and row.right[:-1] == to
    }
    moved = {
        row.left[-1]: row.right[-1]
        for row in rows
        if row.change is ValueChange.MOVED
        and row.left
        and row.right
        and row.left[:-1] == at
        and row.right[:-1] == to
    }
    taken = {*new, *moved.values()}
    free = iter(j for j in range(len(left) + len(new) + 1) if j not in taken)
    made = dict(new)
    for i, item in enumerate(left):
        if i not in gone:
            j: Any = moved[i] if i in moved else next(free)
            made[j] = applied(item, rows, (*at, i), (*to, j))
    return [made[j] for j in sorted(made)]  # type: ignore[type-var]


@given(values)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert compare_values(value, copy.deepcopy(value)).rows == ()


@given(values, values)
def test_the_rows_lead_from_left_to_right(left: Any, right: Any) -> None:
    rows = list(compare_values(left, right).rows)

    assert applied(left, rows) == right


def mirrored(row: DifferenceRow) -> DifferenceRow:
    swap = {ValueChange.LEFT: ValueChange.RIGHT, ValueChange.RIGHT: ValueChange.LEFT}
    return DifferenceRow(
        swap.get(row.change, row.change), row.right, row.left, row.after, row.before, row.ignored
    )


@given(values, values)
def test_neither_side_is_preferred(left: Any, right: Any) -> None:
    there, back = compare_values(left, right).rows, compare_values(right, left).rows

    assert sorted(map(repr, map(mirrored, there))) == sorted(map(repr, back))


def described(left: Any, right: Any, **more: Any) -> list[tuple[str, ValueChange, Ignored]]:
    return [
        (format_path(row.left or row.right or ()), row.change, row.ignored)
        for row in compare_values(left, right, **more).rows
    ]


def test_an_inserted_item_does_not_shift_the_others() -> None:
    left = {"parts": [{"text": "one"}, {"text": "two"}, {"text": "three"}]}
    right = {"parts": [{"text": "zero"}, *left["parts"]]}

    assert described(left, right) == [("$.parts[0]", ValueChange.RIGHT, Ignored.NOT)]
    assert described(right, left) == [("$.parts[0]", ValueChange.LEFT, Ignored.NOT)]


def test_a_moved_item_is_not_a_change() -> None:
    tasks = [{"artifacts": [{"name": name}]} for name in "abc"]

    (row,) = compare_values({"tasks": tasks}, {"tasks": [tasks[2], tasks[0], tasks[1]]}).rows

    assert (row.change, row.left, row.right) == (ValueChange.MOVED, ("tasks", 2), ("tasks", 0))


def test_identifiers_are_mapped_one_to_one() -> None:
    """The same mapping in any place, as a member or in a text. Another identifier in its place is a
    difference."""
    left = {
        "message": {"taskId": "task-0001", "parts": [{"text": "see task-0001!"}]},
        "task": {"id": "task-0001"},
    }
    right = {
        "message": {"taskId": "task-9999", "parts": [{"text": "see task-9999!"}]},
        "task": {"id": "task-9999"},
    }

    assert {row.ignored for row in compare_values(left, right).rows} == {Ignored.ID}

    right["task"]["id"] = "task-7777"
    assert [row.left for row in compare_values(left, right).rows if row.counts] == [("task", "id")]


def test_identifiers_are_remembered_from_value_to_value() -> None:
    ids = PairedIds()

    assert compare_values({"taskId": "a"}, {"taskId": "b"}, ids).same
    assert compare_values({"id": "a"}, {"id": "b"}, ids).same
    assert not compare_values({"id": "a"}, {"id": "c"}, ids).same
    assert not compare_values({"id": "c"}, {"id": "b"}, ids).same


@pytest.mark.parametrize(
    ("left", "right", "why"),
    [
        (
            {"status": {"timestamp": "2026-01-01T00:00:00Z"}},
            {"status": {"timestamp": "2026-01-02T00:00:00Z"}},
            Ignored.TIME,
        ),
        ({"metadata": {"traceparent": "a"}}, {"metadata": {"traceparent": "b"}}, Ignored.TRACE),
        (
            {"credentials": "redacted-0123456789ab"},
            {"credentials": "redacted-ffffffffffff"},
            Ignored.SECRET,
        ),
        (
            {"data": {"key": "redacted-0123456789ab"}},
            {"data": {"key": "redacted-ffffffffffff"}},
            Ignored.SECRET,
        ),
        (
            {"url": "http://127.0.0.1:9000/rpc"},
            {"url": "http://localhost:4711/rpc"},
            Ignored.ADDRESS,
        ),
        ({"url": "127.0.0.1:9000"}, {"url": "[::1]:4711"}, Ignored.ADDRESS),
        ({"append": False}, {}, Ignored.DEFAULT),
        ({"configuration": {"returnImmediately": False}}, {}, Ignored.DEFAULT),
        ({"parts": []}, {"parts": None}, Ignored.DEFAULT),
    ],
)
def test_ignored_differences_have_a_reason(left: Any, right: Any, why: Ignored) -> None:
    assert [row.ignored for row in compare_values(left, right).rows] == [why]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (
            {"data": {"timestamp": "2026-01-01T00:00:00Z"}},
            {"data": {"timestamp": "2026-01-02T00:00:00Z"}},
        ),
        ({"metadata": {"taskId": "a"}}, {"metadata": {"taskId": "b"}}),
        ({"data": {"append": False}}, {"data": {}}),
        ({"url": "http://127.0.0.1:9000/rpc"}, {"url": "http://127.0.0.1:9000/v2"}),
        ({"parts": [{"text": ""}]}, {"parts": []}),
        ({"a": True}, {"a": 1}),
    ],
)
def test_differences_in_data_and_metadata_count(left: Any, right: Any) -> None:
    """What peers put into data and metadata is theirs."""
    assert [row.ignored for row in compare_values(left, right).rows] == [Ignored.NOT]


def test_members_of_one_dialect_only_are_ignored_across_dialects() -> None:
    """Where the sides speak different ones, ids that only one has and `final` do not count; else
    they do."""
    left, right = {"message": {"messageId": "m"}, "final": True}, {"message": {}}

    assert compare_values(left, right, fields=CanonicalFields(dialects=True)).same
    assert len([row for row in compare_values(left, right).rows if row.counts]) == 2


def test_a_skill_of_a_card_is_no_identifier() -> None:
    assert not compare_values(
        {"skills": [{"id": "walk"}]},
        {"skills": [{"id": "swim"}]},
        fields=CanonicalFields(card=True),
    ).same


def test_exceeded_limits_are_reported() -> None:
    """Rows, values and depth are bounded, and omissions are reported."""
    many = compare_values({str(n): n for n in range(1, 50)}, {}, limits=CompareLimits(rows=10))
    assert (len(many.rows), many.cut) == (
        10,
        ("more than 10 differences: the others are not shown",),
    )
    assert compare_values([[1], [2]], [[1], [3]], limits=CompareLimits(values=2)).cut
    deep: Any = 1
    for _ in range(500):
        deep = {"a": deep}
    assert not compare_values(deep, {"a": deep}).same
    assert compare_values(deep, copy.copy(deep)).same


def test_long_lists_are_aligned_coarsely() -> None:
    """Items that are there once hold it together."""
    left = [{"text": f"line {n}"} for n in range(3000)]

    found = compare_values(left, [*left[:10], {"text": "new"}, *left[10:2000], *left[2001:]])

    assert {(row.change, row.left or row.right) for row in found.rows} == {
        (ValueChange.RIGHT, (10,)),
        (ValueChange.LEFT, (2000,)),
    }
    assert found.cut == ("lists of 3000 and 3000 items aligned coarsely",)
