"""The command palette."""

from __future__ import annotations

from pathlib import Path

from support_inspect import sample
from support_screen import SMALL, looking


async def test_the_palette_runs_the_actions_of_keys(tmp_path: Path) -> None:
    """It offers the available actions with their keys."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        await person.types("ctrl+p")
        await person.sees("Search for commands")
        await person.types(*"resume the disp")
        await person.sees("Pause  p")
        await person.types("enter")
        await person.sees("paused")
