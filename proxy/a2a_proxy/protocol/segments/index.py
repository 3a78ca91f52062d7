"""All conversations that are followed, found by task, exchange, context and trace; bounded, saved and restored."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.protocol.segments.call_chain import ChainStep, lengthened, span_of, trace_of
from a2a_proxy.protocol.segments.state import ConversationState, OpenExchange

MAX_TALKS = 2000
"""Tasks that are followed, those with an open call apart; the one that nobody has spoken in for longest makes room. Who
speaks in it after that begins with turn 1 again. A task takes some 550 octets."""
MAX_CONTEXTS = MAX_TRACES = 2000
_TRIES = 8


class ConversationIndex:
    """Conversations and open calls."""

    def __init__(self, limit: int = MAX_TALKS) -> None:
        self._limit = limit
        self._last = 0
        self._talks: dict[str, ConversationState] = {}
        """By task id, the one that nobody has spoken in for longest first."""
        self.calls: dict[int, OpenExchange] = {}
        """Open exchanges by number."""
        self._contexts: dict[str, list[ChainStep]] = {}
        """Context -> the conversation in it that a client spoke in last, then those that agents have begun in it."""
        self._traces: dict[str, list[ChainStep]] = {}
        """Trace id -> the conversations whose requests had it; the first one stays."""

    def make(self, agent: str, task_id: str, context_id: str) -> ConversationState:
        """A conversation that is not yet known to be about a task."""
        self._last += 1
        return ConversationState(self._last, agent, task_id, context_id)

    def of_task(self, agent: str, task_id: str) -> ConversationState | None:
        """The conversation about a task; where `agent` is empty, of any agent."""
        talk = self._talks.get(task_id)
        while talk is not None and agent and talk.agent != agent:
            talk = talk.twin
        return talk

    def keep(self, talk: ConversationState) -> None:
        """It is about a task from now on, which nobody else talks about."""
        talk.twin = self._talks.pop(talk.task_id, None)
        self._talks[talk.task_id] = talk
        if len(self._talks) > self._limit:
            self._make_room()

    def touch(self, talk: ConversationState) -> None:
        """The client speaks in it: the last to be forgotten."""
        first = self._talks.pop(talk.task_id, None)
        if first is not None:
            self._talks[talk.task_id] = first

    def _make_room(self) -> None:
        """Forget one that has no open call; where the oldest all have, there are more for a while."""
        for _ in range(_TRIES):
            task_id, talk = next(iter(self._talks.items()))
            del self._talks[task_id]
            if not (talk.tellers or (talk.twin is not None and talk.twin.tellers)):
                return
            self._talks[task_id] = talk

    def of_context(self, context_id: str) -> ConversationState | None:
        """The conversation of this context that a client spoke in last."""
        trail = self.context_trail(context_id)
        return trail[0].talk if trail else None

    def context_trail(self, context_id: str) -> list[ChainStep]:
        """That one, then the conversations that agents have begun in this context."""
        return self._contexts.get(context_id, []) if context_id else []

    def learn_context(self, talk: ConversationState, caller: ConversationState | None = None) -> None:
        """A client speaks in this conversation of its context; or the agent of `caller` does, as a client. One that has
        not told its own context yet is in the one that it uses."""
        trail = self.context_trail(talk.context_id)
        if caller is not None and trail:
            lengthened(trail, ChainStep(talk))
        elif talk.context_id:
            first = [ChainStep(talk)] if caller is None or caller.context_id else [ChainStep(caller), ChainStep(talk)]
            others = [step for step in trail[1:] if step.talk is not talk]
            self._contexts[talk.context_id] = [*first, *others]
            _bound(self._contexts, MAX_CONTEXTS)

    def name_context(self, talk: ConversationState) -> None:
        """The agent has told the context of this conversation."""
        if talk.context_id not in self._contexts:
            self.learn_context(talk)

    def trace_trail(self, traceparent: str) -> list[ChainStep]:
        """The conversations whose requests had this trace."""
        return self._traces.get(trace_of(traceparent), []) if traceparent and self._traces else []

    def learn_trace(self, traceparent: str, talk: ConversationState) -> None:
        """A request of this conversation had this trace."""
        trace = trace_of(traceparent)
        if trace:
            lengthened(self._traces.setdefault(trace, []), ChainStep(talk, span_of(traceparent)))
            _bound(self._traces, MAX_TRACES)

    def all(self) -> dict[int, ConversationState]:
        """Every conversation by its number."""
        found = {call.talk.number: call.talk for call in self.calls.values()}
        for chain in self._talks.values():
            talk: ConversationState | None = chain
            while talk is not None:
                found[talk.number] = talk
                talk = talk.twin
        for trails in (self._contexts, self._traces):
            found.update((step.talk.number, step.talk) for trail in trails.values() for step in trail)
        return found

    # --- across a restart ---------------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Plain values; conversations are named by their numbers."""
        return {
            "last": self._last,
            "talks": [_plain(talk) for talk in self.all().values()],
            "tasks": [talk.number for talk in self._talks.values()],
            "calls": [
                [number, call.talk.number, call.role, call.answered, call.tells] for number, call in self.calls.items()
            ],
            "contexts": _plain_trails(self._contexts),
            "traces": _plain_trails(self._traces),
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> ConversationIndex:
        """The book that gave `state`."""
        book = cls()
        book._last = state["last"]
        talks: dict[int, ConversationState] = {}
        twins: dict[int, int] = {}
        for saved in state["talks"]:
            twins[saved["number"]] = saved.pop("twin")
            talk = msgspec.convert(saved, ConversationState)
            talks[talk.number] = talk
        for number, twin in twins.items():
            talks[number].twin = talks.get(twin)
        book._talks = {talks[number].task_id: talks[number] for number in state["tasks"]}
        book.calls = {number: OpenExchange(talks[talk], *rest) for number, talk, *rest in state["calls"]}
        book._contexts, book._traces = (
            {name: [ChainStep(talks[number], span) for number, span in trail] for name, trail in state[kind]}
            for kind in ("contexts", "traces")
        )
        return book


def _plain(talk: ConversationState) -> dict[str, Any]:
    saved: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(talk, twin=None))
    saved["twin"] = talk.twin.number if talk.twin is not None else 0
    return saved


def _plain_trails(trails: dict[str, list[ChainStep]]) -> list[Any]:
    return [[name, [[step.talk.number, step.span] for step in trail]] for name, trail in trails.items()]


def _bound(trails: dict[str, list[ChainStep]], limit: int) -> None:
    if len(trails) > limit:
        del trails[next(iter(trails))]
