"""Whole HTTP/1.1 connections, both directions."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.model.wire import (
    Body,
    Control,
    Cut,
    Direction,
    End,
    Head,
    HeadRole,
    Undecodable,
    WireEvent,
)
from a2a_proxy.wire.http1 import MAX_PIPELINED, Http1Decoder
from a2a_proxy.wire.http1_head import MAX_HEAD_SIZE
from support_http2 import SWITCH, upgraded
from support_wire import Step, in_every_split, play, reload

TO_AGENT, TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT
GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def told(steps: list[Step]) -> list[WireEvent]:
    """The events of a conversation, the same in every split."""
    return in_every_split(Http1Decoder, steps)


def brief(events: list[WireEvent]) -> list[Any]:
    """Events without times and spans, for reading."""
    short: list[Any] = []
    for event in events:
        arrow = "C" if event.direction is TO_AGENT else "S"
        match event:
            case Head(role=HeadRole.REQUEST):
                short.append((arrow, event.stream, event.method, event.target))
            case Head(role=HeadRole.TRAILERS):
                short.append((arrow, event.stream, "trailers", event.headers))
            case Head():
                short.append((arrow, event.stream, event.status))
            case Body():
                short.append((arrow, event.stream, event.data))
            case End():
                short.append((arrow, event.stream, "end by eof" if event.by_eof else "end"))
            case Cut():
                short.append((arrow, event.stream, f"cut {event.how}"))
            case Control():
                short.append(
                    (arrow, event.name, event.detail.get("what") or event.detail.get("protocol"))
                )
            case Undecodable():
                short.append((arrow, event.stream, "undecodable"))
    return short


def test_a_request_and_its_response() -> None:
    """Heads keep names, case, order and duplicates; spans and times are those of the bytes."""
    request = (
        b"POST /v1/x%20y?z HTTP/1.1\r\nhost: h:1\r\n"
        b"X-A: 1\r\nx-a:  2 \t\r\nContent-Length: 3\r\n\r\n"
    )
    events = told([("C", request), ("C", b"abc"), ("S", OK)])
    assert events == [
        Head(
            stream=1,
            direction=TO_AGENT,
            at=1000,
            began=1000,
            start=0,
            end=len(request),
            role=HeadRole.REQUEST,
            headers=((b"host", b"h:1"), (b"X-A", b"1"), (b"x-a", b"2"), (b"Content-Length", b"3")),
            method=b"POST",
            target=b"/v1/x%20y?z",
            authority=b"h:1",
            version="1.1",
        ),
        Body(1, TO_AGENT, 2000, len(request), len(request) + 3, b"abc"),
        End(1, TO_AGENT, 2000, len(request) + 3),
        Head(
            stream=1,
            direction=TO_CLIENT,
            at=3000,
            began=3000,
            start=0,
            end=len(OK) - 2,
            role=HeadRole.RESPONSE,
            headers=((b"Content-Length", b"2"),),
            status=200,
            reason=b"OK",
            version="1.1",
        ),
        Body(1, TO_CLIENT, 3000, len(OK) - 2, len(OK), b"ok"),
        End(1, TO_CLIENT, 3000, len(OK)),
    ]


def test_a_head_begins_at_the_time_of_its_first_byte() -> None:
    """`began` is the time of the first byte, `at` that of the last; empty lines before it count for
    neither."""
    head = told([("C", b"\r\n\r\n"), ("C", GET[:9]), ("C", GET[9:])])[0]
    assert isinstance(head, Head)
    assert (head.began, head.at, head.start, head.end) == (2000, 3000, 4, 4 + len(GET))


def test_chunked_body_with_extensions_and_trailers() -> None:
    """Chunk framing is counted to the span of the bytes it carries, and trailers are a head of
    their own."""
    wire = STREAM + b"5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n"
    events = told([("C", GET), ("S", wire)])
    assert brief(events)[3:] == [
        ("S", 1, b"hello!"),
        ("S", 1, "trailers", ((b"X-T", b"1"), (b"x-t", b"2"))),
        ("S", 1, "end"),
    ]
    body, trailers, end = events[3:]
    assert isinstance(body, Body)
    assert isinstance(trailers, Head)
    assert isinstance(end, End)
    assert (body.start, wire[: body.end]) == (len(STREAM), wire[: wire.index(b"!") + 1])
    assert wire[trailers.start : trailers.end] == b"X-T: 1\r\nx-t: 2\r\n\r\n"
    assert end.start == len(wire)


def test_keep_alive_and_pipelining() -> None:
    """Responses belong to requests in order, however many requests went ahead."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    events = told(
        [
            ("C", GET + b"HEAD /b HTTP/1.1\r\n\r\n" + GET),
            ("S", OK + head + OK),
            ("C", GET),
            ("S", OK),
        ]
    )
    assert brief(events) == [
        ("C", 1, b"GET", b"/a"),
        ("C", 1, "end"),
        ("C", 2, b"HEAD", b"/b"),
        ("C", 2, "end"),
        ("C", 3, b"GET", b"/a"),
        ("C", 3, "end"),
        ("S", 1, 200),
        ("S", 1, b"ok"),
        ("S", 1, "end"),
        ("S", 2, 200),
        ("S", 2, "end"),
        ("S", 3, 200),
        ("S", 3, b"ok"),
        ("S", 3, "end"),
        ("C", 4, b"GET", b"/a"),
        ("C", 4, "end"),
        ("S", 4, 200),
        ("S", 4, b"ok"),
        ("S", 4, "end"),
    ]


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_without_body(status: int) -> None:
    """204 and 304 end with their head, whatever length they announce (RFC 9112, 6.3)."""
    empty = b"HTTP/1.1 %d X\r\nContent-Length: 7\r\n\r\n" % status
    assert brief(told([("C", GET + GET), ("S", empty + OK)]))[4:] == [
        ("S", 1, status),
        ("S", 1, "end"),
        ("S", 2, 200),
        ("S", 2, b"ok"),
        ("S", 2, "end"),
    ]


def test_informational_responses_before_the_final_one() -> None:
    """100 and 103 leave the request unanswered."""
    post = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    events = told([("C", post), ("S", early), ("C", b"x"), ("S", OK)])
    roles = [(e.role, e.stream, e.status) for e in events if isinstance(e, Head)]
    assert roles == [
        (HeadRole.REQUEST, 1, 0),
        (HeadRole.INFORMATIONAL, 1, 100),
        (HeadRole.INFORMATIONAL, 1, 103),
        (HeadRole.RESPONSE, 1, 200),
    ]


def test_a_response_may_overtake_its_request() -> None:
    """An early answer is complete while the request goes on; the next request is read after it."""
    post = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab"
    assert brief(told([("C", post), ("S", OK), ("C", b"cd" + GET), ("S", OK)])) == [
        ("C", 1, b"POST", b"/"),
        ("C", 1, b"ab"),
        ("S", 1, 200),
        ("S", 1, b"ok"),
        ("S", 1, "end"),
        ("C", 1, b"cd"),
        ("C", 1, "end"),
        ("C", 2, b"GET", b"/a"),
        ("C", 2, "end"),
        ("S", 2, 200),
        ("S", 2, b"ok"),
        ("S", 2, "end"),
    ]


def test_body_until_eof() -> None:
    """Without length the end of the connection completes the response."""
    steps = [
        ("C", GET),
        ("S", b"HTTP/1.0 200 OK\r\n\r\nab"),
        ("S", b"c"),
        ("s-eof", b""),
        ("c-eof", b""),
    ]
    assert brief(told(steps))[2:] == [("S", 1, 200), ("S", 1, b"abc"), ("S", 1, "end by eof")]


def test_a_transfer_coding_that_is_not_chunked_lasts_until_eof() -> None:
    """RFC 9112, 6.3: a response whose last coding is not chunked ends with the connection."""
    steps = [
        ("C", GET),
        ("S", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab"),
        ("s-eof", b""),
    ]
    assert brief(told(steps))[2:] == [("S", 1, 200), ("S", 1, b"ab"), ("S", 1, "end by eof")]


def test_upgrade_makes_both_directions_opaque() -> None:
    """After 101 nothing is read; what passes is counted."""
    ask = b"GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: irc\r\n\r\n"
    yes = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: irc\r\n\r\n"
    steps = [
        ("C", ask),
        ("S", yes + b"\x81\x01a"),
        ("C", b"\x81\x81..."),
        ("c-eof", b""),
        ("s-eof", b""),
    ]
    assert brief(told(steps))[2:] == [("S", 1, 101), ("S", 1, "end"), ("S", "upgrade", "irc")]
    decoder = Http1Decoder()
    play(decoder, steps)
    assert decoder.counters == {"opaque_to_agent": 5, "opaque_to_client": 3}
    assert reload(decoder).counters == decoder.counters


def test_an_ignored_upgrade_continues_as_http() -> None:
    """Java clients send `Upgrade: h2c` with a body; an agent that does not care answers 200."""
    ask = (
        b"POST / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        b"Upgrade: h2c\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert brief(told([("C", ask), ("S", OK), ("C", GET), ("S", OK)]))[:8] == [
        ("C", 1, b"POST", b"/"),
        ("C", 1, b"{}"),
        ("C", 1, "end"),
        ("S", 1, 200),
        ("S", 1, b"ok"),
        ("S", 1, "end"),
        ("C", 2, b"GET", b"/a"),
        ("C", 2, "end"),
    ]


def test_an_upgrade_waits_for_the_end_of_the_request_body() -> None:
    """RFC 9110, 7.8: the client finishes its request before it speaks the new protocol."""
    ask = b"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 4\r\n\r\nab"
    yes = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
    assert brief(told([("C", ask), ("S", yes), ("C", b"cdGET / nonsense\r\n\r\n")]))[2:] == [
        ("S", 1, 101),
        ("S", 1, "end"),
        ("S", "upgrade", "x"),
        ("C", 1, b"cd"),
        ("C", 1, "end"),
    ]


ASK = (
    b"POST / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAEAAEAAAAIAAAAB\r\nContent-Length: 4\r\n\r\nab"
)


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize(
    "switch", [SWITCH, b"HTTP/1.1 101 S\r\n\r\n", b"HTTP/1.1 101 S\r\nUpgrade: h2c\r\n\r\n"]
)
def test_switch_to_http2(before: int, switch: bytes) -> None:
    """Stream 1 answers the request that asked; later streams follow it. The numbers of streams
    before the switch are not used again. Jetty answers without `Upgrade` and `Connection`: the
    switch is then to what the client offered."""
    steps = [("C", GET), ("S", OK)] * before
    steps += [("C", ASK), ("S", switch), *upgraded(b"cd"), ("c-eof", b"")]
    events = told(steps)
    first, next_one = 1 + before, 3 + before
    found = brief([each for each in events if not isinstance(each, Control)])
    assert found[6 * before - before :] == [
        ("C", first, b"POST", b"/"),
        ("C", first, b"ab"),
        ("S", first, 101),
        ("S", first, 200),
        ("S", first, b"one"),
        ("S", first, "end"),
        ("C", first, b"cd"),
        ("C", first, "end"),
        ("C", next_one, b"GET", b"/3"),
        ("C", next_one, "end"),
        ("S", next_one, 204),
        ("S", next_one, "end"),
    ]
    decoder = Http1Decoder()
    play(decoder, steps)
    assert decoder.protocol == "h2c"
    assert not {"opaque_to_agent", "opaque_to_client"} & decoder.counters.keys()
    sent = sum(len(data) for who, data in steps if who == "C")
    assert max(each.end for each in events if isinstance(each, Control | Head)) <= sent
    assert [each for each in events if isinstance(each, Control) and each.name == "preface"]


@pytest.mark.parametrize(
    ("end", "how"), [("s-eof", "eof"), ("c-reset", "reset"), ("s-lost", "lost")]
)
def test_end_after_a_switch(end: str, how: str) -> None:
    steps = [("C", ASK + b"cd"), ("S", SWITCH), (end, b"")]
    assert brief(told(steps))[-1][1:] == (1, f"cut {how}")


@pytest.mark.parametrize("end", [(), ("s-eof",), ("s-reset",), ("s-lost",)])
@pytest.mark.parametrize(
    "data", [b"\0\0\1\0\0\0\0\0\0x", b"hello, this is not HTTP/2", b"\r\nHTTP/1.1 200 OK\r\n"]
)
def test_agent_that_switches_to_something_else(data: bytes, end: tuple[str, ...]) -> None:
    """Bytes that are not HTTP/2 after `h2c` are named, and counted as not decoded."""
    steps = [("C", ASK + b"cd"), ("S", SWITCH + data), *((each, b"") for each in end)]
    assert ("S", 0, "undecodable") in brief(told(steps))
    decoder = Http1Decoder()
    play(decoder, steps)
    assert decoder.counters["opaque_to_client"] == len(data)


def test_client_that_sends_half_a_request_before_the_switch() -> None:
    """Its bytes are not HTTP/2, and are named from the first on."""
    decoder = Http1Decoder()
    steps = [("C", ASK + b"cdPOST / HT"), ("S", SWITCH), ("C", b"TP/1.1\r\n")]
    (wrong,) = [each for each in play(decoder, steps) if isinstance(each, Undecodable)]
    assert (wrong.offset, wrong.direction) == (len(ASK) + 2, Direction.TO_AGENT)
    assert decoder.counters == {"opaque_to_agent": len(b"POST / HTTP/1.1\r\n")}


def test_connect() -> None:
    """A tunnel after 2xx, plain HTTP after a refusal."""
    ask = b"CONNECT agent:443 HTTP/1.1\r\nHost: agent:443\r\n\r\n"
    yes = b"HTTP/1.1 200 Connection established\r\n\r\n"
    assert brief(told([("C", ask), ("S", yes), ("C", b"\x16\x03\x01"), ("S", b"\x16\x03\x03")]))[
        2:
    ] == [
        ("S", 1, 200),
        ("S", 1, "end"),
        ("S", "upgrade", "connect"),
    ]
    no = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"
    assert brief(told([("C", ask), ("S", no), ("C", GET)]))[2:] == [
        ("S", 1, 403),
        ("S", 1, "end"),
        ("C", 2, b"GET", b"/a"),
        ("C", 2, "end"),
    ]


def test_absolute_form() -> None:
    """A client that takes us for a proxy sends the whole URL; it is kept as sent."""
    head = told([("C", b"GET http://h:1/a?b HTTP/1.1\r\nHost: other\r\n\r\n")])[0]
    assert isinstance(head, Head)
    assert (head.target, head.scheme, head.authority) == (b"http://h:1/a?b", b"http", b"other")


def test_an_unrequested_response_is_decoded() -> None:
    """An agent may answer 408 on an idle connection: it gets the next number."""
    assert brief(told([("C", GET), ("S", OK + OK), ("C", GET)]))[5:] == [
        ("S", 2, 200),
        ("S", 2, b"ok"),
        ("S", 2, "end"),
        ("C", 3, b"GET", b"/a"),
        ("C", 3, "end"),
    ]


BOTH = b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_content_length_with_transfer_encoding_is_not_guessed() -> None:
    """The head is told, its body is not: the peers themselves may disagree about it. The other
    direction goes on."""
    events = told([("C", b"POST / HTTP/1.1\r\n" + BOTH + b"abc"), ("S", OK)])
    assert brief(events) == [
        ("C", 1, b"POST", b"/"),
        ("C", 1, "undecodable"),
        ("S", 1, 200),
        ("S", 1, b"ok"),
        ("S", 1, "end"),
    ]
    problem = next(e for e in events if isinstance(e, Undecodable))
    assert (problem.offset, problem.got) == (0, "Content-Length and Transfer-Encoding together")
    events = told(
        [
            ("C", GET + GET),
            ("S", OK + b"HTTP/1.1 200 OK\r\n" + BOTH + b"abc"),
            ("C", GET),
            ("s-eof", b""),
        ]
    )
    assert brief(events)[7:] == [
        ("S", 2, 200),
        ("S", 2, "undecodable"),
        ("C", 3, b"GET", b"/a"),
        ("C", 3, "end"),
    ]


GARBAGE = [
    ("C", b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\n\n"),
    ("C", b"a\n\n"),
    ("C", b"GET /a HTTP/2.0\r\n\r\n"),
    ("C", b"GET /a\r\n\r\n"),
    ("C", b"GET /a HTTP/1.1\r\nno colon\r\n\r\n"),
    ("C", b"VERYLONGMETHODNAMETHATNOBODYHAS / HTTP/1.1\r\n\r\n"),
    ("C", b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
    ("C", b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    ("C", b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n"),
    ("S", b"<html>not a response</html>"),
    ("S", b"HTTP/1.1 20x OK\r\n\r\n"),
    ("S", b"HTTP/3.0 200 OK\r\n\r\n"),
    ("S", STREAM + b"g\r\n"),
    ("S", STREAM + b"\r\n"),
    ("S", STREAM + b"-1\r\n"),
    ("S", STREAM + b"1_0\r\n"),
    ("S", STREAM + b"ffffffffffffffff\r\n"),
    ("S", STREAM + b"1\r\nabc\r\n"),
    ("S", STREAM + b"1\r\na\rb"),
    ("S", STREAM + b"0\r\nno colon\r\n\r\n"),
]


@pytest.mark.parametrize("step", GARBAGE)
def test_garbage_is_reported_once(step: Step) -> None:
    """One finding for that direction, nothing of it after, and the other direction still read."""
    events = told(
        [
            step,
            (step[0], b"GET / HTTP/1.1\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\x00"),
            (step[0].lower() + "-eof", b""),
        ]
    )
    assert [type(e) for e in events if isinstance(e, Undecodable)] == [Undecodable]
    assert isinstance(events[-1], Undecodable)
    other: Step = ("S", OK) if step[0] == "C" else ("C", GET)
    assert brief(told([step, other]))[-1][2] == "end"


def test_findings_have_offset_expected_and_received() -> None:
    """Offset, expected and got, and the stream that suffers; of the bytes no more than a few are
    quoted."""
    events = told([("C", GET), ("S", STREAM + b"3\r\nabc\r\nsecret-token-0123456789\r\n")])
    assert events[-1] == Undecodable(
        TO_CLIENT,
        2000,
        offset=len(STREAM) + 8,
        expected="a chunk size in hexadecimal digits",
        got="'secret-t'",
        stream=1,
    )


LENIENT = [
    ("C", b"GET / HTTP/1.1\nHost: h\n\n", "bare_lf"),
    ("C", b"GET / HTTP/1.1\r\nHost: h\r\n\n", "bare_lf"),
    ("C", b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "obs_fold"),
    ("C", b"GET / HTTP/1.1\r\nContent-Length : 0\r\n\r\n", "field"),
    ("C", b"GET / HTTP/1.1\r\nA: b\x01c\r\n\r\n", "field"),
    ("C", b"WAVE / HTTP/1.1\r\n\r\n", "request_line"),
    ("C", b"GET /\xc3\xa9 HTTP/1.1\r\n\r\n", "request_line"),
    ("S", b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "bare_lf"),
    ("S", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: b\r\n\tc\r\n\r\n", "obs_fold"),
    ("S", STREAM + b"1 \r\na\r\n0\r\n\r\n", "chunk_size_space"),
    ("S", STREAM + b"1\na\r\n0\r\n\r\n", "bare_lf"),
    ("S", STREAM + b"1\r\na\n0\r\n\r\n", "bare_lf"),
    ("S", STREAM + b"0\r\n\n", "bare_lf"),
    ("S", STREAM + b"0\r\nA: b\nC: d\n\n", "bare_lf"),
]


@pytest.mark.parametrize(("side", "wire", "what"), LENIENT)
def test_tolerated_deviations_are_decoded_and_reported_once(
    side: str, wire: bytes, what: str
) -> None:
    """A recorder is as lenient as the peers; the first time in each direction it says so."""
    events = told([("C", GET + GET), (side, wire + wire)])
    assert [e.detail["what"] for e in events if isinstance(e, Control)] == [what]
    assert brief(events)[-1][-1] == "end"
    assert not any(isinstance(e, Undecodable) for e in events)


def test_a_head_without_end_is_bounded() -> None:
    """Beyond 1 MiB a head is given up, whether it comes at once or in pieces; the memory is let
    go."""
    wire = b"GET / HTTP/1.1\r\nA: " + b"x" * MAX_HEAD_SIZE + b"\r\n\r\n"
    whole = play(Http1Decoder(), [("C", wire)])
    assert [type(e) for e in whole] == [Undecodable]
    decoder = Http1Decoder()
    assert play(decoder, [("C", wire)], lambda _: range(0, len(wire), 65536)) == whole
    assert len(encode_state(decoder)) < 1000


def test_endless_pipelining_is_bounded() -> None:
    """Unanswered requests are remembered up to a limit."""
    decoder = Http1Decoder()
    out: list[WireEvent] = []
    decoder.feed(TO_AGENT, b"GET / HTTP/1.1\r\n\r\n" * (MAX_PIPELINED + 2), 1, out)
    assert [type(e) for e in out].count(Head) == MAX_PIPELINED
    assert isinstance(out[-1], Undecodable)


LEFT = [("C", 1, "cut eof")]
"""A client that closes its own side may read on: what becomes of the agent's is told too."""
CUTS: list[tuple[list[Step], list[Any]]] = [
    (
        [("C", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"), ("c-eof", b"")],
        [("C", 1, "cut eof")],
    ),
    ([("C", GET[:9]), ("c-eof", b"")], [("C", 1, "cut eof")]),
    ([("C", GET + GET), ("S", OK[:9]), ("s-eof", b"")], [("S", 1, "cut eof"), ("S", 2, "cut eof")]),
    (
        [("C", GET), ("S", STREAM + b"3\r\nab"), ("s-eof", b""), ("c-eof", b"")],
        [("S", 1, "cut eof")],
    ),
    (
        [("C", GET), ("S", STREAM + b"3\r\nab"), ("s-reset", b""), ("c-reset", b"")],
        [("S", 1, "cut reset")],
    ),
    ([("C", GET), ("S", b"HTTP/1.0 200 OK\r\n\r\nab"), ("s-reset", b"")], [("S", 1, "cut reset")]),
    (
        [("C", GET), ("S", STREAM + b"3\r\nab"), ("c-eof", b""), ("s-eof", b"")],
        [*LEFT, ("S", 1, "cut eof")],
    ),
    (
        [("C", GET), ("S", STREAM + b"3\r\nab"), ("c-reset", b""), ("s-reset", b"")],
        [("C", 1, "cut reset")],
    ),
    ([("C", GET), ("c-eof", b""), ("s-eof", b"")], [*LEFT, ("S", 1, "cut eof")]),
    ([("C", GET), ("S", OK), ("c-eof", b""), ("s-eof", b"")], []),
    ([("C", GET), ("S", OK), ("s-eof", b""), ("c-reset", b"")], []),
    ([("C", GET), ("S", OK), ("S", b"HTT"), ("s-eof", b""), ("c-eof", b"")], [("S", 2, "cut eof")]),
    (
        [("C", GET), ("S", STREAM + b"3\r\nab"), ("s-lost", b""), ("S", b"c\r\n0\r\n\r\n")],
        [("S", 1, "cut lost")],
    ),
    ([("C", GET), ("c-lost", b""), ("C", GET), ("S", OK), ("s-eof", b"")], [("C", 1, "cut lost")]),
    ([("c-lost", b""), ("C", GET)], []),
]


@pytest.mark.parametrize(("steps", "cuts"), CUTS)
def test_cuts_name_the_side_that_broke_off(steps: list[Step], cuts: list[Any]) -> None:
    """Each stream that was open at a break gets one Cut, with the direction of the side that broke
    off first."""
    assert [b for b in brief(told(steps)) if str(b[-1]).startswith("cut")] == cuts


def test_an_early_answer_and_fin_do_not_end_the_upload() -> None:
    """The agent answered and closed; the client's own end then cuts its request."""
    post = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab"
    steps: list[Step] = [("C", post), ("S", OK), ("s-eof", b""), ("C", b"c"), ("c-eof", b"")]
    assert brief(told(steps))[5:] == [("C", 1, b"c"), ("C", 1, "cut eof")]


def test_a_response_after_a_half_close_is_decoded() -> None:
    """FIN counts as leaving, but the rest of the response is still read to its end."""
    steps: list[Step] = [("C", GET), ("c-eof", b""), ("S", OK), ("s-eof", b"")]
    assert brief(told(steps))[2:] == [
        ("C", 1, "cut eof"),
        ("S", 1, 200),
        ("S", 1, b"ok"),
        ("S", 1, "end"),
    ]
