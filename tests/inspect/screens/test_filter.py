"""The filter line, keys that filter, and jumps, driven by keys."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from a2a_inspect.screens.main import MainScreen
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.recording.query.complete import Completion
from a2a_proxy.recording.read.rows import make_key
from support_inspect import changes, exchange, request, sample, status, writer
from support_recording import STARTED
from support_screen import LARGE, PATIENCE, SMALL, Person, looking


def shown(person: Person) -> list[int]:
    """Numbers of the exchanges in the list, once their rows are there."""
    rows = person.exchanges
    return [row.exchange.id for index in range(rows.total) if (row := rows._pages.get_row(index)) is not None]


async def test_filters_are_checked_completed_and_applied(tmp_path: Path) -> None:
    """While it is typed the list follows; a slip is named with its place; Esc widens again."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        await person.types("slash", *"opp:x")
        await person.sees("invalid", '  ^ unknown field "opp"; did you mean "op"?')
        await person.types("enter")
        await person.sees("invalid")
        await person.types(*["backspace"] * 5, *"co")
        await person.sees("code:", "the error's code")
        await person.types("tab")
        await person.sees("/ code:", "incomplete")
        await person.types(*["backspace"] * 5, *"state:")
        await person.sees("working         6")
        assert person.misses("KIND")
        await person.types("tab")
        await person.sees("/ state:working", "valid")
        await person.types(*["backspace"] * 13, *"err")
        await person.until(lambda: shown(person) == [2])
        await person.types("enter")
        await person.sees("1 of 3", "only err:yes")
        assert person.exchanges.has_focus
        await person.types("slash", "up")
        await person.types("escape")
        await person.sees("1 of 3")
        await person.types("escape")
        await person.until(lambda: shown(person) == [1, 2, 3])
        assert person.misses("only")


async def test_enter_cancels_the_query_for_suggestions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that are wanted now would have to wait for it."""
    asked, given_up = asyncio.Event(), asyncio.Event()

    async def endless(*_: object) -> Completion:
        try:
            asked.set()
            await asyncio.Event().wait()
        finally:
            given_up.set()
        raise AssertionError

    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        monkeypatch.setattr(person.app.screen.widgets.filter_box, "_complete", endless)
        await person.types("slash", *"err")
        await asyncio.wait_for(asked.wait(), PATIENCE)
        await person.types("enter")
        await asyncio.wait_for(given_up.wait(), PATIENCE)
        await person.until(lambda: shown(person) == [2])


async def test_escape_restores_the_list(tmp_path: Path) -> None:
    """The list and its selected exchange are restored; Up recalls earlier filters."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        await person.types("g", "g", "slash", *"nearly", "enter")
        await person.sees("3 of 3")
        await person.types("slash", *["backspace"] * 6, *"nothing here")
        await person.sees("nothing matches; Esc widens the list", "0 of 3")
        await person.types("escape")
        await person.until(lambda: shown(person) == [1, 2, 3])
        await person.types("escape", "slash", "up")
        await person.sees("/ nearly")


async def test_following_continues_under_a_filter(tmp_path: Path) -> None:
    """New rows that match appear, others do not; the exchange under the cursor stays the same."""
    made = writer(tmp_path / "r.db")
    made.write([request(1, "needle")], changes=changes(exchange(1), exchange(2)))
    async with looking(tmp_path / "r.db", SMALL) as person:
        await person.sees("2 exchanges")
        await person.types("slash", *"needle", "enter")
        await person.sees("following  1 of 2")
        made.write([request(4, "needle")], changes=changes(exchange(3), exchange(4)))
        await person.sees("following  2 of 4")
        await person.until(lambda: shown(person) == [1, 4])
        await person.until(
            lambda: person.exchanges.current_row is not None and person.exchanges.current_row.exchange.id == 4
        )
        await person.types("g", "g")
        await person.until(lambda: not person.exchanges.follow)
        made.write([status(2, 1, "needle")], changes=changes(exchange(2)))
        await person.sees("+1 new", "3 of 4")
        await person.until(lambda: shown(person) == [1, 2, 4])
        assert person.exchanges.current_row.exchange.id == 1
    made.close()


async def test_a_pause_delays_matches(tmp_path: Path) -> None:
    """Matches are shown when resumed, also if nothing was stored since."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        await person.types("p", "o")
        screen = person.app.screen
        assert isinstance(screen, MainScreen)
        await person.until(lambda: screen.filter.search is not None and screen.filter.search.is_done)
        assert person.exchanges.total == 0
        await person.types("p")
        await person.until(lambda: shown(person) == [1, 2, 3])


async def test_keys_filter_by_task_context_or_findings(tmp_path: Path) -> None:
    """By one key, back by the same or by Esc; an exchange that has none says so."""
    made = writer(tmp_path / "r.db")
    found = [Finding("A2A-SCH-001", Severity.ERROR, STARTED, "no `id`", 1, 3, task_id="other")]
    plain = exchange(4, task_id="")
    made.write(
        [request(3)], found, changes(exchange(1), exchange(2, context_id="c"), exchange(3, task_id="other"), plain)
    )
    made.close()
    async with looking(tmp_path / "r.db") as person:
        await person.sees("4 exchanges")
        await person.until(lambda: person.exchanges.current_row is not None)
        await person.types("o")
        await person.told("this exchange has no task")
        await person.types("k", "o")
        await person.sees("only task=other", "task other ›")
        await person.until(lambda: shown(person) == [3])
        await person.types("ctrl+z")
        await person.sees("only task=other finding:*")
        await person.types("o")
        await person.sees("only finding:*")
        await person.until(lambda: shown(person) == [3])
        await person.types("escape")
        await person.until(lambda: shown(person) == [1, 2, 3, 4])
        await person.types("g", "g", "j")
        await person.sees("context c")
        await person.types("O")
        await person.until(lambda: shown(person) == [2])


async def test_from_match_to_match_and_from_finding_to_finding(tmp_path: Path) -> None:
    """Nothing is hidden; the frame is chosen, not only its exchange; after the last comes the first."""
    made = writer(tmp_path / "r.db")
    frames = [request(n) for n in range(1, 6)] + [status(2, 1, "a"), status(2, 2, "needle"), status(4, 1, "needle")]
    found = [Finding("A2A-SCH-001", Severity.ERROR, STARTED, "no `id`", 1, n, 1) for n in (2, 4)]
    made.write(frames, found, changes(*map(exchange, range(1, 6))))
    made.close()
    async with looking(tmp_path / "r.db", LARGE) as person:
        await person.sees("5 exchanges", "following  5")

        async def at(number: int, seq: int) -> None:
            def there() -> bool:
                line = person.frames.current_row
                return line is not None and (line.row.frame.exchange, line.row.frame.seq) == (number, seq)

            await person.until(there, (number, seq))

        await person.types("slash", *"needle", "ctrl+n")
        await at(2, 2)
        await person.until(lambda: len(shown(person)) == 5)
        await person.types("n")
        await at(4, 1)
        await person.types("n")
        await at(2, 2)
        await person.types("N")
        await at(4, 1)
        await person.types("g", "g", "e")
        await at(2, 1)
        await person.types("e")
        await at(4, 1)
        await person.types("e")
        await person.told("no later finding")
        await person.types("E")
        await at(2, 1)


async def test_empty_and_failed_searches_are_reported(tmp_path: Path) -> None:
    """It is said; `n` without anything to look for asks for it."""
    made = writer(tmp_path / "r.db")
    made.write([request(1, "a" * 5000 + "!")], changes=changes(exchange(1)))
    made.close()
    async with looking(tmp_path / "r.db") as person:
        await person.sees("1 exchange ")
        await person.types("n")
        await person.sees("/ ", "valid")
        await person.types(*"nowhere", "ctrl+n")
        await person.told("nothing matches")
        screen = person.app.screen
        assert isinstance(screen, MainScreen)
        screen.filter.use_expression('text~"(a+)+$"')
        await person.sees("takes longer than 0.25 s")


async def test_a_pruned_session_leaves_a_filtered_list(tmp_path: Path) -> None:
    """The search begins anew."""
    path = sample(tmp_path / "r.db")
    second = writer(path, 2)
    second.write([request(1, "Question")], changes=changes(exchange(1)))
    async with looking(path) as person:
        await person.sees("2 sessions")
        await person.types("slash", *"question", "enter")
        await person.sees("4 of 4")
        with sqlite3.connect(path) as db:
            db.execute("DELETE FROM exchange WHERE id < ?", (make_key(2, 0),))
            db.execute("DELETE FROM session WHERE id = 1")
        await person.sees("1 of 1")
    second.close()
