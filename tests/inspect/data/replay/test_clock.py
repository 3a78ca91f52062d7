"""The clock of a replay, with the time as an argument."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_inspect.data.replay.clock import SPEEDS, ReplayClock, clock_line, parse_replay_time
from a2a_proxy.recording.query.kinds import InvalidValue

S = 1_000_000_000
DAY = 1_795_300_256 * S
CLOCK = ReplayClock(DAY, DAY + 10 * S, DAY)


def test_the_clock_plays_pauses_and_ends() -> None:
    """Time passes while it plays, at its speed, up to the end; then it starts over."""
    playing = CLOCK.toggle_playing(100 * S)
    assert playing.compute_position(103 * S) == DAY + 3 * S
    assert playing.toggle_playing(103 * S).compute_position(999 * S) == DAY + 3 * S
    fast = playing.change_speed(1, 103 * S)
    assert (fast.speed, fast.compute_position(104 * S)) == (2, DAY + 5 * S)
    assert fast.compute_position(999 * S) == DAY + 10 * S
    assert not fast.stop_at_end(104 * S).is_at_end(104 * S)
    over = fast.stop_at_end(999 * S)
    assert (over.playing, over.is_at_end(0)) == (False, True)
    assert over.toggle_playing(5 * S).compute_position(6 * S) == DAY + 2 * S


def test_speeds_have_ends() -> None:
    for by, end in ((1, SPEEDS[-1]), (-1, SPEEDS[0])):
        clock = CLOCK
        for _ in range(20):
            clock = clock.change_speed(by, 0)
        assert clock.speed == end


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("+4s", 4), (" 50% ", 5), ("100%", 10), ("2026-11-21T22:30:59Z", 3), ("+1.5s", 1.5)],
)
def test_typed_times_are_parsed(words: str, seconds: float) -> None:
    assert parse_replay_time(words, CLOCK) == DAY + seconds * S


def test_times_of_day_are_on_the_day_of_the_recording(monkeypatch: Any) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        assert parse_replay_time("22:31", CLOCK) == DAY + 4 * S
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("words", ["", "soon", "%", "25:00", "-5"])
def test_invalid_times_are_refused(words: str) -> None:
    with pytest.raises(InvalidValue):
        parse_replay_time(words, CLOCK)


@given(st.integers(20, 200), st.integers(-S, 20 * S), st.sampled_from(SPEEDS))
def test_the_clock_line_names_frame_and_speed_and_fits_the_width(
    width: int, at: int, speed: float
) -> None:
    """It tells all, and where there is room it has a bar and fits."""
    clock = ReplayClock(DAY, DAY + 10 * S, DAY, speed=speed).jump_to(DAY + at)
    line = clock_line(clock, 0, (3, 34), width)
    assert "frame 3 of 34" in line
    assert f"{speed:g}x" in line
    assert ("at the end" in line) == (at >= 10 * S)
    assert "[" not in line or len(line) <= width


@given(
    st.lists(
        st.tuples(st.sampled_from(["turn", "fast", "slow", "wait", "jump"]), st.integers(0, 3 * S)),
        max_size=30,
    )
)
def test_the_clock_stays_within_the_recording_and_never_decreases_by_itself(
    moves: list[tuple[str, int]],
) -> None:
    clock, now = CLOCK, 0
    for move, by in moves:
        before, now = clock.compute_position(now), now + by
        assert clock.compute_position(now) >= before
        if move == "turn":
            clock = clock.toggle_playing(now)
        elif move == "jump":
            clock = clock.jump_to(DAY + by * 5)
        elif move != "wait":
            clock = clock.change_speed(1 if move == "fast" else -1, now)
        assert CLOCK.first <= clock.compute_position(now) <= CLOCK.last
