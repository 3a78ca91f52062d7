from __future__ import annotations

import pytest

from a2a_proxy.model.values import EventKind, FrameKind
from a2a_proxy.protocol.bindings.card import is_card_path, read_card
from support_conversation import Http, play

_OLD = {"name": "a", "url": "http://agent:8000/", "protocolVersion": "0.3.0", "skills": []}


@pytest.mark.parametrize(
    ("path", "card", "dialect"),
    [
        ("/.well-known/agent-card.json", {**_OLD, "supportedInterfaces": []}, "1.0"),
        ("/.well-known/agent-card.json", _OLD, "0.3"),
        ("/x/.well-known/agent.json", {"name": "a", "url": "http://agent:8000/"}, "0.2"),
        (
            "/.well-known/agent.json",
            {"name": "a", "url": "http://x/", "authentication": {"schemes": []}},
            "0.1",
        ),
        ("/agent/authenticatedExtendedCard", _OLD, "0.2"),
    ],
)
def test_card(path: str, card: dict, dialect: str) -> None:
    """A fetch of a card in any of its places; what it says of the dialect."""
    played = play(Http().request(f"GET {path}").answer(card))

    assert [(each.kind, each.event) for each in played.frames] == [
        (FrameKind.REQUEST, EventKind.NONE),
        (FrameKind.RESPONSE, EventKind.CARD),
    ]
    assert (played.exchange.binding, played.exchange.dialect) == ("card", dialect)
    assert played.shared.get_card(played.exchange.agent).name == "a"


def test_not_modified() -> None:
    """A conditional fetch is answered 304 without a body (manual/protocol.md "Wire traps")."""
    script = Http().request("GET /.well-known/agent-card.json", if_none_match='W/"1"')
    script.agent(b'HTTP/1.1 304 Not Modified\r\nETag: W/"1"\r\n\r\n')
    played = play(script)

    assert (played.frames[1].kind, played.frames[1].note) == (FrameKind.RESPONSE, "status 304")


def test_missing() -> None:
    """A client probes the old path: 404 is an error of the exchange."""
    played = play(
        Http()
        .request("GET /.well-known/agent.json")
        .answer(b"no", "404 Not Found", content_type="text/plain")
    )

    assert (played.frames[1].kind, played.exchange.error) == (
        FrameKind.ERROR,
        "HTTP 404: no",
    )


def test_paths_and_shapes() -> None:
    """Only GET and HEAD of the known paths; only objects that look like a card."""
    assert is_card_path("HEAD", "/.well-known/agent-card.json?x")
    assert not is_card_path("POST", "/.well-known/agent-card.json")
    assert read_card(b'{"skills":[]}') is not None
    assert read_card(b'{"name":"a"}') is None
    assert read_card(b"[]") is None
    assert read_card(b"\xff") is None


def test_card_in_another_place() -> None:
    """A JSON document with a name and skills is a card wherever it is fetched from; others are
    not."""
    card = play(Http().request("GET /agents/7/card").answer({"name": "a", "skills": []}))
    other = play(Http().request("GET /people/7").answer({"name": "a", "skills": "many"}))

    assert (card.exchange.binding, card.exchange.operation, card.frames[1].event) == (
        "card",
        "GetAgentCard",
        EventKind.CARD,
    )
    assert (other.exchange.binding, other.frames[1].kind) == ("other", FrameKind.OTHER)
