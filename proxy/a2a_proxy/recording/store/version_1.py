"""What recordings and cassettes of version 1 said about generations, in the form of today."""

from __future__ import annotations

from typing import Any


def generation_ranges(highest: int, missed: list[Any]) -> list[tuple[int, int]]:
    """Ascending ranges of the generations that were told, from the highest one and the numbers that nobody had seen.

    How low they began version 1 did not keep: the number before the first that was missed is the lowest certain one.
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
