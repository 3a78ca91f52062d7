"""An index of the calls of a session: about 100 bytes for a call."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, Exchange

CLIENT_LEFT = frozenset({"client cancel", "client gone"})
"""How an exchange ends if the client has left."""
AGENT_LEFT = frozenset({"agent reset", "agent gone", "agent exited"})
SENDS = frozenset({"SendMessage", "SendStreamingMessage"})
_INTERRUPTED = frozenset(state.label for state in TaskState if state.interrupted)
_NUMBER_BITS = 40
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
_MAX_SENDS = 20
_MAX_NEAR = 100
_MAX_LEFT = 1000
"""Calls that are compared with each other."""


class NumberSample:
    """Numbers of calls: all, or of very many each second, fourth and so on, so that calls at the
    end of a session are compared too."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._count = 0
        self._step = 1

    def add(self, number: int) -> None:
        """Add a number, if it is its turn."""
        if self._count % self._step == 0:
            self.numbers.append(number)
        self._count += 1
        if len(self.numbers) > _MAX_LEFT:
            del self.numbers[1::2]
            self._step *= 2


class CallIndex:
    """Numbers of calls by what is asked for. A number that is found by a task can be that of
    another task, if their hashes are equal."""

    def __init__(self) -> None:
        self.served: set[tuple[str, Binding]] = set()
        """Agents and the bindings in which they have answered a call, also with an error."""
        self.answered: set[str] = set()
        """Addresses of agents that have sent a response of their protocol."""
        self.cards: dict[str, int] = {}
        """The last successful fetch of a card, by agent."""
        self.streams_left = NumberSample()
        """Streams that a peer broke off."""
        self.calls_unanswered = NumberSample()
        """Calls that a peer broke off before an answer."""
        self._by_task: list[int] = []
        self._successes: dict[tuple[str, str], tuple[array[int], array[int]]] = {}
        self._waiting: dict[str, list[int]] = {}

    def add_calls(self, exchanges: Iterable[Exchange]) -> None:
        """Add the next calls. They need no headers."""
        for each in exchanges:
            self._add(each)
        self._by_task.sort()

    def _add(self, exchange: Exchange) -> None:
        number, agent, how = exchange.id, exchange.agent, exchange.how
        if exchange.task_id:
            self._by_task.append(_task_hash(agent, exchange.task_id) << _NUMBER_BITS | number)
        if how in CLIENT_LEFT | AGENT_LEFT:
            if not exchange.events:
                self.calls_unanswered.add(number)
            if exchange.streaming:
                self.streams_left.add(number)
        if exchange.context_id in self._waiting and exchange.operation in SENDS:
            self._waiting[exchange.context_id].append(number)
        elif exchange.states and is_waiting(exchange.states[-1]):
            self._waiting.setdefault(exchange.context_id, [])
        if exchange.ours:
            return
        if exchange.status or exchange.events:
            self.answered.add(agent.partition("/")[0])
        if exchange.status in (0, 200) and (exchange.events or exchange.error_code):
            self.served.add((agent, exchange.binding))
        if exchange.error or not exchange.events:
            return
        if exchange.operation == "GetAgentCard":
            self.cards[agent] = number
        if exchange.closed:
            starts, numbers = self._successes.setdefault(
                (agent, exchange.operation), (array("q"), array("q"))
            )
            starts.append(exchange.started)
            numbers.append(number)

    def calls_of_task(self, exchange: Exchange) -> list[int]:
        """Return the calls that name the task of a call, in order: the nearest before and after
        it."""
        first = _task_hash(exchange.agent, exchange.task_id) << _NUMBER_BITS
        begin = bisect_left(self._by_task, first)
        end = bisect_left(self._by_task, first + (1 << _NUMBER_BITS), begin)
        here = bisect_left(self._by_task, first + exchange.id, begin, end)
        near = self._by_task[max(begin, here - _MAX_NEAR) : min(end, here + _MAX_NEAR)]
        return [each - first for each in near]

    def is_last_of_task(self, exchange: Exchange) -> bool:
        """Return whether no later call names the task of a call."""
        last = (_task_hash(exchange.agent, exchange.task_id) + 1) << _NUMBER_BITS
        place = bisect_left(self._by_task, last) - 1
        return place < 0 or self._by_task[place] & _NUMBER_MASK <= exchange.id

    def successes_after(self, exchange: Exchange, at: int) -> Iterator[int]:
        """Yield the calls of the same operation and agent that began at a time, in ns, or later,
        and had a result."""
        starts, numbers = self._successes.get((exchange.agent, exchange.operation), ((), ()))
        return islice(numbers, bisect_left(starts, at), None)

    def sends_after(self, waiting: Exchange) -> list[int]:
        """Return the first calls that send a message in the context of a task that waits, after the
        call that showed it."""
        sends = self._waiting.get(waiting.context_id, [])
        begin = bisect_left(sends, waiting.id + 1)
        return sends[begin : begin + _MAX_SENDS]


def is_waiting(state: str) -> bool:
    """Whether a task in this state waits for its client."""
    return state in _INTERRUPTED


def _task_hash(agent: str, task_id: str) -> int:
    return hash((agent, task_id)) & 0xFFFF_FFFF_FFFF_FFFF
