"""A replay on the screen."""

from __future__ import annotations

from pathlib import Path

from a2a_inspect.screens.replay_screen import ClockBar
from a2a_inspect.widgets.exchange_list import ExchangeList
from support_inspect import sample
from support_screen import SMALL, looking


async def test_a_replay_plays_steps_and_ends(tmp_path: Path) -> None:
    """Space starts it; later frames are hidden; single steps forwards and back; a jump; Esc ends
    it."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        await person.types("space")
        await person.sees("replay", "paused", "frame 1 of 9", "1x")
        await person.types(*["less_than_sign"] * 3)
        await person.sees("0.1x")  # at 1x it may be over before anybody has looked
        await person.types("space")
        await person.sees("playing")
        bar = person.app.screen.query_one(ClockBar)
        await person.types("at", "0", "%", "enter")
        await person.sees("paused", "frame 1 of 9", "1 exchange ", "live")
        assert person.misses("TASK_NOT_FOUND", "completed")
        await person.types("full_stop")
        await person.sees("frame 2 of 9")
        await person.types("full_stop", "full_stop")
        await person.until(lambda: bar.frames[0] >= 3, "a step")
        await person.types("at", "+", "1", ".", "0", "5", "s", "enter")
        await person.sees("frame 4 of 9", "2 exchanges")
        await person.types("comma")
        await person.sees("frame 3 of 9", "1 exchange ")
        await person.types("greater_than_sign", "at", "1", "0", "0", "%", "enter")
        await person.sees("at the end", "0.25x", "frame 9 of 9", "3 exchanges", "TASK_NOT_FOUND")
        assert person.app.screen.query_one(ExchangeList).cursor == 2
        await person.types("at", "s", "o", "o", "n", "enter")
        await person.sees('"soon" is not a time')
        await person.types("escape", "escape")
        await person.sees("ended", "compl")


async def test_the_swimlane_of_a_moment(tmp_path: Path) -> None:
    """It shows earlier frames and follows the clock."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        await person.types("space", "at", "0", "%", "enter")
        await person.sees("frame 1 of 9")
        await person.types("full_stop")
        await person.sees("frame 2 of 9")
        await person.types("s")
        await person.sees("Swimlane", "2 frames", "Thinking")
        assert person.misses("Nearly")
        await person.types("q", "space", "s")
        await person.sees(
            "Swimlane", "Nearly"
        )  # how many frames have passed by then depends on when one looks
        assert person.misses("2 frames")
