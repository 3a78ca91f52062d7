"""Several recordings read as one: their rows ordered by time, their tasks joined. One recording is a special case.

Nothing is copied or indexed: each file is read in pages as usual, and the pages are merged. So files that are being
written can be followed, and memory does not grow with their size.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, SessionRow, TaskRow
from a2a_proxy.recording.store.codec import pack_uuid, unpack_ident, unpack_text

if TYPE_CHECKING:
    from a2a_proxy.recording.query.tree import Node

_SUFFIXES = (".a2a.db", ".a2a.jsonl")

_TASKS = """SELECT t.id, t.session, CASE WHEN t.ident < 0 THEN CAST(-1 - t.ident AS TEXT) ELSE i.value END, a.value,
    s.started + t.first AS first, s.started + t.last AS last, t.state
  FROM task t JOIN session s ON s.id = t.session
    LEFT JOIN ident i ON i.id = t.ident LEFT JOIN text a ON a.id = t.agent"""


class MultiReaderFile(msgspec.Struct, frozen=True):
    """One of the files."""

    number: int
    """From 0, in the order of the command line."""
    name: str
    """Short unique name: the file's name without its extension."""
    recording: Recording


class TaskSighting(msgspec.Struct, frozen=True):
    """A task as one session of one file has it."""

    member: MultiReaderFile
    row: TaskRow


class _TaskView(NamedTuple):
    """Location of a task, with the fields needed for counting."""

    first: int
    member: int
    row: int
    last: int
    state: int


class MultiReader:
    """The files, open for reading. Not for two threads at once.

    Raises RecordingError on opening, in which case no file stays open.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        members: list[MultiReaderFile] = []
        try:
            for number, name in enumerate(short_names(paths)):
                members.append(MultiReaderFile(number, name, open_recording_or_cassette(paths[number])))
        except BaseException:
            for member in members:
                member.recording.close()
            raise
        self.members = tuple(members)

    def close(self) -> None:
        """Close all files."""
        for member in self.members:
            member.recording.close()

    def __enter__(self) -> MultiReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sessions(self) -> list[tuple[MultiReaderFile, SessionRow]]:
        """Return all sessions by start time. A session in several files is taken from the file that has most of it."""
        found = best_sessions(self.members)
        return sorted(found, key=lambda each: (each[1].facts.started, each[0].number, each[1].id))

    def exchanges(self, where: str = "") -> Iterator[tuple[MultiReaderFile, ExchangeRow]]:
        """Yield all exchanges, or the exchanges that match a filter expression, by the time of their first byte.

        Raises the errors of `Recording.find_exchanges`.
        """
        if not where:
            return _exchanges_by_time(self.sessions(), None)

        from a2a_proxy.recording.query.parser import parse

        return _exchanges_by_time(self.sessions(), parse(where))

    def frames(self, where: str = "", *, payloads: bool = True) -> Iterator[tuple[MultiReaderFile, FrameRow]]:
        """Yield all frames by the time of their last byte.

        Frames of one file stay in the order in which they were stored.

        Raises the errors of `Recording.find_frames`.
        """
        return frames_by_time(zip(self.members, self.own_sessions(), strict=True), where, payloads=payloads)

    def tasks(self) -> Iterator[list[TaskSighting]]:
        """Yield each task once, by its first appearance, with its version in each session of each file, the earliest
        first.

        A UUID names the same task in every file. Any other id does so only for agents of the same name, because two
        agents may both have a task 1.
        """
        for rows in self._join_tasks():
            seen = (self._read_sighting(each.member, each.row) for each in rows)
            if known := [each for each in seen if each is not None]:
                yield known

    def task(self, task_id: str) -> list[TaskSighting]:
        """Return the versions of this task in all sessions and files, the earliest first.

        If several agents have a task of this id, the agent that appears first is chosen.
        """
        own = self.own_sessions()
        found = [
            TaskSighting(member, row)
            for member in self.members
            for row in member.recording.task(task_id)
            if row.session in own[member.number]
        ]
        found.sort(key=lambda seen: seen.row.task.first)
        return [seen for seen in found if pack_uuid(task_id) or seen.row.task.agent == found[0].row.task.agent]

    def task_states(self) -> Counter[int]:
        """Return the number of tasks in each state (see `TaskState`), as of the latest session of each task."""
        return Counter(max(rows, key=lambda each: each.last).state for rows in self._join_tasks())

    def _join_tasks(self) -> list[list[_TaskView]]:
        """Return the rows of each task, by the time of its first appearance."""
        own = self.own_sessions()
        groups: dict[tuple[str, str], list[_TaskView]] = {}
        for member in self.members:
            for number, session, ident, agent, first, last, state in member.recording.db.execute(_TASKS).fetchall():
                if session in own[member.number]:
                    task = unpack_ident(ident)
                    home = "" if pack_uuid(task) else unpack_text(agent)
                    groups.setdefault((task, home), []).append(_TaskView(first, member.number, number, last, state))
        return sorted(map(sorted, groups.values()))

    def own_sessions(self) -> list[set[int]]:
        """Return the session numbers of each file, without sessions of which another file has more."""
        own: list[set[int]] = [set() for _ in self.members]
        for member, row in self.sessions():
            own[member.number].add(row.id)
        return own

    def _read_sighting(self, number: int, row_id: int) -> TaskSighting | None:
        member = self.members[number]
        row = member.recording.task_row(row_id)
        return TaskSighting(member, row) if row is not None else None


def best_sessions(members: Iterable[MultiReaderFile]) -> list[tuple[MultiReaderFile, SessionRow]]:
    """Return each session once. A session in several files is taken from the file that has most of it."""
    best: dict[str, tuple[MultiReaderFile, SessionRow]] = {}
    for member in members:
        for row in member.recording.sessions():
            known = best.get(row.facts.uuid)
            if known is None or _session_extent(member, row) > _session_extent(*known):
                best[row.facts.uuid] = member, row
    return list(best.values())


def _session_extent(member: MultiReaderFile, row: SessionRow) -> tuple[bool, int]:
    return bool(row.how), member.recording.counts(row.id).frames


def _exchanges_by_time(
    sessions: list[tuple[MultiReaderFile, SessionRow]], node: Node | None
) -> Iterator[tuple[MultiReaderFile, ExchangeRow]]:
    """Yield exchanges of `sessions`, which are ordered by start time.

    No session is queried before its start is reached.
    """
    waiting = deque(enumerate(sessions))
    heap: list[tuple[int, int, MultiReaderFile, ExchangeRow, Iterator[ExchangeRow]]] = []
    while waiting or heap:
        while waiting and (not heap or waiting[0][1][1].facts.started <= heap[0][0]):
            place, (member, session) = waiting.popleft()
            recording = member.recording
            rows = recording.exchanges(session.id) if node is None else recording.find_exchanges(node, session.id)
            if (first := next(rows, None)) is not None:
                heapq.heappush(heap, (first.exchange.started, place, member, first, rows))
        if heap:
            _, place, member, row, rows = heap[0]
            yield member, row
            if (after := next(rows, None)) is not None:
                heapq.heapreplace(heap, (after.exchange.started, place, member, after, rows))
            else:
                heapq.heappop(heap)


def frames_by_time(
    sessions_by_member: Iterable[tuple[MultiReaderFile, set[int]]], where: str = "", *, payloads: bool = True
) -> Iterator[tuple[MultiReaderFile, FrameRow]]:
    """Yield frames of these sessions of each file; see `MultiReader.frames`."""
    merged = [_member_frames(member, sessions, where, payloads) for member, sessions in sessions_by_member]
    return heapq.merge(*merged, key=lambda each: each[1].frame.at)


def _member_frames(
    member: MultiReaderFile, sessions: set[int], where: str, payloads: bool
) -> Iterator[tuple[MultiReaderFile, FrameRow]]:
    recording = member.recording
    rows = recording.find_frames(where, payloads=payloads) if where else recording.frames_after(0, payloads=payloads)
    return ((member, row) for row in rows if row.session in sessions)


def short_names(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return a name for each file: without its extension, preceded by as many folders as make it unique."""
    files = [Path(path).absolute() for path in paths]
    names = {file: _file_stem(file) for file in files}
    for depth in range(1, max((len(file.parts) for file in files), default=0)):
        told = list(names.values())
        names = {file: name if told.count(name) == 1 else "/".join(file.parts[-depth:]) for file, name in names.items()}
    return [names[file] for file in files]


def _file_stem(file: Path) -> str:
    ending = next((ending for ending in _SUFFIXES if file.name.endswith(ending)), file.suffix)
    return file.name.removesuffix(ending) or file.name
