"""The list of exchanges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from a2a_inspect.data.finding_counts import SEVERITIES, ExchangeLine, ending_words
from a2a_inspect.data.source import RecordingSnapshot
from a2a_inspect.widgets.columns import ListColumn
from a2a_inspect.widgets.found_column import FINDINGS_COLUMN
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_inspect.widgets.marks import RowMarks, with_signs
from a2a_inspect.widgets.states import abbreviate_states
from a2a_proxy.present import generations, text
from a2a_proxy.recording.joined.numbers import file_of
from a2a_proxy.recording.read.rows import ExchangeRow, label_place
from a2a_proxy.recording.write.note_writer import NotePlace

if TYPE_CHECKING:
    from a2a_inspect.data.list_columns import UserColumn

_MIN_USER_WIDTH, _MAX_USER_WIDTH = 8, 20
"""Cells of a column that the user chose, by its title; what is left is shared."""
_STYLES = {
    "ok": "list--good",
    "error": "list--bad",
    "cut": "list--warn",
    "refused": "list--bad",
    "live": "list--live",
    "waits": "list--live",
}

_FILE_CELLS = 16
"""Cells of a file's name."""


class ExchangeList(LazyList):
    """All exchanges of a recording, session by session, including live ones."""

    def __init__(
        self,
        load_page: Callable[[int], Awaitable[Sequence[ExchangeRow]]],
        marks: RowMarks,
        files: tuple[str, ...] = (),
        *,
        id: str,
    ) -> None:
        """`files` are the names of the joined recordings; empty for a single recording."""
        self._first_columns = [
            *file_columns(files),
            ListColumn("#", 4, self._number_cell, right=True, style=self._number_style),
        ]
        super().__init__([*self._first_columns, *STANDARD_COLUMNS, STATES_AND_ENDING], id=id)
        self._load_page = load_page
        self._marks = marks
        self._session_count = 1

    async def load_page(self, page: int) -> Sequence[ExchangeRow]:
        """Return one page."""
        return await self._load_page(page)

    def show_rows(self, now: RecordingSnapshot, total: int, *, above: int) -> None:
        """Show `total` rows of this snapshot; see `update_total`. With several sessions, rows show
        their session."""
        self._session_count = len(now.sessions)
        longest = (
            f"#{self._session_count}:{now.highest}" if self._session_count > 1 else str(now.highest)
        )
        self.widen_column("#", len(longest) + 2)
        self.update_total(total, rows_above=above)

    def show_columns(self, chosen: Sequence[UserColumn]) -> None:
        """Show other columns after the numbers; none: the standard ones."""
        numbers = [
            column
            for column in self._columns
            if column.title in {each.title for each in self._first_columns}
        ]
        if chosen:
            self.set_columns(
                [*numbers, *(_user_column(index, column) for index, column in enumerate(chosen))]
            )
        else:
            self.set_columns([*numbers, *STANDARD_COLUMNS, STATES_AND_ENDING])
        self.reread_rows()

    def _number_cell(self, row: ExchangeRow) -> str:
        number = str(row.exchange.id)
        if self._session_count > 1:
            number = label_place(row.session, row.exchange.id, with_session=True)
        note_sign = self._marks.note_sign(NotePlace(row.session, row.exchange.id))
        return with_signs(number, self._marks.is_exchange_marked(row.key), note_sign)

    def _number_style(self, row: ExchangeRow) -> str:
        return "list--strong" if self._marks.is_exchange_marked(row.key) else "list--dim"


def file_columns(files: tuple[str, ...]) -> list[ListColumn]:
    """Return the column with the file of each row, if several recordings are joined."""

    def name(row: ExchangeRow) -> str:
        return files[file_of(row.exchange.connection, len(files))]

    return (
        [
            ListColumn(
                "FILE",
                min(max(len("FILE"), *map(len, files)), _FILE_CELLS),
                name,
                style="list--dim",
            )
        ]
        if files
        else []
    )


def outcome_style(row: ExchangeRow) -> str:
    """Return the style of a row's outcome, which is also shown in words."""
    return _STYLES[text.outcome_label(row.exchange)]


def event_count(row: ExchangeRow) -> str:
    """Return the number of events of a stream."""
    return str(row.exchange.events) if row.exchange.streaming else ""


def duration_cell(row: ExchangeRow) -> str:
    """Return the duration so far, up to the last frame."""
    return text.duration_cell(row.exchange)


def states_and_ending(row: ExchangeRow) -> str:
    """Return the passed states in order, and why the call did not end well."""
    words = (states_cell(row), generations.requested_generations(row.exchange), ending_cell(row))
    return "  ".join(word for word in words if word)


def is_successful(row: ExchangeRow) -> bool:
    """Return whether no error has occurred so far."""
    return text.outcome_of(row.exchange) in ("ok", "live")


def ending_style(row: ExchangeRow) -> str:
    """Return the style of the ending, which is that of the outcome, or of its finding if the call
    was complete."""
    if not is_successful(row):
        return outcome_style(row)
    ending = row.ending if isinstance(row, ExchangeLine) else None
    return SEVERITIES[ending.severity] if ending is not None and ending.severity else ""


def _user_column(index: int, column: UserColumn) -> ListColumn:
    """Return a column that the user chose; the last ones are dropped first if not all fit."""
    if column.is_standard:
        return replace(_COLUMNS_BY_NAME[column.field], drop=index)

    def cell(row: ExchangeRow) -> str:
        return row.cells[index] if isinstance(row, ExchangeLine) and index < len(row.cells) else ""

    width = max(_MIN_USER_WIDTH, min(len(column.title), _MAX_USER_WIDTH))
    return ListColumn(column.title, width, cell, grow=1, drop=index)


def states_cell(row: ExchangeRow) -> str:
    """Return the passed states in order."""
    return " > ".join(row.exchange.states)


def ending_cell(row: ExchangeRow) -> str:
    """Return why the call did not end well."""
    return ending_words(row, row.ending if isinstance(row, ExchangeLine) else None)


STANDARD_COLUMNS = (
    ListColumn(
        "TIME", 12, lambda row: text.format_time(row.exchange.started), drop=1, style="list--dim"
    ),
    ListColumn("OUTCOME", 7, lambda row: text.outcome_label(row.exchange), style=outcome_style),
    ListColumn(
        "OPERATION", 20, lambda row: text.exchange_title(row.exchange), grow=1, style="list--strong"
    ),
    ListColumn(
        "BINDING", 12, lambda row: text.binding_and_dialect(row.exchange), drop=2, style="list--dim"
    ),
    ListColumn(
        "TASK", 9, lambda row: text.shorten_id(row.exchange.task_id), drop=3, style="list--dim"
    ),
    FINDINGS_COLUMN,
    ListColumn("EVENTS", 6, event_count, right=True),
    ListColumn("TOOK", 8, duration_cell, right=True),
)
STATES_AND_ENDING = ListColumn(
    "STATES, ENDING", 14, states_and_ending, grow=3, shorten=abbreviate_states, style=ending_style
)
_COLUMNS_BY_NAME = {
    column.title.lower(): column
    for column in (
        *STANDARD_COLUMNS,
        ListColumn("STATES", 14, states_cell, grow=2, shorten=abbreviate_states),
        ListColumn("ENDING", 14, ending_cell, grow=2, style=ending_style),
    )
}
