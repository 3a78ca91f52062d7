"""What rules know of the traffic so far: agents, tasks, open exchanges (manual/protocol.md "Rules and evidence").

Shared by all connections and bindings of a session. Learns from redacted frames, judges nothing.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Dialect
from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.model.task import Task
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.protocol.session_facts import SessionContext
from a2a_proxy.protocol.task_list import split_task_list
from a2a_proxy.rules.define.rule import FrameFlag
from a2a_proxy.rules.facts.partial_decode import ArtifactLook, Seen, StatusLook, artifacts_of
from a2a_proxy.rules.run import status_fast_path
from a2a_proxy.rules.state import state_sequence
from a2a_proxy.rules.state.card_declarations import declare
from a2a_proxy.rules.state.records import ACTIVE, AgentRecord, ExchangeRecord, Notes, RequestSnapshot, TaskRecord
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS, TERMINAL, KnownArtifact

MAX_TASKS = 100_000
MAX_DONE = 5000
"""Tasks that are over and still known: of older ones only that they were there. What comes of one makes it anew."""
LAGGING = 10_000_000_000
"""For so long (ns) a stream that is left alone may still tell what another one has told."""
MAX_SAVED = 1000
"""Tasks that are saved: those touched last."""
LARGE = 4 << 20
"""What receivers commonly take as one message, octets (manual/protocol.md "gRPC framing")."""


class SessionState:
    """One per session."""

    def __init__(self, limit: int = MAX_TASKS, done: int = MAX_DONE) -> None:
        self._limit = limit
        self.shared = SessionContext()
        self.agents: dict[str, AgentRecord] = {}
        self.tasks: dict[tuple[str, str], TaskRecord] = {}
        """The one idle for longest first, but for a few places."""
        self._moves, self._near = 0, limit // 1000
        """A task that is told of stays in its place while so few others were put behind it."""
        self._most_done = done
        self._done: dict[tuple[str, str], None] = {}
        """Tasks that are over, and of which no stream is open; the one spoken of last is the last."""
        self._gone: dict[int, None] = {}
        """Of those that were forgotten: CRC-32 of agent and id."""
        self.owners: dict[str, str] = {}
        """Task id -> its agent, for webhooks."""
        self.tracks: dict[int, ExchangeRecord] = {}
        self.clients: dict[str, Notes] = {}
        """Host of a client -> notes."""
        self.notes: Notes = {}
        self._look: ArtifactLook | None = None
        """Of the artifact update that was told last."""
        self.whole = True
        """Everything since the session's beginning is known: no task had to be forgotten."""

    def agent(self, upstream: str) -> AgentRecord:
        """Who answers behind an upstream."""
        name = self.shared.agent_of(upstream)
        found = self.agents.get(name)
        if found is None:
            found = self.agents[name] = AgentRecord(name)
        return found

    def client(self, host: str) -> Notes:
        """Notes about one client."""
        return self.clients.setdefault(host, {})

    def task(self, agent: str, task_id: str) -> TaskRecord | None:
        """A task that was seen before."""
        return self.tasks.get((agent, task_id))

    def ever(self, agent: str, task_id: str) -> bool:
        """It was seen, although it may be forgotten."""
        return (agent, task_id) in self.tasks or _mark(agent, task_id) in self._gone

    # --- learning -----------------------------------------------------------------------------------------------

    def asked(self, track: ExchangeRecord, frame: Frame) -> None:
        """A request: note what is known now, and that the client spoke."""
        # On a live stream a further message may leave the task's id out.
        task_id = frame.task_id or track.task_id
        known = self.tasks.get((track.agent, task_id)) if task_id else None
        if track.asked is None:
            track.request = frame
            track.asked = RequestSnapshot(frame.at, frame.task_id, frame.context_id, frame.message_id, frame.generation)
            if known is not None:
                self._note_known(track.asked, known)
            elif task_id:
                track.asked.forgotten = self.ever(track.agent, task_id)
        if known is not None:
            known.last = frame.at
            # To reconnect says nothing; what follows on that stream does.
            if track.operation in SENDING_OPERATIONS or (track.operation == "ReconnectToTask" and frame is not track.request):
                known.awaits, known.spoken = False, frame.at
        if task_id != track.task_id and track.task_id and frame is not track.request:
            here = self.tasks.get((track.agent, track.task_id))  # the agent may take it for an answer all the same
            if here is not None:
                here.awaits, here.spoken = False, frame.at

    @staticmethod
    def _note_known(asked: RequestSnapshot, known: TaskRecord) -> None:
        asked.known = True
        asked.state = known.state
        asked.terminal = known.terminal
        asked.stamp = known.stamp
        asked.known_generation = known.generation
        asked.known_context = known.context_id
        asked.awaited = known.awaits

    def told(
        self, track: ExchangeRecord, frame: Frame, known: TaskRecord | None, seen: Seen = False
    ) -> tuple[int, TaskRecord | None]:
        """An answer: learn from it, and say what is notable about it (`When`, as a number: that is faster), and which
        task it is about now. `known` is the task that it names, as `task` has it; `seen` is what its update shows,
        where that has been read."""
        kind, event = frame.kind, frame.event
        if kind is not _EVENT and kind is not _RESPONSE:
            if kind is _COMMENT:
                return _OTHER, None
            if kind is _END_KIND:
                return self._ended(track, frame)
        flags = 0 if track.answers else _FIRST
        track.answers += 1
        if frame.framing not in status_fast_path.PLAIN_FRAMINGS:
            flags |= _FRAMED
        if frame.size > LARGE:
            flags |= _LARGE
        if track.errors:
            flags |= _AFTER_ERROR
        if kind is _ERROR_KIND:
            track.errors += 1
            return flags | _ERROR, self.tasks.get((track.agent, frame.task_id or track.task_id))
        if track.events:
            flags |= _LATER
        of_event = _EVENTS[event]
        if not of_event or (kind is not _EVENT and kind is not _RESPONSE):
            flags |= _OTHER | _COUNTED if frame.generation > 0 else _OTHER
            known = None
            if kind is _UNDECODABLE:
                self._not_read(track, frame)
        else:
            flags |= of_event
            if event is _STATUS and frame.at - track.started >= status_fast_path.SILENCE:
                flags |= status_fast_path.together(track, frame.at)
            track.events += 1
            if track.events == 1:
                track.first = event
            if frame.task_id and event is not _PUSH_CONFIG:
                known, more = self._task_told(track, frame, event, known, seen)
                flags |= more
            else:
                known = None
                if event is _TASKS:
                    self._listed(track, frame)
                elif event in _OF_TASKS:
                    self._not_read(track, frame)
            track.last = event
        if track.operation in STREAMING_OPERATIONS and frame.payload:
            flags |= status_fast_path.repeated(track, frame.payload)
        track.last_at, track.last_seq = frame.at, frame.seq
        return flags, known

    def goes_on(self, track: ExchangeRecord, frame: Frame, known: TaskRecord, look: StatusLook) -> int:
        """The same as `told` of an update that `steady.goes_on`, in less time."""
        if not known.moved or self._moves - known.moved > self._near:
            self._move(known)
        return status_fast_path.told(track, frame, known, look)

    def _not_read(self, track: ExchangeRecord, frame: Frame) -> None:
        """Nobody could read it, or it does not say of which task or artifact it is, or it says another task's: it may
        have been any event, of the task's end, or a piece of an artifact."""
        track.unread = frame.at
        known = self.tasks.get((track.agent, track.task_id))
        for each in known.artifacts.values() if known is not None else ():
            if each.stream == track.id and not each.ended:
                each.whole = False

    def _ended(self, track: ExchangeRecord, frame: Frame) -> tuple[int, TaskRecord | None]:
        """GRPC trailers, or the end of an event stream."""
        end = _END | _EXTENDS if b"-extensions" in frame.payload.lower() else _END
        if not frame.error_code:
            return end, None
        first = 0 if track.answers else _FIRST
        track.answers += 1
        track.errors += 1
        return first | end | _ERROR, self.tasks.get((track.agent, track.task_id))

    def _task_told(
        self, track: ExchangeRecord, frame: Frame, event: EventKind, known: TaskRecord | None, seen: Seen
    ) -> tuple[TaskRecord | None, int]:
        flags, task_id, at, context = 0, frame.task_id, frame.at, frame.context_id
        strange = track.task_id != task_id and track.task_id != ""
        if strange:
            self._not_read(track, frame)
            if known is None:
                return None, _NEW_TASK | _FOREIGN  # a stray event: nothing that a task can be known by
        if known is not None and track.events == 1 and track.operation in SENDING_OPERATIONS:
            known = self._answered(track, frame, known)
        if known is None:
            flags = _NEW_TASK
            known = self._new(track, frame)
        if not known.moved or self._moves - known.moved > self._near:
            self._move(known)
        known.last = at
        if not track.task_id:
            track.task_id = task_id
            if track.streams and track.id not in known.streams:
                known.joined += 1
                known.streams[track.id] = known.joined
            if track.asked is not None and track.asked.task_id not in ("", task_id):
                flags |= _FOREIGN
        if context:
            if not known.context_id:
                known.context_id = context
            elif context != known.context_id:
                flags |= _FOREIGN
            if not track.context_id:
                track.context_id = context
        if len(known.streams) > 1 or (known.alone and at - known.alone < LAGGING):
            flags |= _SHARED
        if strange:
            return known, flags | _FOREIGN
        # A stream lags behind others: another exchange's terminal state counts where it came before the request.
        if track.terminal or 0 < known.terminal < track.started:
            flags |= _AFTER_TERMINAL
        if frame.state:
            flags |= state_sequence.state_told(track, frame, known, seen)
        elif event is _STATUS or (event is _ARTIFACT and _nameless(frame)):
            self._not_read(track, frame)
        if frame.generation or known.generation or known.numbered == "yes":
            flags |= _NUMBERED
        if event is _ARTIFACT:
            self._look = seen if type(seen) is ArtifactLook else next(iter(artifacts_of(frame)), None)
            flags |= state_sequence.artifact_flags(track, frame, known, self._look)
        return known, flags

    def _move(self, known: TaskRecord) -> None:
        """Put it last in the order of idleness. Where it was put there a short while ago it may stay where it is."""
        key = (known.agent, known.task_id)  # its own strings: each frame brings new ones
        self.tasks.pop(key, None)
        self.tasks[key] = known
        self._moves += 1
        known.moved = self._moves

    def _answered(self, track: ExchangeRecord, frame: Frame, known: TaskRecord) -> TaskRecord | None:
        """A send's first answer is about a task that is known: does it go on, or is its id issued again?"""
        asked = track.asked
        if asked is None or asked.task_id or known.first >= asked.at:
            return known
        goes_on = asked.context_id == known.context_id and frame.state != TaskState.SUBMITTED
        if goes_on or not known.born or known.made_by == _ident(asked.message_id):
            known.awaits, known.spoken = False, asked.at
            return known
        made = self._new(track, frame)
        made.reissued = True
        return made

    def _listed(self, track: ExchangeRecord, frame: Frame) -> None:
        """A list tells of tasks that were not seen yet; about those that were it may be behind."""
        for each in split_task_list(frame):
            key = (track.agent, each.task_id)
            if key not in self.tasks:
                known = self.tasks[key] = self._new(track, each)
                known.context_id = each.context_id
                if each.state:
                    known.states.append((each.at, each.state))
                    known.terminal = each.at if each.state in TERMINAL else 0
                self._settle(known)

    def _new(self, track: ExchangeRecord, frame: Frame) -> TaskRecord:
        known = TaskRecord(track.agent, frame.task_id, first=frame.at)
        creates = track.operation in SENDING_OPERATIONS and track.task_id in ("", frame.task_id)
        if creates and track.asked is not None and not track.asked.task_id:
            known.born, known.made_by = track.id, _ident(track.asked.message_id)
        self.owners[known.task_id] = known.agent
        if len(self.tasks) >= self._limit:
            self._forget(*next(iter(self.tasks)))
            self.whole = False
        return known

    def _settle(self, known: TaskRecord) -> None:
        """Where it is over, it is known as the last of those only."""
        if not known.terminal or known.streams:
            return
        key = (known.agent, known.task_id)
        self._done.pop(key, None)
        self._done[key] = None
        if len(self._done) <= self._most_done:
            return
        oldest = next(iter(self._done))
        del self._done[oldest]
        found = self.tasks.get(oldest)
        if found is not None and found.terminal and not found.streams:  # it may have gone on since
            self._forget(*oldest)
            self._gone[_mark(*oldest)] = None
            if len(self._gone) > self._limit:
                del self._gone[next(iter(self._gone))]
                self.whole = False

    def _forget(self, agent: str, task_id: str) -> None:
        del self.tasks[agent, task_id]
        self._done.pop((agent, task_id), None)
        if self.owners.get(task_id) == agent:
            del self.owners[task_id]

    def numbered(self, track: ExchangeRecord, frame: Frame, known: TaskRecord) -> None:
        """Learn a generation, after the rules have looked at the one before."""
        if frame.generation > 0:
            track.generation = frame.generation
            known.generation = max(known.generation, frame.generation)
            known.numbered = known.numbered or "yes"
            self.agents.setdefault(track.agent, AgentRecord(track.agent)).numbers = True
        elif not known.numbered and frame.event is not EventKind.MESSAGE:
            known.numbered = "no"

    def artifacts_told(self, track: ExchangeRecord, frame: Frame, known: TaskRecord) -> None:
        """Learn of artifacts, after the rules have looked at what was known."""
        if track.task_id != frame.task_id:
            return
        if frame.event is EventKind.TASK:
            state_sequence.artifacts_told(frame, known)
        elif frame.event is EventKind.ARTIFACT and self._look is not None:
            state_sequence.artifact_told(self.tracks, track, frame, known, self._look)

    def over(self, track: ExchangeRecord) -> None:
        """An exchange is over."""
        self.tracks.pop(track.id, None)
        known = self.tasks.get((track.agent, track.task_id)) if track.task_id else None
        if known is None:
            return
        if track.id in known.streams:
            del known.streams[track.id]
            if len(known.streams) == 1 and track.final is not None:
                known.alone = track.final.closed
            if track.state in ACTIVE and track.final is not None and track.final.how != "complete":
                known.remember()["broken"] = True
        self._settle(known)

    def learn_card(self, upstream: str, card: dict[str, Any], at: int, *, extended: bool) -> AgentRecord:
        """A card passed."""
        self.shared.learn_card(upstream, card)
        agent = self.agent(upstream)
        if extended:
            agent.extended = card
        else:
            agent.card, agent.card_at = card, at
        agent.declared = declare([agent.card, agent.extended], at, agent.declared)
        return agent

    # --- across a restart ---------------------------------------------------------------------------------------

    def load(self, tasks: list[Task]) -> None:
        """Take up tasks that a recording holds; those known already stay."""
        for task in tasks:
            key = (task.agent, task.task_id)
            if key in self.tasks:
                continue
            known = TaskRecord(
                task.agent, task.task_id, task.context_id, list(task.states)[-state_sequence.MAX_STATES :]
            )
            known.first, known.last, known.generation = task.first, task.last, task.generation
            known.numbered = "yes" if task.generation else ""
            known.terminal = next((at for at, state in task.states if state in TERMINAL), 0)
            known.artifacts = {each.artifact_id: KnownArtifact(each.chunks, name=each.name) for each in task.artifacts}
            self.tasks[key] = known
            self.owners[task.task_id] = task.agent
            self._settle(known)

    def save(self) -> dict[str, Any]:
        """Plain values from which `restore` goes on; of the tasks those touched last."""
        tasks = list(self.tasks.values())[-MAX_SAVED:]
        return {
            "shared": self.shared.save(),
            "agents": [msgspec.to_builtins(each) for each in self.agents.values()],
            "tasks": [msgspec.to_builtins(each) for each in tasks],
            "tracks": [msgspec.to_builtins(each, builtin_types=(bytes,)) for each in self.tracks.values()],
            "clients": self.clients,
            "notes": self.notes,
            "whole": self.whole and not self._gone and len(tasks) == len(self.tasks),
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> SessionState:
        """The world that gave `state`, without its older tasks."""
        world = cls()
        world.shared = SessionContext.restore(state["shared"])
        world.agents = {each["name"]: msgspec.convert(each, AgentRecord) for each in state["agents"]}
        tasks = [msgspec.convert(each, TaskRecord) for each in state["tasks"]]
        world.tasks = {(each.agent, each.task_id): each for each in tasks}
        world._moves = max((each.moved for each in tasks), default=0)
        world.owners = {each.task_id: each.agent for each in tasks}
        tracks = [msgspec.convert(each, ExchangeRecord, builtin_types=(bytes,)) for each in state["tracks"]]
        world.tracks = {each.id: each for each in tracks}
        for each in tasks:
            world._settle(each)
        world.clients = state["clients"]
        world.notes = state["notes"]
        world.whole = state["whole"]
        return world


_FIRST, _OTHER, _ERROR, _END, _LATER = map(
    int, (FrameFlag.FIRST, FrameFlag.OTHER, FrameFlag.ERROR, FrameFlag.END, FrameFlag.LATER)
)
_EXTENDS, _COUNTED = int(FrameFlag.EXTENDS), int(FrameFlag.COUNTED)
_NEW_TASK, _FOREIGN, _SHARED = int(FrameFlag.NEW_TASK), int(FrameFlag.FOREIGN), int(FrameFlag.SHARED)
_AFTER_TERMINAL, _NUMBERED = int(FrameFlag.AFTER_TERMINAL), int(FrameFlag.NUMBERED)
_FRAMED, _LARGE, _AFTER_ERROR = int(FrameFlag.FRAMED), int(FrameFlag.LARGE), int(FrameFlag.AFTER_ERROR)
_OF_TASKS = frozenset({EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT})
_FLAGS = {
    EventKind.TASK: FrameFlag.TASK,
    EventKind.STATUS: FrameFlag.STATUS,
    EventKind.ARTIFACT: FrameFlag.ARTIFACT,
    EventKind.MESSAGE: FrameFlag.MESSAGE,
    EventKind.CARD: FrameFlag.CARD,
    EventKind.TASKS: FrameFlag.LIST,
    EventKind.PUSH_CONFIG: FrameFlag.PUSH,
    EventKind.PUSH_CONFIGS: FrameFlag.PUSH,
}
_EVENTS = tuple(int(_FLAGS.get(each, 0)) for each in sorted(EventKind))
"""By the number of the kind of event: its flag; 0 for what is none of A2A's objects."""
_EVENT, _RESPONSE, _COMMENT = FrameKind.EVENT, FrameKind.RESPONSE, FrameKind.COMMENT
_END_KIND, _ERROR_KIND, _UNDECODABLE = FrameKind.END, FrameKind.ERROR, FrameKind.UNDECODABLE
_STATUS, _ARTIFACT, _TASKS, _PUSH_CONFIG = EventKind.STATUS, EventKind.ARTIFACT, EventKind.TASKS, EventKind.PUSH_CONFIG
"""Bound here: where it is asked for each frame, `EventKind.STATUS` costs 0.1 us (CPython 3.11)."""


def _mark(agent: str, task_id: str) -> int:
    return crc32(f"{agent} {task_id}".encode("utf-8", "surrogatepass"))


def _ident(message_id: str) -> int:
    return crc32(message_id.encode("utf-8", "surrogatepass")) if message_id else 0


def _nameless(frame: Frame) -> bool:
    """An artifact update that does not say of which artifact. 0.1 has no ids: there it is the first, "0"."""
    if frame.artifact_id != "0" or frame.schema != "json":
        return not frame.artifact_id
    return b'"artifactId"' not in frame.payload and b'"taskId"' in frame.payload


def lines_of(dialect: Dialect) -> Dialect:
    """The dialect as rules tell them apart: 1.1 is 1.0 with a draft."""
    return Dialect.V1_0 if dialect is Dialect.V1_1 else dialect
