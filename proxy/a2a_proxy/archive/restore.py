"""Restore a task, a context, a trace or a time range from the archive as a recording.

The rows that contain the wanted identifiers determine the calls. Then these calls are restored
completely, from all segments that contain rows of them, together with the preceding call that
fetched the card of each agent: without it, rules about cards and a replay of the recording would
lack the description of the agent. Only row groups whose filters may contain a match are read.

Rebuilds selected calls of one session from its segments in a recording.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.files import ParquetFiles
from a2a_proxy.archive.manifest import Manifest, foreign_object_error
from a2a_proxy.archive.rows import read_frames, times_as_numbers
from a2a_proxy.archive.search import SegmentQuery, list_days, read_manifests
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.model.values import Changes, Connection, Exchange, Finding, Frame, Task
from a2a_proxy.protocol.completeness import CHOICE_PREFIX
from a2a_proxy.recording.cassette import json_objects
from a2a_proxy.recording.cassette.json_objects import Line
from a2a_proxy.recording.read.conversations import rebuild_segments
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionFacts, SessionRow
from a2a_proxy.recording.store.database import create_atomically
from a2a_proxy.recording.store.row_types import ROW_ERRORS
from a2a_proxy.recording.write.writer import Writer

_INDEX_COLUMNS = {"task": "task_id", "context": "context_id", "trace": "trace_id"}
_NEVER_ENDED = 1 << 62
"""End of a call that was still open, in ns: it may continue on any later day."""
_CARD_COLUMNS = ["time", "agent", "event", "exchange"]


_Value = TypeVar("_Value")


class RestoredCounts(msgspec.Struct, frozen=True):
    """Counts of a restored recording."""

    sessions: int
    exchanges: int
    frames: int
    segments: int
    """Number of segments that contributed frames."""
    gone: tuple[str, ...] = ()
    """Keys of files that may have contained more, and no longer exist."""


class _RestoredRows(NamedTuple):
    connections: list[Connection]
    exchanges: list[Exchange]
    tasks: list[Task]
    findings: list[Finding]


class SessionRebuild:
    """One session that is being written to a recording."""

    def __init__(
        self, files: ParquetFiles, segments: list[Manifest], numbers: set[int], selection: str
    ) -> None:
        """`segments`: the segments of the session in their order; `numbers`: the numbers of the
        selected calls."""
        self._files = files
        self._segments = segments
        self._numbers = numbers
        self._line = segments[-1].cut.line
        self._facts = msgspec.convert(self._line, SessionFacts)
        self._selection = selection
        self._used_segments: set[str] = set()
        self._tasks: set[str] = set()
        self._read_groups: set[tuple[str, int]] = set()
        """Row groups of `facts` that have been read, with the names of their segments."""

    def write_to(self, db: sqlite3.Connection) -> RestoredCounts:
        """Write the session to `db`. Raises ArchiveError, RecordingError."""
        writer = Writer.on_connection(db, self._facts)
        frames = self._write_frames(writer)
        known = self._newest_rows()
        writer.write([], known.findings, Changes(known.connections, known.exchanges, known.tasks))
        ended = self._line.get("ended")
        state = {name: self._line[name] for name in ("how", "complete", "lost", "edits")}
        over = 0 if ended is None else self._facts.started + ended
        row = SessionRow(id=writer.session, facts=self._facts, ended=over, how=state["how"])
        for changes in rebuild_segments(Recording.from_connection(db, "the recording"), row):
            writer.write([], [], changes)
        complete = state["complete"]
        reasons = [] if complete in ("", "complete") else [complete]
        if self._files.gone:
            reasons.append(
                f"files with more frames of it that are missing from the archive: "
                f"{len(self._files.gone)}"
            )
        writer.finish(
            over,
            **{**state, "complete": "; ".join((*reasons, f"{CHOICE_PREFIX}{self._selection}"))},
        )
        return RestoredCounts(1, len(known.exchanges), frames, len(self._used_segments))

    def _write_frames(self, writer: Writer) -> int:
        """Write the frames of the calls, segment by segment, and return their number."""
        wanted = {str(number) for number in self._numbers}
        count = 0
        for part in self._segments:
            groups = part.frames.groups_with("call", wanted)
            if not groups:
                continue
            table = self._files.read(part, "frames", groups)
            table = table.filter(
                pc.is_in(table.column("exchange"), pa.array(self._numbers, pa.int64()))
            )
            frames = self._convert_table(
                part, "frames", partial(_frames_of_table, table.sort_by("frame"))
            )
            self._tasks.update(frame.task_id for frame in frames)
            self._used_segments |= {part.cut.name} if frames else set()
            count += len(frames)
            writer.write(frames)
        return count

    def _newest_rows(self) -> _RestoredRows:
        """Return the newest rows of the calls and of their connections, tasks and findings."""
        start, numbers = self._facts.started, self._numbers
        newest = _NewestRows(numbers)
        self._read_facts(newest, "call", {str(number) for number in numbers})
        self._read_facts(newest, "task", self._tasks | newest.tasks)
        self._read_facts(newest, "call", {f"c{number}" for number in newest.connections})
        of = newest.list_lines()
        return _RestoredRows(
            [json_objects.read_line(Connection, line, start) for line in of["connection"]],
            [json_objects.read_line(Exchange, line, start) for line in of["exchange"]],
            [self._trim_task(json_objects.read_line(Task, line, start)) for line in of["task"]],
            [json_objects.read_line(Finding, line, start) for line in of["finding"]],
        )

    def _trim_task(self, task: Task) -> Task:
        kept = tuple(number for number in task.exchanges if number in self._numbers)
        return msgspec.structs.replace(task, exchanges=kept)

    def _read_facts(self, newest: _NewestRows, kind: str, idents: set[str]) -> None:
        """Add the rows of the row groups that may contain one of these identifiers. Each group is
        read once."""
        for part in self._segments:
            groups = [
                each
                for each in part.facts.groups_with(kind, idents)
                if (part.cut.name, each) not in self._read_groups
            ]
            self._read_groups.update((part.cut.name, each) for each in groups)
            table = self._files.read(part, "facts", groups, ["kind", "number", "line"])
            self._convert_table(part, "facts", partial(newest.add_rows, part.cut.number, table))

    def _convert_table(
        self, segment: Manifest, table: str, convert: Callable[[], _Value]
    ) -> _Value:
        try:
            return convert()
        except ROW_ERRORS as wrong:
            raise foreign_object_error(segment.cut.object_key(table)) from wrong


def _frames_of_table(table: pa.Table) -> list[Frame]:
    return [frame for _, _, frame in read_frames(table)]


class _NewestRows:
    """The newest rows of the selected calls, of their connections and tasks, and of the findings
    about them."""

    def __init__(self, numbers: set[int]) -> None:
        self._numbers = numbers
        self._lines: dict[tuple[str, Any], tuple[int, Line]] = {}
        self.tasks: set[str] = set()
        """Tasks that the calls name."""
        self.connections: set[int] = set()

    def add_rows(self, segment: int, table: pa.Table) -> None:
        """Add the rows of a segment."""
        for row in table.to_pylist():
            kind, line = row["kind"], json.loads(row["line"])
            name = kind, _line_value(kind, row["number"], line)
            if self._is_needed(kind, line) and self._lines.get(name, (0,))[0] <= segment:
                self._lines[name] = segment, line
            if kind == "exchange" and line["exchange"] in self._numbers:
                self.connections.add(line["connection"])
                self.tasks |= {line.get("task_id", "")} - {""}

    def _is_needed(self, kind: str, line: Line) -> bool:
        """Whether a row belongs to the selected calls.

        Connections are always kept: they are few, and the calls that name them may follow.
        """
        if kind == "task":
            return not self._numbers.isdisjoint(line.get("exchanges", ()))
        return kind == "connection" or line.get("exchange") in self._numbers

    def list_lines(self) -> dict[str, list[Line]]:
        """Return the newest lines by kind, in order."""
        of: dict[str, list[Line]] = defaultdict(list)
        for (kind, _), (_, line) in sorted(self._lines.items(), key=lambda each: each[0]):
            if kind != "connection" or line["connection"] in self.connections:
                of[kind].append(line)
        return of


def _line_value(kind: str, number: int, line: Line) -> Any:
    if kind == "task":
        return line["agent"], line["task"]
    if (
        kind == "finding"
    ):  # numbers repeat if a recording was deleted and started again during the run
        return number, line["at"], line["finding"], line.get("exchange", 0)
    return number


class CallSelection(msgspec.Struct):
    """The selected calls of a session."""

    numbers: set[int] = msgspec.field(default_factory=set)
    since: int = 1 << 62
    until: int = 0
    first: dict[str, int] = msgspec.field(default_factory=dict)
    """Time of the first selected call of each agent, in ns."""


def restore_recording(
    store: ArchiveStore, query: SegmentQuery, selection: str, path: Path
) -> RestoredCounts:
    """Write a recording with all calls that match `query`. `selection` describes them to readers of
    the recording.

    Raises:
        ArchiveError: nothing matches, or the archive cannot be read.
        RecordingError: the file exists, or cannot be written.
    """
    known = {
        each.cut.name: each
        for each in read_manifests(store, list_days(store, query.since, query.until))
    }
    files = ParquetFiles(store)
    calls = _select_calls(files, [each for each in known.values() if query.may_be_in(each)], query)
    if not calls:
        hint = "list the segments: a2a-inspect archive ls"
        raise ArchiveError(
            f"{store.url} has no frames of {selection}{_gone_files_note(files)}", hint
        )
    since, until = (
        min(each.since for each in calls.values()),
        max(each.until for each in calls.values()),
    )
    more = [
        day
        for day in list_days(store, since, until)
        if not any(each.cut.day == day for each in known.values())
    ]
    known |= {each.cut.name: each for each in read_manifests(store, more)}
    parts: dict[str, list[Manifest]] = defaultdict(list)
    for each in sorted(known.values(), key=lambda each: each.cut.number):
        if each.cut.session in calls:
            parts[each.cut.session].append(each)
    with create_atomically(path) as db:
        counts = [
            _make_rebuild(files, parts[uuid], calls[uuid], selection).write_to(db)
            for uuid in sorted(parts, key=lambda uuid: (parts[uuid][-1].cut.line["started"], uuid))
        ]
    return RestoredCounts(
        sessions=len(counts),
        exchanges=sum(each.exchanges for each in counts),
        frames=sum(each.frames for each in counts),
        segments=sum(each.segments for each in counts),
        gone=tuple(sorted(files.gone)),
    )


def _make_rebuild(
    files: ParquetFiles, segments: list[Manifest], calls: CallSelection, selection: str
) -> SessionRebuild:
    cards = _cards_before(files, reversed(segments), calls.first) - calls.numbers
    return SessionRebuild(
        files,
        segments,
        calls.numbers | cards,
        f"{selection}, with the agent card before it" if cards else selection,
    )


def _gone_files_note(files: ParquetFiles) -> str:
    """Return a remark on missing files, so that an empty result is not taken as proof."""
    return (
        f"; files that may have had it are missing: {len(files.gone)}, first {min(files.gone)}"
        if files.gone
        else ""
    )


def _select_calls(
    files: ParquetFiles, manifests_: list[Manifest], query: SegmentQuery
) -> dict[str, CallSelection]:
    """Return the calls that have a matching row, by session."""
    found: dict[str, CallSelection] = defaultdict(CallSelection)
    for manifest in manifests_:
        columns = ["time", "agent", "exchange", *_INDEX_COLUMNS.values()]
        frames = _matching_rows(files, manifest, "frames", query, columns)
        facts = _matching_rows(files, manifest, "facts", query, ["kind", "ended", *columns])
        for table in (frames, facts):
            for row in table.to_pylist():
                if row["exchange"] and row.get("kind", "exchange") == "exchange":
                    _add_call(found[manifest.cut.session], row)
    return dict(found)


def _add_call(calls: CallSelection, row: dict[str, Any]) -> None:
    calls.numbers.add(row["exchange"])
    calls.since = min(calls.since, row["time"])
    if row["agent"]:
        calls.first[row["agent"]] = min(calls.first.get(row["agent"], _NEVER_ENDED), row["time"])
    ended = (row["ended"] or _NEVER_ENDED) if "ended" in row else 0
    calls.until = max(calls.until, row["time"], ended)


def _matching_rows(
    files: ParquetFiles, manifest: Manifest, table: str, query: SegmentQuery, columns: list[str]
) -> pa.Table:
    """Return the rows of a file that satisfy every condition of the query."""
    file = manifest.stored_file(table)
    groups = set(range(len(file.groups)))
    for kind, ident in query.idents:
        groups &= set(file.groups_with(kind, {ident}))
    rows = times_as_numbers(files.read(manifest, table, sorted(groups), columns))
    for kind, ident in query.idents:
        rows = rows.filter(pc.equal(rows.column(_INDEX_COLUMNS[kind]), ident))
    late = rows.column("ended") if table == "facts" else rows.column("time")
    lasts = pc.fill_null(late, query.until)
    return rows.filter(
        pc.and_(
            pc.greater_equal(lasts, query.since), pc.less_equal(rows.column("time"), query.until)
        )
    )


def _cards_before(
    files: ParquetFiles, parts: Iterable[Manifest], first: dict[str, int]
) -> set[int]:
    """Return the numbers of the last card calls before the selected calls.

    `first` maps an agent to the time of its first selected call, in ns. `parts` are the segments of
    one session, the newest first. Raises ArchiveError if a segment cannot be read.
    """
    left, found = dict(first), set[int]()
    for part in parts:
        for agent, before in list(left.items()):
            call = (
                _last_card_call(files, part, agent, before)
                if part.cut.since <= before and agent in part.cards
                else None
            )
            if call is not None:
                found.add(call)
                del left[agent]
    return found


def _last_card_call(files: ParquetFiles, part: Manifest, agent: str, before: int) -> int | None:
    """Return the number of the last card call of `agent` in a segment at or before `before` (ns),
    or None.

    Frames of cards name no task, so they are last in a file, sorted by frame number.
    """
    for group in reversed(range(len(part.frames.groups))):
        rows = times_as_numbers(files.read(part, "frames", [group], _CARD_COLUMNS))
        rows = rows.filter(
            pc.and_(pc.equal(rows.column("event"), "card"), pc.equal(rows.column("agent"), agent))
        )
        rows = rows.filter(pc.less_equal(rows.column("time"), before))
        if rows.num_rows:
            return int(rows.column("exchange")[-1].as_py())
    return None
