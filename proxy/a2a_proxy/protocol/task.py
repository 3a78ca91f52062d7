"""Tasks joined over connections, bindings, streams and pushes: their states, artifacts, messages
and generations.

An event is sent to every stream of a task (A2A 1.0 section 3.5.2), so an event that another stream
has already shown is not counted again. Only records; the rules judge.
"""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from a2a_proxy.model.event import TERMINAL_STATES
from a2a_proxy.model.eviction import keys_to_evict
from a2a_proxy.model.values import (
    LOST_MARKS,
    ArtifactState,
    Binding,
    Dialect,
    EventKind,
    Frame,
    FrameKind,
    MissedGenerations,
    Support,
    Task,
)
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, chunks_of_frame, find_only_chunk
from a2a_proxy.protocol.event import normalise_event
from a2a_proxy.protocol.generation import (
    GenerationFault,
    GenerationReport,
    TaskGenerations,
    has_unreadable_number,
    is_progress,
)
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.protocol.schema import is_protobuf
from a2a_proxy.protocol.task_list import split_task_list
from a2a_proxy.protocol.timeline import HISTORY_MARKS, read_timeline

MAX_TASKS = 100_000
MAX_FINISHED_TASKS = 2000
"""Tasks in a final state that are still followed, because the streams of a task end together. An
event of an older task creates a new record without the earlier facts."""
MAX_OWNERS = 10_000
"""Tasks no longer followed whose agent is still known, for webhooks."""
MAX_SAVED = 1000
"""Tasks of `latest_records`."""
MAX_STATES = 64
MAX_EXCHANGES = 256
MANY = 64
"""Number of artifacts of a task above which a snapshot reuses the unchanged objects of the previous
snapshot."""
MAX_KNOWN_CHUNKS = 10_000
"""Limit of remembered hashes: of an artifact's chunks and a task's message ids, to recognise
repeats on other streams.
"""

_SENDING_OPERATIONS = frozenset(
    {"SendMessage", "SendStreamingMessage", "SendLiveMessage", "ReconnectToTask"}
)
_EVENT, _RESPONSE, _REQUEST = FrameKind.EVENT, FrameKind.RESPONSE, FrameKind.REQUEST
_NO_EVENT, _TASK, _TASKS = EventKind.NONE, EventKind.TASK, EventKind.TASKS
_STATUS, _ARTIFACT, _WEBHOOK = EventKind.STATUS, EventKind.ARTIFACT, Binding.WEBHOOK
_NUMBERED_EVENTS = frozenset({EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT})
"""Events that have a generation if the agent supports generations."""
_V1_1 = Dialect.V1_1

TaskKey = tuple[str, str]
"""Agent and task id."""


class TaskExchangeView(Protocol):
    """The attributes of an exchange that the tracker reads."""

    id: int
    binding: Binding
    started: int
    operation: str
    task_id: str
    context_id: str
    agent: str
    client: str
    tenant: str
    is_deliverer_known: bool
    dialect: Dialect
    requests: int
    events: int


class _TrackedArtifact(msgspec.Struct, gc=False):
    name: str = ""
    chunks: int = 0
    parts: int = 0
    size: int = 0
    complete: bool = False
    first: int = 0
    last: int = 0
    shown: dict[int, int] = {}
    """Hash of a content -> the highest count of it on one exchange; hash of content and exchange ->
    the count on that exchange."""
    told: ArtifactState | None = None
    """The artifact in the last snapshot, if the task has many; None if it has changed since."""

    def snapshot(self, name: str, *, many: bool) -> ArtifactState:
        """Return the current artifact. For a task with many artifacts, unchanged ones are the
        objects of the last snapshot, so the reader of the snapshot has to compare only the
        others."""
        if self.told is not None:
            return self.told
        numbers = (
            self.name,
            self.chunks,
            self.parts,
            self.size,
            self.complete,
            self.first,
            self.last,
        )
        made = ArtifactState(name, *numbers)
        self.told = made if many else None
        return made


_NO_ARTIFACTS: dict[str, _TrackedArtifact] = {}
"""Shared by all tasks that have none, because an empty dictionary takes 64 bytes. Never changed."""


class FollowedTask(msgspec.Struct, gc=False):
    """State of a task while it is followed."""

    agent: str
    task_id: str
    context_id: str = ""
    tenant: str = ""
    states: tuple[tuple[int, int], ...] = ()
    first: int = 0
    last: int = 0
    numbers: TaskGenerations | None = None
    """Generations of the task, if it has any."""
    support: Support = Support.UNKNOWN
    """Support for generations, as long as the task has none."""
    artifacts: dict[str, _TrackedArtifact] = msgspec.field(default_factory=lambda: _NO_ARTIFACTS)
    messages: int = 0
    message_id: int = 0
    """Hash of the first message's id; many tasks have only one message."""
    message_ids: set[int] | None = None
    """Hashes of the ids of the other messages."""
    exchange: int = 0
    """The first of the exchanges that touched the task and are kept; most tasks have only one."""
    shown: int = -1
    """Number of states up to which it has shown the task, -1 if it has shown none."""
    later: dict[int, int] | None = None
    """The same of the other exchanges, in order. A dictionary takes 224 bytes."""
    dropped: int = 0
    """States that were counted and dropped from `states`, oldest first."""
    is_changed: bool = False
    """Whether the record is among the changes that have not been reported."""

    def artifact(self, name: str, at: int) -> _TrackedArtifact:
        """Return the artifact of this name; a new one that begins at `at` (ns) if the task has
        none."""
        if self.artifacts is _NO_ARTIFACTS:
            self.artifacts = {}
        return self.artifacts.setdefault(name, _TrackedArtifact(first=at))

    def count_shown(self, exchange: int) -> int | None:
        """Return the number of states up to which an exchange has shown the task, -1 if it has
        shown none, None if it has not touched the task."""
        if exchange == self.exchange:
            return self.shown
        return self.later.get(exchange) if self.later is not None else None

    def set_shown(self, exchange: int, count: int) -> None:
        """Store the number of states up to which an exchange has shown the task."""
        if exchange == self.exchange or not self.exchange:
            self.exchange, self.shown = exchange, count
        elif self.later is None:
            self.later = {exchange: count}
        else:
            self.later[exchange] = count

    def drop_oldest_exchange(self) -> int | None:
        """Drop the first exchange and return its number, if the task has more than
        `MAX_EXCHANGES`."""
        if self.later is None or len(self.later) < MAX_EXCHANGES:
            return None
        oldest, following = self.exchange, next(iter(self.later))
        self.exchange, self.shown = following, self.later.pop(following)
        return oldest

    def snapshot(self) -> Task:
        """Return the current task."""
        many = len(self.artifacts) > MANY
        artifacts = tuple(
            [each.told or each.snapshot(name, many=many) for name, each in self.artifacts.items()]
        )
        numbers = self.numbers
        return Task(
            self.agent,
            self.task_id,
            self.context_id,
            self.tenant,
            self.states[-1][1] if self.states else 0,
            self.states,
            self.first,
            self.last,
            numbers.highest if numbers is not None else 0,
            tuple((first, last) for first, last in numbers.seen) if numbers is not None else (),
            numbers.missed_runs() if numbers is not None else (),
            numbers.support if numbers is not None else self.support,
            artifacts,
            self.messages,
            (self.exchange, *(self.later or ())) if self.exchange else (),
        )


_SteadyTask = tuple[FollowedTask, tuple[tuple[int, int], ...]]
"""Record of a task, and its states."""


class TaskTracker:
    """All tasks of a session, up to `max_tasks`, of them at most `max_finished` finished ones;
    beyond that, the task that was idle longest is dropped."""

    def __init__(self, max_tasks: int = MAX_TASKS, max_finished: int = MAX_FINISHED_TASKS) -> None:
        self._max_tasks = max_tasks
        self._max_finished = max_finished
        self._records: dict[TaskKey, FollowedTask] = {}
        """Records by task, the longest idle first."""
        self._finished: dict[TaskKey, None] = {}
        """Keys of the finished tasks, in the same order."""
        self._owners: dict[str, str] = {}
        """Task id -> the last agent seen with it, for webhooks."""
        self._former_owners: dict[str, str] = {}
        """The same for tasks that are no longer followed, the longest forgotten first."""
        self._changed: dict[TaskKey, FollowedTask] = {}
        self._healed: list[tuple[str, MissedGenerations]] = []
        self._steady: dict[int, _SteadyTask] = {}
        """Exchanges whose last update showed the current state of its task; until their changes are
        reported, because that resets records."""

    def apply_frame(
        self, frame: Frame, exchange: TaskExchangeView, chunk: ArtifactChunk | None = None
    ) -> None:
        """Update the records from one frame. Called for every frame; most calls return at once.
        `chunk` is the artifact chunk in it, if it was read."""
        kind = frame.kind
        if kind is _EVENT and (frame.event is _STATUS or frame.event is _ARTIFACT):
            steady = self._steady.get(exchange.id)
            if steady is None or not self._apply_steady_update(steady, frame, exchange, chunk):
                self._apply_response(frame, exchange, chunk)
                self._note_steady(frame, exchange)
        elif kind is _REQUEST:
            self._apply_request(frame, exchange)
        elif (
            (kind is _EVENT or kind is _RESPONSE) and frame.task_id and frame.event is not _NO_EVENT
        ):
            self._apply_response(frame, exchange, chunk)
        elif frame.event is _TASKS:
            for each in split_task_list(frame):
                self._apply_response(each, exchange)
        elif frame.error_code and not exchange.events:
            self._apply_refusal(exchange)

    def _apply_steady_update(
        self,
        steady: _SteadyTask,
        frame: Frame,
        exchange: TaskExchangeView,
        chunk: ArtifactChunk | None,
    ) -> bool:
        """Apply an update that repeats task and state of its exchange, as `_apply_response` would;
        return False if it does more."""
        record, states = steady
        if (
            record.states is not states
            or (frame.state or states[-1][1]) != states[-1][1]
            or (frame.event is _STATUS and not frame.state)
            or frame.task_id != record.task_id
            or frame.generation > 0
            or record.numbers is not None
            or not (record.support or exchange.dialect is not _V1_1)
            or (exchange.tenant and not record.tenant)
        ):
            return False
        if frame.at > record.last:
            record.last = frame.at
        if frame.message_id:
            self._count_message(record, frame)
        if frame.event is _ARTIFACT:
            _apply_artifact(record, frame, chunk or find_only_chunk(frame))
        return True

    def _note_steady(self, frame: Frame, exchange: TaskExchangeView) -> None:
        """Remember the task of the exchange if a further update of the same state changes only its
        time, its messages and an artifact."""
        record = self._records.get((exchange.agent, frame.task_id))
        if (
            record is not None
            and record.context_id
            and record.states
            and frame.state in (0, record.states[-1][1])
            and record.count_shown(exchange.id) == len(record.states) - 1 + record.dropped
            and exchange.binding is not _WEBHOOK
        ):
            self._steady[exchange.id] = record, record.states

    def pop_changed_tasks(self) -> list[Task]:
        """Return snapshots of the tasks that changed since the last call; the finished ones may be
        forgotten afterwards."""
        tasks = [track.snapshot() for track in self._changed.values()]
        for key, record in self._changed.items():
            record.is_changed = False
            self._file_if_finished(key, record)
        self._changed.clear()
        self._steady.clear()
        return tasks

    def pop_healed_gaps(self) -> list[tuple[str, MissedGenerations]]:
        """Return task id and gap for each gap in generations that was closed since the last
        call."""
        found, self._healed = self._healed, []
        return found

    def mark_all_changed(self) -> None:
        """Count all tasks as changed."""
        self._changed = dict(self._records)
        for record in self._records.values():
            record.is_changed = True

    def load(self, tasks: Iterable[Task]) -> None:
        """Load the tasks of an earlier run, the longest idle first; tasks that were followed from
        their start are kept."""
        known, self._records, self._finished = self._records, {}, {}
        self._steady.clear()
        for task in tasks:
            followed = known.get((task.agent, task.task_id))
            if followed is not None and followed.first <= task.first:
                continue
            known.pop((task.agent, task.task_id), None)
            record = FollowedTask(
                task.agent, task.task_id, task.context_id, task.tenant, task.states
            )
            record.first, record.last = task.first, task.last
            record.numbers, record.support = TaskGenerations.from_task(task), task.support
            record.messages = task.messages
            for number in task.exchanges:
                record.set_shown(number, -1)
            loaded: dict[str, _TrackedArtifact] = {}
            for each in task.artifacts:
                numbers = (
                    each.name,
                    each.chunks,
                    each.parts,
                    each.size,
                    each.complete,
                    each.first,
                    each.last,
                )
                loaded[each.artifact_id] = _TrackedArtifact(*numbers)
            if loaded:
                record.artifacts = loaded
            key = (task.agent, task.task_id)
            self._store_record(key, record)
            self._file_if_finished(key, record)
        for key, record in known.items():
            self._store_record(key, record)
            self._file_if_finished(key, record)

    @property
    def latest_records(self) -> list[FollowedTask]:
        """The most recently touched tasks, the longest idle first, for `add_records`.

        They contain hashes of Python strings and bytes, so only a process with the same hash seed
        can read them.
        """
        return list(self._records.values())[-MAX_SAVED:]

    def add_records(self, records: Iterable[FollowedTask]) -> None:
        """Follow the tasks of a tracker in another process."""
        for record in records:
            record.is_changed = False
            self._store_record((record.agent, record.task_id), record)

    # --- from frames

    def _apply_request(self, frame: Frame, exchange: TaskExchangeView) -> None:
        """Update a known task from a client's request; an unknown task is not created, because the
        id may be wrong."""
        task_id = frame.task_id or exchange.task_id
        record = self._records.get((exchange.agent, task_id)) if task_id else None
        if record is None:
            return
        self._touch_record(record, frame, exchange, from_agent=False)
        self._count_message(record, frame)
        # Reconnecting sends no message; later messages on that stream count.
        if record.numbers is not None and (
            exchange.operation in _SENDING_OPERATIONS
            and (exchange.operation != "ReconnectToTask" or exchange.requests > 1)
        ):
            record.numbers.add_client_message(frame.message_id, exchange.id, frame.seq)

    def _apply_refusal(self, exchange: TaskExchangeView) -> None:
        """Apply an error that answers a message to a known task: the agent has not added the
        message."""
        record = self._records.get((exchange.agent, exchange.task_id)) if exchange.task_id else None
        if record is not None and record.numbers is not None:
            record.numbers.refuse_messages(exchange.id)

    def _apply_response(
        self, frame: Frame, exchange: TaskExchangeView, chunk: ArtifactChunk | None = None
    ) -> None:
        agent = exchange.agent
        if exchange.binding is _WEBHOOK and not exchange.is_deliverer_known:
            # Several agents have its URL, or none is known: the task id determines the agent.
            agent = self._owners.get(frame.task_id) or self._former_owners.get(frame.task_id, agent)
        record = self._records.get((agent, frame.task_id))
        if record is None:
            record = FollowedTask(agent, frame.task_id, first=frame.at)
        self._touch_record(record, frame, exchange, from_agent=True)
        if not record.context_id:
            # 0.1 has the session only in the request.
            record.context_id = frame.context_id or exchange.context_id
        if (
            record.numbers is not None
            or frame.generation > 0
            or (not record.support and exchange.dialect is _V1_1)
        ):
            self._apply_generation(record, frame, exchange)
        if frame.state:
            _apply_state(record, frame, exchange)
        self._count_message(record, frame)
        if frame.event is _ARTIFACT:
            _apply_artifact(record, frame, chunk or find_only_chunk(frame))
        elif frame.event is _TASK:
            _apply_snapshot(record, frame)

    def _apply_generation(
        self, record: FollowedTask, frame: Frame, exchange: TaskExchangeView
    ) -> None:
        """Apply a generation, before the state: a status update that changes no state may have no
        number of its own."""
        numbers, event, number = record.numbers, frame.event, frame.generation
        if number <= 0 and event not in _NUMBERED_EVENTS:
            return
        if numbers is None:
            if number <= 0:
                record.support = Support.NO
                return
            numbers = record.numbers = TaskGenerations()
        report = GenerationReport(
            number,
            frame.at,
            exchange.id,
            exchange.client,
            event,
            exchange.operation in STREAMING_OPERATIONS,
            str(hash(frame.payload)) if event is not _TASK else "",
            progress=event is _STATUS
            and is_progress(frame.state, _last_shown_state(record, exchange.id)),
            unreadable=number <= 0 and has_unreadable_number(frame.payload),
        )
        if frame.note and number > 0 and any(mark in frame.note for mark in LOST_MARKS):
            numbers.apply_dropped(report)
            return
        found = numbers.apply_report(report)
        if (
            event is _TASK
            and number > 0
            and (is_protobuf(frame.schema) or HISTORY_MARKS.search(frame.payload))
        ):
            _apply_timeline(numbers, frame, exchange)
        for each in found:
            if each.fault is GenerationFault.HEALED and each.gap is not None:
                self._healed.append((record.task_id, each.gap))

    def _touch_record(
        self, record: FollowedTask, frame: Frame, exchange: TaskExchangeView, from_agent: bool
    ) -> None:
        if frame.at > record.last:
            record.last = frame.at
        if exchange.tenant and not record.tenant:
            record.tenant = exchange.tenant
        if record.count_shown(exchange.id) is None:
            self._add_exchange(record, exchange, from_agent)
        if not record.is_changed:
            record.is_changed = True
            key = (record.agent, record.task_id)
            self._changed[key] = record
            self._store_record(key, record)

    def _add_exchange(
        self, record: FollowedTask, exchange: TaskExchangeView, from_agent: bool
    ) -> None:
        record.set_shown(exchange.id, -1)
        if from_agent and exchange.operation in _SENDING_OPERATIONS:
            # The message that created the task had no task id, so it is counted here.
            record.messages += exchange.requests
        if (oldest := record.drop_oldest_exchange()) is not None:
            self._steady.pop(oldest, None)

    def _store_record(self, key: TaskKey, record: FollowedTask) -> None:
        """Store the record as the most recently touched, and drop the longest idle tasks if there
        are too many."""
        self._records.pop(key, None)
        self._records[key] = record
        self._owners[record.task_id] = record.agent
        for oldest in keys_to_evict(self._records, self._max_tasks):
            self._forget_task(oldest)

    def _file_if_finished(self, key: TaskKey, record: FollowedTask) -> None:
        """File the record as the most recent finished task if it is finished; its changes have been
        reported."""
        self._finished.pop(key, None)
        if record.states and record.states[-1][1] in TERMINAL_STATES and key in self._records:
            self._finished[key] = None
            for oldest in keys_to_evict(self._finished, self._max_finished):
                self._forget_task(oldest)

    def _forget_task(self, key: TaskKey) -> None:
        """Stop following a task. Its agent stays known for a while, because a push may be late."""
        del self._records[key]
        self._finished.pop(key, None)
        self._steady.clear()
        agent, task_id = key
        if self._owners.get(task_id) == agent:
            del self._owners[task_id]
            self._former_owners.pop(task_id, None)
            self._former_owners[task_id] = agent
            for oldest in keys_to_evict(self._former_owners, MAX_OWNERS):
                del self._former_owners[oldest]

    @staticmethod
    def _count_message(record: FollowedTask, frame: Frame) -> None:
        """Count a message once, on however many streams and snapshots it appears; 0.1 messages have
        no id, each counts."""
        if not frame.message_id:
            record.messages += frame.event is EventKind.MESSAGE
            return
        ident = hash(frame.message_id)
        if not record.message_id:
            record.message_id = ident
            record.messages += 1
            return
        others = record.message_ids
        if ident == record.message_id or (others is not None and ident in others):
            return
        record.messages += 1
        if others is None:
            record.message_ids = {ident}
        elif len(others) < MAX_KNOWN_CHUNKS:
            others.add(ident)


def _apply_timeline(numbers: TaskGenerations, frame: Frame, exchange: TaskExchangeView) -> None:
    """Apply the timeline and the history of a Task, which show what missing numbers were."""
    shown = normalise_event(
        frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
    ).get("task")
    timeline = read_timeline(shown, frame.generation) if isinstance(shown, dict) else None
    if timeline is not None:
        numbers.apply_timeline(timeline)


def _apply_state(record: FollowedTask, frame: Frame, exchange: TaskExchangeView) -> None:
    """Record a change of state, unless this stream only repeats a state that another one has shown
    in the meantime."""
    states = record.states
    if not states:
        record.states = ((frame.at, frame.state),)
        record.set_shown(exchange.id, 0)
        return
    if (
        states[-1][1] == frame.state
        and record.count_shown(exchange.id) == len(states) - 1 + record.dropped
    ):
        return
    here = _find_shown_state(record, exchange.id)
    if not 0 <= here < len(states):
        here = max(
            (index for index, (at, _) in enumerate(states) if at <= exchange.started), default=0
        )
    for index in range(here, len(states)):
        if states[index][1] == frame.state:
            record.set_shown(exchange.id, index + record.dropped)
            return
    states += ((frame.at, frame.state),)
    if len(states) > MAX_STATES:
        states = states[1:]
        record.dropped += 1
    record.states = states
    record.set_shown(exchange.id, len(states) - 1 + record.dropped)


def _find_shown_state(track: FollowedTask, exchange: int) -> int:
    """Return the index in `states` up to which this exchange has shown the task, or -1 if it has
    shown none."""
    count = track.count_shown(exchange)
    return -1 if count is None or count < 0 else max(0, count - track.dropped)


def _last_shown_state(record: FollowedTask, exchange: int) -> int:
    """Return the last state of the task that this exchange has shown, or 0 if it has shown none."""
    place = _find_shown_state(record, exchange)
    return record.states[place][1] if 0 <= place < len(record.states) else 0


def _apply_artifact(record: FollowedTask, frame: Frame, chunk: ArtifactChunk | None) -> None:
    state = record.artifact(frame.artifact_id, frame.at)
    state.last, state.told = frame.at, None
    if chunk is not None:
        state.name = state.name or chunk.name
        parts, size, content = len(chunk.pieces), chunk.size, chunk.content
    else:
        parts, size, content = 0, 0, hash(frame.payload)
    state.complete = state.complete or frame.last_chunk
    if _is_repeated_content(state, content, frame.exchange):
        return
    state.chunks += 1
    if frame.append:
        state.parts += parts
        state.size += size
    else:
        state.parts, state.size = parts, size


def _is_repeated_content(state: _TrackedArtifact, content: int, exchange: int) -> bool:
    """Count the content for this exchange; whether another stream has already shown it at least as
    often."""
    shown = state.shown
    most, key = shown.get(content, 0), hash((content, exchange))
    if len(shown) < 2 * MAX_KNOWN_CHUNKS or key in shown:
        here = shown[key] = shown.get(key, 0) + 1
        shown[content] = max(most, here)
        return here <= most
    return most > 0


def _apply_snapshot(record: FollowedTask, frame: Frame) -> None:
    """Artifacts in a Task are complete: their sizes replace the sums of the chunks, unless the
    snapshot is older."""
    for chunk in chunks_of_frame(frame):
        state = record.artifact(chunk.artifact_id, frame.at)
        state.last, state.told = frame.at, None
        state.name = state.name or chunk.name
        if not state.chunks:
            state.complete = True
        if len(chunk.pieces) >= state.parts:
            state.parts, state.size = len(chunk.pieces), chunk.size
