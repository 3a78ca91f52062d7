"""Agent cards in JSON over HTTP/2: head and body are held until the card is complete (`h2` as both
peers)."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from h2.events import RequestReceived, ResponseReceived, StreamEnded, StreamReset

from a2a_proxy.relay.edits.card_response import CARD_PATHS
from a2a_proxy.relay.edits.edit import CardOutcome, EditPlan
from support_http2 import frame, literal
from support_http2_pair import (
    DOWN,
    RESPONSE,
    TRAILERS,
    UP,
    Cut,
    Field,
    Pair,
    message,
    request,
    rewriter,
    single,
    whole,
)

LISTEN = "127.0.0.1:9000"
AGENT = b"agent.example:8443"
CARD = b'{"name": "a", "url": "http://agent.example/"}'
SHORTER = rewriter(lambda payload: payload[:-20])
LONGER = rewriter(lambda payload: payload + b" " * 100)
WINDOW = 65_535


def between(cards: Any, authority: bytes | None = None, cut: Cut = whole) -> Pair:
    """Return two peers with an editor between them."""
    pair = Pair(EditPlan(authority=authority, cards=cards, listen=LISTEN), cut)
    pair.move()
    return pair


def ask(
    pair: Pair, stream: int, *more: Field, path: bytes = CARD_PATHS[0], method: bytes = b"GET"
) -> None:
    """Send a request without a body."""
    fields = [field for field in request(path)[1:] if field[0] not in (b"content-type", b"te")]
    pair.client.send_headers(stream, [(b":method", method), *fields, *more], end_stream=True)
    pair.move()


def head(*more: Field, status: bytes = b"200") -> list[Field]:
    return [(b":status", status), (b"content-type", b"application/json"), *more]


def heads(pair: Pair, stream: int) -> list[dict[bytes, bytes]]:
    """Return the heads of responses that the client has received."""
    return [
        dict(event.headers)
        for event in pair.client_events
        if isinstance(event, ResponseReceived) and event.stream_id == stream
    ]


def is_ended(pair: Pair, stream: int) -> bool:
    return any(isinstance(e, StreamEnded) and e.stream_id == stream for e in pair.client_events)


def reasons(pair: Pair) -> list[str]:
    return [fact.detail["reason"] for fact in pair.editor.take_edits() if fact.kind == "untouched"]


@pytest.mark.parametrize("cut", [whole, single])
@pytest.mark.parametrize("authority", [None, AGENT])
@pytest.mark.parametrize("end", ["with the data", "empty frame", "trailers"])
@pytest.mark.parametrize("cards", [LONGER, SHORTER])
def test_card_is_rewritten_with_its_head(
    cards: Any, end: str, authority: bytes | None, cut: Cut
) -> None:
    """New length and validator; windows stay consistent; the fact says where, what and how long."""
    pair = between(cards, authority, cut)
    ask(pair, 1, path=CARD_PATHS[0] + b"?assistant_id=1")
    offset = len(pair.given[DOWN])
    length = (b"content-length", b"%d" % len(CARD))
    pair.agent.send_headers(1, head(length, (b"etag", b'"v1"'), (b"x-own", b"kept")))
    pair.agent.send_data(1, CARD[:10], pad_length=3)
    pair.move()
    assert heads(pair, 1) == []
    assert pair.editor.deadline == pair.now + 1
    pair.agent.send_data(1, CARD[10:], end_stream=end == "with the data")
    if end == "empty frame":
        pair.agent.end_stream(1)
    elif end == "trailers":
        pair.agent.send_headers(1, [(b"x-trailer", b"1")], end_stream=True)
    pair.move()
    new = cards(CARD, "json", LISTEN).payload
    assert pair.got(1) == new
    assert is_ended(pair, 1)
    (found,) = heads(pair, 1)
    assert (found[b"content-length"], found[b"x-own"]) == (b"%d" % len(new), b"kept")
    assert found[b"etag"].startswith(b'W/"a2a-proxy-')
    assert pair.windows() == (WINDOW, WINDOW)
    (fact,) = (fact for fact in pair.editor.take_edits() if fact.kind == "card")
    lengths = {"length_before": len(CARD), "length_after": len(new)}
    detail = {"urls": [["before", "after"]], **lengths}
    found_fact = fact.direction, fact.offset, {**fact.detail, "urls": detail["urls"]}
    assert found_fact == (DOWN, offset, detail)
    assert pair.editor.deadline is None
    assert pair.editor.is_active


@pytest.mark.parametrize("path", CARD_PATHS)
def test_rewriter_gets_form_and_authority(path: bytes) -> None:
    """The authority that the client used, for every path of a card; an unchanged card keeps its
    bytes."""
    asked = []

    def rewrite(payload: bytes, form: str, authority: str) -> CardOutcome:
        asked.append((payload, form, authority))
        return CardOutcome()

    pair = between(rewrite)
    ask(pair, 1, path=b"/agents/one" + path)
    fields = head((b"content-length", b"%d" % len(CARD)), (b"etag", b'"v1"'))
    pair.agent.send_headers(1, fields)
    pair.agent.send_data(1, CARD, end_stream=True)
    pair.move()
    assert asked == [(CARD, "json", "proxy:9000")]
    assert pair.got(1) == CARD
    assert heads(pair, 1) == [dict(fields)]
    assert reasons(pair) == []


@pytest.mark.parametrize(
    ("more", "method", "path"),
    [
        ({"status": b"404"}, b"GET", CARD_PATHS[0]),
        ({"status": b"304"}, b"GET", CARD_PATHS[0]),
        ({}, b"HEAD", CARD_PATHS[0]),
        ({}, b"POST", CARD_PATHS[0]),
        ({}, b"GET", b"/tasks/1"),
    ],
)
def test_other_response_is_not_held(more: dict[str, Any], method: bytes, path: bytes) -> None:
    """Its head goes on at once."""
    pair = between(SHORTER)
    ask(pair, 1, path=path, method=method)
    pair.agent.send_headers(1, head(**more))
    pair.move()
    assert len(heads(pair, 1)) == 1
    pair.agent.send_data(1, b"" if method == b"HEAD" else CARD, end_stream=True)
    pair.move()
    assert pair.sent[DOWN] == pair.given[DOWN]
    assert is_ended(pair, 1)


def test_early_hints_do_not_wait() -> None:
    """An interim response precedes the head that is held."""
    pair = between(SHORTER)
    ask(pair, 1)
    pair.agent.send_headers(1, [(b":status", b"103"), (b"link", b"</x>")])
    pair.move()
    assert pair.sent[DOWN] == pair.given[DOWN]
    pair.agent.send_headers(1, head())
    pair.agent.send_data(1, CARD, end_stream=True)
    pair.move()
    assert pair.got(1) == CARD[:-20]


@pytest.mark.parametrize(
    ("coding", "body", "reason"),
    [
        (b"gzip", gzip.compress(CARD, mtime=0), ""),
        (b"GZip", gzip.compress(CARD, mtime=0), ""),
        (b"br", b"packed", "its content coding is not supported"),
        (b"gzip", b"no gzip", "its content coding is not supported"),
        (b"gzip", gzip.compress(bytes(2 << 20), mtime=0), "its content coding is not supported"),
        (b"identity", CARD, ""),
        (b"identity", b"[" + b"1," * 50_001 + b"1]", "it has too many members"),
    ],
)
def test_content_coding(coding: bytes, body: bytes, reason: str) -> None:
    """A card that is rewritten is sent without its coding; another one keeps it."""
    pair = between(SHORTER)
    ask(pair, 1)
    pair.agent.send_headers(1, head((b"content-encoding", coding)))
    pair.grant(len(body), 1)
    pair.move()
    for at in range(0, len(body), 16_000):
        pair.agent.send_data(1, body[at : at + 16_000])
    pair.agent.end_stream(1)
    pair.move()
    (found,) = heads(pair, 1)
    assert pair.got(1) == (body if reason else CARD[:-20])
    assert found.get(b"content-encoding") == (coding if reason else None)
    assert reasons(pair) == ([reason] if reason else [])
    assert is_ended(pair, 1)


@pytest.mark.parametrize(
    ("length", "frames", "reason"),
    [
        ("1048577", 0, "it is larger than the client's window"),
        ("9" * 100, 0, "it is larger than 1 MiB"),
        ("2000", 2000, "it came in too many frames"),
    ],
)
def test_card_that_is_too_large(length: str, frames: int, reason: str) -> None:
    """A length that is announced is known before anything is held."""
    pair = between(SHORTER)
    ask(pair, 1)
    pair.agent.send_headers(1, head((b"content-length", length.encode())))
    for _ in range(frames):
        pair.agent.send_data(1, b" ")
    pair.move()
    assert len(heads(pair, 1)) == 1
    assert pair.got(1) == b" " * frames
    assert reasons(pair) == [reason]
    assert pair.editor.deadline is None


def test_slow_card_is_released_after_a_second() -> None:
    """Head and what has come of the body, unchanged; the rest passes as it arrives."""
    pair = between(SHORTER)
    ask(pair, 1)
    pair.agent.send_headers(1, head())
    pair.agent.send_data(1, CARD[:10])
    pair.move()
    pair.tick(1.0)
    assert pair.got(1) == CARD[:10]
    pair.agent.send_data(1, CARD[10:], end_stream=True)
    pair.move()
    assert pair.got(1) == CARD
    assert reasons(pair) == ["not complete, or larger than the client's window, after 1 s"]
    assert pair.windows() == (WINDOW, WINDOW)


def test_other_streams_overtake_a_card() -> None:
    """Heads that the agent encodes against a table with the head of the card keep their meaning,
    and a gRPC card on the same connection is rewritten too."""
    pair = between(SHORTER)
    ask(pair, 1)
    pair.agent.send_headers(1, head((b"x-new", b"value")))
    pair.agent.send_data(1, CARD[:10])
    path = b"/lf.a2a.v1.A2AService/GetExtendedAgentCard"
    pair.client.send_headers(3, request(path), end_stream=True)
    pair.move()
    pair.agent.send_headers(3, [*RESPONSE, (b"x-new", b"value")])
    pair.send(3, message(CARD))
    pair.agent.send_headers(3, TRAILERS, end_stream=True)
    pair.move()
    assert heads(pair, 3) == [dict([*RESPONSE, (b"x-new", b"value")])]
    assert pair.got(3) == message(CARD[:-20])
    assert heads(pair, 1) == []
    pair.agent.send_data(1, CARD[10:], end_stream=True)
    pair.move()
    assert heads(pair, 1)[0][b"x-new"] == b"value"
    assert pair.got(1) == CARD[:-20]


@pytest.mark.parametrize("who", ["client", "agent", "client ends", "agent ends"])
def test_end_releases_a_card(who: str) -> None:
    """A reset or a FIN: what the agent sent arrives before it."""
    pair = between(SHORTER)
    ask(pair, 1)
    pair.agent.send_headers(1, head())
    pair.agent.send_data(1, CARD[:-1])
    pair.move()
    if who == "client":
        pair.client.reset_stream(1)
    elif who == "agent":
        pair.agent.reset_stream(1)
    else:
        pair.take(pair.editor.feed_eof(UP if who == "client ends" else DOWN, pair.now))
    pair.move()
    assert CARD[:-1] in bytes(pair.sent[DOWN])
    assert pair.editor.deadline is None
    assert len(reasons(pair)) == 1
    if who == "agent":
        assert any(isinstance(event, StreamReset) for event in pair.client_events)


def test_card_waits_for_the_window() -> None:
    """It is sent once the client's windows cover it, with its head before it."""
    pair = between(rewriter(lambda payload: payload + b" " * 60_000))
    pair.consume = False
    ask(pair, 1)
    pair.agent.send_headers(1, head())
    pair.agent.send_data(1, CARD)
    pair.move()
    ask(pair, 3, path=b"/tasks/1")
    pair.agent.send_headers(3, head())
    pair.agent.send_data(3, bytes(10_000))
    pair.agent.end_stream(1)
    pair.move()
    assert heads(pair, 1) == []
    pair.grant(60_000)
    pair.move()
    assert heads(pair, 1)[0][b"content-length"] == b"%d" % (len(CARD) + 60_000)
    assert pair.got(1) == CARD + b" " * 60_000
    assert is_ended(pair, 1)


@pytest.mark.parametrize("authority", [None, AGENT])
def test_request_asks_for_the_whole_card(authority: bytes | None) -> None:
    """Identity is asked, and conditions are dropped; other requests before and after it stay."""
    pair = between(SHORTER, authority)
    fields = (
        (b"accept-encoding", b"gzip, br"),
        (b"if-none-match", b'"v1"'),
        (b"range", b"bytes=0-9"),
    )
    ask(pair, 1, *fields, path=b"/tasks/1")
    ask(pair, 3, *fields, path=b"/tasks/1")
    ask(pair, 5, *fields)
    ask(pair, 7, *fields, path=b"/tasks/1")
    *others, card, last = (
        dict(event.headers) for event in pair.agent_events if isinstance(event, RequestReceived)
    )
    assert card[b"accept-encoding"] == b"identity"
    assert not {b"if-none-match", b"range"} & set(card)
    assert all(dict(fields).items() <= each.items() for each in (*others, last))
    (fact,) = (fact for fact in pair.editor.take_edits() if fact.kind == "card-request")
    assert fact.detail == {"fields": ["accept-encoding", "if-none-match", "range"]}


def test_card_does_not_starve_other_streams() -> None:
    """Once the agent has no window left it waits for the client, which has nothing: the card goes
    on at once."""
    pair = between(SHORTER)
    for stream in (1, 3):
        ask(pair, stream)
        pair.agent.send_headers(stream, head())
    for stream, size in ((1, 40_000), (3, WINDOW - 40_000)):
        for at in range(0, size, 16_000):
            pair.agent.send_data(stream, bytes(min(16_000, size - at)))
    pair.move()
    assert pair.agent.local_flow_control_window(1) > 0
    assert "it is larger than the client's window" in reasons(pair)


def test_end_of_editing_leaves_no_deadline() -> None:
    """Bytes that cannot be followed release the card for good."""
    pair = between(SHORTER)
    ask(pair, 1)
    pair.agent.send_headers(1, head())
    pair.agent.send_data(1, CARD[:9])
    pair.move()
    sent = pair.editor.feed(UP, frame(8, 0, 0, b"abc"), pair.now)
    pair.take([each for each in sent if each.direction is DOWN])
    assert pair.editor.deadline is None
    assert pair.got(1) == CARD[:9]


def test_data_before_the_head() -> None:
    """The client judges it."""
    pair = between(SHORTER)
    ask(pair, 1)
    (sent,) = pair.editor.feed(DOWN, frame(0, 1, 1, CARD), pair.now)
    assert sent.data == frame(0, 1, 1, CARD)


def test_header_block_inside_the_body() -> None:
    """All is sent as it came, once."""
    pair = between(SHORTER)
    ask(pair, 1)
    pair.agent.send_headers(1, head())
    pair.agent.send_data(1, CARD[:9])
    pair.move()
    inside = frame(1, 4, 1, literal(b"x-late", b"1"))
    sent = [
        each.data
        for piece in (inside, frame(0, 1, 1, CARD[9:]))
        for each in pair.editor.feed(DOWN, piece, pair.now)
    ]
    assert b"".join(sent).endswith(frame(0, 0, 1, CARD[:9]) + inside + frame(0, 1, 1, CARD[9:]))
    assert pair.editor.held_bytes == (0, 0)


def test_trailers_with_a_digest() -> None:
    """They are about the bytes that the agent sent."""
    pair = between(SHORTER)
    ask(pair, 1)
    pair.agent.send_headers(1, head())
    pair.agent.send_data(1, CARD)
    pair.agent.send_headers(1, [(b"content-digest", b"sha-256=:x:")], end_stream=True)
    pair.move()
    assert pair.got(1) == CARD
    assert reasons(pair) == ["its trailers are about its bytes"]
