"""Continuous joining of several recordings into one, in the order of time.

Everything becomes one session, so that the calls of all files are in one order, a task of an agent
that several files contain is one task, and every view of a recording shows all files together.

One of the joined recordings: its rows that are new since the last poll.
"""

import contextlib
import heapq
import itertools
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import reduce
from operator import attrgetter, itemgetter
from typing import Any

from a2a_proxy.model.values import (
    Changes,
    Connection,
    Exchange,
    Finding,
    Frame,
    Handoff,
    Interruption,
    Note,
    Segment,
    Task,
)
from a2a_proxy.protocol.segments.tracker import SegmentTracker
from a2a_proxy.recording.joined.numbers import NumberMap, Origin
from a2a_proxy.recording.read.conversations import ClientExchange
from a2a_proxy.recording.read.cursor import RowCursor
from a2a_proxy.recording.read.multi_reader import (
    MultiReader,
    OwnSessions,
    exchanges_by_time,
    find_task,
    frames_by_time,
)
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import (
    ExchangeRow,
    FrameRow,
    SessionFacts,
    SessionRow,
    make_key,
    split_key,
)
from a2a_proxy.recording.store.database import open_private
from a2a_proxy.recording.write.task_merge import merge_tasks
from a2a_proxy.recording.write.writer import Writer

_REUSED_NUMBER_BASE = 1 << 20
"""More than the number of sessions in any file."""


class JoinedMember:
    """Cursors into a recording. Rows that can still change are returned again until they no longer
    can."""

    def __init__(self, number: int, recording: Recording) -> None:
        self.number = number
        self.recording = recording
        self._version = -1
        self._frames, self._findings = (
            RowCursor(recording, "frame"),
            RowCursor(recording, "finding"),
        )
        self._uuids: dict[int, str] = {}
        self._reused_numbers: dict[int, int] = {}
        """Replacement for the number of a session that was pruned, and whose number was reused."""
        self._exchanges: dict[int, int] = {}
        self._connections: dict[int, int] = {}
        self._open: set[int] = set()
        self._live: set[int] = set()
        self._last_connection: tuple[int, Connection | None] = (0, None)

    @property
    def has_changed(self) -> bool:
        """Whether the file has changed since `begin_look`. True before its first call."""
        return self._version != self.recording.data_version()

    def begin_look(self) -> None:
        """Begin a poll: the current content is about to be copied."""
        self._version = self.recording.data_version()

    def find_origin(self, session: int) -> Origin:
        """Return the origin of a row of this session."""
        return self.number, self._reused_numbers.get(session, session)

    def check_number(self, row: SessionRow) -> None:
        """Start again with this session if its number was reused. Call it for each session of a
        poll."""
        before = self._uuids.get(row.id, row.facts.uuid)
        self._uuids[row.id] = row.facts.uuid
        if before != row.facts.uuid:
            self._reused_numbers[row.id] = _REUSED_NUMBER_BASE + len(self._reused_numbers)
            self._exchanges.pop(row.id, None)
            self._connections.pop(row.id, None)

    def new_exchanges(self, session: int) -> Iterator[ExchangeRow]:
        """Yield new exchanges, by the time of their first byte."""
        for row in self.recording.read_exchanges(
            session, after=self._exchanges.get(session, make_key(session, 0))
        ):
            self._exchanges[session] = row.key
            self.watch_if_open(row)
            yield row

    def open_exchanges(self) -> Iterator[ExchangeRow]:
        """Yield the exchanges that were open at the last poll, in their current state."""
        for number in sorted(self._open):
            row = self.recording.read_exchange(number)
            if row is not None:
                self.watch_if_open(row)
                yield row

    def watch_if_open(self, row: ExchangeRow) -> None:
        """Include the exchange in later polls while it is open."""
        (self._open.discard if row.exchange.closed else self._open.add)(row.key)

    def new_frames(self) -> Iterator[FrameRow]:
        """Yield new frames."""
        for row in self.recording.frames_after(self._frames.begin_look()):
            self._frames.advance_to(row.id, row.session)
            yield row
        self._frames.end_look()

    def new_findings(self, sessions: set[int]) -> Iterator[tuple[Origin, Finding]]:
        """Yield new findings of these sessions."""
        for row in self.recording.read_findings(after=self._findings.begin_look()):
            self._findings.advance_to(row.id, row.session)
            if row.session in sessions:
                yield self.find_origin(row.session), row.finding
        self._findings.end_look()

    def read_connection(self, number: int) -> Connection | None:
        """Return the connection of this key, or None. The most recent one is cached."""
        if self._last_connection[0] != number:
            row = self.recording.read_connection(number)
            self._last_connection = number, row.connection if row is not None else None
        return self._last_connection[1]

    def new_connections(self, session: int) -> Iterator[Connection]:
        """Yield new connections, and those that were open at the last poll."""
        again = [number for number in sorted(self._live) if split_key(number)[0] == session]
        found = (
            row for number in again if (row := self.recording.read_connection(number)) is not None
        )
        new = self.recording.read_connections(session, after=self._connections.get(session, 0))
        for row in itertools.chain(found, new):
            self._connections[session] = max(row.key, self._connections.get(session, 0))
            (self._live.discard if row.connection.closed else self._live.add)(row.key)
            yield row.connection


_BATCH_FRAMES = 500
"""Frames of a transaction. The screen shows them while the next ones are read."""
_BATCH_BYTES = 4 << 20
_MAX_KEPT_EXCHANGES = 65_536
"""Exchanges for which frames may still arrive."""

_Copy = Callable[[JoinedMember, Any], None]


@contextlib.contextmanager
def join_recordings(several: MultiReader) -> Iterator[tuple[Recording, NumberMap]]:
    """Yield one recording of all files in their current state, and its numbering. It is in memory
    while it is small, and deleted at the end of the block.

    Takes 30 us of processor time for each frame. Raises RecordingError if a file cannot be read.
    """
    sessions = [row for _, row in several.read_sessions()]
    started = sessions[0].facts.started if sessions else 0
    with contextlib.closing(open_private()) as db:
        writer = Writer.on_connection(
            db, SessionFacts(uuid=str(uuid.uuid4()), tool="", started=started)
        )
        joiner = Joiner(writer, len(several.members))
        for member in several.members:
            joiner.add_file(member.number, member.recording)
        joiner.copy_new_rows()
        if sessions and all(row.how for row in sessions):
            joiner.end_segments(max(row.ended for row in sessions))
        yield Recording.from_connection(db, "the joined recording"), joiner.numbers


class Joiner:
    """Writes the joined recording through `writer`. `files` is the number of all files, including
    those added later."""

    def __init__(self, writer: Writer, files: int) -> None:
        self.writer = writer
        self.numbers = NumberMap(files)
        """New numbers of exchanges and connections."""
        self._reader = MultiReader()
        self._members: dict[int, JoinedMember] = {}
        self._own: OwnSessions = []
        """Sessions that are taken from each file."""
        self._segment_builder = _SegmentBuilder()
        self._batch = _JoinBatch()
        self._tasks: set[str] = set()
        """Ids of tasks that have changed."""

    def add_file(self, number: int, recording: Recording) -> None:
        """Add one more file. `number` is its index among all files."""
        self._reader.add_file(number, recording)
        self._members[number] = JoinedMember(number, recording)

    def has_changed(self) -> bool:
        """Whether any file has new rows."""
        return any(member.has_changed for member in self._members.values())

    def read_sessions(self) -> list[SessionRow]:
        """Return the sessions of all files."""
        return [row for _, row in self._reader.read_sessions()]

    def copy_new_rows(self) -> bool:
        """Copy new rows, and return False if there were no new rows.

        Raises:
            RecordingError: a file cannot be read, or the joined recording cannot be written.
        """
        changed = {number: member for number, member in self._members.items() if member.has_changed}
        if not changed:
            return False
        for member in changed.values():
            member.begin_look()
        sessions = self._reader.read_sessions()
        self._own = self._reader.group_by_file(sessions)
        self._reader.homes |= {row.facts.uuid: file.number for file, row in sessions}
        rows = [(changed[file.number], row) for file, row in sessions if file.number in changed]
        for member, row in rows:
            member.check_number(row)
        own = [
            (changed[file.number], numbers) for file, numbers in self._own if file.number in changed
        ]
        self._put_conversation(rows, own)
        for member, numbers in own:
            for exchange in member.open_exchanges():
                self._put_exchange(member, exchange)
            self._batch.findings += [
                self.numbers.renumber_place(of, finding)
                for of, finding in member.new_findings(numbers)
            ]
            for session in numbers:
                self._put_connections(member, session)
        self._put_tasks()
        self._flush_batch()
        return True

    def _put_conversation(
        self,
        sessions: list[tuple[JoinedMember, SessionRow]],
        own: list[tuple[JoinedMember, set[int]]],
    ) -> None:
        """Add frames by time, each after the exchanges that began before it."""
        exchanges: Iterator[tuple[int, _Copy, JoinedMember, Any]] = (
            (row.exchange.started, self._put_exchange, member, row)
            for member, row in exchanges_by_time(sessions, JoinedMember.new_exchanges)
        )
        frames: Iterator[tuple[int, _Copy, JoinedMember, Any]] = (
            (row.frame.at, self._put_frame, member, row)
            for member, row in frames_by_time(own, JoinedMember.new_frames)
        )
        for _, copy, member, row in heapq.merge(exchanges, frames, key=itemgetter(0)):
            copy(member, row)

    def _put_exchange(self, member: JoinedMember, row: ExchangeRow) -> None:
        value = self.numbers.renumber_exchange(member.find_origin(row.session), row.exchange)
        self._batch.exchanges[value.id] = value
        self._segment_builder.update_exchange(
            value, member.read_connection(make_key(row.session, row.exchange.connection))
        )
        self._tasks.add(value.task_id)

    def _put_frame(self, member: JoinedMember, row: FrameRow) -> None:
        of, frame = member.find_origin(row.session), row.frame
        if frame.exchange and not self.numbers.has_exchange(of, frame.exchange):
            exchange = member.recording.read_exchange(
                row.exchange_key
            )  # it began while the frames were read
            if exchange is not None:
                member.watch_if_open(exchange)
                self._put_exchange(member, exchange)
        self._tasks.add(frame.task_id)
        renumbered = self.numbers.renumber_place(of, frame)
        self._segment_builder.add_frame(renumbered)
        self._batch.add_frame(renumbered)
        if self._batch.is_full:
            self._flush_batch()

    def _put_connections(self, member: JoinedMember, session: int) -> None:
        of = member.find_origin(session)
        connections = [
            self.numbers.renumber_connection(of, value) for value in member.new_connections(session)
        ]
        self._batch.connections += connections

    def _put_tasks(self) -> None:
        """Add each changed task merged from all files, one for each agent that has it, in order of
        first appearance."""
        tasks: list[Task] = []
        for task_id in self._tasks - {""}:
            views: dict[str, list[Task]] = {}
            for seen in find_task(self._own, task_id):
                of = self._members[seen.member.number].find_origin(seen.row.session)
                view = self.numbers.renumber_task(of, seen.row.task)
                views.setdefault(view.agent, []).append(view)
            tasks += (reduce(merge_tasks, of_agent) for of_agent in views.values())
        self._batch.tasks += sorted(tasks, key=attrgetter("first"))
        self._tasks = set()

    def copied_notes(self) -> list[Note]:
        """Return the notes about exchanges and frames that have been copied."""
        return [
            self.numbers.renumber_note(
                self._members[file.number].find_origin(row.session), row.note
            )
            for file, own in self._own
            for row in file.recording.read_notes()
            if row.session in own and row.note.exchange
        ]

    def _flush_batch(self) -> None:
        batch, self._batch = self._batch, _JoinBatch()
        states = Changes(
            batch.connections,
            list(batch.exchanges.values()),
            batch.tasks,
            *self._segment_builder.take_changes(),
        )
        self.writer.write(batch.frames, batch.findings, states)

    def end_segments(self, at: int) -> None:
        """End all segments and write the rest. All sessions have ended, the last one at `at`
        (ns)."""
        self._segment_builder.end_segments(at)
        self._flush_batch()


class _SegmentBuilder:
    """Builds segments from the frames of known exchanges of all files, so that hand-offs between
    files are found."""

    def __init__(self) -> None:
        self._tracker = SegmentTracker()
        self._exchanges: OrderedDict[int, ClientExchange] = OrderedDict()

    def update_exchange(self, value: Exchange, connection: Connection | None) -> None:
        """Add an exchange, or update it, with its connection."""
        self._exchanges[value.id] = ClientExchange.on_connection(value, connection)
        if len(self._exchanges) > _MAX_KEPT_EXCHANGES:
            self._exchanges.popitem(last=False)

    def add_frame(self, frame: Frame) -> None:
        """Add the next frame."""
        found = self._exchanges.get(frame.exchange)
        if found is not None:
            self._tracker.apply_frame(frame, found.exchange, found)

    def end_segments(self, at: int) -> None:
        """End all segments: no frames follow after `at` (ns)."""
        self._tracker.end_session(at)

    def take_changes(self) -> tuple[list[Segment], list[Interruption], list[Handoff]]:
        """Return the segments, interruptions and hand-offs that have changed since the last
        call."""
        return self._tracker.pop_changes()


class _JoinBatch:
    """Rows of one transaction."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.findings: list[Finding] = []
        self.exchanges: dict[int, Exchange] = {}
        self.connections: list[Connection] = []
        self.tasks: list[Task] = []
        self._payload_bytes = 0

    def add_frame(self, frame: Frame) -> None:
        """Add one frame."""
        self.frames.append(frame)
        self._payload_bytes += len(frame.payload)

    @property
    def is_full(self) -> bool:
        """Whether there is enough for one transaction."""
        return len(self.frames) >= _BATCH_FRAMES or self._payload_bytes >= _BATCH_BYTES
