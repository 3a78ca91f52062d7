"""The rules' knowledge of the traffic so far: agents, tasks, open exchanges (manual/protocol.md
"Rules and evidence").

Shared by all connections and bindings of a session. Updated from redacted frames; judges nothing.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.eviction import keys_to_evict
from a2a_proxy.model.values import Dialect, EventKind, Frame, FrameKind, Task
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, chunks_of_frame
from a2a_proxy.protocol.client_messages import message_key
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.protocol.session_facts import AgentFacts
from a2a_proxy.protocol.status_summary import Content
from a2a_proxy.protocol.task_list import split_task_list
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.state import repeated_update, state_sequence
from a2a_proxy.rules.state.card_declarations import read_declarations
from a2a_proxy.rules.state.records import (
    AgentRecord,
    ExchangeRecord,
    KnownArtifact,
    Notes,
    RequestSnapshot,
    TaskRecord,
)
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS, TERMINAL

MAX_TASKS = 100_000
MAX_FINISHED_TASKS = 5000
"""Finished tasks whose record is kept. Older ones keep only a hash of their id; a new event creates
a new record."""
STREAM_LAG = 10_000_000_000
"""Time in ns during which a remaining stream may still send events that another stream has already
shown."""
MAX_SAVED_TASKS = 1000
"""Maximum number of saved tasks: the most recently used ones."""


class SavedSession(msgspec.Struct):
    """What a session state keeps across a restart."""

    facts: AgentFacts
    agents: dict[str, AgentRecord]
    tasks: list[TaskRecord]
    exchange_records: dict[int, ExchangeRecord]
    clients: dict[str, Notes]
    notes: Notes
    is_complete: bool


class SessionState:
    """What the rules know about one session: agents, tasks, open exchanges. Updated from redacted
    frames; judges nothing.
    """

    def __init__(self, max_tasks: int = MAX_TASKS, max_finished: int = MAX_FINISHED_TASKS) -> None:
        self._max_tasks = max_tasks
        self.facts = AgentFacts()
        self.agents: dict[str, AgentRecord] = {}
        self.tasks: dict[tuple[str, str], TaskRecord] = {}
        """Tasks by agent and id, approximately in the order of last use, the least recently used
        first."""
        self._move_count, self._min_moves = 0, max_tasks // 1000
        """A task keeps its position until this many others have been moved to the end."""
        self._max_finished = max_finished
        self._finished_tasks: dict[tuple[str, str], None] = {}
        """Finished tasks without an open stream, the most recently used last."""
        self._forgotten_tasks: dict[int, None] = {}
        """CRC-32 of agent and id of dropped tasks."""
        self.owners: dict[str, str] = {}
        """Agent of each task id, for webhooks."""
        self.exchange_records: dict[int, ExchangeRecord] = {}
        self.clients: dict[str, Notes] = {}
        """Notes by client host."""
        self.notes: Notes = {}
        self._last_artifact: ArtifactChunk | None = None
        """Summary of the artifact update processed last."""
        self.is_complete = True
        """Whether everything since the beginning of the session is known: no task record had to be
        dropped."""

    def agent_record(self, name: str) -> AgentRecord:
        """Return the record of an agent (`Exchange.agent`), creating it if necessary."""
        found = self.agents.get(name)
        if found is None:
            found = self.agents[name] = AgentRecord(name)
        return found

    def client_notes(self, host: str) -> Notes:
        """Return the notes about one client."""
        return self.clients.setdefault(host, {})

    def task_record(self, agent: str, task_id: str) -> TaskRecord | None:
        """Return the record of a known task, or None."""
        return self.tasks.get((agent, task_id))

    def agent_of_delivery(self, agent: str, task_id: str) -> str:
        """Return the agent whose push notification is about this task: `agent` if it has the task,
        else the last agent with a task of this id."""
        return agent if (agent, task_id) in self.tasks else self.owners.get(task_id, agent)

    def has_seen_task(self, agent: str, task_id: str) -> bool:
        """Whether the task was seen, even if its record was dropped."""
        return (agent, task_id) in self.tasks or _hash_task_key(
            agent, task_id
        ) in self._forgotten_tasks

    # --- learning

    def on_request(self, record: ExchangeRecord, frame: Frame) -> None:
        """Record a request: what is known at this time, and that the client has sent a message."""
        # On a live stream a further message may omit the task id.
        task_id = frame.task_id or record.task_id
        task = self.tasks.get((record.agent, task_id)) if task_id else None
        if record.request_snapshot is None:
            record.request = frame
            record.request_snapshot = RequestSnapshot(
                frame.at, frame.task_id, frame.context_id, frame.message_id, frame.generation
            )
            if task is not None:
                self._fill_snapshot(record.request_snapshot, task)
            elif task_id:
                record.request_snapshot.is_task_forgotten = self.has_seen_task(
                    record.agent, task_id
                )
        if task is not None:
            task.last = frame.at
            # Reconnecting sends no message; later messages on that stream count.
            if record.operation in SENDING_OPERATIONS or (
                record.operation == "ReconnectToTask" and frame is not record.request
            ):
                task.awaits_client, task.client_message_at = False, frame.at
                if task.numbers is not None:
                    task.numbers.add_client_message(frame.message_id, record.id, frame.seq)
        if task_id != record.task_id and record.task_id and frame is not record.request:
            here = self.tasks.get(
                (record.agent, record.task_id)
            )  # the agent may still treat it as an answer
            if here is not None:
                here.awaits_client, here.client_message_at = False, frame.at

    @staticmethod
    def _fill_snapshot(request_snapshot: RequestSnapshot, task: TaskRecord) -> None:
        request_snapshot.is_task_known = True
        request_snapshot.state = task.state
        request_snapshot.terminal = task.terminal
        request_snapshot.stamp = task.stamp
        request_snapshot.known_generation = task.generation
        request_snapshot.known_context = task.context_id

    def on_response(
        self,
        record: ExchangeRecord,
        frame: Frame,
        task: TaskRecord | None,
        gate_result: Content = False,
    ) -> tuple[int, TaskRecord | None]:
        """Update the records from one response frame; return its flags and the task it refers to.

        Flags are `FrameFlag` values as an int, which is faster. `task` is the record of the task
        that the frame names, and `gate_result` the summary of its update, if the gate decoded it.
        """
        kind, event = frame.kind, frame.event
        if kind is not _EVENT_FRAME and kind is not _RESPONSE_FRAME:
            if kind is _COMMENT_FRAME:
                return _OTHER_FLAG, None
            if kind is _END_FRAME:
                return self._on_stream_end(record, frame)
        flags = 0 if record.answers else _FIRST_FLAG
        record.answers += 1
        if frame.framing not in repeated_update.PLAIN_FRAMINGS:
            flags |= _FRAMED
        if record.errors:
            flags |= _AFTER_ERROR
        if kind is _ERROR_FRAME:
            record.errors += 1
            return flags | _ERROR_FLAG, self.tasks.get(
                (record.agent, frame.task_id or record.task_id)
            )
        if record.events:
            flags |= _LATER_FLAG
        of_event = _FLAG_BY_EVENT[event]
        if not of_event or (kind is not _EVENT_FRAME and kind is not _RESPONSE_FRAME):
            flags |= _OTHER_FLAG | _COUNTED if frame.generation > 0 else _OTHER_FLAG
            task = None
            if kind is _UNDECODABLE:
                self._note_unreadable(record, frame)
        else:
            flags |= of_event | _content_flag(record, frame, of_event)
            record.events += 1
            if record.events == 1:
                record.first = event
            if frame.task_id and event is not _PUSH_CONFIG_EVENT:
                task, more = self._apply_task_event(record, frame, event, task, gate_result)
                flags |= more
            else:
                task = None
                self._apply_other_event(record, frame, event)
            record.last = event
        if record.operation in STREAMING_OPERATIONS and frame.payload:
            flags |= repeated_update.payload_flags(record, frame)
        record.last_at, record.last_seq = frame.at, frame.seq
        return flags, task

    def on_repeated_response(
        self,
        record: ExchangeRecord,
        frame: Frame,
        task: TaskRecord,
        update: repeated_update.Update,
        artifact: KnownArtifact | bool,
    ) -> int:
        """Do the same as `on_response` for an update for which `find_repeated` returned `artifact`,
        but faster."""
        if not task.move_count or self._move_count - task.move_count > self._min_moves:
            self._mark_recent(task)
        return repeated_update.apply_repeated(record, frame, task, update, artifact)

    def _note_unreadable(self, record: ExchangeRecord, frame: Frame) -> None:
        """Record an unreadable frame, or one that names no task, no artifact or another task. It
        may have been any event, including the end of the task or a chunk of an artifact.
        """
        record.unreadable_at = frame.at
        task = self.tasks.get((record.agent, record.task_id))
        for each in task.artifacts.values() if task is not None else ():
            if each.stream == record.id and not each.is_stream_over:
                each.is_fully_recorded = False

    def _on_stream_end(self, record: ExchangeRecord, frame: Frame) -> tuple[int, TaskRecord | None]:
        """Process gRPC trailers or the end of an event stream; return flags and task."""
        end = _END_FLAG | _EXTENDS if b"-extensions" in frame.payload.lower() else _END_FLAG
        if not frame.error_code:
            return end, None
        first = 0 if record.answers else _FIRST_FLAG
        record.answers += 1
        record.errors += 1
        return first | end | _ERROR_FLAG, self.tasks.get((record.agent, record.task_id))

    def _apply_other_event(self, record: ExchangeRecord, frame: Frame, event: EventKind) -> None:
        """Apply an event that names no task."""
        if event is _TASKS_EVENT:
            self._apply_task_list(record, frame)
        elif event in _TASK_EVENTS:
            self._note_unreadable(record, frame)

    def _apply_task_event(
        self,
        record: ExchangeRecord,
        frame: Frame,
        event: EventKind,
        task: TaskRecord | None,
        gate_result: Content,
    ) -> tuple[TaskRecord | None, int]:
        flags, task_id, at, context = 0, frame.task_id, frame.at, frame.context_id
        is_stray = record.task_id != task_id and record.task_id != ""
        if is_stray:
            self._note_unreadable(record, frame)
            if task is None:
                return (
                    None,
                    _NEW_TASK | _FOREIGN,
                )  # a stray event, which is not sufficient to create a task record
        if task is not None and record.events == 1 and record.operation in SENDING_OPERATIONS:
            task = self._task_of_first_answer(record, frame, task)
        if task is None:
            flags = _NEW_TASK
            task = self._create_task(record, frame)
        if not task.move_count or self._move_count - task.move_count > self._min_moves:
            self._mark_recent(task)
        task.last = at
        if not record.task_id:
            flags |= _join_task(record, task)
        if context and not context == task.context_id == record.context_id:
            flags |= _apply_context(record, task, context)
        if len(task.streams) > 1 or (
            task.single_stream_since and at - task.single_stream_since < STREAM_LAG
        ):
            flags |= _SHARED
        if is_stray:
            return task, flags | _FOREIGN
        # Streams lag behind each other: another exchange's terminal state counts only if it
        # preceded the request.
        if record.terminal or 0 < task.terminal < record.started:
            flags |= _AFTER_TERMINAL
        if frame.state:
            flags |= state_sequence.apply_state(record, frame, task, gate_result)
        elif event is _STATUS_EVENT or (event is _ARTIFACT_EVENT and _has_no_artifact_id(frame)):
            self._note_unreadable(record, frame)
        if frame.generation or task.generation or task.numbered == "yes":
            flags |= _NUMBERED
        if event is _ARTIFACT_EVENT:
            self._last_artifact = (
                gate_result
                if type(gate_result) is ArtifactChunk
                else next(iter(chunks_of_frame(frame)), None)
            )
            flags |= state_sequence.flag_artifact(record, frame, task, self._last_artifact)
        return task, flags

    def _mark_recent(self, task: TaskRecord) -> None:
        """Move the task to the end of the idle order. A recently moved task keeps its position."""
        key = (
            task.agent,
            task.task_id,
        )  # the record's own strings, because each frame creates new ones
        self.tasks.pop(key, None)
        self.tasks[key] = task
        self._move_count += 1
        task.move_count = self._move_count

    def _task_of_first_answer(
        self, record: ExchangeRecord, frame: Frame, task: TaskRecord
    ) -> TaskRecord | None:
        """Return the task that the first answer to a send continues, or a new record if its id was
        issued again."""
        request_snapshot = record.request_snapshot
        if request_snapshot is None or request_snapshot.task_id:
            return task
        if task.first >= request_snapshot.at:
            if not task.created_by:  # a push notification has shown it before this answer
                _note_creator(task, record)
            return task
        continues = (
            request_snapshot.context_id == task.context_id and frame.state != TaskState.SUBMITTED
        )
        if (
            continues
            or not task.created_by
            or task.made_by == _hash_message_id(request_snapshot.message_id)
        ):
            task.awaits_client, task.client_message_at = False, request_snapshot.at
            return task
        made = self._create_task(record, frame)
        made.reissued = True
        return made

    def _apply_task_list(self, record: ExchangeRecord, frame: Frame) -> None:
        """Create records for the unknown tasks of a list. For known tasks the list may be
        outdated."""
        for each in split_task_list(frame):
            key = (record.agent, each.task_id)
            if key not in self.tasks:
                task = self.tasks[key] = self._create_task(record, each)
                task.context_id = each.context_id
                if each.state:
                    task.states = ((each.at, each.state),)
                    task.terminal = each.at if each.state in TERMINAL else 0
                self._retire_task(task)

    def _create_task(self, record: ExchangeRecord, frame: Frame) -> TaskRecord:
        task = TaskRecord(record.agent, frame.task_id, first=frame.at)
        creates = record.operation in SENDING_OPERATIONS and record.task_id in ("", frame.task_id)
        if creates and record.request_snapshot is not None and not record.request_snapshot.task_id:
            _note_creator(task, record)
        self.owners[task.task_id] = task.agent
        for oldest in keys_to_evict(self.tasks, self._max_tasks - 1):
            self._drop_task(*oldest)
            self.is_complete = False
        return task

    def _retire_task(self, task: TaskRecord) -> None:
        """If the task is finished, keep it among the limited number of finished tasks and drop the
        oldest ones."""
        if not task.terminal or task.streams:
            return
        key = (task.agent, task.task_id)
        self._finished_tasks.pop(key, None)
        self._finished_tasks[key] = None
        for oldest in keys_to_evict(self._finished_tasks, self._max_finished):
            del self._finished_tasks[oldest]
            found = self.tasks.get(oldest)
            if (
                found is not None and found.terminal and not found.streams
            ):  # it may have been continued since
                self._drop_task(*oldest)
                self._forgotten_tasks[_hash_task_key(*oldest)] = None
        for forgotten in keys_to_evict(self._forgotten_tasks, self._max_tasks):
            del self._forgotten_tasks[forgotten]
            self.is_complete = False

    def _drop_task(self, agent: str, task_id: str) -> None:
        del self.tasks[agent, task_id]
        self._finished_tasks.pop((agent, task_id), None)
        if self.owners.get(task_id) == agent:
            del self.owners[task_id]

    def on_generation(self, record: ExchangeRecord, frame: Frame, task: TaskRecord) -> None:
        """Apply a generation, after the rules have compared it with the previous one."""
        if frame.generation > 0:
            record.generation = frame.generation
            task.generation = max(task.generation, frame.generation)
            task.numbered = task.numbered or "yes"
            self.agent_record(record.agent).sends_generations = True
        elif not task.numbered and frame.event is not EventKind.MESSAGE:
            task.numbered = "no"

    def on_artifacts(self, record: ExchangeRecord, frame: Frame, task: TaskRecord) -> None:
        """Apply artifacts, after the rules have compared them with the known ones."""
        if record.task_id != frame.task_id:
            return
        if frame.event is EventKind.TASK:
            state_sequence.apply_snapshot_artifacts(record, frame, task)
        elif frame.event is EventKind.ARTIFACT and self._last_artifact is not None:
            state_sequence.apply_artifact(
                self.exchange_records, record, frame, task, self._last_artifact
            )

    def on_exchange_end(self, record: ExchangeRecord) -> None:
        """Process the end of an exchange."""
        self.exchange_records.pop(record.id, None)
        task = self.tasks.get((record.agent, record.task_id)) if record.task_id else None
        if task is None:
            return
        if record.id in task.streams:
            del task.streams[record.id]
            if len(task.streams) == 1 and record.closed_exchange is not None:
                task.single_stream_since = record.closed_exchange.closed
        self._retire_task(task)

    def learn_card(
        self, name: str, card: dict[str, Any], at: int, *, extended: bool
    ) -> AgentRecord:
        """Apply a card of this agent."""
        self.facts.learn_card(name, card)
        agent = self.agent_record(name)
        if extended:
            agent.extended = card
        else:
            agent.card, agent.card_at = card, at
        agent.declarations = read_declarations([agent.card, agent.extended], at, agent.declarations)
        return agent

    # --- across a restart

    def load(self, tasks: list[Task]) -> None:
        """Load the tasks of a recording; records that exist already are kept."""
        for task in tasks:
            key = (task.agent, task.task_id)
            if key in self.tasks:
                continue
            task_record = TaskRecord(
                task.agent, task.task_id, task.context_id, task.states[-state_sequence.MAX_STATES :]
            )
            task_record.first, task_record.last, task_record.generation = (
                task.first,
                task.last,
                task.generation,
            )
            task_record.numbered = "yes" if task.generation else ""
            task_record.terminal = next((at for at, state in task.states if state in TERMINAL), 0)
            task_record.artifacts = {
                each.artifact_id: KnownArtifact(each.chunks) for each in task.artifacts
            }
            self.tasks[key] = task_record
            self.owners[task.task_id] = task.agent
            self._retire_task(task_record)

    def save(self) -> SavedSession:
        """Return the state for `restore`, limited to the most recently used tasks. It shares
        objects with this one."""
        tasks = list(self.tasks.values())[-MAX_SAVED_TASKS:]
        return SavedSession(
            self.facts,
            self.agents,
            tasks,
            self.exchange_records,
            self.clients,
            self.notes,
            self.is_complete and not self._forgotten_tasks and len(tasks) == len(self.tasks),
        )

    @classmethod
    def restore(cls, state: SavedSession) -> SessionState:
        """Return the session state that was saved; older tasks are missing."""
        session = cls()
        session.facts, session.agents, tasks, session.exchange_records = (
            state.facts,
            state.agents,
            state.tasks,
            state.exchange_records,
        )
        session.tasks = {(each.agent, each.task_id): each for each in tasks}
        session._move_count = max((each.move_count for each in tasks), default=0)
        session.owners = {each.task_id: each.agent for each in tasks}
        for each in tasks:
            session._retire_task(each)
        session.clients, session.notes, session.is_complete = (
            state.clients,
            state.notes,
            state.is_complete,
        )
        return session


_FIRST_FLAG, _OTHER_FLAG, _ERROR_FLAG, _END_FLAG, _LATER_FLAG = map(
    int, (FrameFlag.FIRST, FrameFlag.OTHER, FrameFlag.ERROR, FrameFlag.END, FrameFlag.LATER)
)
_EXTENDS, _COUNTED = int(FrameFlag.EXTENDS), int(FrameFlag.COUNTED)
_STATUS_FLAG, _TYPED = int(FrameFlag.STATUS), int(FrameFlag.TYPED)
_TYPED_EVENTS = int(FrameFlag.TASK | FrameFlag.ARTIFACT | FrameFlag.MESSAGE)
_NEW_TASK, _FOREIGN, _SHARED = (
    int(FrameFlag.NEW_TASK),
    int(FrameFlag.FOREIGN),
    int(FrameFlag.SHARED),
)
_AFTER_TERMINAL, _NUMBERED = int(FrameFlag.AFTER_TERMINAL), int(FrameFlag.NUMBERED)
_FRAMED, _AFTER_ERROR = int(FrameFlag.FRAMED), int(FrameFlag.AFTER_ERROR)
_TASK_EVENTS = frozenset({EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT})
_EVENT_FLAGS = {
    EventKind.TASK: FrameFlag.TASK,
    EventKind.STATUS: FrameFlag.STATUS,
    EventKind.ARTIFACT: FrameFlag.ARTIFACT,
    EventKind.MESSAGE: FrameFlag.MESSAGE,
    EventKind.CARD: FrameFlag.CARD,
    EventKind.TASKS: FrameFlag.LIST,
    EventKind.PUSH_CONFIG: FrameFlag.PUSH,
    EventKind.PUSH_CONFIGS: FrameFlag.PUSH,
}
_FLAG_BY_EVENT = tuple(int(_EVENT_FLAGS.get(each, 0)) for each in sorted(EventKind))
"""Flag of each event kind, by its number; 0 for kinds that are not A2A objects."""
_EVENT_FRAME, _RESPONSE_FRAME, _COMMENT_FRAME = (
    FrameKind.EVENT,
    FrameKind.RESPONSE,
    FrameKind.COMMENT,
)
_END_FRAME, _ERROR_FRAME, _UNDECODABLE = FrameKind.END, FrameKind.ERROR, FrameKind.UNDECODABLE
_STATUS_EVENT, _ARTIFACT_EVENT, _TASKS_EVENT, _PUSH_CONFIG_EVENT = (
    EventKind.STATUS,
    EventKind.ARTIFACT,
    EventKind.TASKS,
    EventKind.PUSH_CONFIG,
)
"""Module-level aliases, because accessing `EventKind.STATUS` for each frame costs 0.1 us (CPython
3.11)."""


def _content_flag(record: ExchangeRecord, frame: Frame, of_event: int) -> int:
    """Return the flag of a late status update, or of content that may name a media type."""
    if of_event == _STATUS_FLAG:
        is_late = frame.at - record.started >= repeated_update.COLLECTING_SILENCE
        return repeated_update.burst_flag(record, frame.at) if is_late else 0
    if of_event & _TYPED_EVENTS and (repeated_update.SLASH in frame.payload or frame.redacted):
        return _TYPED
    return 0


def _join_task(record: ExchangeRecord, task: TaskRecord) -> int:
    """Bind an exchange to the first task that it shows; return the flag if its request named
    another task."""
    record.task_id = task.task_id
    if record.is_streaming and record.id not in task.streams:
        task.joined += 1
        task.writable_streams()[record.id] = task.joined
    snapshot = record.request_snapshot
    return _FOREIGN if snapshot is not None and snapshot.task_id not in ("", task.task_id) else 0


def _apply_context(record: ExchangeRecord, task: TaskRecord, context: str) -> int:
    """Record the context of an event where none is known; return the flag if the task has another
    one."""
    task.context_id = task.context_id or context
    record.context_id = record.context_id or context
    return _FOREIGN if context != task.context_id else 0


def _hash_task_key(agent: str, task_id: str) -> int:
    return crc32(f"{agent} {task_id}".encode("utf-8", "surrogatepass"))


def _note_creator(task: TaskRecord, record: ExchangeRecord) -> None:
    """Record the message that created the task."""
    assert record.request_snapshot is not None
    task.created_by = record.id
    task.made_by = _hash_message_id(record.request_snapshot.message_id)


def _hash_message_id(message_id: str) -> int:
    return message_key(message_id) if message_id else 0


def _has_no_artifact_id(frame: Frame) -> bool:
    """Whether an artifact update names no artifact. 0.1 has no ids and uses index 0, decoded as
    "0"."""
    if frame.artifact_id != "0" or frame.schema != "json":
        return not frame.artifact_id
    return b'"artifactId"' not in frame.payload and b'"taskId"' in frame.payload


def rule_dialect(dialect: Dialect) -> Dialect:
    """Return the dialect as rules distinguish it: 1.1 is 1.0 with a draft."""
    return Dialect.V1_0 if dialect is Dialect.V1_1 else dialect
