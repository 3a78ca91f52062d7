"""Comparisons that the main screen opens: of marked rows, of the row under the cursor, of another
recording."""

from collections.abc import Sequence
from pathlib import Path

from textual.screen import Screen

from a2a_inspect.data.source import RecordingSource
from a2a_inspect.dialogs.choose_recording import ChooseRecording
from a2a_inspect.diff.places import DiffSide, exchange_place, previous_exchange
from a2a_inspect.screens.diff_screen import DiffScreen
from a2a_inspect.widgets.marks import MarkedRow
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import split_key


def compare_from(
    screen: Screen[None],
    source: RecordingSource,
    marks: Sequence[MarkedRow],
    cursor: MarkedRow | None,
) -> None:
    """Open a difference: of the last two marks, of the only mark and the cursor, or of the exchange
    under the cursor and the previous one of the same operation."""
    chosen = [mark for mark in marks if mark != cursor][-1:] if len(marks) < 2 else list(marks[-2:])
    if len(chosen) == 1 and cursor is not None:
        chosen.append(cursor)

    async def begin_comparison() -> None:
        try:
            places = await source.run_query(
                lambda recording: _compared_places(recording, chosen, cursor), None
            )
        except RecordingError as wrong:
            screen.notify(wrong.message, severity="error")
            return
        if places is None:
            screen.notify(
                "no earlier call of this operation: mark two calls with m",
                title="Nothing to compare",
            )
        elif screen.is_current:
            screen.app.push_screen(
                DiffScreen(DiffSide(source.path, places[0]), DiffSide(source.path, places[1]))
            )

    screen.run_worker(begin_comparison(), group="compare", exclusive=True)


def compare_with_another(screen: Screen[None], path: Path) -> None:
    """Let the user choose another recording, and open the difference between this one and it."""

    def begin(other: Path | None) -> None:
        if other is not None:
            screen.app.push_screen(DiffScreen(DiffSide(path), DiffSide(other)))

    screen.app.push_screen(ChooseRecording(path, "Compare with"), begin)


def _compared_places(
    recording: Recording, marked: list[MarkedRow], cursor: MarkedRow | None
) -> tuple[str, str] | None:
    if len(marked) == 2:
        frames = all(mark.frame for mark in marked)
        first, second = (_place_of_mark(recording, mark, frames) for mark in marked)
        return first, second
    row = recording.read_exchange(cursor.exchange) if cursor is not None else None
    before = previous_exchange(recording, row) if row is not None else None
    return None if row is None or before is None else (exchange_place(before), exchange_place(row))


def _place_of_mark(recording: Recording, mark: MarkedRow, frames: bool) -> str:
    """Return the place of a mark: of its frame if both marks are frames, else of its exchange."""
    session, number = split_key(mark.exchange)
    row = recording.read_frame(mark.frame, payload=False) if frames else None
    return f"{session}:{number}" + (f".{row.frame.seq}" if row is not None else "")
