from __future__ import annotations

from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.model.values import Dialect
from a2a_proxy.protocol.session_facts import SessionContext, address_of, card_facts
from support_wire import reload


def test_survives_a_restart() -> None:
    """Everything known comes back, through msgpack."""
    shared = SessionContext(live="1975")
    assert [shared.next_exchange(), shared.next_exchange()] == [1, 2]
    shared.learn_card(
        "agent:8000",
        {"name": "a", "supportedInterfaces": [{"url": "http://other:1/x", "tenant": "t"}]},
    )
    shared.learn_dialect("agent:8000", Dialect.V0_1)
    shared.learn_push_url("http://hook/1", "agent:8000")
    again = reload(shared)

    assert encode_state(again) == encode_state(shared)
    assert again.live == "1975"
    assert again.next_exchange() == 3
    assert again.get_dialect("agent:8000") is Dialect.V0_1
    assert again.get_card("agent:8000") == shared.get_card("agent:8000")
    assert again.agent_of_push_url("hook", "/1") == "agent:8000"
    assert again.agent_at("other:1", "/x") == "agent:8000"


def test_receivers_of_notifications_are_reported_once() -> None:
    """By origin, without user information, path and query, which may hold secrets; also after a
    restart."""
    shared = SessionContext()
    for url in (
        "http://user:word@hook:1/a?b",
        "http://hook:1/c",
        "https://other/",
        "ftp://x/",
        "",
        "http://[",
        "http://",
    ):
        shared.learn_push_url(url, "agent:8000")
    assert shared.pop_new_receivers() == ["http://hook:1", "https://other"]
    assert shared.pop_new_receivers() == []
    again = reload(shared)
    again.learn_push_url("http://hook:1/d", "agent:8000")
    assert again.pop_new_receivers() == []
    for number in range(100):
        again.learn_push_url(f"http://many{number}/", "agent:8000")
    assert len(again.pop_new_receivers()) < 20


def test_cards_of_every_line() -> None:
    """The 1.0 interfaces go before the old members; a card without version is dated by its
    members."""
    merged = {
        "url": "http://a/",
        "protocolVersion": "0.3.0",
        "supportedInterfaces": [{"url": "b:1", "protocolVersion": "1.0"}, 7],
    }
    old = {
        "url": "http://a/x/",
        "protocolVersion": "0.3.0",
        "additionalInterfaces": [{"url": "http://a/rest", "transport": "HTTP+JSON"}],
    }

    assert [each.url for each in card_facts(merged).interfaces] == ["b:1"]
    assert [(each.path, each.binding) for each in card_facts(old).interfaces] == [
        ("/x", "JSONRPC"),
        ("/rest", "HTTP+JSON"),
    ]
    assert [
        card_facts(card).version for card in ({"url": "u"}, {"url": "u", "authentication": {}}, {})
    ] == [
        "0.2",
        "0.1",
        "",
    ]
    assert card_facts({"name": 7, "supportedInterfaces": {}, "url": []}).interfaces == ()


def test_invalid_urls_have_no_path() -> None:
    """A card may have anything there; the other interfaces are still known."""
    shared = SessionContext()
    urls = ("http://[x", "http://agent/api")
    card = {
        "name": "a",
        "supportedInterfaces": [{"url": url, "protocolBinding": "HTTP+JSON"} for url in urls],
    }
    shared.learn_card("agent", card)
    assert shared.tenant_of("agent", "/api/acme") == "acme"


def test_addresses() -> None:
    """Names of this machine are one; ports are those of the scheme; nonsense has no address."""
    urls = [
        "http://127.0.0.1:8000/x",
        "localhost:8000",
        "[::1]:8000",
        "https://h/",
        "http://h",
        "http://[x",
        "",
        "h:port",
    ]

    assert [address_of(url) for url in urls] == ["localhost:8000"] * 3 + [
        "h:443",
        "h:80",
        "",
        "",
        "",
    ]
