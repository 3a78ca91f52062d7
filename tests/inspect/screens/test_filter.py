"""The filter line, keys that filter, and jumps, driven by keys."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.screens.main import MainScreen
from a2a_proxy.model.values import Finding, FrameKind, Severity
from a2a_proxy.recording.query.complete import Completion
from a2a_proxy.recording.read.rows import make_key
from support_inspect import changes, exchange, frame, request, sample, status, writer
from support_recording import STARTED
from support_screen import LARGE, PATIENCE, SMALL, Person, looking


def shown(person: Person) -> list[int]:
    """Numbers of the exchanges in the list, once their rows are there."""
    rows = person.exchanges
    return [
        row.exchange.id
        for index in range(rows.total)
        if (row := rows._pages.get_row(index)) is not None
    ]


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


async def test_enter_cancels_the_query_for_suggestions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
            lambda: (
                person.exchanges.current_row is not None
                and person.exchanges.current_row.exchange.id == 4
            )
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
        await person.until(
            lambda: screen.filter.search is not None and screen.filter.search.is_done
        )
        assert person.exchanges.total == 0
        await person.types("p")
        await person.until(lambda: shown(person) == [1, 2, 3])


async def test_keys_filter_by_task_context_or_findings(tmp_path: Path) -> None:
    """By one key, back by the same or by Esc; an exchange that has none says so."""
    made = writer(tmp_path / "r.db")
    found = [Finding("A2A-SCH-001", Severity.ERROR, STARTED, "no `id`", 1, 3, task_id="other")]
    plain = exchange(4, task_id="")
    made.write(
        [request(3)],
        found,
        changes(exchange(1), exchange(2, context_id="c"), exchange(3, task_id="other"), plain),
    )
    made.close()
    async with looking(tmp_path / "r.db") as person:
        await person.sees("4 exchanges")
        await person.until(lambda: person.exchanges.current_row is not None)
        await person.types("o")
        await person.await_notice("this exchange has no task")
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
    """Nothing is hidden; the frame is chosen, not only its exchange; after the last comes the
    first."""
    made = writer(tmp_path / "r.db")
    frames = [request(n) for n in range(1, 6)] + [
        status(2, 1, "a"),
        status(2, 2, "needle"),
        status(4, 1, "needle"),
    ]
    found = [Finding("A2A-SCH-001", Severity.ERROR, STARTED, "no `id`", 1, n, 1) for n in (2, 4)]
    made.write(frames, found, changes(*map(exchange, range(1, 6))))
    made.close()
    async with looking(tmp_path / "r.db", LARGE) as person:
        await person.sees("5 exchanges", "following  5")

        async def at(number: int, seq: int) -> None:
            def there() -> bool:
                line = person.frames.current_row
                return line is not None and (line.row.frame.exchange, line.row.frame.seq) == (
                    number,
                    seq,
                )

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
        await person.await_notice("no later finding")
        await person.types("E")
        await at(2, 1)


async def test_from_error_to_error(tmp_path: Path) -> None:
    """`!` goes to findings of severity error and to failed calls, and past warnings; a filter
    leaves out the others."""
    made = writer(tmp_path / "r.db")
    frames = [request(n) for n in range(1, 7)] + [status(n, 1, "a") for n in (2, 3)]
    failed = frame(4, 1, b"{}", kind=FrameKind.ERROR, error_code=-32001)
    found = [
        Finding("A2A-SCH-001", Severity.WARNING, STARTED, "no `id`", 1, 2, 1),
        Finding("A2A-SCH-001", Severity.ERROR, STARTED, "no `id`", 1, 3, 1),
    ]
    wrong: dict[int, dict[str, Any]] = {
        4: {"error": "TASK_NOT_FOUND -32001"},
        6: {"how": "client went away"},
    }
    made.write(
        [*frames, failed], found, changes(*(exchange(n, **wrong.get(n, {})) for n in range(1, 7)))
    )
    made.close()
    async with looking(tmp_path / "r.db", LARGE) as person:
        await person.sees("6 exchanges", "following  6")

        async def at(number: int, seq: int) -> None:
            def there() -> bool:
                line = person.frames.current_row
                return line is not None and (line.row.frame.exchange, line.row.frame.seq) == (
                    number,
                    seq,
                )

            await person.until(there, (number, seq))

        await person.types("g", "g", "!")
        await at(3, 1)
        await person.sees("[4 Findings]")
        await person.types("1", "!")
        await at(4, 1)
        await person.sees("[1 Decoded]")
        await person.types("!")
        await person.until(lambda: person.exchanges.current_row.exchange.id == 6)
        await person.types("!")
        await person.await_notice("no later error")
        await person.types("slash", *"-err", "enter", "g", "g")
        await person.lists(1, 2, 3, 5)
        await person.types("!")
        await at(3, 1)
        await person.types("!")
        await person.until(lambda: sum("no later error" in each for each in person._notes) == 2)


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
        await person.await_notice("nothing matches")
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


async def test_the_line_of_what_narrows_the_list_is_edited_in_place(tmp_path: Path) -> None:
    """All its parts, in the line that shows them. Enter applies, Esc restores, a slip is named
    below it."""
    async with looking(sample(tmp_path / "r.db"), LARGE) as person:
        await person.sees("3 exchanges")
        await person.types("o", "slash", *"op:SendStreamingMessage", "enter")
        whole = "only task=7604af5e-efd3-449c-94db-8950136d0e66 op:SendStreamingMessage"
        await person.sees(whole, "3 of 3")
        (line,) = (y for y, text in enumerate(person.lines) if whole in text)
        await person.types("i")
        await person.until(lambda: person.lines[line].startswith(whole), "the box")
        assert person.misses("#3 SendStreamingMessage › frame")
        await person.writes(whole.removeprefix("only ") + " opp:x")
        await person.until(lambda: "^ unknown field" in person.lines[line + 1], "the error")
        await person.types("enter")
        await person.sees("invalid")
        await person.writes("err")
        await person.lists(2)
        await person.types("escape")
        await person.sees(whole, "3 of 3")
        assert not person.lines[line].startswith("only")
        await person.types("i", "enter", "escape")
        await person.sees("only task=7604af5e-efd3-449c-94db-8950136d0e66 ")
        assert person.misses("op:SendStreamingMessage ")
        await person.pilot.click("Breadcrumbs")
        await person.writes("err")
        await person.types("enter")
        await person.lists(2)
        await person.sees("only err:yes", "1 of 3")
        await person.types("escape", "slash")
        await person.until(
            lambda: any(text.startswith("/ ") for text in person.lines[-4:]), "the box below"
        )


@pytest.mark.parametrize("size", [SMALL, (120, 40)])
async def test_the_line_is_edited_where_nothing_narrows_the_list(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """Also where it is hidden: an empty line opens above the lists."""
    async with looking(sample(tmp_path / "r.db"), size) as person:
        await person.sees("3 exchanges")
        await person.types("i")
        await person.until(lambda: person.lines[1].startswith("only "), "the box")
        await person.types(*"err", "enter")
        await person.lists(2)
        await person.sees("only err:yes")
        await person.types("escape")
        await person.lists(1, 2, 3)
