"""Numbers as characters; with `plain` ASCII characters only, for terminals and pipes that want no more. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

_UP, _UP_PLAIN = " ▁▂▃▄▅▆▇█", " .:|"
_ACROSS, _ACROSS_PLAIN = " ▏▎▍▌▋▊▉█", " #"


def columns(values: Sequence[int], height: int, *, plain: bool = False) -> list[str]:
    """A column for each value, in so many lines, the highest first. What is more than nothing shows."""
    signs = _UP_PLAIN if plain else _UP
    full = len(signs) - 1
    peak = max(values, default=0)
    levels = [_level(value, peak, height * full) for value in values]
    return [
        "".join(signs[max(min(level - row * full, full), 0)] for level in levels) for row in range(height - 1, -1, -1)
    ]


def bar(value: int, peak: int, width: int, *, plain: bool = False) -> str:
    """A bar to the right, of so many cells for `peak`."""
    signs = _ACROSS_PLAIN if plain else _ACROSS
    full = len(signs) - 1
    whole, rest = divmod(_level(value, peak, width * full), full)
    return signs[-1] * whole + (signs[rest] if rest else "")


def spark(values: Sequence[int], *, plain: bool = False) -> str:
    """One line; heights go with the logarithm, so that one slow call among a thousand shows."""
    logs = [round(1000 * math.log1p(value)) for value in values]
    return columns(logs, 1, plain=plain)[0]


def _level(value: int, peak: int, most: int) -> int:
    return max(value * most // peak, 1) if value > 0 and peak > 0 else 0
