"""Saved views, commands by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_inspect.data.saved_views import read_views, write_views
from a2a_proxy.cli.errors import UserError
from support_inspect import sample
from support_screen import SMALL, Person, looking

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(names, names, max_size=4))
def test_views_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, views: dict[str, str]) -> None:
    """Any name, any expression, in their order; the folder is made."""
    path = tmp_path_factory.mktemp("views") / "new" / "views.toml"
    assert read_views(path) == {}
    write_views(path, views)
    assert list(read_views(path).items()) == list(views.items())
    assert [each.name for each in path.parent.iterdir()] == ["views.toml"]


@pytest.mark.parametrize(("text", "words"), [("a = ", "cannot be read"), ("a = 3", "a is not a filter")])
def test_what_is_wrong_with_the_file(tmp_path: Path, text: str, words: str) -> None:
    """One line says so."""
    path = tmp_path / "views.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        read_views(path)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        write_views(blocked / "views.toml", {})


async def narrowed(person: Person, *numbers: int) -> None:
    rows = person.exchanges

    def shown() -> list[int]:
        return [row.exchange.id for index in range(rows.total) if (row := rows._pages.row(index)) is not None]

    await person.until(lambda: shown() == list(numbers), numbers)


async def test_a_view_is_saved_used_and_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the list is narrowed to, under a name, for this recording and others."""
    monkeypatch.setenv("A2A_PROXY_CONFIG", str(tmp_path / "config"))
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        await person.types("v")
        await person.sees("No views yet")
        await person.types("s")
        await person.sees("there is nothing to save")
        await person.types("escape", "slash", *"err", "enter")
        await narrowed(person, 2)
        await person.types("v", "s", *"went wrong", "enter")
        await person.sees("went wrong  err:yes")
        await person.types("escape", "escape")
        await narrowed(person, 1, 2, 3)
        await person.types("v")
        await person.sees("went wrong  err:yes")
        await person.types("enter")
        await narrowed(person, 2)
        await person.types("v", "d")
        await person.sees("No views yet")
        await person.types("escape")
        await person.sees("only err:yes")


async def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name or the beginning of one; what is wrong is said."""
    monkeypatch.setenv("A2A_PROXY_CONFIG", str(tmp_path / "config"))
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")

        async def does(text: str) -> None:
            await person.types("colon")
            await person.sees(": ")
            await person.writes(text)
            await person.types("enter")

        await person.types("colon")
        await person.sees("explain", "what SQLite is asked", "go NUMBER")
        await person.types("escape")
        await does("filter dur<1h err")
        await narrowed(person, 2)
        await person.types("colon", *"ex", "enter")
        await person.sees("What SQLite is asked", "filter  dur<1h err:yes", "SELECT e.id FROM exchange e", "plan")
        await person.types("escape")
        await does("save bad ones")
        await does("filter")
        await narrowed(person, 1, 2, 3)
        await does("go 1")
        await person.until(lambda: person.exchanges.cursor == 0)
        await does("view bad ones")
        await narrowed(person, 2)
        for text, words in (
            ("explian", 'no command "explian"; did you mean "explain"'),
            ("view bad one", 'no view "bad one"; did you mean "bad ones"'),
            ("view", "write :view NAME"),
            ("go x", "is no number of an exchange"),
            ("go 1", "no such exchange in the list"),
            ("filter tsk:1", "the filter is wrong: unknown field"),
        ):
            await does(text)
            await person.told(words)
        await does("quit")
    assert person.app.return_value == 0
