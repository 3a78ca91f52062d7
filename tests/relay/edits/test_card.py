"""URLs in agent cards: found in all dialects and rewritten; nothing else changes."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proto import message_class, parse
from a2a_proxy.model.option import RewriteMode
from a2a_proxy.relay.edits.card import CardUrl, read_card, write_card
from a2a_proxy.relay.edits.card_urls import (
    AgentAddresses,
    is_local,
    parse_card_url,
    rewrite_card_urls,
)
from a2a_proxy.relay.edits.edit import AgentInterface

CARD = b"""{
  "name" : "caf\\u00e9 \\/ agent", "url":"http:\\/\\/localhost:8000\\/a2a",
  "preferredTransport":"JSONRPC",
  "provider": {"url": "http://localhost:8000/"}, "documentationUrl":"http://localhost:8000/docs",
  "additionalInterfaces" : [ {"transport":"GRPC","url":"localhost:50051"},
  {"url" : "stdio:agent", "transport":"stdio"} ],
  "supportedInterfaces":[{"url":"http://127.0.0.1:8000/v1","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}],
  "skills":[{"id":"url","tags":["url","http://localhost:8000/"],"url":{"url":"x"}}], "x":1e300,
  "big":123456789012345678901234567890
}\n"""
AGENT = AgentAddresses("localhost", 8000, False, {"127.0.0.1", "laptop"})


def on_same_port(interface: AgentInterface, authority: str) -> str:
    return authority


def nowhere(interface: AgentInterface, authority: str) -> None:
    return None


def test_only_the_urls_change_in_json() -> None:
    """Spaces, order, escapes, odd numbers and other members named url stay byte for byte."""
    outcome = rewrite_card_urls(CARD, "json", "proxy:9000", AGENT, "auto", on_same_port)
    expected = (
        CARD.replace(b'"http:\\/\\/localhost:8000\\/a2a"', b'"http://proxy:9000/a2a"')
        .replace(b'"localhost:50051"', b'"proxy:9000"')
        .replace(b'"http://127.0.0.1:8000/v1"', b'"http://proxy:9000/v1"')
    )
    assert outcome.payload == expected
    assert outcome.learned_interfaces == (AgentInterface("localhost", 50051, False, True),)
    assert outcome.urls[0] == ("http://localhost:8000/a2a", "http://proxy:9000/a2a")


def test_an_extended_card_is_in_the_result() -> None:
    """Over JSON-RPC the same members count inside `result`, and only there."""
    outer = b'{"jsonrpc":"2.0","id":1,"url":"http://localhost:8000/","result":' + CARD + b"}"
    inner = rewrite_card_urls(CARD, "json", "p:1", AGENT, "auto", on_same_port).payload
    assert inner is not None
    assert rewrite_card_urls(
        outer, "jsonrpc", "p:1", AGENT, "auto", on_same_port
    ).payload == outer.replace(CARD, inner)


NO_CARDS = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b'{"url":1}',
    b"\xff",
    b'{"name":"x"}',
    b"[" * 100_000,
    b'{"result":1}',
]


@pytest.mark.parametrize("form", ["json", "jsonrpc", "lf.a2a.v1", "a2a.v1", "b.c"])
@pytest.mark.parametrize("payload", NO_CARDS)
def test_other_bodies_are_unchanged(payload: bytes, form: str) -> None:
    """Anything else is left alone and raises nothing."""
    assert rewrite_card_urls(payload, form, "p:1", AGENT, "always", on_same_port).payload is None


@pytest.mark.parametrize(("line", "package"), [("1.0", "lf.a2a.v1"), ("0.3", "a2a.v1")])
def test_protobuf_cards(line: str, package: str) -> None:
    """Cards of gRPC: 1.0 and 0.3, both forms of URLs, unknown fields kept."""
    card = message_class(line, "AgentCard")(name="a", version="1")  # type: ignore[arg-type]
    if line == "0.3":
        card.url, card.preferred_transport = "http://localhost:8000/", "JSONRPC"
        card.additional_interfaces.add(url="localhost:50051", transport="GRPC")
    else:
        card.supported_interfaces.add(
            url="http://localhost:8000/", protocol_binding="JSONRPC", protocol_version="1.0"
        )
        card.supported_interfaces.add(
            url="localhost:50051", protocol_binding="GRPC", protocol_version="1.0"
        )
    data = card.SerializeToString() + b"\xa2\x3f\x01x"  # field 1012
    outcome = rewrite_card_urls(data, package, "proxy:9000", AGENT, "auto", on_same_port)
    assert outcome.payload is not None
    new = parse(line, "AgentCard", outcome.payload)  # type: ignore[arg-type]
    found = read_card(outcome.payload, package)
    assert found is not None
    assert [url.text for url in found.urls] == ["http://proxy:9000/", "proxy:9000"]
    assert outcome.payload.endswith(b"\xa2\x3f\x01x")
    assert new.name == "a"  # type: ignore[attr-defined]


SIGNED = json.dumps(
    {"name": "s", "url": "http://localhost:8000/", "signatures": [{"signature": "x"}]}
).encode()


def test_a_signed_card_is_unchanged_with_a_note() -> None:
    """Its JWS would break: a loud note names the way out, and `always` is that way."""
    outcome = rewrite_card_urls(SIGNED, "json", "p:1", AGENT, "auto", on_same_port)
    assert outcome.payload is None
    (note,) = outcome.notes
    assert note.loud
    assert "signed" in note.text
    assert "--rewrite-card always" in note.hint
    outcome = rewrite_card_urls(SIGNED, "json", "p:1", AGENT, "always", on_same_port)
    assert outcome.payload == SIGNED.replace(b"localhost:8000", b"p:1")
    assert [note.loud for note in outcome.notes] == [True]


def test_mode_never_changes_no_byte() -> None:
    """With `never` there is neither change nor note."""
    outcome = rewrite_card_urls(CARD, "json", "p:1", AGENT, "never", on_same_port)
    assert (outcome.payload, outcome.notes) == (None, ())


@pytest.mark.parametrize("mode", ["auto", "always"])
def test_urls_of_other_hosts_are_reported_or_rewritten_by_mode(mode: RewriteMode) -> None:
    """URLs that lead elsewhere are listed with the hint in `auto`; `always` rewrites them, and
    learns no route."""
    card = b'{"url":"https://other.example/a","name":"n"}'
    outcome = rewrite_card_urls(card, "json", "p:1", AGENT, mode, on_same_port)
    assert outcome.learned_interfaces == ()
    if mode == "auto":
        assert outcome.payload is None
        assert "https://other.example/a" in outcome.notes[0].text
        assert "--rewrite-card always" in outcome.notes[0].hint
    else:
        assert outcome.payload == b'{"url":"http://p:1/a","name":"n"}'


def test_an_interface_without_a_listener_keeps_its_url() -> None:
    """An interface without a listener keeps its URL, with the reason of the refusal."""
    outcome = rewrite_card_urls(
        b'{"url":"http://localhost:1/"}', "json", "p:1", AGENT, "auto", nowhere
    )
    assert (outcome.payload, outcome.notes) == (None, ())
    assert outcome.learned_interfaces == (AgentInterface("localhost", 1, False, False),)


@pytest.mark.parametrize(("tls", "scheme"), [(False, "ws"), (True, "wss")])
@pytest.mark.parametrize("before", ["ws", "wss"])
def test_the_url_of_a_websocket_leads_to_the_proxy(before: str, tls: bool, scheme: str) -> None:
    """Its scheme is that of the connection between client and proxy."""
    card = b'{"supportedInterfaces":[{"url":"%s://localhost:8000/a"}]}' % before.encode()
    outcome = rewrite_card_urls(card, "json", "p:1", AGENT, "auto", on_same_port, tls=tls)
    expected = f"{scheme}://p:1/a".encode()
    assert outcome.payload == card.replace(b"%s://localhost:8000/a" % before.encode(), expected)


PLACES = {
    ("http://Host/x", ""): ("http", "host", 80, False),
    ("https://h:1?x", "JSONRPC"): ("https", "h", 1, False),
    ("https://[::1]/", ""): ("https", "::1", 443, False),
    ("h:50051", "GRPC"): ("", "h", 50051, True),
    ("[::1]:50051", "grpc"): ("", "::1", 50051, True),
    ("grpc://h:2", ""): ("grpc", "h", 2, True),
    ("h", "GRPC"): ("", "h", 443, True),
    ("ws://h/a", "WEBSOCKET"): ("ws", "h", 80, False),
    ("wss://h", ""): ("wss", "h", 443, False),
}


@pytest.mark.parametrize("url", PLACES)
def test_urls_are_taken_apart(url: tuple[str, str]) -> None:
    """Both forms: with a scheme, and the bare authority of gRPC."""
    place = parse_card_url(CardUrl(*url))
    assert place is not None
    assert (place.scheme, place.host, place.port, place.grpc) == PLACES[url]


@pytest.mark.parametrize(
    ("text", "transport"),
    [
        ("agent --stdio", "stdio"),
        ("/a2a", "JSONRPC"),
        ("h:1", "JSONRPC"),
        ("http://u:p@h/", ""),
        ("http://h:0/", ""),
    ],
)
def test_unusable_urls_are_unchanged(text: str, transport: str) -> None:
    """Commands, relative references, user information and nonsense are left alone."""
    assert parse_card_url(CardUrl(text, transport)) is None


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", True),
        ("a.localhost", False),
        ("h", False),
    ],
)
def test_local_spellings(host: str, local: bool) -> None:
    """What means this machine by its spelling."""
    assert is_local(host) is local


def test_bare_grpc_targets_get_a_port() -> None:
    """A bare target needs a port; a URL does not."""
    card = (
        b'{"url":"http://localhost:8000/",'
        b'"additionalInterfaces":[{"url":"localhost:8000","transport":"GRPC"}]}'
    )
    payload = rewrite_card_urls(card, "json", "proxy", AGENT, "auto", on_same_port).payload
    assert (
        payload
        == b'{"url":"http://proxy/","additionalInterfaces":[{"url":"proxy:80","transport":"GRPC"}]}'
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["http://localhost:8000/x", "a:1"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["url", "supportedInterfaces", "result", "x", ""]), inner, max_size=4
        )
    ),
    max_leaves=15,
)


@given(value=JSON, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_any_json_changes_only_where_a_card_has_urls(
    value: object, indent: int | None, ascii_only: bool
) -> None:
    """The bytewise replacement equals one made on the parsed value, for any JSON in any
    spelling."""
    payload = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    card = read_card(payload, "json")
    if card is None:
        return
    new = {url.text: "NEW" for url in card.urls}
    changed = msgspec.json.decode(write_card(payload, "json", new))
    expected = msgspec.json.decode(payload)
    if isinstance(expected.get("url"), str):
        expected["url"] = "NEW"
    entries = expected.get("supportedInterfaces")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("url"), str):
            entry["url"] = "NEW"
    assert changed == expected


def test_a_url_of_the_provider_stays_even_if_it_equals_one_of_the_agent() -> None:
    card = b'{"url":"http://a/","provider":{"url":"http://a/"},"skills":[{"url":"http://a/"}]}'
    changed = write_card(card, "json", {"http://a/": "http://p/"})
    assert changed == card.replace(b'{"url":"http://a/"', b'{"url":"http://p/"', 1)
