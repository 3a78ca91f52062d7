"""How far the recorder yields to the relay."""

from __future__ import annotations

import pytest

from a2a_proxy.recorder.priority import NICE, Pace

SECOND = 1_000_000_000
MB = 1_000_000


def paced(growth: int, lag: float, *, rate: int = 10 * MB) -> int:
    """Return the nice value of a recorder that decodes `rate` bytes a second, is `lag` seconds
    behind, and whose relay writes `growth` bytes a second."""
    pace = Pace()
    pace.note_work(rate, SECOND)
    pace.decide(SECOND, 0, 0)
    pace.decide(2 * SECOND, growth, int(lag * SECOND))
    return pace.nice


@pytest.mark.parametrize(
    ("growth", "lag", "nice"),
    [
        (0, 0, NICE),
        (5 * MB, 0.4, NICE),
        (5 * MB, 0.7, NICE // 2),
        (5 * MB, 1.1, 0),
        (0, 200, 0),
        (50 * MB, 1.1, NICE),
        (50 * MB, 29, NICE),
        (50 * MB, 45, NICE // 2),
        (50 * MB, 61, 0),
    ],
    ids=str,
)
def test_a_recorder_yields_less_the_further_it_is_behind(
    growth: int, lag: float, nice: int
) -> None:
    """And for longer only while the relay writes more than any recorder could decode."""
    assert paced(growth, lag) == nice


def test_a_recorder_that_has_caught_up_yields_again() -> None:
    pace = Pace()
    assert pace.nice == 0
    for number, (lag, nice) in enumerate([(0, NICE), (5 * SECOND, 0), (0, NICE)], 1):
        pace.decide(number * SECOND, 0, lag)
        assert pace.nice == nice


def test_a_burst_that_is_over_is_recorded_at_equal_priority() -> None:
    """At once: the rest takes three seconds, so yielding for the first one would help nobody."""
    pace = Pace()
    pace.note_work(10 * MB, SECOND)
    pace.decide(SECOND, 0, 0)
    pace.decide(2 * SECOND, 30 * MB, SECOND // 10, 30 * MB)
    assert pace.nice == NICE, "the relay is busy"
    pace.decide(2 * SECOND + SECOND // 4, 30 * MB, SECOND // 3, 29 * MB)
    assert pace.nice == 0
    pace.decide(4 * SECOND, 30 * MB, SECOND // 3, 4 * MB)
    assert pace.nice == NICE, "less than half a second is left"


def test_decisions_are_at_least_a_quarter_of_a_second_apart() -> None:
    pace = Pace()
    pace.decide(SECOND, 0, 0)
    assert not pace.is_due(SECOND + SECOND // 4 - 1)
    assert pace.is_due(SECOND + SECOND // 4)


def test_pauses_are_bounded_and_end_with_the_lag() -> None:
    pace = Pace()
    assert pace.pause_after(SECOND) == 0
    pace.decide(SECOND, 0, 0)
    assert pace.pause_after(10_000_000) == 10_000_000
    assert pace.pause_after(SECOND) == 50_000_000
    pace.decide(2 * SECOND, 0, 5 * SECOND)
    assert pace.pause_after(10_000_000) == 0
