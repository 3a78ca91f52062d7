"""Garbage-collection settings of a recorder process."""

from __future__ import annotations

import gc

_COLLECT_AFTER = 50_000
"""Allocations between two collections. Decoding creates no cycles, so the default of 700 costs 3-6 % of the time."""


def reduce_collections() -> None:
    """Exempt all loaded objects from collection and collect the rest seldom, for the whole process."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 50)
