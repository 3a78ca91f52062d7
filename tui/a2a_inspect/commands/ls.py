"""`a2a-inspect ls`: print one line per exchange, or per task."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from a2a_inspect.commands.filters import print_no_match
from a2a_inspect.data.finding_counts import ExchangeLine, ending_words, exchange_lines
from a2a_inspect.data.matching_tasks import matching_tasks
from a2a_inspect.data.notes import note_counts
from a2a_inspect.data.session_lines import connection_counts, lag_words, session_line
from a2a_inspect.widgets.states import abbreviate_states
from a2a_inspect.widgets.table import TableLimits, table_lines
from a2a_proxy.model.event import state_label
from a2a_proxy.present import generations, text
from a2a_proxy.present.output import print_json, print_line, terminal_width
from a2a_proxy.present.text import exchange_object
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, TaskRow, label_place

if TYPE_CHECKING:
    from a2a_inspect.data.list_columns import UserColumn
    from a2a_proxy.rules.endings.ending import Ending

EXCHANGE_COLUMNS = (
    "#",
    "TIME",
    "OUTCOME",
    "FOUND",
    "OPERATION",
    "BINDING",
    "TASK",
    "STATES",
    "EVENTS",
    "TOOK",
    "ENDING",
)
EXCHANGE_SHRINK_ORDER = (
    ("TASK", 0),
    ("EVENTS", 0),
    ("ENDING", 32),
    ("BINDING", 0),
    ("TIME", 0),
    ("OPERATION", 14),
    ("ENDING", 22),
    ("STATES", 12),
    ("ENDING", 10),
    ("OPERATION", 8),
    ("STATES", 8),
    ("ENDING", 7),
)
"""Columns in the order in which they shrink on a terminal: the progress and the ending are kept
longest."""
TASK_SHRINK_ORDER = (
    ("AGENT", 0),
    ("CONTEXT", 0),
    ("EXCHANGES", 10),
    ("ARTIFACTS", 10),
    ("TASK", 9),
    ("STATES", 12),
)
WIDE_TERMINAL = 140
"""Terminal width in cells from which a line shows the time to the first event."""
ROWS_PER_READ = 100
_MIN_USER_WIDTH, _MAX_USER_WIDTH = 8, 60
"""Cells of a column that the user chose, on a terminal."""
SHORTENED = {"STATES": abbreviate_states}
TASK_COLUMNS = ("TASK", "STATE", "CONTEXT", "AGENT", "STATES", "ARTIFACTS", "EXCHANGES")


def list_exchanges(
    recording: Recording, *, as_json: bool, where: str = "", columns: Sequence[UserColumn] = ()
) -> None:
    """Print the exchanges of all sessions in order, or those that match, with these columns or the
    standard ones."""
    if where and next(recording.find_exchanges(where, limit=1), None) is None:
        print_no_match(where, [recording])
        return
    if as_json:
        rows = recording.find_exchanges(where) if where else recording.read_exchanges()
        endings = EndingReader(recording)
        while page := list(itertools.islice(rows, ROWS_PER_READ)):
            found = endings.read_all(page)
            for row in page:
                print_json({"session": row.session, **call_object(row, found.get(row.key))})
        return
    sessions = recording.read_sessions()
    for session in sessions:
        for line in _exchange_table_lines(
            recording, session, where, columns, several=len(sessions) > 1
        ):
            print_line(line)


def call_object(row: ExchangeRow, ending: Ending | None) -> dict[str, object]:
    """Return an exchange with its ending as JSON with stable names."""
    return {
        **exchange_object(row.exchange),
        "ending": ending.to_object() if ending is not None else None,
    }


def _exchange_table_lines(
    recording: Recording,
    session: SessionRow,
    where: str,
    columns: Sequence[UserColumn],
    *,
    several: bool,
) -> Iterator[str]:
    found = (
        recording.find_exchanges(where, session.id)
        if where
        else recording.read_exchanges(session.id)
    )
    first = next(found, None)
    empty = first is None
    if where and empty:
        return
    about = note_counts(recording, session.id)
    if empty:
        yield session_line(session)
    elif several:
        yield ", ".join(
            filter(
                None,
                (f"session {session.id}, {text.format_date_time(session.facts.started)}", about),
            )
        )
    if first is not None and columns:
        yield from _user_table_lines(
            recording, itertools.chain((first,), found), columns, several=several
        )
    elif first is not None:
        width = terminal_width()
        room = (
            TableLimits(width, {"OPERATION": 28}, EXCHANGE_SHRINK_ORDER, SHORTENED)
            if width
            else None
        )
        brief = 0 < width < WIDE_TERMINAL
        lines = _count_findings(recording, itertools.chain((first,), found))
        rows = (exchange_cells(line, with_session=several, brief=brief) for line in lines)
        yield from table_lines(EXCHANGE_COLUMNS, rows, room)
    counts = "" if where else connection_counts(recording, session)
    if counts:
        yield f"{counts}; see {shell_line('a2a-inspect', 'show', recording.path)}"
    elif empty:
        yield "nothing was recorded"
    if not session.how and (behind := lag_words(session)):
        yield f"session {session.id} is still being recorded{behind}: newer exchanges are missing"
    if about and not where and not several:
        yield f"{about}; see {shell_line('a2a-inspect', 'note', recording.path)}"


def _user_table_lines(
    recording: Recording,
    rows: Iterator[ExchangeRow],
    columns: Sequence[UserColumn],
    *,
    several: bool,
) -> Iterator[str]:
    """Yield the lines of a table with the columns that the user chose; on a terminal the last ones
    give way first."""
    titles = [each.title for each in columns]
    width = terminal_width()
    order = (
        *((title, _MIN_USER_WIDTH) for title in reversed(titles)),
        *((title, 0) for title in titles[:0:-1]),
    )
    limits = (
        TableLimits(width, dict.fromkeys(titles, _MAX_USER_WIDTH), order, SHORTENED)
        if width
        else None
    )
    cells = _user_cells(recording, rows, columns, several=several)
    return table_lines(("#", *titles), cells, limits)


def _user_cells(
    recording: Recording,
    rows: Iterator[ExchangeRow],
    columns: Sequence[UserColumn],
    *,
    several: bool,
) -> Iterator[tuple[str, ...]]:
    from a2a_inspect.data.list_columns import ColumnReader

    reader, endings = ColumnReader(columns), EndingReader(recording)
    while page := list(itertools.islice(rows, ROWS_PER_READ)):
        lines = exchange_lines(recording, page, endings=endings)
        for line, chosen in zip(lines, reader.read_cells(recording, page), strict=True):
            number, *cells = exchange_cells(line, with_session=several, brief=True)
            standard = dict(zip(EXCHANGE_COLUMNS[1:], cells, strict=True))
            own = (
                standard[each.title] if each.is_standard else cell
                for each, cell in zip(columns, chosen, strict=True)
            )
            yield (number, *map(make_visible, own))


def _count_findings(recording: Recording, rows: Iterator[ExchangeRow]) -> Iterator[ExchangeLine]:
    endings = EndingReader(recording)
    while page := list(itertools.islice(rows, ROWS_PER_READ)):
        yield from exchange_lines(recording, page, endings=endings)


def exchange_cells(row: ExchangeLine, *, with_session: bool, brief: bool) -> tuple[str, ...]:
    """Return the cells of a line.

    With `with_session` the number includes the session; with `brief` the time to the first event is
    left out.
    """
    exchange = row.exchange
    return (
        label_place(row.session, exchange.id, with_session=True)
        if with_session
        else str(exchange.id),
        text.format_time(exchange.started),
        text.outcome_label(exchange),
        str(row.finding_counts or ""),
        make_visible(text.exchange_title(exchange)),
        text.binding_and_dialect(exchange),
        make_visible(text.shorten_id(exchange.task_id)),
        make_visible(
            ", ".join(
                filter(
                    None, (" > ".join(exchange.states), generations.requested_generations(exchange))
                )
            )
        ),
        str(exchange.events) if exchange.streaming else "",
        text.duration_cell(exchange)
        if brief or text.is_answered_early(exchange)
        else text.latency_label(exchange),
        make_visible(ending_words(row, row.ending)),
    )


def list_tasks(recording: Recording, *, as_json: bool, where: str = "") -> None:
    """Print the tasks of all sessions in order of first appearance, or the tasks of matching
    exchanges."""
    rows = (
        matching_tasks(recording, recording.read_tasks(), where)
        if where
        else recording.read_tasks()
    )
    if where and not rows:
        print_no_match(where)
        return
    if as_json:
        for row in rows:
            print_json(task_object(row))
        return
    several = len(recording.read_sessions()) > 1
    width = terminal_width()
    room = TableLimits(width, {}, TASK_SHRINK_ORDER, SHORTENED) if width else None
    for line in table_lines(TASK_COLUMNS, _task_cells(rows, several=several), room):
        print_line(line)


def _task_cells(rows: Iterable[TaskRow], *, several: bool) -> Iterator[tuple[str, ...]]:
    for row in rows:
        task, mark = row.task, f"#{row.session}:" if several else "#"
        yield (
            make_visible(task.task_id),
            state_label(task.state),
            make_visible(text.shorten_id(task.context_id)),
            make_visible(task.agent),
            " > ".join(state_label(state) for _, state in task.states),
            ", ".join(
                make_visible(artifact.name or artifact.artifact_id) for artifact in task.artifacts
            ),
            " ".join(f"{mark}{number}" for number in task.exchanges),
        )


def task_object(row: TaskRow) -> dict[str, object]:
    """Return a task as JSON with stable names."""
    task = row.task
    return {
        "session": row.session,
        **text.value_object(task),
        "state": state_label(task.state),
        "states": [
            {"at": text.format_utc(at), "state": state_label(state)} for at, state in task.states
        ],
        "generations": generations.generations_object(task),
        "artifacts": list(map(text.value_object, task.artifacts)),
    }
