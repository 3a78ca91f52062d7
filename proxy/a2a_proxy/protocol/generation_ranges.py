"""Sets of generations as ascending ranges that do not touch, in bounded memory."""

MAX_RANGES = 64
"""Ranges of a set; of more, the lowest is dropped."""

NumberRange = list[int]
"""First and last number, both included."""


def add_number(ranges: list[NumberRange], number: int) -> None:
    """Add a number to ascending ranges that do not touch."""
    if not ranges or number > ranges[-1][1] + 1:
        ranges.append([number, number])
        if len(ranges) > MAX_RANGES:
            del ranges[0]
        return
    if number == ranges[-1][1] + 1:
        ranges[-1][1] = number
        return
    if number >= ranges[-1][0]:
        return
    place = next(index for index, each in enumerate(ranges) if number <= each[1] + 1)
    found = ranges[place]
    if number < found[0] - 1:
        ranges.insert(place, [number, number])
        if len(ranges) > MAX_RANGES:
            del ranges[0]
        return
    found[0], found[1] = min(found[0], number), max(found[1], number)
    if place + 1 < len(ranges) and ranges[place + 1][0] == found[1] + 1:
        found[1] = ranges.pop(place + 1)[1]


def remove_range(ranges: list[NumberRange], first: int, last: int) -> None:
    """Remove the numbers from `first` to `last`."""
    rest: list[NumberRange] = []
    for low, high in ranges:
        if low < first:
            rest.append([low, min(high, first - 1)])
        if high > last:
            rest.append([max(low, last + 1), high])
    ranges[:] = rest


def has_number(ranges: list[NumberRange], number: int) -> bool:
    """Whether the number is in one of the ranges."""
    return any(first <= number <= last for first, last in ranges)


def union_of_ranges(
    one: tuple[tuple[int, int], ...], two: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """Return the union as ascending ranges that do not touch; at most the `MAX_RANGES` highest."""
    union: list[NumberRange] = []
    for first, last in sorted((*one, *two)):
        if union and first <= union[-1][1] + 1:
            union[-1][1] = max(union[-1][1], last)
        else:
            union.append([first, last])
    return tuple((first, last) for first, last in union[-MAX_RANGES:])
