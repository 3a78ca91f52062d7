"""Sets of generations as ranges."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.protocol.generation_ranges import (
    MAX_RANGES,
    NumberRange,
    add_number,
    has_number,
    remove_range,
    union_of_ranges,
)

NUMBERS = st.lists(st.integers(1, 60))
RANGES = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5)))


def ranges_of(numbers: list[int]) -> list[NumberRange]:
    ranges: list[NumberRange] = []
    for number in numbers:
        add_number(ranges, number)
    return ranges


@given(NUMBERS)
def test_ranges_are_the_set_of_numbers(numbers: list[int]) -> None:
    ranges = ranges_of(numbers)
    assert {number for first, last in ranges for number in range(first, last + 1)} == set(numbers)
    assert all(one[1] + 1 < two[0] for one, two in pairwise(ranges))
    assert [has_number(ranges, number) for number in range(62)] == [
        number in numbers for number in range(62)
    ]


@given(NUMBERS, st.integers(1, 60), st.integers(0, 9))
def test_a_removed_range_is_gone(numbers: list[int], first: int, more: int) -> None:
    ranges = ranges_of(numbers)
    remove_range(ranges, first, first + more)
    left = set(numbers) - set(range(first, first + more + 1))
    assert {number for low, high in ranges for number in range(low, high + 1)} == left


@given(RANGES, RANGES)
def test_a_union_has_both(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    first, second = (tuple((low, low + more) for low, more in each) for each in (one, two))
    wanted = {number for low, high in (*first, *second) for number in range(low, high + 1)}
    assert {
        number for low, high in union_of_ranges(first, second) for number in range(low, high + 1)
    } == wanted


def test_the_lowest_ranges_are_dropped() -> None:
    ranges = ranges_of(list(range(0, 400, 2)))
    assert (len(ranges), ranges[-1]) == (MAX_RANGES, [398, 398])
    lowest = [400 - 2 * MAX_RANGES] * 2
    assert ranges[0] == lowest
    add_number(ranges, 100)
    assert ranges[0] == lowest, "also if the new one is the lowest"
