"""The help screen."""

from __future__ import annotations

from pathlib import Path

from support_inspect import sample
from support_screen import SMALL, looking


async def test_help_lists_the_keys_and_scrolls(tmp_path: Path) -> None:
    """On ?, over the screen: what can be done here first, the rest further down."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.types("question_mark")
        await person.sees("All screens", "ctrl+p", "previous frame")
        assert person.misses("Signs")
        await person.types("end")
        await person.sees("Signs", "frame to the agent")
        await person.types("escape")
        await person.sees("OPERATION")
