"""An index of the calls of a session: about 100 bytes for a call."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, Exchange

CLIENT_LEFT = frozenset({"client cancel", "client gone"})
"""How an exchange ends if the client has left."""
AGENT_LEFT = frozenset({"agent reset", "agent gone", "agent exited"})
SENDS = frozenset({"SendMessage", "SendStreamingMessage"})
_INTERRUPTED = frozenset(state.label for state in TaskState if state.interrupted)
_NUMBER_BITS = 40
_MAX_LEFT = 1000
"""Calls that are compared with each other."""


class CallIndex:
    """Numbers of calls by what is asked for. A number that is found by a task can be that of
    another task, if their hashes are equal."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        """`exchanges` are in order and need no headers."""
        self.served: set[tuple[str, Binding]] = set()
        """Agents and the bindings in which they have answered a call."""
        self.cards: dict[str, int] = {}
        """The last successful fetch of a card, by agent."""
        self.streams_left: list[int] = []
        """The first streams that a peer broke off."""
        self.calls_unanswered: list[int] = []
        """The first calls that a peer broke off before an answer."""
        self._by_task: list[int] = []
        self._successes: dict[tuple[str, str], tuple[array[int], array[int]]] = {}
        self._waiting: dict[str, list[int]] = {}
        for each in exchanges:
            self._add(each)
        self._by_task.sort()

    def _add(self, exchange: Exchange) -> None:
        number, agent, how = exchange.id, exchange.agent, exchange.how
        if exchange.task_id:
            self._by_task.append(_task_hash(agent, exchange.task_id) << _NUMBER_BITS | number)
        if how in CLIENT_LEFT | AGENT_LEFT:
            if not exchange.events and len(self.calls_unanswered) < _MAX_LEFT:
                self.calls_unanswered.append(number)
            if exchange.streaming and len(self.streams_left) < _MAX_LEFT:
                self.streams_left.append(number)
        if exchange.context_id in self._waiting and exchange.operation in SENDS:
            self._waiting[exchange.context_id].append(number)
        elif exchange.states and is_waiting(exchange.states[-1]):
            self._waiting.setdefault(exchange.context_id, [])
        if not exchange.events or exchange.ours:
            return
        if exchange.status in (0, 200):
            self.served.add((agent, exchange.binding))
        if exchange.error:
            return
        if exchange.operation == "GetAgentCard":
            self.cards[agent] = number
        if exchange.closed:
            starts, numbers = self._successes.setdefault(
                (agent, exchange.operation), (array("q"), array("q"))
            )
            starts.append(exchange.started)
            numbers.append(number)

    def calls_of_task(self, agent: str, task_id: str) -> list[int]:
        """Return the calls that name a task, in order."""
        first = _task_hash(agent, task_id) << _NUMBER_BITS
        begin = bisect_left(self._by_task, first)
        end = bisect_left(self._by_task, first + (1 << _NUMBER_BITS), begin)
        return [each - first for each in self._by_task[begin:end]]

    def successes_after(self, exchange: Exchange, at: int) -> Iterator[int]:
        """Yield the calls of the same operation and agent that began at a time, in ns, or later,
        and had a result."""
        starts, numbers = self._successes.get((exchange.agent, exchange.operation), ((), ()))
        return iter(numbers[bisect_left(starts, at) :])

    def sends_in_context(self, context_id: str) -> list[int]:
        """Return the calls that send a message in a context in which a task has waited before."""
        return self._waiting.get(context_id, [])


def is_waiting(state: str) -> bool:
    """Whether a task in this state waits for its client."""
    return state in _INTERRUPTED


def _task_hash(agent: str, task_id: str) -> int:
    return hash((agent, task_id)) & 0xFFFF_FFFF_FFFF_FFFF
