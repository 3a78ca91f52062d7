"""`a2a-inspect ls` of several recordings: one list by time, each line with its file."""

import itertools
from collections.abc import Iterable, Iterator

from a2a_inspect.commands.filters import print_no_match
from a2a_inspect.commands.ls import (
    EXCHANGE_COLUMNS,
    EXCHANGE_SHRINK_ORDER,
    ROWS_PER_READ,
    SHORTENED,
    TASK_COLUMNS,
    TASK_SHRINK_ORDER,
    WIDE_TERMINAL,
    call_object,
    exchange_cells,
    task_object,
)
from a2a_inspect.data.finding_counts import ExchangeLine, exchange_lines
from a2a_inspect.data.session_lines import member_lines
from a2a_inspect.widgets.table import TableLimits, table_lines
from a2a_proxy.model.event import state_label
from a2a_proxy.present import text
from a2a_proxy.present.output import print_json, print_line, terminal_width
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.multi_reader import MultiReader, MultiReaderFile, TaskSighting
from a2a_proxy.recording.read.rows import ExchangeRow, make_key

_FILE_CELLS = {"FILE": 20, "FILES": 24}
"""Cells for names of files on a terminal."""


def list_exchanges(several: MultiReader, *, as_json: bool, where: str = "") -> None:
    """Print the exchanges of all files by time, or those that match."""
    rows = several.read_exchanges(where)
    first = next(rows, None)
    if where and first is None:
        print_no_match(where, [member.recording for member in several.members])
        return
    found = itertools.chain(() if first is None else (first,), rows)
    if as_json:
        readers = _ending_readers(several)
        for member, row in found:
            facts = call_object(row, readers[member.number].read(row))
            print_json({"file": member.recording.path, "session": row.session, **facts})
        return
    for line in _exchange_lines(several, found):
        print_line(line)


def _exchange_lines(
    several: MultiReader, rows: Iterator[tuple[MultiReaderFile, ExchangeRow]]
) -> Iterator[str]:
    yield from member_lines(several)
    width = terminal_width()
    room = (
        TableLimits(
            width,
            {"OPERATION": 28, **_FILE_CELLS},
            (("FILE", 10), *EXCHANGE_SHRINK_ORDER),
            SHORTENED,
        )
        if width
        else None
    )
    crowded = _files_with_several_sessions(several)
    cells = (
        (
            make_visible(member.name),
            *exchange_cells(
                line, with_session=member.number in crowded, brief=0 < width < WIDE_TERMINAL
            ),
        )
        for member, line in _count_findings(rows, _ending_readers(several))
    )
    yield from table_lines(("FILE", *EXCHANGE_COLUMNS), cells, room)


def _ending_readers(several: MultiReader) -> dict[int, EndingReader]:
    return {member.number: EndingReader(member.recording) for member in several.members}


def _count_findings(
    rows: Iterator[tuple[MultiReaderFile, ExchangeRow]], endings: dict[int, EndingReader]
) -> Iterator[tuple[MultiReaderFile, ExchangeLine]]:
    while page := list(itertools.islice(rows, ROWS_PER_READ)):
        for member, run in itertools.groupby(page, key=lambda each: each[0]):
            lines = exchange_lines(
                member.recording, [row for _, row in run], endings=endings[member.number]
            )
            yield from ((member, line) for line in lines)


def _files_with_several_sessions(several: MultiReader) -> set[int]:
    """Return the files of which more than one session is shown: a number alone does not name an
    exchange of theirs."""
    return {member.number for member, own in several.own_sessions() if len(own) > 1}


def list_tasks(several: MultiReader, *, as_json: bool, where: str = "") -> None:
    """Print each task once with the files that recorded it, or the tasks of matching exchanges."""
    groups: Iterable[list[TaskSighting]] = several.read_tasks()
    if where:
        groups = list(_matching_groups(several, groups, where))
        if not groups:
            print_no_match(where)
            return
    if as_json:
        for group in groups:
            print_json(
                {
                    "task_id": group[0].row.task.task_id,
                    "seen": [_sighting_object(sighting) for sighting in group],
                }
            )
        return
    width = terminal_width()
    room = (
        TableLimits(width, _FILE_CELLS, (("FILES", 12), *TASK_SHRINK_ORDER), SHORTENED)
        if width
        else None
    )
    crowded = _files_with_several_sessions(several)
    rows = (_task_group_cells(group, crowded) for group in groups)
    for line in table_lines((*TASK_COLUMNS[:1], "FILES", *TASK_COLUMNS[1:]), rows, room):
        print_line(line)


def _matching_groups(
    several: MultiReader, groups: Iterable[list[TaskSighting]], where: str
) -> Iterator[list[TaskSighting]]:
    keys = [
        set(member.recording.get_queryable().select_ids(where, Rows.EXCHANGES))
        for member in several.members
    ]
    for group in groups:
        calls = ((sighting, number) for sighting in group for number in sighting.row.task.exchanges)
        if any(
            make_key(sighting.row.session, number) in keys[sighting.member.number]
            for sighting, number in calls
        ):
            yield group


def _sighting_object(sighting: TaskSighting) -> dict[str, object]:
    return {"file": sighting.member.recording.path, **task_object(sighting.row)}


def _task_group_cells(group: list[TaskSighting], several_sessions: set[int]) -> tuple[str, ...]:
    """Return the cells of a task: its state from the session with the latest news, completed by the
    other sessions."""
    last = max((sighting.row.task for sighting in group), key=lambda task: task.last)
    changes = sorted({change for sighting in group for change in sighting.row.task.states})
    states = [state for state, _ in itertools.groupby(state for _, state in changes)]
    names = {
        artifact.name or artifact.artifact_id: None
        for sighting in group
        for artifact in sighting.row.task.artifacts
    }
    marks = (
        f"{sighting.member.name}#"
        f"{f'{sighting.row.session}:' if sighting.member.number in several_sessions else ''}"
        f"{number}"
        for sighting in group
        for number in sighting.row.task.exchanges
    )
    return (
        make_visible(last.task_id),
        make_visible(", ".join(dict.fromkeys(sighting.member.name for sighting in group))),
        state_label(last.state),
        make_visible(
            text.shorten_id(
                next(
                    (
                        sighting.row.task.context_id
                        for sighting in group
                        if sighting.row.task.context_id
                    ),
                    "",
                )
            )
        ),
        make_visible(", ".join(dict.fromkeys(sighting.row.task.agent for sighting in group))),
        " > ".join(state_label(state) for state in states),
        ", ".join(map(make_visible, names)),
        make_visible(" ".join(marks)),
    )
