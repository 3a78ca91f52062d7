"""Keys typed fast, before earlier ones are handled, are neither lost nor reordered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from textual import events
from textual.widgets import Input

from a2a_inspect.screens.main import MainScreen
from a2a_inspect.screens.themes import NIGHT
from a2a_proxy.recording.cassette.file import read_cassette
from support_inspect import changes, exchange, request, sample, writer
from support_scenes import SAMPLES
from support_screen import LARGE, SMALL, Person, looking

_NAMED = {
    ";": "semicolon",
    " ": "space",
    "\n": "enter",
    "/": "slash",
    ":": "colon",
    "\x1b": "escape",
    "\t": "tab",
    "?": "question_mark",
}


def at_once(person: Person, typed: str) -> None:
    """As a terminal gives what was typed while the program was busy."""
    for each in typed:
        shown = each if each.isprintable() else None
        person.app.post_message(events.Key(_NAMED.get(each, each), shown))


@contextmanager
def nothing_is_read(person: Person) -> Iterator[None]:
    """The thread that reads the recording is busy while the block runs."""
    free = Event()
    person.app._source._thread.submit(free.wait)
    try:
        yield
    finally:
        free.set()


async def test_a_filter_typed_at_once(tmp_path: Path) -> None:
    """All keys go to the filter line, none to the list, and Enter follows them."""
    async with looking(sample(tmp_path / "r.db"), LARGE) as person:
        await person.sees("OPERATION")
        for _ in range(3):
            at_once(person, "/err dmT\n")
            await person.until(lambda: person.app.screen.filter.current.text == "err dmT")
            await person.sees("nothing matches")
            at_once(person, "\x1b")
            await person.until(lambda: not person.app.screen.filter.current.text)
        assert not person.app.screen.widgets.marks.marked_rows()
        assert person.app.theme == NIGHT.name


async def test_a_key_waits_for_the_first_rows(tmp_path: Path) -> None:
    """It is about the row under the cursor, which has not been read when the program has just
    begun."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        at_once(person, "m")
        await person.until(lambda: len(person.app.screen.widgets.marks.marked_rows()) == 1)


async def test_keys_after_enter_go_to_the_list(tmp_path: Path) -> None:
    """The focus has moved before the next key is looked at."""
    async with looking(sample(tmp_path / "r.db"), LARGE) as person:
        await person.sees("OPERATION", "following  3")
        at_once(person, "/ok\ngg")
        await person.until(
            lambda: person.exchanges.cursor == 0 and person.app.focused is person.exchanges
        )
        assert person.app.screen.filter.current.text == "ok"


async def test_a_closing_menu_holds_no_keys_back(tmp_path: Path) -> None:
    """The widget that had the key is gone with it."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("OPERATION")
        at_once(person, "y\x1b/a b")
        await person.until(
            lambda: any(box.value == "a b" for box in person.app.screen.query(Input))
        )


async def test_a_note_typed_at_once(tmp_path: Path) -> None:
    """Its box comes when the row has been read; what is typed meanwhile is for the box."""
    async with looking(sample(tmp_path / "r.db"), LARGE) as person:
        await person.sees("OPERATION")
        at_once(person, ";lost here\n")
        await person.sees("note: lost here")
        assert not person.app.screen.filter.current.text


async def test_keys_and_pasted_text_keep_their_order(tmp_path: Path) -> None:
    """A paste is typed too."""
    async with looking(sample(tmp_path / "r.db"), LARGE) as person:
        await person.sees("OPERATION")
        at_once(person, "/op:")
        person.app.post_message(events.Paste("GetTask"))
        at_once(person, " x\n")
        await person.until(lambda: person.app.screen.filter.current.text == "op:GetTask x")


async def test_a_key_applies_to_the_row_chosen_by_the_previous_key(tmp_path: Path) -> None:
    """The list reports its cursor ten times a second; no key is handled in between."""
    path = tmp_path / "r.db"
    read_cassette(SAMPLES / "dialect-vendor.a2a.jsonl", path)
    async with looking(path, LARGE) as person:
        await person.sees("findings", "following  5")
        person.exchanges.action_move(-1)  # what was told last was told just now
        at_once(person, "gge")
        await person.sees("[4 Findings]")
        await person.until(lambda: person.exchanges.cursor == 1)  # the first that has one


async def test_a_key_in_a_pane_waits_for_its_rows(tmp_path: Path) -> None:
    """Frames of the previous exchange stay until those of the selected one have been read; the key
    does not apply to them."""
    async with looking(sample(tmp_path / "r.db"), LARGE) as person:
        await person.sees("OPERATION", '"text": "Question 3"')
        with nothing_is_read(person):
            at_once(person, "gg\njm")
            await person.until(lambda: person.app.focused is person.frames)
            await person.pilot.pause()
        await person.until(lambda: person.app.screen.widgets.marks.marked_rows())
        frame = person.frames.current_row
        assert (frame.row.frame.exchange, frame.row.frame.seq) == (1, 1)
        assert [each.frame for each in person.app.screen.widgets.marks.marked_rows()] == [
            frame.row.id
        ]


async def test_a_key_for_a_row_waits_for_its_frames(tmp_path: Path) -> None:
    """The task is that of the row; below, frames of another are shown still."""
    made = writer(tmp_path / "r.db")
    made.write(
        [request(1), request(2)],
        changes=changes(exchange(1, task_id="first"), exchange(2, task_id="second")),
    )
    made.close()
    async with looking(tmp_path / "r.db", LARGE) as person:
        await person.sees("OPERATION", '"text": "Plan a day"')
        with nothing_is_read(person):
            at_once(person, "ko")
            await person.until(lambda: person.app.screen.filter.current.task)
        assert person.app.screen.filter.current.task == "first"


async def test_a_key_for_matches_waits_for_them(tmp_path: Path) -> None:
    """The first row stays selected: the list does not follow later matches."""
    async with looking(sample(tmp_path / "r.db"), LARGE) as person:
        await person.sees("OPERATION", "following  3")
        screen = person.app.screen
        assert isinstance(screen, MainScreen)
        free = Event()
        screen.filter.finder._thread.submit(free.wait)  # the search has to wait for it
        try:
            at_once(person, "/nearly\ngg")
            await person.until(lambda: not person.exchanges.follow)
        finally:
            free.set()
        await person.until(lambda: person.exchanges.total == 3)
        assert person.exchanges.cursor == 0


async def test_tab_completes_the_text_typed_before_it(tmp_path: Path) -> None:
    """The suggestions arrive later, and text typed after Tab follows them."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("OPERATION")
        at_once(person, "/stat\tfail\tX")
        await person.until(
            lambda: person.app.screen.query_one("FilterBox Input", Input).value == "state:failedX"
        )


async def test_a_new_key_does_not_overtake_held_keys(tmp_path: Path) -> None:
    """It does not overtake the held key."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("OPERATION")
        await person.until(lambda: not person.app._is_held)
        person.app.hold_keys(60)
        at_once(person, "/")
        await person.until(lambda: len(person.app._waiting_keys) == 1)
        at_once(person, "ok")
        person.app.release_keys()  # the application hears of it after those
        await person.until(
            lambda: person.app.screen.query_one("FilterBox Input", Input).value == "ok"
        )


async def test_a_key_at_the_end_of_the_program_is_dropped(tmp_path: Path) -> None:
    """It is dropped."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("OPERATION")
        key = events.Key("g", "g")
        key._set_forwarded()
    assert not person.app.screen_stack
    await person.app.on_event(key)
