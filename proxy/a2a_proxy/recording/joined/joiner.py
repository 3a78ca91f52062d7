"""Continuous joining of several recordings into one, in the order of time.

Everything becomes one session, so that the calls of all files are in one order, a task of an agent that several files
contain is one task, and every view of a recording shows all files together.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from functools import reduce
from operator import attrgetter
from typing import Any

from a2a_proxy.model.exchange import Connection, Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.model.note import Note
from a2a_proxy.model.observation import Changes
from a2a_proxy.model.segment import Handoff, Interruption, Segment
from a2a_proxy.model.task import Task
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.segments.tracker import SegmentTracker
from a2a_proxy.protocol.session_facts import SessionContext
from a2a_proxy.recording.joined.member import JoinedMember
from a2a_proxy.recording.joined.numbers import NumberMap
from a2a_proxy.recording.read.conversations import SegmentExchangeView
from a2a_proxy.recording.read.multi_reader import MultiReaderFile, best_sessions
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, SessionRow, make_key
from a2a_proxy.recording.write.task_merge import merge_tasks
from a2a_proxy.recording.write.writer import Writer

_BATCH_FRAMES = 500
"""Frames of a transaction. The screen shows them while the next ones are read."""
_BATCH_BYTES = 4 << 20
_MAX_KEPT_EXCHANGES = 65_536
"""Exchanges for which frames may still arrive."""

_Exchange = tuple[int, JoinedMember, ExchangeRow]
_Frame = tuple[int, JoinedMember, FrameRow]


class Joiner:
    """Writes the joined recording through `writer`. `files` is the number of all files, including those added later."""

    def __init__(self, writer: Writer, files: int) -> None:
        self.writer = writer
        self.numbers = NumberMap(files)
        """New numbers of exchanges and connections."""
        self._members: list[JoinedMember] = []
        self._homes: dict[str, int] = {}
        """File from which a session is taken, by the session's UUID."""
        self._grown = False
        """Whether files have been added since the last step."""
        self._own: dict[int, set[int]] = {}
        """Sessions that are taken from each file."""
        self._segment_builder = _SegmentBuilder()
        self._batch = _JoinBatch()
        self._tasks: set[str] = set()
        """Ids of tasks that have changed."""

    def add(self, number: int, recording: Recording) -> None:
        """Add one more file. `number` is its index among all files."""
        self._members.append(JoinedMember(number, recording, self._homes))
        self._grown = True

    def has_changed(self) -> bool:
        """Whether any file has new rows."""
        return any(member.has_changed for member in self._members)

    @property
    def sessions(self) -> list[SessionRow]:
        """Sessions of all files."""
        return [row for member in self._members for row in member.sessions()]

    def take_new(self) -> bool:
        """Copy new rows, and return False if there were no new rows.

        Raises:
            RecordingError: a file cannot be read, or the joined recording cannot be written.
        """
        members = [member for member in self._members if member.has_changed]
        if not members:
            return False
        if self._grown:
            self._choose_files()
        for member in members:
            member.begin_look()
        own = self._own
        own.update((member.number, {row.id for row in member.sessions()}) for member in members)
        self._put_conversation(members)
        for member in members:
            for row in member.open_exchanges():
                self._put_exchange(member, row)
            self._batch.findings += [
                self.numbers.renumber_finding(of, found) for of, found in member.new_findings(own[member.number])
            ]
            for session in own[member.number]:
                self._put_connections(member, session)
        self._put_tasks()
        self._flush_batch()
        return True

    def _choose_files(self) -> None:
        """Choose a file for each session: the file that has most of it, unless one was chosen before."""
        known = [MultiReaderFile(member.number, "", member.recording) for member in self._members]
        for home, row in best_sessions(known):
            self._homes.setdefault(row.facts.uuid, home.number)
        self._grown = False

    def _put_conversation(self, members: list[JoinedMember]) -> None:
        """Add frames by time, each after the exchanges that began before it."""
        own = self._own
        lists = [_new_exchanges(member, session) for member in members for session in sorted(own[member.number])]
        exchanges = heapq.merge(*lists, key=_time_key)
        streams = [_new_frames(member, own[member.number]) for member in members]
        waiting = next(exchanges, None)
        for at, member, row in heapq.merge(*streams, key=_time_key):
            while waiting is not None and waiting[0] <= at:
                self._put_exchange(*waiting[1:])
                waiting = next(exchanges, None)
            self._put_frame(member, row)
        while waiting is not None:
            self._put_exchange(*waiting[1:])
            waiting = next(exchanges, None)

    def _put_exchange(self, member: JoinedMember, row: ExchangeRow) -> None:
        value = self.numbers.renumber_exchange(member.origin(row.session), row.exchange)
        self._batch.exchanges[value.id] = value
        self._segment_builder.update_exchange(value, member.connection(make_key(row.session, row.exchange.connection)))
        self._tasks.add(value.task_id)

    def _put_frame(self, member: JoinedMember, row: FrameRow) -> None:
        of, frame = member.origin(row.session), row.frame
        if frame.exchange and not self.numbers.has_exchange(of, frame.exchange):
            exchange = member.recording.exchange(row.exchange_key)  # it began while the frames were read
            if exchange is not None:
                member.watch_if_open(exchange)
                self._put_exchange(member, exchange)
        self._tasks.add(frame.task_id)
        made = self.numbers.renumber_frame(of, frame)
        self._segment_builder.add_frame(made)
        self._batch.add_frame(made)
        if self._batch.is_full:
            self._flush_batch()

    def _put_connections(self, member: JoinedMember, session: int) -> None:
        of = member.origin(session)
        found = [self.numbers.renumber_connection(of, value) for value in member.new_connections(session)]
        self._batch.connections += found

    def _put_tasks(self) -> None:
        """Add each changed task merged from all files, one for each agent that has it, in order of first appearance."""
        found: list[Task] = []
        for name in self._tasks - {""}:
            views: dict[str, list[Task]] = {}
            for member in self._members:
                for row in member.recording.task(name):
                    if row.session in self._own[member.number]:
                        view = self.numbers.renumber_task(member.origin(row.session), row.task)
                        views.setdefault(view.agent, []).append(view)
            found += (reduce(merge_tasks, sorted(of_agent, key=attrgetter("first"))) for of_agent in views.values())
        self._batch.tasks += sorted(found, key=attrgetter("first"))
        self._tasks = set()

    def notes(self) -> list[Note]:
        """Return the notes about exchanges and frames that have been copied."""
        return [
            self.numbers.renumber_note(member.origin(row.session), row.note)
            for member in self._members
            for row in member.recording.notes()
            if row.session in self._own[member.number] and row.note.exchange
        ]

    def _flush_batch(self) -> None:
        batch, self._batch = self._batch, _JoinBatch()
        states = Changes(
            batch.connections, list(batch.exchanges.values()), batch.tasks, *self._segment_builder.take_changes()
        )
        self.writer.write(batch.frames, batch.findings, states)

    def end(self, at: int) -> None:
        """End all segments and write the rest. All sessions have ended, the last one at `at` (ns)."""
        self._segment_builder.end(at)
        self._flush_batch()


class _SegmentBuilder:
    """Builds segments from the frames of known exchanges of all files, so that hand-offs between files are found."""

    def __init__(self) -> None:
        self._tracker = SegmentTracker()
        self._shared = SessionContext()
        self._views: OrderedDict[int, tuple[SegmentExchangeView, str]] = OrderedDict()

    def update_exchange(self, value: Exchange, connection: Connection | None) -> None:
        """Add an exchange, or update it, with its connection."""
        upstream, client = (connection.upstream, connection.client) if connection is not None else ("", "")
        agent = self._shared.agent_of(upstream)
        view = SegmentExchangeView(
            value.id,
            value.binding,
            value.operation,
            value.traceparent,
            value.dialect,
            agent,
            client,
            value.connection,
            value.sent_traceparent,
        )
        self._views[value.id] = view, upstream
        if len(self._views) > _MAX_KEPT_EXCHANGES:
            self._views.popitem(last=False)

    def add_frame(self, frame: Frame) -> None:
        """Add the next frame."""
        view, upstream = self._views.get(frame.exchange, (None, ""))
        if view is None:
            return
        if frame.event is EventKind.CARD:
            self._shared.learn_card(upstream, decode_payload(frame.payload, frame.schema))
        self._tracker.apply(frame, view, view.client)

    def end(self, at: int) -> None:
        """End all segments: no frames follow after `at` (ns)."""
        self._tracker.end(at)

    def take_changes(self) -> tuple[list[Segment], list[Interruption], list[Handoff]]:
        """Return the segments, interruptions and hand-offs that have changed since the last call."""
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


def _new_exchanges(member: JoinedMember, session: int) -> Iterator[_Exchange]:
    return ((row.exchange.started, member, row) for row in member.new_exchanges(session))


def _new_frames(member: JoinedMember, sessions: set[int]) -> Iterator[_Frame]:
    return ((row.frame.at, member, row) for row in member.new_frames(sessions))


def _time_key(each: tuple[int, JoinedMember, Any]) -> tuple[int, int]:
    return each[0], each[1].number
