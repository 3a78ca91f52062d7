"""Each request gets a `traceparent` of the proxy; nothing else changes, for every split."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest
from h2.events import RequestReceived, TrailersReceived
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.edit import EditFact, EditPlan
from a2a_proxy.relay.edits.http1 import Http1Editor
from support_http1 import conversations
from support_http2_pair import (
    CARD_PATH,
    PLAIN_PATH,
    UP,
    Pair,
    replayed,
    request,
    rewriter,
    single,
    whole,
)
from support_wire import pieces_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CAME = f"00-{TRACE}-{SPAN}-00".encode()
NEW_TRACE, NEW_SPAN = "a" * 32, "a" * 16


def same(bits: int) -> int:
    """Random bits that are always the same, so that two editors can be compared."""
    return int("a" * (bits // 4), 16)


PLAN = EditPlan(trace=same)
OWN = f"00-{NEW_TRACE}-{NEW_SPAN}-01".encode()
GOES_ON = f"00-{TRACE}-{NEW_SPAN}-00".encode()
C, S = Direction.TO_AGENT, Direction.TO_CLIENT


def played(
    raw: bytes, plan: EditPlan = PLAN, size: int = 0
) -> tuple[Http1Editor, bytes, list[EditFact]]:
    editor, out, facts = Http1Editor(plan), b"", []
    for piece in pieces_of(raw, range(0, len(raw), size) if size else ()):
        for part in editor.feed(C, piece, 0.0):
            assert part.direction is C
            out += part.data
        facts += editor.take_edits()
    return editor, out, facts


def everywhere_cut(data: bytes, plan: EditPlan = PLAN) -> tuple[bytes, list[EditFact]]:
    """What comes out is the same in every split."""
    editor, once, facts = played(data, plan)
    for size in range(1, 60):
        again = played(data, plan, size)
        assert (again[1], again[0].is_active) == (once, editor.is_active), size
        assert told(again[2]) == told(facts), size
    return once, facts


def told(facts: list[EditFact]) -> list[Any]:
    """Why editing ends is said in other words where a head comes in pieces."""
    return [(fact.kind, fact.detail.get("after"), fact.detail.get("stream")) for fact in facts]


def ask(*fields: bytes, method: bytes = b"POST") -> bytes:
    return b"".join(
        [method + b" /a HTTP/1.1\r\nHost: h\r\n", *(field + b"\r\n" for field in fields), b"\r\n"]
    )


HTTP1 = [
    ((), (b"traceparent: " + OWN,), None, ()),
    ((b"Trace: x",), (b"Trace: x", b"traceparent: " + OWN), None, ()),
    (
        (b"TraceParent:\t" + CAME, b"X: 1", b"TraceState: a=b"),
        (b"TraceParent: " + GOES_ON, b"X: 1", b"TraceState: a=b"),
        CAME,
        (),
    ),
    ((b"tracestate: a=b", b"X: 1"), (b"X: 1", b"traceparent: " + OWN), None, ("tracestate",)),
    ((b"traceparent: no", b"tracestate: a=b"), (b"traceparent: " + OWN,), b"no", ("tracestate",)),
    (
        (b"traceparent: " + CAME, b"Traceparent: " + CAME),
        (b"traceparent: " + OWN,),
        CAME + b", " + CAME,
        (),
    ),
    ((b"baggage: k=v",), (b"baggage: k=v", b"traceparent: " + OWN), None, ()),
]


@pytest.mark.parametrize(("fields", "after", "before", "left_out"), HTTP1)
def test_a_head_of_http1(
    fields: tuple[bytes, ...], after: tuple[bytes, ...], before: Any, left_out: Any
) -> None:
    out, (fact,) = everywhere_cut(ask(*fields))
    assert out == ask(*after)
    detail = {"after": (GOES_ON if before == CAME else OWN).decode(), "stream": 1}
    detail |= {"before": before.decode()} if before is not None else {}
    assert (fact.kind, fact.offset, fact.detail) == (
        "traceparent",
        0,
        detail | ({"fields": list(left_out)} if left_out else {}),
    )


def test_pipelined_chunked_and_trailers() -> None:
    """Only heads change: a body that looks like one, and the trailers of a chunked one, stay."""
    body = ask(b"traceparent: " + CAME)
    data = [
        ask(b"Content-Length: %d" % len(body)) + body,
        ask(b"Transfer-Encoding: chunked")
        + b"5\r\nhello\r\n0\r\ntraceparent: "
        + CAME
        + b"\r\n\r\n",
        ask(b"traceparent: " + CAME, method=b"GET"),
    ]
    out, facts = everywhere_cut(b"".join(data))
    heads = [
        each.replace(b"\r\n\r\n", b"\r\ntraceparent: " + OWN + b"\r\n\r\n", 1) for each in data[:2]
    ]
    assert out == b"".join(heads) + ask(b"traceparent: " + GOES_ON, method=b"GET")
    places = [0, len(data[0]), len(data[0] + data[1])]
    assert [(fact.offset, fact.detail["stream"]) for fact in facts] == list(
        zip(places, (1, 2, 3), strict=True)
    )


@pytest.mark.parametrize(
    "odd", [b"traceparent: a\r\n b: c", b"traceparent : a", b"X: 1\nY: 2", b"Content-Length: 1, 1"]
)
def test_unparsable_requests_are_unchanged(odd: bytes) -> None:
    """Folded lines, spaces before the colon, bare line ends: from there on nothing is edited or
    recorded as edited."""
    rest = ask(odd) + ask(b"traceparent: " + CAME)
    out, facts = everywhere_cut(ask() + rest)
    assert out == ask(b"traceparent: " + OWN) + rest
    assert [fact.kind for fact in facts] == ["traceparent", "ended"]


def test_a_tunnel_has_no_trace() -> None:
    out, facts = everywhere_cut(ask(b"traceparent: " + CAME, method=b"CONNECT"))
    assert (out, facts) == (ask(b"traceparent: " + CAME, method=b"CONNECT"), [])


def test_with_host_and_cards() -> None:
    plan = EditPlan(b"agent", rewriter(lambda _: None), "p:1", same)
    get = (
        b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: p\r\nIf-Match: 1\r\ntraceparent: "
        + CAME
        + b"\r\n\r\n"
    )
    out, facts = everywhere_cut(get, plan)
    assert (
        out
        == b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: agent\r\ntraceparent: "
        + GOES_ON
        + b"\r\n\r\n"
    )
    assert [fact.kind for fact in facts] == ["host", "card-request", "traceparent"]


@settings(max_examples=20, deadline=None)
@given(talk=conversations(), size=st.integers(1, 60))
def test_traceparent_is_the_only_change_to_any_conversation(
    talk: list[tuple[bytes, bytes, bytes]], size: int
) -> None:
    """All else is as without an edit, in both directions; each answer still belongs to its
    request."""
    editor = Http1Editor(PLAN)
    for _, asked, answer in talk:
        for direction, raw in ((C, asked), (S, answer)):
            pieces = pieces_of(raw, range(0, len(raw), size))
            out = b"".join(
                part.data for piece in pieces for part in editor.feed(direction, piece, 0.0)
            )
            if direction is C:
                out, found = re.subn(
                    rb"\r\ntraceparent: " + OWN + rb"\r\n\r\n", b"\r\n\r\n", out, count=1
                )
                assert found == 1
            assert out == raw
    assert editor.is_active


def named(span: int, *fields: bytes, before: bytes = b"", body: bytes = b"{}") -> bytes:
    first, value = (b"00-%s-%016x-01" % (TRACE.encode(), each) for each in (1, span))
    length = b"Content-Length: %d" % len(body)
    return ask(before + b"X-Copy: " + first, b"TraceParent:  " + value, length, *fields) + body


BARE = ask(b"Content-Length: 2") + b"{}"
STATE = ask(b"Content-Length: 2", b"tracestate: a=b") + b"{}"
CARD_CALL = b'{"method":"agent/getAuthenticatedExtendedCard"}'
ALIKE = {
    "named": [named(span) for span in range(1, 6)],
    "other names": [named(1), named(1), named(2, before=b"Y: 1\r\n"), named(3), named(4)],
    "bare": [BARE, BARE, BARE[:-2] + b"[]", BARE],
    "stateless": [STATE] * 3 + [BARE] * 3,
    "in turns": [BARE, named(1), BARE, named(2)],
    "not valid": [named(1), named(2), named(0), named(0), named(3), named(4)],
    "another length": [named(1), named(2), named(3, body=b"{ }"), named(4, body=b"{ }"), named(5)],
    "a card": [
        named(1, body=b" " * len(CARD_CALL)),
        named(2, body=CARD_CALL),
        named(3, body=b" " * len(CARD_CALL)),
    ],
    "not understood": [BARE, BARE, ask(b"X:\n"), BARE],
    "others": [
        BARE,
        ask(b"Content-Length: 0", method=b"HEAD"),
        BARE,
        ask(method=b"CONNECT"),
        BARE,
        BARE,
    ],
}


@pytest.mark.parametrize("plan", [PLAN, EditPlan(b"agent", rewriter(lambda _: None), "p:1", same)])
@pytest.mark.parametrize("alike", ALIKE.values(), ids=ALIKE)
def test_repeated_requests_are_parsed_once(alike: list[bytes], plan: EditPlan) -> None:
    """They become what they become in pieces, byte for byte, and the answers still belong to
    them."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    made = []
    for size in (0, 3):
        editor, out, facts = Http1Editor(plan), [], []
        for raw in alike:
            pieces = pieces_of(raw, range(0, len(raw), size) if size else ())
            out.append(
                b"".join(part.data for piece in pieces for part in editor.feed(C, piece, 0.0))
            )
            facts += [
                (fact.kind, fact.offset, fact.detail)
                for fact in editor.take_edits()
                if fact.kind != "ended"
            ]
            out += [part.data for part in editor.feed(S, answer, 0.0)]
        made.append((out, facts, editor.is_active))
    assert made[0] == made[1]
    assert made[0][0][1::2] == [answer] * len(alike)


def test_a_repeated_request_head_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    editor = Http1Editor(PLAN)
    editor.feed(C, named(1), 0.0)
    monkeypatch.setattr("a2a_proxy.relay.edits.http1.parse_request_head", None)
    (sent,) = editor.feed(C, named(2), 0.0)
    goes_on = b"TraceParent: 00-%s-%s-01" % (TRACE.encode(), NEW_SPAN.encode())
    assert sent.data == named(2).replace(
        b"TraceParent:  00-%s-%016x-01" % (TRACE.encode(), 2), goes_on
    )


def test_a_thousand_requests_have_distinct_span_ids() -> None:
    editor = Http1Editor(EditPlan(trace=Random(1).getrandbits))
    plain, named = ask(b"Content-Length: 0"), ask(b"traceparent: " + CAME)
    sent = [editor.feed(C, named if at % 2 else plain, 0.0)[0].data for at in range(1000)]
    facts = editor.take_edits()
    parents = [
        re.search(
            rb"(?i)traceparent: (\S+)",
            each,
        )[1].decode()
        for each in sent
    ]  # type: ignore[index]
    assert [fact.detail["after"] for fact in facts] == parents
    assert len({parent[36:52] for parent in parents}) == 1000
    assert len({parent[3:35] for parent in parents}) == 501, (
        "a trace for each of those that had none"
    )
    assert [fact.detail["stream"] for fact in facts] == list(range(1, 1001))


# HTTP/2

Fields = list[tuple[bytes, bytes]]
HTTP2 = [
    ([], [(b"traceparent", OWN)], {}),
    (
        [(b"x", b"1"), (b"traceparent", CAME), (b"tracestate", b"a=b")],
        "kept",
        {"before": CAME.decode()},
    ),
    ([(b"tracestate", b"a=b")], [(b"traceparent", OWN)], {"fields": ["tracestate"]}),
    (
        [(b"traceparent", CAME)] * 2,
        [(b"traceparent", OWN)],
        {"before": f"{CAME.decode()}, {CAME.decode()}"},
    ),
    ([(b"traceparent", b"\xff")], [(b"traceparent", OWN)], {"before": "\xff"}),
]


@pytest.mark.parametrize("authority", [None, b"agent:1"])
@pytest.mark.parametrize(("fields", "after", "more"), HTTP2)
def test_a_head_of_http2(
    fields: Fields, after: Any, more: dict[str, Any], authority: bytes | None
) -> None:
    """Three calls of one client, whose table has the fields from the second one on; in single bytes
    too."""
    plan = EditPlan(authority, trace=same)
    pair = Pair(plan)
    for stream in (1, 3, 5):
        pair.client.send_headers(
            stream, request(PLAIN_PATH, *fields, authority=authority or b"proxy")
        )
        pair.client.send_data(stream, b"traceparent")
        pair.client.send_headers(stream, [(b"traceparent", CAME)], end_stream=True)
        pair.move()
        pair.answer(stream, b"answer")
        pair.move()
    if after == "kept":
        after = [(b"x", b"1"), (b"tracestate", b"a=b"), (b"traceparent", GOES_ON)]
    heads = [event.headers for event in pair.agent_events if isinstance(event, RequestReceived)]
    assert heads == [[*request(authority=authority or b"proxy"), *after]] * 3
    trailers = [event.headers for event in pair.agent_events if isinstance(event, TrailersReceived)]
    assert trailers == [[(b"traceparent", CAME)]] * 3
    facts = [fact for fact in pair.editor.take_edits() if fact.kind == "traceparent"]
    sent = dict(after)[b"traceparent"].decode()
    assert [fact.detail for fact in facts] == [
        {"after": sent, "stream": stream, **more} for stream in (1, 3, 5)
    ]
    assert [pair.given[UP][fact.offset + 3] for fact in facts] == [1, 1, 1], (
        "each is told of its HEADERS frame"
    )
    assert pair.sent[Direction.TO_CLIENT] == pair.given[Direction.TO_CLIENT]
    for cut in (single, whole):
        assert replayed(pair.log, plan, cut) == {
            way: bytes(data) for way, data in pair.sent.items()
        }


def test_repeated_http2_calls_have_distinct_span_ids() -> None:
    """The client says the same bytes each time; cards are still found."""
    pair = Pair(
        EditPlan(None, rewriter(lambda payload: payload + b"!"), "p:1", Random(1).getrandbits)
    )
    for number in range(200):
        path = CARD_PATH if number % 10 == 0 else PLAIN_PATH
        pair.client.send_headers(1 + 2 * number, request(path), end_stream=True)
        pair.move()
        pair.answer(1 + 2 * number, b"card")
        pair.move()
    parents = [
        dict(e.headers)[b"traceparent"].decode()
        for e in pair.agent_events
        if isinstance(e, RequestReceived)
    ]
    facts = pair.editor.take_edits()
    assert [fact.detail["after"] for fact in facts if fact.kind == "traceparent"] == parents
    assert [fact.kind for fact in facts].count("card") == 20
    assert (
        len({parent[3:35] for parent in parents})
        == len({parent[36:52] for parent in parents})
        == 200
    )


def test_a_tunnel_over_http2_has_no_trace() -> None:
    pair = Pair(PLAN)
    pair.client.send_headers(
        1, [(b":method", b"CONNECT"), (b":authority", b"h:1"), (b"traceparent", CAME)]
    )
    pair.move()
    (head,) = [event.headers for event in pair.agent_events if isinstance(event, RequestReceived)]
    assert (b"traceparent", CAME) in head
    assert pair.editor.take_edits() == []


def test_an_invalid_agent_stream_does_not_break_requests() -> None:
    """The agent's table does not know what the client's has: its calls are still sent as literals,
    and edited."""
    pair = Pair(PLAN)
    pair.client.send_headers(1, request())
    pair.move()
    pair.editor.feed(Direction.TO_CLIENT, bytes([0, 0, 5, 4, 0, 0, 0, 0, 0]) + b"12345", 0.0)
    pair.client.send_headers(3, request())
    pair.feed(UP, pair.client.data_to_send())
    heads = [event.headers for event in pair.agent_events if isinstance(event, RequestReceived)]
    assert heads == [[*request(), (b"traceparent", OWN)]] * 2
