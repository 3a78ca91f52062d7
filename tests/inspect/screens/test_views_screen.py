"""The screen of saved views, driven by keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from support_inspect import sample
from support_screen import SMALL, looking


async def test_a_view_is_saved_used_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the list is narrowed to, under a name, for this recording and others."""
    monkeypatch.setenv("A2A_PROXY_CONFIG", str(tmp_path / "config"))
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        await person.types("v")
        await person.sees("No views yet")
        await person.types("s")
        await person.sees("Nothing to save")
        await person.types("escape", "slash", *"err", "enter")
        await person.lists(2)
        await person.types("v", "s", *"went wrong", "enter")
        await person.sees("went wrong  err:yes")
        await person.types("escape", "escape")
        await person.lists(1, 2, 3)
        await person.types("v")
        await person.sees("went wrong  err:yes")
        await person.types("enter")
        await person.lists(2)
        await person.types("v", "d")
        await person.sees("No views yet")
        await person.types("escape")
        await person.sees("only err:yes")
