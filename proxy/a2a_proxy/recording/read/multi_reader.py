"""Several recordings read as one: their rows ordered by time, their tasks joined. One recording is
a special case.

Nothing is copied or indexed: each file is read in pages as usual, and the pages are merged. So
files that are being written can be followed, and memory does not grow with their size.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, SessionRow, TaskRow
from a2a_proxy.recording.store.codec import pack_uuid, unpack_ident, unpack_text

_SUFFIXES = (".a2a.db", ".a2a.jsonl")

_TASKS = """SELECT t.id, t.session,
    CASE WHEN t.ident < 0 THEN CAST(-1 - t.ident AS TEXT) ELSE i.value END, a.value,
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


OwnSessions = list[tuple[MultiReaderFile, set[int]]]
"""Files, each with the numbers of its sessions that are read from it."""

_File = TypeVar("_File")


class MultiReader:
    """The files, open for reading. Not for two threads at once.

    Raises RecordingError on opening, in which case no file stays open.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]] = ()) -> None:
        self.members: list[MultiReaderFile] = []
        self.homes: dict[str, int] = {}
        """Number of the file from which a session must be read, by the session's UUID."""
        try:
            for path, name in zip(paths, short_names(paths), strict=True):
                self.add_file(len(self.members), open_recording_or_cassette(path), name)
        except BaseException:
            self.close()
            raise

    @classmethod
    def of_recordings(cls, recordings: Iterable[Recording]) -> MultiReader:
        """Return a reader of recordings that are open already."""
        several = cls()
        for number, recording in enumerate(recordings):
            several.add_file(number, recording)
        return several

    def add_file(self, number: int, recording: Recording, name: str = "") -> None:
        """Add one more file."""
        self.members.append(MultiReaderFile(number, name, recording))

    def close(self) -> None:
        """Close all files."""
        for member in self.members:
            member.recording.close()

    def __enter__(self) -> MultiReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read_sessions(self) -> list[tuple[MultiReaderFile, SessionRow]]:
        """Return all sessions by start time. A session in several files is taken from its file in
        `homes`, or else from the file that has most of it.
        """
        best: dict[str, tuple[MultiReaderFile, SessionRow]] = {}
        for member in self.members:
            for row in member.recording.read_sessions():
                uuid = row.facts.uuid
                if self.homes.get(uuid, member.number) != member.number:
                    continue
                if uuid not in best or _session_extent(member, row) > _session_extent(*best[uuid]):
                    best[uuid] = member, row
        return sorted(
            best.values(), key=lambda each: (each[1].facts.started, each[0].number, each[1].id)
        )

    def own_sessions(self) -> OwnSessions:
        """Return each file with its sessions, without sessions of which another file has more."""
        return self.group_by_file(self.read_sessions())

    def group_by_file(self, sessions: list[tuple[MultiReaderFile, SessionRow]]) -> OwnSessions:
        """Return each file with those of its sessions that are in `sessions`."""
        own: dict[int, set[int]] = {member.number: set() for member in self.members}
        for member, row in sessions:
            own[member.number].add(row.id)
        return [(member, own[member.number]) for member in self.members]

    def read_exchanges(self, where: str = "") -> Iterator[tuple[MultiReaderFile, ExchangeRow]]:
        """Yield all exchanges, or the exchanges that match a filter expression, by the time of
        their first byte.

        Raises the errors of `Recording.find_exchanges`.
        """
        if not where:
            return exchanges_by_time(
                self.read_sessions(),
                lambda member, session: member.recording.read_exchanges(session),
            )

        from a2a_proxy.recording.query.parser import parse_expression

        node = parse_expression(where)
        return exchanges_by_time(
            self.read_sessions(),
            lambda member, session: member.recording.find_exchanges(node, session),
        )

    def read_frames(
        self, where: str = "", *, payloads: bool = True
    ) -> Iterator[tuple[MultiReaderFile, FrameRow]]:
        """Yield all frames by the time of their last byte.

        Frames of one file stay in the order in which they were stored.

        Raises the errors of `Recording.find_frames`.
        """

        def read_frames(member: MultiReaderFile) -> Iterator[FrameRow]:
            recording = member.recording
            if where:
                return recording.find_frames(where, payloads=payloads)
            return recording.frames_after(0, payloads=payloads)

        return frames_by_time(self.own_sessions(), read_frames)

    def read_tasks(self) -> Iterator[list[TaskSighting]]:
        """Yield each task once, by its first appearance, with its version in each session of each
        file, the earliest first.

        A UUID names the same task in every file. Any other id does so only for agents of the same
        name, because two agents may both have a task 1.
        """
        for rows in self._join_tasks():
            sightings = (self._read_sighting(each.member, each.row) for each in rows)
            if existing := [each for each in sightings if each is not None]:
                yield existing

    def read_task(self, task_id: str) -> list[TaskSighting]:
        """Return the versions of this task in all sessions and files, the earliest first.

        If several agents have a task of this id, the agent that appears first is chosen.
        """
        sightings = find_task(self.own_sessions(), task_id)
        return [
            each
            for each in sightings
            if pack_uuid(task_id) or each.row.task.agent == sightings[0].row.task.agent
        ]

    def task_states(self) -> Counter[int]:
        """Return the number of tasks in each state (see `TaskState`), as of the latest session of
        each task."""
        return Counter(max(rows, key=lambda each: each.last).state for rows in self._join_tasks())

    def _join_tasks(self) -> list[list[_TaskView]]:
        """Return the rows of each task, by the time of its first appearance."""
        groups: dict[tuple[str, str], list[_TaskView]] = {}
        for place, (member, own) in enumerate(self.own_sessions()):
            for number, session, ident, agent, first, last, state in member.recording.db.execute(
                _TASKS
            ).fetchall():
                if session in own:
                    task = unpack_ident(ident)
                    home = "" if pack_uuid(task) else unpack_text(agent)
                    groups.setdefault((task, home), []).append(
                        _TaskView(first, place, number, last, state)
                    )
        return sorted(map(sorted, groups.values()))

    def _read_sighting(self, place: int, row_id: int) -> TaskSighting | None:
        member = self.members[place]
        row = member.recording.task_row(row_id)
        return TaskSighting(member, row) if row is not None else None


def _session_extent(member: MultiReaderFile, row: SessionRow) -> tuple[bool, int]:
    return bool(row.how), member.recording.count_rows(row.id).frames


def find_task(own_sessions: OwnSessions, task_id: str) -> list[TaskSighting]:
    """Return the versions of the tasks of this id, of all agents, in these sessions, the earliest
    first."""
    sightings = [
        TaskSighting(member, row)
        for member, own in own_sessions
        for row in member.recording.read_task(task_id)
        if row.session in own
    ]
    return sorted(sightings, key=lambda each: each.row.task.first)


def exchanges_by_time(
    sessions: Sequence[tuple[_File, SessionRow]],
    read: Callable[[_File, int], Iterator[ExchangeRow]],
) -> Iterator[tuple[_File, ExchangeRow]]:
    """Yield the exchanges that `read` returns of `sessions`, which are ordered by start time.

    No session is read before its start is reached.
    """
    waiting = deque(enumerate(sessions))
    heap: list[tuple[int, int, _File, ExchangeRow, Iterator[ExchangeRow]]] = []
    while waiting or heap:
        while waiting and (not heap or waiting[0][1][1].facts.started <= heap[0][0]):
            place, (file, session) = waiting.popleft()
            rows = read(file, session.id)
            if (first := next(rows, None)) is not None:
                heapq.heappush(heap, (first.exchange.started, place, file, first, rows))
        if heap:
            _, place, file, row, rows = heap[0]
            yield file, row
            if (after := next(rows, None)) is not None:
                heapq.heapreplace(heap, (after.exchange.started, place, file, after, rows))
            else:
                heapq.heappop(heap)


def frames_by_time(
    own_sessions: Iterable[tuple[_File, set[int]]], read: Callable[[_File], Iterator[FrameRow]]
) -> Iterator[tuple[_File, FrameRow]]:
    """Yield the frames that `read` returns of each file, if they are of these sessions:
    `MultiReader.read_frames`."""
    streams = [_own_frames(file, own, read(file)) for file, own in own_sessions]
    return heapq.merge(*streams, key=lambda each: each[1].frame.at)


def _own_frames(
    file: _File, own: set[int], rows: Iterator[FrameRow]
) -> Iterator[tuple[_File, FrameRow]]:
    return ((file, row) for row in rows if row.session in own)


def short_names(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return a name for each file: without its extension, preceded by as many folders as make it
    unique."""
    files = [Path(path).absolute() for path in paths]
    names = {file: _file_stem(file) for file in files}
    for depth in range(1, max((len(file.parts) for file in files), default=0)):
        taken = list(names.values())
        names = {
            file: name if taken.count(name) == 1 else "/".join(file.parts[-depth:])
            for file, name in names.items()
        }
    return [names[file] for file in files]


def _file_stem(file: Path) -> str:
    ending = next((ending for ending in _SUFFIXES if file.name.endswith(ending)), file.suffix)
    return file.name.removesuffix(ending) or file.name
