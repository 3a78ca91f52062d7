"""The command line of the screen: commands by name, and their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from support_inspect import sample
from support_screen import SMALL, looking


async def test_commands_are_run_by_name_or_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands by name or prefix; errors are shown."""
    monkeypatch.setenv("A2A_PROXY_CONFIG", str(tmp_path / "config"))
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")

        async def does(text: str) -> None:
            await person.types("colon")
            await person.sees(": ")
            await person.writes(text)
            await person.types("enter")

        await person.types("colon")
        await person.sees("explain", "the SQL query of the filter", "go PLACE")
        await person.types("escape")
        await does("filter dur<1h err")
        await person.lists(2)
        await person.types("colon", *"ex", "enter")
        await person.sees(
            "SQL query of the filter",
            "filter  dur<1h err:yes",
            "SELECT e.id FROM exchange e",
            "plan",
        )
        await person.types("escape")
        await does("save bad ones")
        await does("filter")
        await person.lists(1, 2, 3)
        await does("go 1")
        await person.until(lambda: person.exchanges.cursor == 0)
        await does("go #3.2")
        await person.until(lambda: person.exchanges.cursor == 2 and person.frames.cursor == 2)
        await does("view bad ones")
        await person.lists(2)
        for text, words in (
            ("explian", 'unknown command "explian"; did you mean "explain"'),
            ("view bad one", 'no view is named "bad one"; did you mean "bad ones"'),
            ("view", "usage: :view NAME"),
            ("go x", "is not a place"),
            ("go 1", "no such exchange in the list"),
            ("filter tsk:1", "invalid filter: unknown field"),
        ):
            await does(text)
            await person.await_notice(words)
        await does("quit")
    assert person.app.return_value == 0
