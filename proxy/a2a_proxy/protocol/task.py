"""Tasks joined over connections, bindings, streams and pushes: who is in which state, with which artifacts.

One event goes to every stream of a task (A2A 1.0 section 3.5.2), so what another stream has shown already is not
counted again. Judges nothing: rules do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.model.task import ArtifactState, MissedGenerations, Support, Task
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, chunks
from a2a_proxy.protocol.generation import GenerationReport, TaskGenerations, is_progress
from a2a_proxy.protocol.operations import STREAMS
from a2a_proxy.protocol.task_list import listed

MAX_TASKS = 100_000
MAX_DONE = 2000
"""Tasks in a final state that are still followed: the streams of one task end together. What comes of an older one
makes it anew, without what was known of it."""
MAX_OWNERS = 10_000
"""Tasks no longer followed of which the agent is known still, for webhooks."""
MAX_SAVED = 1000
"""Tasks that `save` gives: those touched last."""
MAX_STATES = 64
MAX_EXCHANGES = 256
MANY = 64
"""Artifacts of one task from which on a snapshot repeats the objects of the last one."""
MAX_SHOWN = 10_000
"""Chunks of one artifact that are remembered to know them again on another stream."""

_SENDS = frozenset({"SendMessage", "SendStreamingMessage", "SendLiveMessage", "ReconnectToTask"})
_EVENT, _RESPONSE, _REQUEST = FrameKind.EVENT, FrameKind.RESPONSE, FrameKind.REQUEST
_NONE, _TASK, _TASKS = EventKind.NONE, EventKind.TASK, EventKind.TASKS
_STATUS, _ARTIFACT, _WEBHOOK = EventKind.STATUS, EventKind.ARTIFACT, Binding.WEBHOOK
_NUMBERED = frozenset({EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT})
"""Events that have a generation where the agent gives any."""
_V1_1 = Dialect.V1_1
_FINAL = frozenset(int(state) for state in TaskState if state.terminal)

Key = tuple[str, str]
"""Agent, task id."""


class TaskExchangeView(Protocol):
    """What the tracker looks at of an exchange."""

    id: int
    binding: Binding
    started: int
    operation: str
    task_id: str
    context_id: str
    agent: str
    client: str
    tenant: str
    dialect: Dialect
    requests: int


class _TrackedArtifact(msgspec.Struct, gc=False):
    name: str = ""
    chunks: int = 0
    parts: int = 0
    size: int = 0
    complete: bool = False
    first: int = 0
    last: int = 0
    shown: dict[int, int] = {}
    """Hash of a content -> how often the exchange has shown it that did so most; hash of content and exchange -> how
    often that one has."""
    told: ArtifactState | None = None
    """As the last snapshot has it, where the task has many; None where it has changed."""

    def snapshot(self, name: str, *, many: bool) -> ArtifactState:
        """The artifact as it stands. Of many, those that have not changed are the objects of the last snapshot, so that
        whoever takes it has to look at the others only."""
        if self.told is not None:
            return self.told
        numbers = (self.name, self.chunks, self.parts, self.size, self.complete, self.first, self.last)
        made = ArtifactState(name, *numbers)
        self.told = made if many else None
        return made


class _TaskRecord(msgspec.Struct, gc=False):
    """A task while it is followed."""

    agent: str
    task_id: str
    context_id: str = ""
    tenant: str = ""
    states: tuple[tuple[int, int], ...] = ()
    first: int = 0
    last: int = 0
    numbers: TaskGenerations | None = None
    """Its generations, where it has any."""
    support: Support = Support.UNKNOWN
    """While it has none."""
    artifacts: dict[str, _TrackedArtifact] = {}
    messages: int = 0
    message_id: int = 0
    """Hash of the first message's id; many tasks have but one."""
    message_ids: set[int] | None = None
    """Hashes of the others'."""
    exchanges: dict[int, int] = {}
    """Those that touched it -> the count of states up to which each has shown the task, -1 where it has shown none."""
    dropped: int = 0
    """States that are counted and no longer in `states`: the first goes first."""

    def snapshot(self) -> Task:
        """The task as it stands."""
        many = len(self.artifacts) > MANY
        artifacts = tuple([each.told or each.snapshot(name, many=many) for name, each in self.artifacts.items()])
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
            numbers.missed() if numbers is not None else (),
            numbers.support if numbers is not None else self.support,
            artifacts,
            self.messages,
            tuple(self.exchanges),
        )


class TaskTracker:
    """All tasks of a session, up to `limit`, and `done` of those that are over; the one idle for longest makes room."""

    def __init__(self, limit: int = MAX_TASKS, done: int = MAX_DONE) -> None:
        self._limit = limit
        self._most_done = done
        self._tracks: dict[Key, _TaskRecord] = {}
        """The one idle for longest first."""
        self._done: dict[Key, None] = {}
        """Those of them that are over, in the same order."""
        self._owners: dict[str, str] = {}
        """Task id -> the agent seen with it last, for webhooks."""
        self._dirty: dict[Key, _TaskRecord] = {}
        self._healed: list[tuple[str, MissedGenerations]] = []

    def apply(self, frame: Frame, exchange: TaskExchangeView) -> None:
        """Learn from one frame. Called for every frame: most return at once."""
        kind = frame.kind
        if kind is _REQUEST:
            self._asked(frame, exchange)
        elif (kind is _EVENT or kind is _RESPONSE) and frame.task_id and frame.event is not _NONE:
            self._told(frame, exchange)
        elif frame.event is _TASKS:
            for each in listed(frame):
                self._told(each, exchange)

    def changed(self) -> list[Task]:
        """Snapshots of the tasks that changed since the last call. Then those that are over may be forgotten."""
        tasks = [track.snapshot() for track in self._dirty.values()]
        for key, track in self._dirty.items():
            self._settle(key, track)
        self._dirty.clear()
        return tasks

    def healed(self) -> list[tuple[str, MissedGenerations]]:
        """Task id and gap, of the gaps in generations that were made good since the last call."""
        found, self._healed = self._healed, []
        return found

    def touch(self) -> None:
        """All tasks count as changed."""
        self._dirty = dict(self._tracks)

    def load(self, tasks: Iterable[Task]) -> None:
        """Take up tasks of an earlier run, the one idle for longest first; those followed from their start stay."""
        known, self._tracks, self._done = self._tracks, {}, {}
        for task in tasks:
            followed = known.get((task.agent, task.task_id))
            if followed is not None and followed.first <= task.first:
                continue
            known.pop((task.agent, task.task_id), None)
            track = _TaskRecord(task.agent, task.task_id, task.context_id, task.tenant, task.states)
            track.first, track.last = task.first, task.last
            track.numbers, track.support = TaskGenerations.of(task), task.support
            track.messages, track.exchanges = task.messages, dict.fromkeys(task.exchanges, -1)
            for each in task.artifacts:
                numbers = (each.name, each.chunks, each.parts, each.size, each.complete, each.first, each.last)
                track.artifacts[each.artifact_id] = _TrackedArtifact(*numbers)
            key = (task.agent, task.task_id)
            self._keep(key, track)
            self._settle(key, track)
        for key, track in known.items():
            self._keep(key, track)
            self._settle(key, track)

    def save(self) -> list[dict[str, Any]]:
        """Plain values of the tasks touched last, the one idle for longest first.

        They hold hashes of Python's: only a process with the same hash seed can use them.
        """
        return [msgspec.to_builtins(track) for track in list(self._tracks.values())[-MAX_SAVED:]]

    @classmethod
    def restore(cls, state: list[dict[str, Any]]) -> TaskTracker:
        """The tracker that gave `state`, without the older tasks."""
        tracker = cls()
        for saved in state:
            track = msgspec.convert(saved, _TaskRecord)
            tracker._keep((track.agent, track.task_id), track)
        return tracker

    # --- from frames --------------------------------------------------------------------------------------------

    def _asked(self, frame: Frame, exchange: TaskExchangeView) -> None:
        """A client's call touches a task that is known; it makes none, for the id may be wrong."""
        task_id = frame.task_id or exchange.task_id
        track = self._tracks.get((exchange.agent, task_id)) if task_id else None
        if track is None:
            return
        self._touch(track, frame, exchange, told=False)
        self._message(track, frame)

    def _told(self, frame: Frame, exchange: TaskExchangeView) -> None:
        agent = exchange.agent
        if exchange.binding is _WEBHOOK:  # its receiver is not the agent: the task's id tells whose it is
            agent = self._owners.get(frame.task_id, agent)
        track = self._tracks.get((agent, frame.task_id))
        if track is None:
            track = _TaskRecord(agent, frame.task_id, first=frame.at)
        self._touch(track, frame, exchange, told=True)
        if not track.context_id:
            # 0.1 names the session in the call only.
            track.context_id = frame.context_id or exchange.context_id
        if track.numbers is not None or frame.generation > 0 or (not track.support and exchange.dialect is _V1_1):
            self._number(track, frame, exchange)
        if frame.state:
            _state(track, frame, exchange)
        self._message(track, frame)
        if frame.event is _ARTIFACT:
            _artifact(track, frame)
        elif frame.event is _TASK:
            _snapshot(track, frame)

    def _number(self, track: _TaskRecord, frame: Frame, exchange: TaskExchangeView) -> None:
        """Before the state is learned: a status update that changes none may have no number of its own."""
        numbers, event = track.numbers, frame.event
        if frame.generation <= 0:
            if event not in _NUMBERED:
                return
            if numbers is None:
                track.support = Support.NO
            else:
                progress = event is _STATUS and is_progress(frame.state, _shown(track, exchange.id))
                numbers.blank(exchange.id, frame.payload, progress=progress)
            return
        if numbers is None:
            numbers = track.numbers = TaskGenerations()
        progress = event is _STATUS and is_progress(frame.state, _shown(track, exchange.id))
        streams, digest = exchange.operation in STREAMS, 0 if event is _TASK else hash(frame.payload) or 1
        told = GenerationReport(frame.generation, frame.at, exchange.id, exchange.client, streams, digest, progress)
        numbers.tell(told, lambda missed: self._healed.append((track.task_id, missed)))

    def _touch(self, track: _TaskRecord, frame: Frame, exchange: TaskExchangeView, told: bool) -> None:
        key = (track.agent, track.task_id)
        if frame.at > track.last:
            track.last = frame.at
        if exchange.tenant and not track.tenant:
            track.tenant = exchange.tenant
        if exchange.id not in track.exchanges:
            self._exchange(track, exchange, told)
        if self._dirty.get(key) is not track:
            self._dirty[key] = track
            self._keep(key, track)

    @staticmethod
    def _exchange(track: _TaskRecord, exchange: TaskExchangeView, told: bool) -> None:
        track.exchanges[exchange.id] = -1
        if told and exchange.operation in _SENDS:
            # The message that made the task named none: it is counted now.
            track.messages += exchange.requests
        if len(track.exchanges) > MAX_EXCHANGES:
            del track.exchanges[next(iter(track.exchanges))]

    def _keep(self, key: Key, track: _TaskRecord) -> None:
        """Put it last in the order of idleness; make room."""
        self._tracks.pop(key, None)
        self._tracks[key] = track
        self._owners[track.task_id] = track.agent
        if len(self._tracks) > self._limit:
            self._forget(next(iter(self._tracks)))

    def _settle(self, key: Key, track: _TaskRecord) -> None:
        """Nothing is to be told of it now: where it is over, it is followed as the last of those only."""
        self._done.pop(key, None)
        if track.states and track.states[-1][1] in _FINAL and key in self._tracks:
            self._done[key] = None
            if len(self._done) > self._most_done:
                self._forget(next(iter(self._done)))

    def _forget(self, key: Key) -> None:
        """Follow it no longer. Who owns it is known for a while: a push may be late."""
        del self._tracks[key]
        self._done.pop(key, None)
        agent, task_id = key
        if self._owners.get(task_id) == agent:
            self._owners[task_id] = self._owners.pop(task_id)
            if len(self._owners) > len(self._tracks) + MAX_OWNERS:
                self._forget_owner()

    def _forget_owner(self) -> None:
        """That of the task forgotten first; those of tasks that are followed go to the end meanwhile."""
        while True:
            task_id, agent = next(iter(self._owners.items()))
            del self._owners[task_id]
            if (agent, task_id) not in self._tracks:
                return
            self._owners[task_id] = agent

    @staticmethod
    def _message(track: _TaskRecord, frame: Frame) -> None:
        """Count a message once, on however many streams and snapshots it comes; in 0.1 messages have no id."""
        if not frame.message_id:
            track.messages += frame.event is EventKind.MESSAGE
            return
        ident = hash(frame.message_id)
        if not track.message_id:
            track.message_id = ident
            track.messages += 1
            return
        others = track.message_ids
        if ident == track.message_id or (others is not None and ident in others):
            return
        track.messages += 1
        if others is None:
            track.message_ids = {ident}
        elif len(others) < MAX_SHOWN:
            others.add(ident)


def _state(track: _TaskRecord, frame: Frame, exchange: TaskExchangeView) -> None:
    """Record a change of state, unless this stream only repeats what another one has shown since it stood there."""
    states, shown = track.states, track.exchanges
    if not states:
        track.states, shown[exchange.id] = ((frame.at, frame.state),), 0
        return
    here = _place(track, exchange.id)
    if here == len(states) - 1 and states[here][1] == frame.state:
        return
    if not 0 <= here < len(states):
        here = max((index for index, (at, _) in enumerate(states) if at <= exchange.started), default=0)
    for index in range(here, len(states)):
        if states[index][1] == frame.state:
            shown[exchange.id] = index + track.dropped
            return
    states += ((frame.at, frame.state),)
    if len(states) > MAX_STATES:
        states = states[1:]
        track.dropped += 1
    track.states, shown[exchange.id] = states, len(states) - 1 + track.dropped


def _place(track: _TaskRecord, exchange: int) -> int:
    """Index in `states` up to which this exchange has shown the task; -1 where it has shown none."""
    count = track.exchanges.get(exchange, -1)
    return max(0, count - track.dropped) if count >= 0 else -1


def _shown(track: _TaskRecord, exchange: int) -> int:
    """The state in which this exchange has shown the task last; 0 for none."""
    place = _place(track, exchange)
    return track.states[place][1] if 0 <= place < len(track.states) else 0


def _artifact(track: _TaskRecord, frame: Frame) -> None:
    found = chunks(frame)
    chunk = found[0] if found else ArtifactChunk(frame.artifact_id, "", 0, 0, hash(frame.payload))
    state = track.artifacts.setdefault(frame.artifact_id, _TrackedArtifact(first=frame.at))
    state.last, state.told = frame.at, None
    state.name = state.name or chunk.name
    state.complete = state.complete or frame.last_chunk
    if _shown_before(state, chunk.content, frame.exchange):
        return
    state.chunks += 1
    if frame.append:
        state.parts += chunk.parts
        state.size += chunk.size
    else:
        state.parts, state.size = chunk.parts, chunk.size


def _shown_before(state: _TrackedArtifact, content: int, exchange: int) -> bool:
    """Another stream has shown this content at least as often as this one now has."""
    shown = state.shown
    most, place = shown.get(content, 0), hash((content, exchange))
    if len(shown) < 2 * MAX_SHOWN or place in shown:
        here = shown[place] = shown.get(place, 0) + 1
        shown[content] = max(most, here)
        return here <= most
    return most > 0


def _snapshot(track: _TaskRecord, frame: Frame) -> None:
    """Artifacts in a Task are whole; their numbers go before what was added up, unless the snapshot is older."""
    for chunk in chunks(frame):
        state = track.artifacts.setdefault(chunk.artifact_id, _TrackedArtifact(first=frame.at))
        state.last, state.told = frame.at, None
        state.name = state.name or chunk.name
        if not state.chunks:
            state.complete = True
        if chunk.parts >= state.parts:
            state.parts, state.size = chunk.parts, chunk.size
