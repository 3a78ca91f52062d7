"""How often a recorder process looks for cycles of garbage."""

from __future__ import annotations

import gc

_COLLECT_AFTER = 50_000
"""Allocations between two looks for cycles. Decoding makes none, so the default of 700 costs 3-6 % of the time."""


def reduce_collections() -> None:
    """For the whole process: what is loaded now is never looked at again, the rest seldom."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 50)
