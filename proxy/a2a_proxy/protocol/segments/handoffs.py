"""Hand-offs between agents: who hands over to whom, by which evidence (manual/protocol.md "Hand-offs")."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from a2a_proxy.model.frame import Frame
from a2a_proxy.model.segment import Handoff
from a2a_proxy.protocol.segments.call_chain import PendingRequest, caller, span_of
from a2a_proxy.protocol.segments.evidence import content_marks, references
from a2a_proxy.protocol.segments.index import ConversationIndex
from a2a_proxy.protocol.segments.state import ConversationState, HandoffState

_RECENT = 32
"""Requests of which the content is remembered."""
_SMALL = 32_768
"""Octets; the content of longer requests is not compared."""
_MAX_AGENTS = 1000
_MAX_UNNAMED = 1000
"""Conversations; the one whose agent handed over first makes room."""
_MAX_BEFORE = 32
"""Hand-offs of one of them that are named later."""


class Handoffs:
    """The hand-offs of a session."""

    def __init__(self, book: ConversationIndex) -> None:
        self._book = book
        self._last = 0
        self._changed: dict[int, HandoffState] = {}
        self._agents: dict[str, None] = {}
        """Who has been spoken to."""
        self._recent: deque[tuple[ConversationState, bytes, str]] = deque(maxlen=_RECENT)
        """The last requests: conversation, payload and schema."""
        self._unnamed: dict[int, list[HandoffState]] = {}
        """By the number of a conversation of which nobody has told the task yet: what its agent has handed over."""

    # --- between tasks ------------------------------------------------------------------------------------------

    def asked(self, talk: ConversationState, frame: Frame, traceparent: str, client: str) -> None:
        """A client (at `client`, `host:port`) speaks in `talk`: an agent that delegates, a client that moves on?"""
        if talk.agent not in self._agents and len(self._agents) < _MAX_AGENTS:
            self._agents[talk.agent] = None
        delegator = None
        if len(self._agents) > 1:
            request = PendingRequest(talk.agent, client, frame.connection, span_of(traceparent))
            delegator = self._hand_over(talk, frame, traceparent, request)
        talk.connection = frame.connection
        self._book.learn_context(talk, delegator)
        if traceparent:
            self._book.learn_trace(traceparent, talk)
        if frame.size <= _SMALL:
            self._recent.append((talk, frame.payload, frame.schema))

    def _hand_over(
        self, talk: ConversationState, frame: Frame, traceparent: str, request: PendingRequest
    ) -> ConversationState | None:
        """Tell of it, where another agent has to do with it; for a delegation the conversation of who delegates."""
        kind = "delegation"
        parent, evidence = self._caller(talk, frame, traceparent, request)
        if parent is None:
            parent, evidence, kind = self._book.of_context(frame.context_id or talk.context_id), "context", "next"
            if parent is None or parent.agent == talk.agent:
                return None
        made = self._make(parent, frame, kind, evidence, talk.agent, talk.task_id)
        made.to_exchange, made.briefing = frame.exchange, frame.size
        self._await(talk, made)
        return parent if kind == "delegation" else None

    def _caller(
        self, talk: ConversationState, frame: Frame, traceparent: str, request: PendingRequest
    ) -> tuple[ConversationState | None, str]:
        """The conversation whose agent asks for this one, by the strongest evidence."""
        book = self._book
        if (traced := caller(book.trace_trail(traceparent), request)) is not None:
            return traced, "traceparent"
        if (before := caller(book.context_trail(frame.context_id or talk.context_id), request)) is not None:
            return before, "context"
        for task_id in references(frame):
            referred = book.of_task("", task_id)
            if referred is not None and request.may_come_from(referred):
                return referred, "reference"
        return self._alike(frame, request), "content"

    def _alike(self, frame: Frame, request: PendingRequest) -> ConversationState | None:
        """The last conversation that was asked for something with the same content."""
        others = [each for each in self._recent if request.may_come_from(each[0])]
        if not others or frame.size > _SMALL:
            return None
        marks = content_marks(frame.payload, frame.schema)
        if marks:
            for talk, payload, schema in reversed(others):
                if marks & content_marks(payload, schema):
                    return talk
        return None

    # --- within a task ------------------------------------------------------------------------------------------

    def transferred(self, talk: ConversationState, frame: Frame, to: str, evidence: str) -> None:
        """An agent's frame shows that another agent, called `to`, takes over within the task."""
        waiting = talk.awaited
        if waiting is not None and waiting.kind == "transfer":  # announced by the tool call before
            waiting.to_agent = to
            self._changed[waiting.id] = waiting
            return
        made = self._make(talk, frame, "transfer", evidence, to, talk.task_id)
        made.to_exchange = frame.exchange
        self._await(talk, made)

    # --- both ---------------------------------------------------------------------------------------------------

    def _make(
        self, talk: ConversationState, frame: Frame, kind: str, evidence: str, to: str, task: str
    ) -> HandoffState:
        self._last += 1
        made = HandoffState(
            self._last,
            kind,
            evidence,
            talk.agent,
            talk.task_id,
            talk.context_id,
            talk.last_agent or talk.last,
            to,
            task,
            0,
            frame.exchange,
            frame.seq,
            frame.at,
        )
        if not talk.task_id:
            before = self._unnamed.setdefault(talk.number, [])
            if len(before) < _MAX_BEFORE:
                before.append(made)
            if len(self._unnamed) > _MAX_UNNAMED:
                del self._unnamed[next(iter(self._unnamed))]
        return made

    def name(self, talk: ConversationState, known: ConversationState) -> None:
        """What `talk` is about is known now, it is what `known` is about: so is what its agent has handed over before,
        for an agent may ask the next one before it answers."""
        for made in self._unnamed.pop(talk.number, ()):
            made.task_id, made.context_id = known.task_id, known.context_id
            self._changed[made.id] = made

    def _await(self, talk: ConversationState, made: HandoffState) -> None:
        if talk.awaited is not None:
            self.end(talk, made.at, 0)
        talk.awaited, talk.busy = made, True
        self._changed[made.id] = made

    def end(self, talk: ConversationState, at: int, output: int) -> None:
        """The new agent has said something at `output`, or it is clear that it will not (0)."""
        waiting, talk.awaited = talk.awaited, None
        if waiting is not None:
            waiting.first_output, waiting.ended = output, at
            waiting.to_task = waiting.to_task or talk.task_id
            self._changed[waiting.id] = waiting

    def adopt(self, known: list[Handoff], last: int, at: int) -> None:
        """As `Cuts.adopt`."""
        self._last = last
        for each in known:
            state = HandoffState(*msgspec.structs.astuple(each))
            state.ended = max(at, state.at)
            self._changed[state.id] = state

    def changed(self) -> list[Handoff]:
        """Snapshots of those that changed since the last call, in order."""
        changed, self._changed = self._changed, {}
        return [changed[number].snapshot() for number in sorted(changed)]

    def touch(self, talks: list[ConversationState]) -> None:
        """What is open counts as changed."""
        self._changed.update((talk.awaited.id, talk.awaited) for talk in talks if talk.awaited)

    def save(self) -> dict[str, Any]:
        """Plain values."""
        known = self._book.all()
        return {
            "last": self._last,
            "changed": [msgspec.to_builtins(each) for each in self._changed.values()],
            "agents": list(self._agents),
            "recent": [
                [talk.number, payload, schema] for talk, payload, schema in self._recent if talk.number in known
            ],
            "unnamed": [[number, msgspec.to_builtins(some)] for number, some in self._unnamed.items()],
        }

    def load(self, state: dict[str, Any], talks: dict[int, ConversationState]) -> None:
        """What `save` gave; `talks` are the restored conversations."""
        self._last = state["last"]
        open_now = {talk.awaited.id: talk.awaited for talk in talks.values() if talk.awaited}
        for saved in state["changed"]:
            each = msgspec.convert(saved, HandoffState)
            self._changed[each.id] = open_now.get(each.id, each)
        for number, some in state["unnamed"]:
            states = msgspec.convert(some, list[HandoffState])
            self._unnamed[number] = [open_now.get(each.id) or self._changed.get(each.id, each) for each in states]
        self._agents = dict.fromkeys(state["agents"])
        self._recent.extend((talks[number], payload, schema) for number, payload, schema in state["recent"])
