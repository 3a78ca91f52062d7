"""Even steps of time, and bins of durations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a2a_inspect.plots.scale import STEP_LENGTHS, fit_scale
from a2a_proxy.recording.query.parser import parse_expression

NS = st.integers(0, 2**62)


@given(NS, NS, st.integers(1, 300))
def test_a_span_covers_its_ends_in_few_even_steps(one: int, other: int, most: int) -> None:
    """From the first moment to the last, never more steps than asked for, beginning at round
    times."""
    first, last = sorted((one, other))
    over = fit_scale(first, last, most)
    assert over.start <= first <= last < over.end
    assert 1 <= over.count <= most
    assert over.start % over.step == 0
    assert over.find_start(0) == over.start
    assert over.find_start(over.count) == over.end


def test_steps_are_round_durations() -> None:
    """The shortest that is long enough: no finer than the filter language, each a part of the next
    but few."""
    assert list(STEP_LENGTHS) == sorted(set(STEP_LENGTHS))
    assert STEP_LENGTHS[0] == 1000
    assert fit_scale(0, 10_000_000_000, 10).step == 2_000_000_000
    assert fit_scale(5, 5, 100).step == 1000


def test_a_range_is_a_filter_expression() -> None:
    """Which the filter language understands to the microsecond."""
    over = fit_scale(1_795_300_256_985_000_000, 1_795_300_257_984_000_000, 1000)
    text = over.make_expression(1, 2)
    assert text == "t:>=2026-11-21T22:30:56.986000Z t:<2026-11-21T22:30:56.988000Z"
    first, last = (item.value.ns for item in parse_expression(text).items)  # type: ignore[union-attr]
    assert (first, last) == (over.find_start(1), over.find_start(3))
