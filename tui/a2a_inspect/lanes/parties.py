"""Parties of a conversation: its lanes, and the two lanes of each exchange."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from a2a_inspect.lanes.model import PartyLane, PartyRole
from a2a_proxy.model.values import Binding, Handoff, Segment
from a2a_proxy.model.wire import Direction


class ExchangeParties(msgspec.Struct, frozen=True):
    """Facts about an exchange."""

    exchange: int
    connection: int
    client: str
    """Address of the calling client."""
    agent: str
    """The called agent: that of the exchange's task, or that of the exchange."""
    task_id: str
    binding: str


class Parties:
    """The lanes of a conversation, in order of first appearance, and the lanes of each exchange."""

    def __init__(
        self,
        calls: Sequence[ExchangeParties],
        handoffs: Sequence[Handoff],
        segments: Iterable[Segment] = (),
    ) -> None:
        self.lanes: list[PartyLane] = []
        self._lanes_by_exchange: dict[int, tuple[int, int]] = {}
        callers = _find_callers(calls, handoffs)
        hosts = {_strip_port(call.client) for call in calls if call.exchange not in callers}
        for call in calls:
            host = _strip_port(call.client)
            own = PartyLane(
                f"client {host}" if len(hosts) > 1 and host else "client", PartyRole.CLIENT
            )
            agent = PartyLane(call.agent or "agent", PartyRole.AGENT)
            caller = callers.get(call.exchange)
            client = PartyLane(caller, PartyRole.AGENT) if caller else own
            if call.binding == Binding.WEBHOOK:  # the agent calls and its client receives
                of_task = (
                    c.agent
                    for c in calls
                    if c.task_id == call.task_id and c.binding != Binding.WEBHOOK
                )
                client, agent = PartyLane(next(of_task, "agent"), PartyRole.AGENT), own
            self._lanes_by_exchange[call.exchange] = (
                self._lane_index(client),
                self._lane_index(agent),
            )
        self._authors = _find_authors(handoffs, segments)
        self._author_lanes = {
            name: self._lane_index(PartyLane(name, PartyRole.AUTHOR))
            for name in _author_names(self._authors)
        }

    def find_lanes(self, exchange: int, direction: Direction, at: int) -> tuple[int, int]:
        """Return the source lane and the target lane of a frame at this time."""
        client, agent = self._lanes_by_exchange.get(exchange, (0, len(self.lanes) - 1))
        if direction is Direction.TO_AGENT:
            return client, agent
        name = self._author_at(self.lanes[agent].name, at) if self._authors else ""
        return self._author_lanes.get(name, agent), client

    def agent_lane(self, exchange: int) -> int:
        """Return the lane of the answering agent."""
        return self._lanes_by_exchange.get(exchange, (0, len(self.lanes) - 1))[1]

    def client_lane(self, exchange: int) -> int:
        """Return the lane of the calling client."""
        return self._lanes_by_exchange.get(exchange, (0, 0))[0]

    def _lane_index(self, lane: PartyLane) -> int:
        if lane not in self.lanes:
            self.lanes.append(lane)
        return self.lanes.index(lane)

    def _author_at(self, agent: str, at: int) -> str:
        times = self._authors.get(agent, [])
        place = bisect_right(times, at, key=lambda each: each[0]) - 1
        return times[place][1] if place >= 0 else ""


def _find_callers(calls: Sequence[ExchangeParties], handoffs: Sequence[Handoff]) -> dict[int, str]:
    """Return the calling agent of each exchange that another agent's work caused (a
    `delegation`)."""
    delegations = {each.to_exchange: each for each in handoffs if each.kind == "delegation"}
    connections = {
        call.connection: delegations[call.exchange].agent
        for call in calls
        if call.exchange in delegations
    }
    theirs = {
        (each.to_agent, each.to_task): each.agent for each in delegations.values() if each.to_task
    }
    clients = {call.connection for call in calls if (call.agent, call.task_id) not in theirs}
    callers: dict[int, str] = {}
    for call in calls:
        if call.exchange in delegations:
            callers[call.exchange] = delegations[call.exchange].agent
        elif call.connection in connections:
            callers[call.exchange] = connections[call.connection]
        elif (call.agent, call.task_id) in theirs and call.connection not in clients:
            callers[call.exchange] = theirs[call.agent, call.task_id]
    return callers


_AuthorTimes = dict[str, list[tuple[int, str]]]
"""Agent -> start times of the authors that speak for it."""


def _find_authors(handoffs: Sequence[Handoff], segments: Iterable[Segment]) -> _AuthorTimes:
    """Return the agents that took over within a task. The first author is the agent itself."""
    transfers = {(each.agent, each.to_agent) for each in handoffs if each.kind == "transfer"}
    times: _AuthorTimes = {}
    if transfers:
        for each in sorted(segments, key=lambda segment: segment.start):
            name = each.author if (each.agent, each.author) in transfers else ""
            times.setdefault(each.agent, []).append((each.start, name))
    return times


def _author_names(authors: _AuthorTimes) -> list[str]:
    return list(dict.fromkeys(name for times in authors.values() for _, name in times if name))


def _strip_port(address: str) -> str:
    """Return the address without its port, which differs for each connection."""
    host, colon, port = address.rpartition(":")
    return host if colon and port.isdecimal() else address
