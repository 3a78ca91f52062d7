"""The two sides of a comparison: recordings, sessions, tasks or exchanges, named as for `show`."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from a2a_inspect.data.recording_choice import open_recording, resolve_recording, split_recordings
from a2a_inspect.data.references import (
    is_task_prefix,
    no_such_place,
    parse_reference,
    resolve_place,
)
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.difference.exchanges import compare_exchanges, compare_frames
from a2a_proxy.recording.difference.runs import (
    CallPair,
    RunDifference,
    Watch,
    compare_runs,
    take_run,
)
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, label_place, make_key


class DiffSide(msgspec.Struct, frozen=True):
    """One side: a recording and a place in it."""

    path: Path
    place: str = ""
    """`3` or `#3` for an exchange, `1:3` with its session, `3.2` for a frame, `1:` for a session,
    the beginning of a task's id for a task; empty: the whole recording.
    """

    @property
    def label(self) -> str:
        """The place for people: `#3`, `#2:3.2`, `session 1`; the word itself if it is the beginning
        of a task's id."""
        reference = parse_reference(self.place)
        if reference is None:
            return self.place
        return label_place(reference.session or 1, reference.exchange, reference.seq)


def parse_sides(words: tuple[str, ...]) -> tuple[DiffSide, DiffSide]:
    """Parse the arguments of `diff`.

    They are one recording with two places, or two recordings, each with an optional place. A place
    after only one of them applies to both. A single exchange is compared with the preceding
    exchange of the same operation; a single recording is compared by its last two sessions.

    Raises:
        UserError: the arguments have another form.
    """
    groups = split_recordings(words)
    if len(groups) == 1:
        return _sides_of_recording(resolve_recording(groups[0][0]), groups[0][1])
    if (
        len(groups) == 2
        and groups[0][0] is not None
        and all(len(places) < 2 for _, places in groups)
    ):
        (left, mine), (right, other) = groups
        return DiffSide(resolve_recording(left), (mine or other or ("",))[0]), DiffSide(
            resolve_recording(right), (other or mine or ("",))[0]
        )
    raise UserError(
        "name two places or recordings to compare", "a2a-inspect diff LEFT [#3] RIGHT [#3]"
    )


def _sides_of_recording(path: Path, words: tuple[str, ...]) -> tuple[DiffSide, DiffSide]:
    if len(words) == 2:
        return DiffSide(path, words[0]), DiffSide(path, words[1])
    if len(words) > 2:
        raise UserError(
            "only two places can be compared", f"a2a-inspect diff {path} {words[0]} {words[1]}"
        )
    with open_recording(path) as recording:
        if words:
            row = _resolve_exchange(recording, words[0])
            if row is None:
                raise UserError(
                    f"nothing to compare {words[0]} with",
                    f"a2a-inspect diff {path} {words[0]} OTHER",
                )
            before = previous_exchange(recording, row)
            if before is None:
                raise UserError(
                    f"there is no {row.exchange.operation} before {words[0]}", "name both exchanges"
                )
            return DiffSide(path, exchange_place(before)), DiffSide(path, exchange_place(row))
        numbers = [session.id for session in recording.read_sessions()]
    if len(numbers) < 2:
        raise UserError(
            f"{path} has one session", f"name another recording: a2a-inspect diff {path} OTHER"
        )
    return DiffSide(path, f"{numbers[-2]}:"), DiffSide(path, f"{numbers[-1]}:")


def exchange_place(row: ExchangeRow) -> str:
    """Return the place of an exchange."""
    return f"{row.session}:{row.exchange.id}"


def previous_exchange(recording: Recording, row: ExchangeRow) -> ExchangeRow | None:
    """Return the last exchange before this one with the same operation."""
    word = recording.db.execute(
        "SELECT operation FROM exchange WHERE id = ?", (row.key,)
    ).fetchone()
    find = "SELECT max(id) FROM exchange WHERE id < ? AND operation = ?"
    found = recording.db.execute(find, (row.key, *word)).fetchone()[0] if word else None
    return recording.read_exchange(found) if found is not None else None


@contextlib.contextmanager
def open_both(left: DiffSide, right: DiffSide) -> Iterator[tuple[Recording, Recording]]:
    """Open the recordings of both sides; a common recording is opened once.

    Raises:
        UserError: a recording cannot be opened or read.
    """
    with open_recording(left.path) as one:
        if right.path == left.path:
            yield one, one
        else:
            with open_recording(right.path) as other:
                yield one, other


def compute_difference(
    left: DiffSide, right: DiffSide, where: str = "", watch: Watch | None = None
) -> RunDifference:
    """Compare the two sides. Two exchanges are compared as runs of one call each.

    Raises:
        UserError: a recording cannot be read or has no such place, or the filter is not valid.
        Stopped: `watch` cancelled the comparison.
    """
    with open_both(left, right) as (one, other):
        pair = _resolve_exchange(one, left.place), _resolve_exchange(other, right.place)
        if pair[0] is None or pair[1] is None:
            runs = (
                take_run(one, _exchanges_of_side(one, left, where)),
                take_run(other, _exchanges_of_side(other, right, where)),
            )
            return compare_runs(*runs, watch=watch)
        sides = (one, pair[0]), (other, pair[1])
        frames = _frame_number(left.place), _frame_number(right.place)
        if frames[0] < 0 or frames[1] < 0:
            found = compare_exchanges(*sides)
        else:
            found = compare_frames(*sides, frames)
        match = CallPair(
            pair[0], pair[1], difference=found, inside=found.count, ignored=found.ignored
        )
        return RunDifference([match], [], found.cut)


def _frame_number(word: str) -> int:
    """Return the frame number in a place; -1 if it has none."""
    reference = parse_reference(word)
    return reference.seq if reference is not None else -1


def _resolve_exchange(recording: Recording, word: str) -> ExchangeRow | None:
    """Return the exchange that a place names; None if it names a session or may be the beginning of
    a task's id.

    Raises:
        UserError: no exchange has this number, or several sessions have one.
    """
    reference = parse_reference(word)
    if reference is None or (not reference.exchange and reference.session is not None):
        return None
    if word.isdigit() and any(
        is_task_prefix(word, row.task.task_id) for row in recording.read_tasks()
    ):
        return None
    found = resolve_place(recording, word)
    return recording.read_exchange(make_key(found.session, found.exchange))


def _exchanges_of_side(recording: Recording, side: DiffSide, where: str) -> Iterator[ExchangeRow]:
    """Yield the exchanges of a side."""
    exchange = _resolve_exchange(recording, side.place)
    if exchange is not None:
        yield exchange
        return
    reference = parse_reference(side.place)
    session = (
        resolve_place(recording, side.place).session
        if reference is not None and not reference.exchange
        else None
    )
    task = side.place if session is None else ""
    rows = recording.find_exchanges(where, session) if where else recording.read_exchanges(session)
    found = False
    for row in rows:
        if not task or is_task_prefix(task, row.exchange.task_id):
            found = True
            yield row
    if task and not found:
        raise no_such_place(recording, task)
