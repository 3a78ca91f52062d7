"""Edits on HTTP/1.1: the intended bytes change, all others are forwarded, for every split."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.http.h1 import (
    Http1Error,
    Http1Scanner,
    MessagePart,
    decode_chunked,
    parse_request_head,
    parse_response_head,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.card_response import CARD_PATHS
from a2a_proxy.relay.edits.edit import CardOutcome, EditFact, EditPlan
from a2a_proxy.relay.edits.http1 import HOLD_SECONDS, MAX_RESPONSE_BYTES, Http1Editor
from support_http1 import conversations
from support_wire import pieces_of

C, S = Direction.TO_AGENT, Direction.TO_CLIENT
Steps = list[tuple[Direction, bytes]]
CARD = b'{"name":"agent","url":"http://localhost:8000/"}'


def rename(payload: bytes, form: str, authority: str) -> CardOutcome:
    """A rewriter whose result tells what it was given."""
    if b"localhost:8000" not in payload:
        return CardOutcome()
    new = payload.replace(b"localhost:8000", authority.encode() + b"/" + form.encode())
    return CardOutcome(new, (("http://localhost:8000/", authority),))


AUTO = EditPlan(None, rename, "127.0.0.1:9000")
HOST = EditPlan(b"agent.example", None, "127.0.0.1:9000")
BOTH = EditPlan(b"agent.example", rename, "127.0.0.1:9000")


class Played:
    """What an editor made of a conversation."""

    def __init__(
        self, plan: EditPlan, steps: Steps, cuts: Iterable[int] | None = None, size: int = 0
    ) -> None:
        self.editor = Http1Editor(plan)
        self.out = [b"", b""]
        self.facts: list[EditFact] = []
        for direction, data in steps:
            if not data:
                self._take(self.editor.feed_eof(direction, 0.0))
                continue
            where = range(0, len(data), size) if size else cuts or ()
            for piece in pieces_of(data, where):
                self._take(self.editor.feed(direction, piece, 0.0))

    def _take(self, sent: list) -> None:  # type: ignore[type-arg]
        for part in sent:
            self.out[part.direction] += part.data
        self.facts += self.editor.take_edits()


def play(plan: EditPlan, steps: Steps) -> Played:
    """Played whole; in every other split the same bytes come out, and the same facts."""
    whole = Played(plan, steps)
    told = [(fact.kind, fact.direction, fact.detail) for fact in whole.facts]
    splits = [{"size": 1}, {"size": 2}, {"size": 7}]
    longest = max(len(data) for _, data in steps)
    splits += [{"cuts": [cut]} for cut in range(1, min(longest, 250))]
    for split in splits:
        again = Played(plan, steps, **split)  # type: ignore[arg-type]
        assert again.out == whole.out, split
        assert [(fact.kind, fact.direction, fact.detail) for fact in again.facts] == told, split
        assert again.editor.is_active == whole.editor.is_active, split
    return whole


def response(body: bytes, *fields: bytes, status: bytes = b"200 OK") -> bytes:
    lines = b"".join(field + b"\r\n" for field in (*fields, b"Content-Length: %d" % len(body)))
    return b"HTTP/1.1 %s\r\n%s\r\n%s" % (status, lines, body)


def chunked(body: bytes, size: int = 11) -> bytes:
    parts = b"".join(
        b"%x;e=1\r\n%s\r\n" % (len(p), p) for p in pieces_of(body, range(0, len(body), size))
    )
    return (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n"
        + parts
        + b"0\r\nTrailer: t\r\n\r\n"
    )


def get(path: bytes = CARD_PATHS[0], *fields: bytes) -> bytes:
    return b"GET %s HTTP/1.1\r\nHost: proxy:9000\r\n%s\r\n" % (
        path,
        b"".join(field + b"\r\n" for field in fields),
    )


NEW = b'{"name":"agent","url":"http://proxy:9000/json/"}'
POST = b"POST /a2a HTTP/1.1\r\nHost: proxy:9000\r\nContent-Length: 4\r\n\r\nbody"


@pytest.mark.parametrize("query", [b"", b"?x"])
@pytest.mark.parametrize("prefix", [b"", b"/t/a"])
@pytest.mark.parametrize("end", CARD_PATHS)
def test_card_paths(prefix: bytes, end: bytes, query: bytes) -> None:
    """Each path of a card, with any prefix and query, has its response rewritten."""
    path = prefix + end + query
    played = Played(AUTO, [(C, get(path)), (S, response(CARD))])
    assert played.out == [get(path), response(NEW)]


@pytest.mark.parametrize(
    "path", [b"/", b"/.well-known/agent-card.jsonx", b"/x?/v1/card", b"/v1/cards", b"/v1/card/"]
)
def test_other_paths_are_unchanged(path: bytes) -> None:
    """Nothing else is touched."""
    steps = [
        (C, get(path, b"If-None-Match: x", b"Accept-Encoding: gzip")),
        (S, response(CARD, b'ETag: "1"')),
    ]
    assert play(AUTO, steps).out == [steps[0][1], steps[1][1]]


def test_card_requests_ask_for_identity_without_conditions() -> None:
    """Identity is asked, conditions are dropped, all else stays; the new response has its own
    length and ETag."""
    asked = get(
        CARD_PATHS[0],
        b"accept-encoding: gzip, br",
        b"IF-None-Match: W/x",
        b"If-Modified-Since: y",
        b"X: y",
    )
    played = play(AUTO, [(C, asked), (S, response(CARD, b'ETag: W/"1"', b"X: z"))])
    assert played.out[C] == get(CARD_PATHS[0], b"accept-encoding: identity", b"X: y")
    head, _, body = played.out[S].partition(b"\r\n\r\n")
    assert body == NEW
    assert b"Content-Length: %d" % len(NEW) in head
    assert b'ETag: W/"a2a-proxy-' in head
    assert b'W/"1"' not in head
    assert [fact.kind for fact in played.facts] == ["card-request", "card"]
    assert played.facts[1].detail["length_before"] == len(CARD)


def test_chunked_gzipped_and_until_close() -> None:
    """However the body is framed or coded, a rewritten card has a length and no coding."""
    packed = response(gzip.compress(CARD, mtime=0), b"Content-Encoding: gzip")
    assert play(AUTO, [(C, get()), (S, packed)]).out[S] == response(NEW)
    assert play(AUTO, [(C, get()), (S, chunked(CARD))]).out[S] == response(NEW, b"X: y")
    until_close = b"HTTP/1.0 200 OK\r\n\r\n" + CARD
    expected = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(NEW), NEW)
    assert play(AUTO, [(C, get()), (S, until_close), (S, b"")]).out[S] == expected


@pytest.mark.parametrize(
    "answer",
    [
        response(b"", b'ETag: "1"', status=b"304 Not Modified"),
        response(b"no", status=b"404 Not Found"),
        response(CARD, status=b"206 Partial Content"),
        response(b"<html>"),
        response(b""),
        chunked(b"nothing"),
    ],
)
def test_responses_that_are_no_card_are_unchanged(answer: bytes) -> None:
    """Other statuses and bodies reach the client unchanged; then the next card is rewritten."""
    played = play(AUTO, [(C, get()), (S, answer), (C, get()), (S, response(CARD))])
    assert played.out[S] == answer + response(NEW)


def test_head_has_no_body() -> None:
    """HEAD of a card announces a length and sends nothing; what follows is the next response."""
    head = b"HEAD" + get()[3:]
    answers = response(CARD)[: -len(CARD)] + response(CARD)
    assert play(AUTO, [(C, head + get()), (S, answers)]).out[S] == response(CARD)[
        : -len(CARD)
    ] + response(NEW)


def test_pipelined_requests_keep_their_order() -> None:
    """Cards among other requests, all sent before the first answer: each response belongs to its
    own request."""
    early = b"HTTP/1.1 100 Continue\r\n\r\n"
    asked = POST + get() + POST + get(b"/x") + get()
    answers = (
        early
        + response(CARD)
        + early
        + response(CARD)
        + chunked(CARD)
        + response(CARD)
        + response(CARD)
    )
    played = play(AUTO, [(C, asked), (S, answers)])
    assert played.out[C] == asked
    rest = response(NEW) + chunked(CARD) + response(CARD) + response(NEW)
    assert played.out[S] == early + response(CARD) + early + rest


def call(method: str) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode()
    return (
        b"POST / HTTP/1.1\r\nHost: proxy:9000\r\n"
        b"Accept-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s"
        % (
            len(body),
            body,
        )
    )


@pytest.mark.parametrize("method", ["GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"])
def test_the_extended_card_over_jsonrpc(method: str) -> None:
    """The request passes untouched as it comes; the response is rewritten as JSON-RPC, also after
    other calls."""
    steps = [
        (C, POST),
        (S, response(CARD)),
        (C, call(method)),
        (S, response(CARD)),
        (C, POST),
        (S, response(CARD)),
    ]
    played = play(AUTO, steps)
    assert played.out[C] == POST + call(method) + POST
    new = CARD.replace(b"localhost:8000", b"proxy:9000/jsonrpc")
    assert played.out[S] == response(CARD) + response(new) + response(CARD)


@pytest.mark.parametrize(
    "body",
    [
        b'{"method":"SendMessage","params":"GetExtendedAgentCard"}',
        b'"GetExtendedAgentCard"',
        b"GetExtendedAgentCard{",
    ],
)
def test_the_method_name_in_a_body_is_not_a_call(body: bytes) -> None:
    """The method's name elsewhere in a body changes nothing."""
    asked = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    assert play(AUTO, [(C, asked), (S, response(CARD))]).out == [asked, response(CARD)]


def test_a_chunked_call_for_the_card() -> None:
    """The call may come chunked."""
    body = call("GetExtendedAgentCard").partition(b"\r\n\r\n")[2]
    asked = (
        b"POST / HTTP/1.1\r\nHost: proxy:9000\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
    )
    played = play(AUTO, [(C, asked % (len(body), body)), (S, response(CARD))])
    assert b"proxy:9000/jsonrpc" in played.out[S]


def test_host_is_rewritten_in_every_request() -> None:
    """Also pipelined, also with cards; reported once for each value."""
    asked = POST + get(b"/x") + POST.replace(b"proxy:9000", b"other") + get()
    played = play(BOTH, [(C, asked), (S, response(CARD) * 4)])
    assert played.out[C] == asked.replace(b"proxy:9000", b"agent.example").replace(
        b"other", b"agent.example"
    )
    assert played.out[S] == response(CARD) * 3 + response(NEW)
    hosts = [fact.detail["before"] for fact in played.facts if fact.kind == "host"]
    assert hosts == ["proxy:9000", "other"]


TWO_LENGTHS = (
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
)
NOT_UNDERSTOOD = {
    "length and coding": TWO_LENGTHS,
    "two lengths": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "folded": b"GET /v1/card HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n",
    "bare lf": b"GET /v1/card HTTP/1.1\nHost: h\n\n",
    "bare lf later": b"GET /v1/card HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
    "space before colon": b"POST / HTTP/1.1\r\nContent-Length : 4\r\n\r\nbody",
    "bare cr": b"GET /v1/card HTTP/1.1\r\nX: \rHost: x\r\n\r\n",
    "too long": b"GET /v1/card HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    "not http": b"\x16\x03\x01\x02\x00" + bytes(600),
    "gzip, chunked": b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "bad chunk": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "two hosts": b"GET /v1/card HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
}


@pytest.mark.parametrize("plan", [AUTO, HOST, BOTH], ids=["auto", "host", "both"])
@pytest.mark.parametrize("case", NOT_UNDERSTOOD)
def test_unparsable_bytes_end_editing(case: str, plan: EditPlan) -> None:
    """The bytes flow on, in both directions, and nothing is changed any more."""
    data = NOT_UNDERSTOOD[case] + get()
    for size in (0, 1, 1000):
        played = Played(plan, [(C, data), (S, response(CARD))], size=size)
        assert played.out == [data, response(CARD)]
        assert not played.editor.is_active
        assert played.facts[-1].kind == "ended"


OFFER = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAA")


def test_switch_to_another_protocol_ends_editing() -> None:
    post = b"POST / HTTP/1.1\r\n%s\r\nContent-Length: 0\r\n\r\n" % b"\r\n".join(OFFER)
    taken = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n\0\0\0\4\0\0\0\0\0"
    played = play(AUTO, [(C, post), (S, taken + response(CARD)), (C, b"anything")])
    assert played.out == [post + b"anything", taken + response(CARD)]
    assert not played.editor.is_active


@pytest.mark.parametrize(("plan", "path"), [(AUTO, CARD_PATHS[0]), (HOST, b"/tasks/1")])
def test_edited_request_offers_no_http2(plan: EditPlan, path: bytes) -> None:
    """The JDK's client offers `h2c` with its first request. The proxy does not forward the offer
    where it has to follow the connection in HTTP/1; other offers and options stay."""
    played = play(plan, [(C, get(path, *OFFER)), (S, response(CARD))])
    sent = played.out[C].lower()
    assert not [each for each in (b"upgrade", b"http2-settings", b"connection") if each in sent]
    (fact,) = [each for each in played.facts if each.kind == "upgrade"]
    assert fact.detail == {"fields": ["upgrade", "http2-settings"]}
    assert played.out[S] == (response(NEW) if plan is AUTO else response(CARD))
    other = (b"Connection: close, Upgrade", b"Upgrade: websocket")
    assert b"Upgrade: websocket" in play(plan, [(C, get(path, *other))]).out[C]
    kept = play(plan, [(C, get(path, b"Connection: close, Upgrade", *OFFER[1:]))]).out[C]
    assert b"Connection: close\r\n" in kept


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ((b"CONNECTION: UPGRADE, HTTP2-SETTINGS", b"UPGRADE: H2C", b"HTTP2-SETTINGS: AA"), ()),
        ((b"Connection: Upgrade", b"Connection: http2-settings , close", *OFFER[1:]), (b"close",)),
        (
            (OFFER[0], b"Upgrade: h2c,\twebsocket", OFFER[2], OFFER[2]),
            (b"Upgrade", b"websocket"),
        ),
        ((OFFER[0], b"Upgrade: websocket", *OFFER[1:]), (b"Upgrade", b"websocket")),
    ],
)
def test_offer_of_http2_in_any_form(fields: tuple[bytes, ...], kept: tuple[bytes, ...]) -> None:
    """Names, protocols and options have any case, and lists may be spread over several fields."""
    played = play(HOST, [(C, get(CARD_PATHS[0], *fields)), (S, response(CARD))])
    assert played.editor.is_active
    _, _, *lines = played.out[C].rstrip().split(b"\r\n")
    assert [line.split(b": ")[1] for line in lines] == [*kept]
    assert "upgrade" in [each.kind for each in played.facts]


def test_an_unrequested_response_ends_editing() -> None:
    """An unrequested 408 is forwarded, and held bytes are released."""
    played = play(AUTO, [(C, get()[:20]), (S, response(b"", status=b"408 Request Timeout"))])
    assert played.out == [get()[:20], response(b"", status=b"408 Request Timeout")]
    assert not played.editor.is_active


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (chunked(CARD[:-1] + b',"x":"' + b"y" * 25_000 + b'"}', 1), "it came in too many chunks"),
        (response(CARD[:-1] + b',"x":[' + b"1," * 50_000 + b"1]}"), "it has too many members"),
    ],
)
def test_an_expensive_card_is_forwarded_unchanged(answer: bytes, reason: str) -> None:
    """Reading it in one go would hold up other connections; the next card is rewritten."""
    played = Played(AUTO, [(C, get() * 2), (S, answer), (S, response(CARD))])
    assert played.out[1] == answer + response(NEW)
    assert [fact.detail.get("reason") for fact in played.facts] == [reason, None]


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_large_card_is_released(framing: str) -> None:
    """More than 1 MiB is passed on untouched, and said; the next card is rewritten."""
    large = CARD + b" " * MAX_RESPONSE_BYTES
    answer = response(large) if framing == "length" else chunked(large, 100_000)
    played = Played(AUTO, [(C, get()), (S, answer), (C, get()), (S, response(CARD))], size=40_000)
    assert played.out[S] == answer + response(NEW)
    assert [fact.kind for fact in played.facts] == ["untouched", "card"]
    assert "1 MiB" in played.facts[0].detail["reason"]


def test_a_slow_card_is_released() -> None:
    """What takes more than 5 s from its first byte on passes untouched, its rest as it comes."""
    editor = Http1Editor(AUTO)
    editor.feed(C, get(), 100.0)
    assert editor.deadline is None  # the agent may think as long as it likes
    answer = response(CARD)
    assert editor.feed(S, answer[:50], 200.0) == []
    assert editor.deadline == 200.0 + HOLD_SECONDS
    assert editor.tick(204.9) == []
    (sent,) = editor.tick(205.0)
    assert sent.data == answer[:50]
    assert editor.deadline is None
    assert [part.data for part in editor.feed(S, answer[50:], 206.0)] == [answer[50:]]
    assert [fact.kind for fact in editor.take_edits()] == ["untouched"]
    assert editor.is_active


def test_a_cut_card_is_released() -> None:
    """FIN in the middle of a card, or of a card's request: what is there goes on."""
    played = play(AUTO, [(C, get()), (S, response(CARD)[:-5]), (S, b"")])
    assert played.out[S] == response(CARD)[:-5]
    assert play(AUTO, [(C, get()[:30]), (C, b"")]).out[C] == get()[:30]


def test_unknown_compression_is_released() -> None:
    """Brotli cannot be read here."""
    answer = response(CARD, b"Content-Encoding: br")
    assert play(AUTO, [(C, get()), (S, answer)]).out[S] == answer


def test_a_compression_bomb_is_released() -> None:
    """A small body that unpacks to more than 1 MiB stays packed."""
    answer = response(gzip.compress(b" " * 10_000_000, mtime=0), b"Content-Encoding: gzip")
    assert play(AUTO, [(C, get()), (S, answer)]).out[S] == answer


def test_posts_are_never_held() -> None:
    """Each byte of a request that asks for no card leaves as it comes."""
    editor = Http1Editor(AUTO)
    for byte in POST + b"PUT / HTTP/1.1\r\n\r\n" + b"DELETE /v1/card HTTP/1.1\r\n\r\n":
        (sent,) = editor.feed(C, bytes((byte,)), 0.0)
        assert sent.data == bytes((byte,))


def test_a_thousand_requests_mixed_with_cards() -> None:
    """Keep-alive and pipelining at random: the cards are rewritten, all else is byte for byte the
    same."""
    chance = random.Random(7)
    editor, got, expected = Http1Editor(AUTO), b"", b""
    asked, answers = b"", b""
    for _ in range(1000):
        what = chance.randrange(4)
        asked += (get(), POST, get(b"/x"), call("GetExtendedAgentCard"))[what]
        answers += (response(CARD), response(CARD), chunked(CARD), response(CARD))[what]
        new = CARD.replace(b"localhost:8000", b"proxy:9000/jsonrpc")
        expected += (response(NEW), response(CARD), chunked(CARD), response(new))[what]
        if chance.random() < 0.4:
            for direction, raw in ((C, asked), (S, answers)):
                for piece in pieces_of(raw, [chance.randrange(1, 2000) for _ in range(3)]):
                    got += b"".join(
                        p.data for p in editor.feed(direction, piece, 0.0) if p.direction is S
                    )
            asked = answers = b""
    for direction, raw in ((C, asked), (S, answers)):
        got += b"".join(p.data for p in editor.feed(direction, raw, 0.0) if p.direction is S)
    assert editor.is_active
    assert got == expected


@settings(max_examples=60, deadline=None)
@given(talk=conversations(), size=st.integers(1, 60))
def test_generated_conversations_pass(talk: list[tuple[bytes, bytes, bytes]], size: int) -> None:
    """Conversations without cards come out as they went in, and are followed to their end."""
    editor = Http1Editor(AUTO)
    for method, asked, answer in talk:
        for direction, raw in ((C, asked), (S, answer)):
            out = b""
            for piece in pieces_of(raw, range(0, len(raw), size)):
                out += b"".join(part.data for part in editor.feed(direction, piece, 0.0))
            assert out == raw, method
    assert editor.is_active


class Oracle:
    """Where httptools ends each message of one direction."""

    def __init__(self, kind: type) -> None:
        self.bodies: list[bytes] = []
        self.parser = kind(self)

    def on_message_begin(self) -> None:
        self.body = b""

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.bodies.append(self.body)


@settings(max_examples=150, deadline=None)
@given(talk=conversations(), size=st.integers(1, 80))
def test_the_scanner_agrees_with_httptools(
    talk: list[tuple[bytes, bytes, bytes]], size: int
) -> None:
    """Both see the same bodies in a stream of requests."""
    wire = b"".join(asked for _, asked, _ in talk)
    oracle = Oracle(httptools.HttpRequestParser)
    oracle.parser.feed_data(wire)
    scanner, bodies, body = Http1Scanner(), [], b""
    for piece in pieces_of(wire, range(0, len(wire), size)):
        at = 0
        while at < len(piece):
            part, end = scanner.read_part(piece, at)
            if part is MessagePart.HEAD_END:
                framing = parse_request_head(scanner.head)[2]
                body = b""
                if scanner.begin_body(framing):
                    bodies.append(b"")
            elif part in (MessagePart.BODY, MessagePart.BODY_END):
                body += piece[at:end]
                if part is MessagePart.BODY_END:
                    bodies.append(decode_chunked(body) if framing < 0 else body)
            at = end
    assert bodies == oracle.bodies


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX y\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
    ],
)
def test_responses_out_of_order(head: bytes) -> None:
    """What only looks like a response is not understood."""
    with pytest.raises(Http1Error):
        parse_response_head(head, to_head=False)
