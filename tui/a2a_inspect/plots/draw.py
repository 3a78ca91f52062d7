"""Numbers as characters; with `plain` ASCII only, for terminals and pipes without other characters.
Pure."""

import math
from collections.abc import Sequence

_COLUMN_CHARACTERS, _COLUMN_CHARACTERS_PLAIN = " ▁▂▃▄▅▆▇█", " .:|"
_BAR_CHARACTERS, _BAR_CHARACTERS_PLAIN = " ▏▎▍▌▋▊▉█", " #"


def draw_columns(values: Sequence[int], height: int, *, plain: bool = False) -> list[str]:
    """Return `height` lines with a column for each value, topmost line first. Any value above 0 is
    visible."""
    signs = _COLUMN_CHARACTERS_PLAIN if plain else _COLUMN_CHARACTERS
    full = len(signs) - 1
    peak = max(values, default=0)
    levels = [_scaled_level(value, peak, height * full) for value in values]
    return [
        "".join(signs[max(min(level - row * full, full), 0)] for level in levels)
        for row in range(height - 1, -1, -1)
    ]


def draw_bar(value: int, peak: int, width: int, *, plain: bool = False) -> str:
    """Return a horizontal bar, `width` cells long for `peak`."""
    signs = _BAR_CHARACTERS_PLAIN if plain else _BAR_CHARACTERS
    full = len(signs) - 1
    whole, rest = divmod(_scaled_level(value, peak, width * full), full)
    return signs[-1] * whole + (signs[rest] if rest else "")


def draw_sparkline(values: Sequence[int], *, plain: bool = False) -> str:
    """Return one line whose heights are logarithmic, so that one slow call among a thousand is
    visible."""
    logs = [round(1000 * math.log1p(value)) for value in values]
    return draw_columns(logs, 1, plain=plain)[0]


def _scaled_level(value: int, peak: int, steps: int) -> int:
    return max(value * steps // peak, 1) if value > 0 and peak > 0 else 0
