"""Conversion of the generations in recordings and cassettes of version 1 to the current form."""

from __future__ import annotations

from typing import Any


def generation_ranges(highest: int, missed: list[Any]) -> list[tuple[int, int]]:
    """Return ascending ranges of the generations seen, from the highest one and the missed numbers.

    Version 1 did not store the lowest generation, so the number before the first missed one is used: it is the lowest
    certain one.
    """
    gaps = sorted(number for number in missed if isinstance(number, int) and number < highest)
    if highest <= 0:
        return []
    ranges: list[tuple[int, int]] = []
    first = gaps[0] - 1 if gaps else highest
    for number in gaps:
        if first < number:
            ranges.append((first, number - 1))
        first = number + 1
    return [*ranges, (first, highest)]
