"""The parties of a conversation, and the lanes between which a frame goes."""

from __future__ import annotations

from typing import Any

from a2a_inspect.lanes.model import PartyRole
from a2a_inspect.lanes.parties import ExchangeParties, Parties
from a2a_proxy.model.values import AGENT, Handoff, Segment
from a2a_proxy.model.wire import Direction

OUT, BACK = Direction.TO_AGENT, Direction.TO_CLIENT


def call(exchange: int, **more: Any) -> ExchangeParties:
    values: dict[str, Any] = {
        "connection": exchange,
        "client": f"10.0.0.1:{5000 + exchange}",
        "agent": "desk:1",
        "task_id": "t",
        "binding": "jsonrpc",
    }
    return ExchangeParties(exchange, **{**values, **more})


def handoff(kind: str, to_agent: str, to_task: str, to_exchange: int) -> Handoff:
    return Handoff(
        1, kind, "context", "desk:1", "t", "c", 1, to_agent, to_task, to_exchange, 1, 1, 10
    )


def authored_segment(start: int, author: str) -> Segment:
    return Segment(1, "desk:1", "t", "c", AGENT, 1, 1, 1, 1, 1, start, start, start, author=author)


def ways(parties: Parties, exchange: int, direction: Direction, at: int = 0) -> tuple[str, str]:
    source, target = parties.find_lanes(exchange, direction, at)
    return parties.lanes[source].name, parties.lanes[target].name


def test_one_client_on_several_connections_is_one_lane() -> None:
    parties = Parties([call(1), call(2)], [])
    assert [lane.name for lane in parties.lanes] == ["client", "desk:1"]
    assert ways(parties, 2, OUT) == ("client", "desk:1")
    assert ways(parties, 2, BACK) == ("desk:1", "client")


def test_clients_of_several_hosts_have_their_own_lanes() -> None:
    parties = Parties([call(1), call(2, client="10.0.0.2:5000")], [])
    assert [lane.name for lane in parties.lanes] == ["client 10.0.0.1", "desk:1", "client 10.0.0.2"]


def test_a_delegating_agent_is_the_client_of_the_other() -> None:
    """Also for its later calls: on the same connection, or about the task that it handed over."""
    calls = [
        call(1),
        call(2, agent="clerk:2", task_id="u"),
        call(3, agent="clerk:2", task_id="", connection=2),
        call(4, agent="clerk:2", task_id="u"),
        call(5, connection=1),
        call(6, agent="clerk:2", task_id="u", connection=1),
    ]
    parties = Parties(calls, [handoff("delegation", "clerk:2", "u", 2)])
    assert [lane.name for lane in parties.lanes] == ["client", "desk:1", "clerk:2"]
    assert [ways(parties, n, OUT)[0] for n in range(1, 7)] == [
        "client",
        "desk:1",
        "desk:1",
        "desk:1",
        "client",
        "client",  # the client's own connection
    ]


def test_an_author_within_a_task_has_a_lane() -> None:
    """What it says comes from there, as long as it is the author; the client still asks the
    agent."""
    segments = [
        authored_segment(100, "billing"),
        authored_segment(200, "desk"),
        authored_segment(10, "desk"),
    ]
    parties = Parties([call(1)], [handoff("transfer", "billing", "t", 1)], segments)
    assert [(lane.name, lane.role) for lane in parties.lanes][2:] == [("billing", PartyRole.AUTHOR)]
    assert [ways(parties, 1, BACK, at)[0] for at in (0, 50, 100, 150, 250)] == [
        "desk:1",
        "desk:1",
        "billing",
        "billing",
        "desk:1",
    ]
    assert ways(parties, 1, OUT, 150) == ("client", "desk:1")


def test_a_push_goes_from_the_agent_to_its_client() -> None:
    parties = Parties(
        [call(1), call(2, binding="webhook", agent="hook:9", client="10.0.0.9:1")], []
    )
    assert ways(parties, 2, OUT) == ("desk:1", "client 10.0.0.9")
