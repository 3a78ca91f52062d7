"""Names of agents: the user's, that of the card, the address."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from a2a_inspect.data.agent_names import AgentNames
from a2a_proxy.model.values import (
    Binding,
    Changes,
    Connection,
    EventKind,
    Exchange,
    Frame,
    FrameKind,
)
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.writer import Writer
from support_inspect import exchange, frame
from support_recording import STARTED, facts

AGENTS = ("desk:8000", "clerk:8000", "till:8000")


def card(number: int, connection: int, body: object) -> tuple[Exchange, Frame]:
    """The call of this number for a card, and its answer."""
    place = {"connection": connection, "agent": AGENTS[connection - 1]}
    call = exchange(number, **place, binding=Binding.CARD, operation="GetAgentCard", task_id="")
    answer = frame(
        number, 0, json.dumps(body).encode(), kind=FrameKind.RESPONSE, event=EventKind.CARD
    )
    return call, answer


def names_of(
    path: Path, calls: list[tuple[Exchange, Frame]], given: tuple[str, ...] = ()
) -> list[str]:
    """Return the names of three agents, two of which have listeners, and of one below the first."""
    listens = ("127.0.0.1:9000", "127.0.0.1:9001")
    made = Writer(
        path, msgspec.structs.replace(facts(), listens=listens, upstreams=AGENTS[:2], names=given)
    )
    connections = [
        Connection(number, "127.0.0.1:5000", f"127.0.0.1:{8999 + number}", agent, STARTED)
        for number, agent in enumerate(AGENTS, 1)
    ]
    exchanges, frames = [call for call, _ in calls], [answer for _, answer in calls]
    made.write(frames, changes=Changes(connections, exchanges, []))
    made.finish(STARTED + 10**12)
    with Recording(path) as recording:
        names = AgentNames(recording, 1)
        return [names.find(agent) for agent in (*AGENTS, "desk:8000/a2a/x")]


@pytest.mark.parametrize(
    ("bodies", "given", "expected"),
    [
        ({}, (), ["desk:8000", "clerk:8000", "till:8000", "desk:8000/a2a/x"]),
        ({1: "Desk", 2: "Clerk"}, (), ["Desk", "Clerk", "till:8000", "desk:8000/a2a/x"]),
        (
            {1: "Desk", 2: "Desk"},
            (),
            ["Desk (desk:8000)", "Desk (clerk:8000)", "till:8000", "desk:8000/a2a/x"],
        ),
        ({1: "Desk"}, ("front", "back"), ["front", "back", "till:8000", "front/a2a/x"]),
        ({1: 7, 3: ""}, (), ["desk:8000", "clerk:8000", "till:8000", "desk:8000/a2a/x"]),
    ],
)
def test_names_are_those_of_the_user_then_of_the_cards(
    tmp_path: Path, bodies: dict[int, object], given: tuple[str, ...], expected: list[str]
) -> None:
    """The last card counts that has a name; a card of another kind changes nothing. Equal names
    have addresses."""
    calls = [card(number, number, {"name": name}) for number, name in bodies.items()]
    calls += [card(10, 1, {"name": "Desk"}), card(11, 1, [])] if bodies.get(1) == "Desk" else []
    assert names_of(tmp_path / "r.a2a.db", calls, given) == expected


def test_an_unknown_session_has_no_names(tmp_path: Path) -> None:
    names_of(tmp_path / "r.a2a.db", [])
    with Recording(tmp_path / "r.a2a.db") as recording:
        assert AgentNames(recording, 9).find("desk:8000") == "desk:8000"
