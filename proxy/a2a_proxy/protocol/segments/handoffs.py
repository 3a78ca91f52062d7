"""Hand-offs between agents: who hands over to whom, by which evidence (protocol sheet 8.5)."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.frame import Frame
from a2a_proxy.model.segment import Handoff
from a2a_proxy.protocol.segments.book import Book
from a2a_proxy.protocol.segments.evidence import content_marks, references
from a2a_proxy.protocol.segments.state import HandoffState, Talk

_RECENT = 32
"""Requests of which the content is remembered."""
_SMALL = 32_768
"""Octets; the content of longer requests is not compared."""
_MAX_AGENTS = 1000
_STILL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}) | frozenset(
    {TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED}
)
"""States in which an agent does nothing."""


class Handoffs:
    """The hand-offs of a session."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._last = 0
        self._changed: dict[int, HandoffState] = {}
        self._agents: dict[str, None] = {}
        """Who has been spoken to."""
        self._recent: deque[tuple[Talk, bytes, str]] = deque(maxlen=_RECENT)
        """The last requests: conversation, payload and schema."""

    # --- between tasks ------------------------------------------------------------------------------------------

    def asked(self, talk: Talk, frame: Frame, traceparent: str, client: str) -> None:
        """A client (at `client`, `host:port`) speaks in `talk`: an agent that delegates, a client that moves on?"""
        if talk.agent not in self._agents and len(self._agents) < _MAX_AGENTS:
            self._agents[talk.agent] = None
        delegated = False
        if len(self._agents) > 1:
            parent, evidence = self._parent(talk, frame, traceparent)
            if parent is not None:
                delegated = self._hand_over(parent, talk, frame, evidence, client)
        talk.connection = frame.connection
        if not delegated:
            self._book.learn_context(talk)
        if traceparent:
            self._book.learn_trace(traceparent, talk)
        if frame.size <= _SMALL:
            self._recent.append((talk, frame.payload, frame.schema))

    def _parent(self, talk: Talk, frame: Frame, traceparent: str) -> tuple[Talk | None, str]:
        """The conversation with another agent that this one comes from, by the strongest evidence."""
        book, agent = self._book, talk.agent
        traced = book.of_trace(traceparent)
        if traced is not None and traced.agent != agent:
            return traced, "traceparent"
        before = book.of_context(frame.context_id or talk.context_id)
        if before is not None and before.agent != agent:
            return before, "context"
        for task_id in references(frame):
            referred = book.of_task("", task_id)
            if referred is not None and referred.agent != agent:
                return referred, "reference"
        return self._alike(agent, frame), "content"

    def _alike(self, agent: str, frame: Frame) -> Talk | None:
        """A conversation with another agent, still at work, that was asked for something with the same content."""
        others = [each for each in self._recent if each[0].agent != agent and is_active(each[0])]
        if not others or frame.size > _SMALL:
            return None
        marks = content_marks(frame.payload, frame.schema)
        if marks:
            for talk, payload, schema in reversed(others):
                if marks & content_marks(payload, schema):
                    return talk
        return None

    def _hand_over(self, parent: Talk, child: Talk, frame: Frame, evidence: str, client: str) -> bool:
        """Tell of it; True for a delegation."""
        active = is_active(parent) and parent.connection != frame.connection and may_be_from(client, parent.agent)
        if not active and evidence != "context":
            return False
        kind = "delegation" if active else "next"
        made = self._make(parent, frame, kind, evidence, child.agent, child.task_id)
        made.to_exchange, made.briefing = frame.exchange, frame.size
        self._await(child, made)
        return active

    # --- within a task ------------------------------------------------------------------------------------------

    def transferred(self, talk: Talk, frame: Frame, to: str, evidence: str) -> None:
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

    def _make(self, talk: Talk, frame: Frame, kind: str, evidence: str, to: str, task: str) -> HandoffState:
        self._last += 1
        return HandoffState(
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

    def _await(self, talk: Talk, made: HandoffState) -> None:
        if talk.awaited is not None:
            self.end(talk, made.at, 0)
        talk.awaited, talk.busy = made, True
        self._changed[made.id] = made

    def end(self, talk: Talk, at: int, output: int) -> None:
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

    def touch(self, talks: list[Talk]) -> None:
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
        }

    def load(self, state: dict[str, Any], talks: dict[int, Talk]) -> None:
        """What `save` gave; `talks` are the restored conversations."""
        self._last = state["last"]
        open_now = {talk.awaited.id: talk.awaited for talk in talks.values() if talk.awaited}
        for saved in state["changed"]:
            each = msgspec.convert(saved, HandoffState)
            self._changed[each.id] = open_now.get(each.id, each)
        self._agents = dict.fromkeys(state["agents"])
        self._recent.extend((talks[number], payload, schema) for number, payload, schema in state["recent"])


def is_active(talk: Talk) -> bool:
    """Somebody waits for this agent, and it is at work."""
    return bool(talk.tellers) and talk.state not in _STILL


_LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


def may_be_from(client: str, agent: str) -> bool:
    """A call from `client` (`host:port`) may be one of the agent behind the upstream `agent`: not where both are
    addresses and differ."""
    here = client.rpartition(":")[0]
    there = agent.rpartition("//")[2].partition("/")[0].rpartition(":")[0]
    if here in _LOOPBACK or not _is_address(there):
        return True
    return here == there


def _is_address(host: str) -> bool:
    return bool(host) and (":" in host or host.replace(".", "").isdigit())
