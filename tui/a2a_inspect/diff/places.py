"""What is to be compared: two recordings, sessions, tasks or exchanges, by the words that `show` has for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from a2a_inspect.data.recording_choice import chosen, opened, split_recordings
from a2a_inspect.data.references import is_task, not_there, point, written
from a2a_proxy.cli.errors import UserError
from a2a_proxy.recording.difference.exchanges import compare_exchanges, compare_frames
from a2a_proxy.recording.difference.runs import CallPair, RunDifference, Watch, compare_runs, take_run
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, make_key


class DiffSide(msgspec.Struct, frozen=True):
    """One side: a recording, and what of it."""

    path: Path
    place: str = ""
    """`3` or `#3` an exchange, `1:3` one of several sessions, `3.2` one of its frames, `1:` a session, the beginning of
    a task's id a task; empty: all of it."""


def sides(words: tuple[str, ...]) -> tuple[DiffSide, DiffSide]:
    """What the arguments of `diff` name.

    One recording with two places, or two recordings with a place behind each; a place behind only one of two is meant
    for both. One exchange alone is compared with the one before it of the same operation, a recording alone is its
    last two sessions.

    Raises:
        UserError: it is neither.
    """
    groups = split_recordings(words)
    if len(groups) == 1:
        return _in_one(chosen(groups[0][0]), groups[0][1])
    if len(groups) == 2 and groups[0][0] is not None and all(len(places) < 2 for _, places in groups):
        (left, mine), (right, other) = groups
        return DiffSide(chosen(left), (mine or other or ("",))[0]), DiffSide(chosen(right), (other or mine or ("",))[0])
    raise UserError("what is to be compared is not clear", "a2a-inspect diff LEFT [#3] RIGHT [#3]")


def _in_one(path: Path, places: tuple[str, ...]) -> tuple[DiffSide, DiffSide]:
    if len(places) == 2:
        return DiffSide(path, places[0]), DiffSide(path, places[1])
    if len(places) > 2:
        raise UserError("two things can be compared, not more", f"a2a-inspect diff {path} {places[0]} {places[1]}")
    with opened(path) as recording:
        if places:
            row = _exchange(recording, places[0])
            if row is None:
                raise UserError(f"{places[0]} is compared with what?", f"a2a-inspect diff {path} {places[0]} OTHER")
            before = previous(recording, row)
            if before is None:
                raise UserError(f"there is no {row.exchange.operation} before {places[0]}", "name both exchanges")
            return DiffSide(path, place_of(before)), DiffSide(path, place_of(row))
        numbers = [session.id for session in recording.sessions()]
    if len(numbers) < 2:
        raise UserError(f"{path} has one session", f"name another recording: a2a-inspect diff {path} OTHER")
    return DiffSide(path, f"{numbers[-2]}:"), DiffSide(path, f"{numbers[-1]}:")


def place_of(row: ExchangeRow) -> str:
    """An exchange as a place."""
    return f"{row.session}:{row.exchange.id}"


def previous(recording: Recording, row: ExchangeRow) -> ExchangeRow | None:
    """The last exchange before this one that did the same."""
    word = recording.db.execute("SELECT operation FROM exchange WHERE id = ?", (row.key,)).fetchone()
    find = "SELECT max(id) FROM exchange WHERE id < ? AND operation = ?"
    found = recording.db.execute(find, (row.key, *word)).fetchone()[0] if word else None
    return recording.exchange(found) if found is not None else None


@contextlib.contextmanager
def both(left: DiffSide, right: DiffSide) -> Iterator[tuple[Recording, Recording]]:
    """The recordings of both sides, open; one recording is opened once.

    Raises:
        UserError: one cannot be opened or read.
    """
    with opened(left.path) as one:
        if right.path == left.path:
            yield one, one
        else:
            with opened(right.path) as other:
                yield one, other


def difference(left: DiffSide, right: DiffSide, where: str = "", watch: Watch | None = None) -> RunDifference:
    """Compare them; two exchanges are a run of one call each, whatever they are.

    Raises:
        UserError: a recording cannot be read, has no such place, or the filter is wrong.
        Stopped: `watch` wanted no more.
    """
    with both(left, right) as (one, other):
        pair = _exchange(one, left.place), _exchange(other, right.place)
        if pair[0] is None or pair[1] is None:
            runs = take_run(one, _rows(one, left, where)), take_run(other, _rows(other, right, where))
            return compare_runs(*runs, watch=watch)
        sides = (one, pair[0]), (other, pair[1])
        frames = _frame(left.place), _frame(right.place)
        if frames[0] < 0 or frames[1] < 0:
            found = compare_exchanges(*sides)
        else:
            found = compare_frames(*sides, frames)
        match = CallPair(pair[0], pair[1], difference=found, inside=found.count, ignored=found.ignored)
        return RunDifference([match], [], found.cut)


def _frame(place: str) -> int:
    """Number of the frame that a place names; -1 where it names none."""
    named = written(place)
    return named.seq if named is not None else -1


def _exchange(recording: Recording, place: str) -> ExchangeRow | None:
    """The exchange that a place names; None where it names a session, or may be the beginning of a task's id.

    Raises:
        UserError: there is none of this number, or one in each of several sessions.
    """
    named = written(place)
    if named is None or (not named.exchange and named.session is not None):
        return None
    if place.isdigit() and any(is_task(place, row.task.task_id) for row in recording.tasks()):
        return None
    found = point(recording, place)
    return recording.exchange(make_key(found.session, found.exchange))


def _rows(recording: Recording, side: DiffSide, where: str) -> Iterator[ExchangeRow]:
    """The exchanges of a side."""
    exchange = _exchange(recording, side.place)
    if exchange is not None:
        yield exchange
        return
    named = written(side.place)
    session = point(recording, side.place).session if named is not None and not named.exchange else None
    task = side.place if session is None else ""
    rows = recording.find_exchanges(where, session) if where else recording.exchanges(session)
    found = False
    for row in rows:
        if not task or is_task(task, row.exchange.task_id):
            found = True
            yield row
    if task and not found:
        raise not_there(recording, task)
