"""Interruptions of a recording whose tracker was lost."""

from __future__ import annotations

import pytest

from a2a_proxy.model.values import YIELD_WITHIN, Interruption
from a2a_proxy.protocol.segments.interruptions import Interruptions

AT = 1_767_225_600_000_000_000


@pytest.mark.parametrize(
    ("residual", "outcome"),
    [(0, "yielded"), (AT + YIELD_WITHIN, "yielded"), (AT + YIELD_WITHIN + 1, "overlapped")],
)
@pytest.mark.parametrize(("lost", "ended"), [(AT + 9, AT + 9), (AT - 9, AT)])
def test_a_recorded_interruption_ends_when_its_tracker_is_lost(
    residual: int, outcome: str, lost: int, ended: int
) -> None:
    interruptions = Interruptions()
    known = Interruption(7, "agent", "t1", "c1", "message", 3, 1, 2, AT, last_residual=residual)
    interruptions.adopt_recorded([known], 7, lost)
    (found,) = interruptions.pop_changed_interruptions()
    assert (found.id, found.outcome, found.ended) == (7, outcome, ended)
    assert interruptions.pop_changed_interruptions() == []
