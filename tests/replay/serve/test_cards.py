"""Cards lead to the mock, whatever their dialect; interfaces that cannot are removed or
reported."""

from __future__ import annotations

from typing import Any

from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.replay.core.script import (
    LineKind,
    RecordedCall,
    ReplayScript,
    ScriptLine,
    ScriptSide,
)
from a2a_proxy.replay.serve.cards import ReplayCards

HERE = "localhost:9001"
NEW = {
    "name": "new",
    "supportedInterfaces": [
        {
            "url": "http://127.0.0.1:41000/a2a/rpc?x=1",
            "protocolBinding": "JSONRPC",
            "protocolVersion": "1.0",
        },
        {"url": "127.0.0.1:41001", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        {"url": "python agent.py", "protocolBinding": "https://example.com/bindings/stdio"},
    ],
}
OLD = {
    "name": "old",
    "url": "https://agent.example/rpc",
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [{"url": "http://agent.example:50051", "transport": "GRPC"}],
}


def cards(
    value: Any, status: int = 200, path: str = "/.well-known/agent-card.json", **options: Any
) -> ReplayCards:
    """Of a recording in which this was read."""
    line = ScriptLine(
        number=1,
        side=ScriptSide.AGENT,
        what=LineKind.MESSAGE if status < 400 else LineKind.ERROR,
        value=value,
    )
    call = RecordedCall(
        place="#1",
        operation="GetAgentCard",
        binding=Binding.CARD,
        dialect=Dialect.V1_0,
        request={},
        lines=(line,),
        status=status,
        target=path,
    )
    return ReplayCards(ReplayScript(name="made", cards=(call,)), **options)


def test_every_interface_leads_to_the_mock() -> None:
    """HTTP keeps its path, gRPC is written as it was, a command is left out: it would start the
    real agent."""
    made = cards(NEW).localise_card(NEW, HERE)
    assert [each["url"] for each in made["supportedInterfaces"]] == [
        "http://localhost:9001/a2a/rpc?x=1",
        HERE,
    ]
    made = cards(OLD).localise_card(OLD, HERE)
    assert made["url"] == "http://localhost:9001/rpc"
    assert made["additionalInterfaces"] == [{"url": "http://localhost:9001", "transport": "GRPC"}]


def test_json_rpc_paths_are_read_from_the_card() -> None:
    """The paths of its interfaces; invalid URLs are ignored."""
    assert cards(NEW).rpc_paths == {"/a2a/rpc"}
    assert cards(OLD).rpc_paths == {"/rpc"}
    bad = {**OLD, "url": "http://[::1/rpc"}
    assert cards(bad).rpc_paths == {""}
    assert cards(bad).localise_card(bad, HERE)["url"] == "http://localhost:9001"


def test_missing_interfaces_are_added() -> None:
    """Those that the card has already are not listed twice."""
    made = cards(NEW, add=(Binding.REST, Binding.GRPC)).localise_card(NEW, HERE)
    added = {
        "url": "http://localhost:9001",
        "protocolBinding": "HTTP+JSON",
        "protocolVersion": "1.0",
    }
    assert made["supportedInterfaces"][2:] == [added]


def test_card_paths_are_served() -> None:
    """A path that was not read gives the card all the same; where there was none, 404."""
    assert cards(NEW).card_page("/.well-known/agent.json", HERE).status == 200
    missing = cards({"detail": "Not Found"}, 404)
    assert (missing.has_card, missing.card_page("/.well-known/agent-card.json", HERE).body) == (
        False,
        None,
    )
    assert ReplayCards(ReplayScript(name="made")).card_page("/", HERE).status == 404
    assert cards(NEW).offered_bindings == (Binding.JSONRPC, Binding.GRPC)


def test_changed_and_missing_cards_are_reported() -> None:
    """A broken signature, a kept card and a missing card are reported; otherwise nothing."""
    signed = {**NEW, "signatures": [{"protected": "e30", "signature": "c2ln"}]}
    assert "its signature is no longer valid" in cards(signed).card_notes()[0][0]
    (kept,) = cards(signed, keep=True).card_notes()
    assert "leave the mock" in kept[0]
    assert cards(signed, keep=True).localise_card(signed, HERE) == signed
    assert "no agent card" in ReplayCards(ReplayScript(name="made")).card_notes()[0][0]
    assert cards(NEW).card_notes() == []
