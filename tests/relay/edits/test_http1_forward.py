from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.relay.edits.http1_forward import Http1Forward, make_origin

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Sent = list[tuple[str, bytes]]


def forwarded(pieces: list[bytes], answer: bytes = OK) -> tuple[Sent, Http1Forward]:
    """Feed the pieces; each origin answers its requests when the next one is for another origin."""
    http, sent = Http1Forward(), list[tuple[str, bytes]]()
    for piece in pieces:
        rest = piece
        while True:
            out, at = http.read_requests(rest)
            rest = rest[at:]
            if out:
                sent[-1] = (sent[-1][0], sent[-1][1] + out)
            if http.next_origin is None:
                break
            while not http.is_idle:
                assert http.note_responses(answer) == len(answer)
            first = http.begin_origin()
            assert http.origin is not None
            sent.append((http.origin.text, first))
        assert not rest or http.refusal is not None
    return sent, http


def splits(wire: bytes) -> list[list[bytes]]:
    """Whole, byte by byte, and cut in two at each place."""
    singles = [wire[index : index + 1] for index in range(len(wire))]
    return [[wire], singles, *([wire[:cut], wire[cut:]] for cut in range(1, len(wire)))]


TO_A = (
    b"GET http://a.test/x?q=1 HTTP/1.1\r\nHost: a.test\r\n"
    b"Proxy-Authorization: Basic c2VjcmV0\r\nAccept: */*\r\n\r\n"
)
SENT_A = b"GET /x?q=1 HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n"
TO_B = (
    b"POST http://b.test:8080 HTTP/1.1\r\nhost: other\r\nPROXY-Connection: keep-alive\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
)
SENT_B = (
    b"POST / HTTP/1.1\r\nhost: b.test:8080\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
)


def test_requests_in_every_split() -> None:
    """Origin form, `Host` from the target, no `Proxy-*`; a change of origin between any two
    requests."""
    for pieces in splits(TO_A + TO_A + TO_B + TO_A):
        sent, _ = forwarded(pieces)
        assert sent == [("a.test:80", SENT_A * 2), ("b.test:8080", SENT_B), ("a.test:80", SENT_A)]


@pytest.mark.parametrize(
    ("target", "origin", "path", "host"),
    [
        (b"http://A.Test/Y", "a.test:80", b"/Y", b"A.Test"),
        (b"HTTP://a.test:81/", "a.test:81", b"/", b"a.test:81"),
        (b"http://a.test:/", "a.test:80", b"/", b"a.test"),
        (b"http://a.test?x=/", "a.test:80", b"/?x=/", b"a.test"),
        (b"http://a.test/x#part", "a.test:80", b"/x", b"a.test"),
        (b"http://[::1]:9/x", "[::1]:9", b"/x", b"[::1]:9"),
        (b"https://a.test/x", "https://a.test:443", b"/x", b"a.test"),
        (b"ws://a.test/x", "a.test:80", b"/x", b"a.test"),
        (b"WSS://a.test/x", "https://a.test:443", b"/x", b"a.test"),
    ],
)
def test_targets(target: bytes, origin: str, path: bytes, host: bytes) -> None:
    sent, _ = forwarded([b"PUT " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n"])
    assert sent == [(origin, b"PUT " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")]


def test_options_of_the_whole_server() -> None:
    """RFC 9112 3.2.4: OPTIONS without a path asks about the server."""
    sent, _ = forwarded([b"OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n"])
    assert sent == [("a.test:80", b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n")]


def test_http_1_0_gets_a_host() -> None:
    sent, _ = forwarded([b"GET http://a.test/ HTTP/1.0\r\nA: b\r\n\r\n"])
    assert sent == [("a.test:80", b"GET / HTTP/1.0\r\nHost: a.test\r\nA: b\r\n\r\n")]


@pytest.mark.parametrize(
    ("request_bytes", "status", "words"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "names no origin"),
        (b"GET http://u:p@a.test/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "user information"),
        (b"GET ftp://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "ftp:// URLs are not forwarded"),
        (b"GET http://a.test:99999/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "its URL is not valid"),
        (b"GET http://a.test:0/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "its URL is not valid"),
        (b"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "its URL is not valid"),
        (b"GET http://\xff/x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "its URL is not valid"),
        (
            b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
            400,
            "two host fields",
        ),
        (b"GET http://a.test/ HTTP/1.1\nHost: a\n\n", 400, "a bare LF in a head"),
        (
            (
                b"POST http://a.test/ HTTP/1.1\r\nHost: a\r\n"
                b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
            ),
            400,
            "Content-Length and Transfer-Encoding together",
        ),
        (b"\x00\x01\x02\x03\r\n\r\n", 400, "a malformed request head"),
        (b"GET http://a.test/ HTTP/1.1\r\nX: " + b"a" * 70_000, 400, "a head that is too long"),
    ],
)
def test_requests_that_are_refused(request_bytes: bytes, status: int, words: str) -> None:
    """The refusal names the reason and no part of the request; nothing of the request goes on."""
    for before in (b"", TO_A):
        sent, http = forwarded([before + request_bytes])
        assert http.refusal is not None
        assert (http.refusal.status, words in http.refusal.detail) == (status, True), http.refusal
        assert sent == ([("a.test:80", SENT_A)] if before else [])


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
    ],
)
def test_the_end_of_a_response_in_every_split(answer: bytes) -> None:
    for pieces in splits(answer):
        _, http = forwarded([TO_A])
        for piece in pieces:
            assert not http.is_idle
            http.note_responses(piece)
        assert http.is_idle


def test_a_response_to_head_has_no_body() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    _, http = forwarded([TO_A, b"HEAD" + TO_A[3:], TO_A])
    http.note_responses(OK)
    http.note_responses(head)
    assert not http.is_idle
    http.note_responses(OK)
    assert http.is_idle


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        OK + b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_responses_without_a_known_end(answer: bytes) -> None:
    _, http = forwarded([TO_A])
    assert http.note_responses(answer) == len(answer)
    assert not http.is_idle
    assert not http.can_become_idle


def test_a_response_until_close_is_never_complete() -> None:
    _, http = forwarded([TO_A])
    http.note_responses(b"HTTP/1.1 200 OK\r\n\r\n" + OK)
    assert not http.is_idle


def test_the_budget_stops_both_directions() -> None:
    http = Http1Forward()
    _, at = http.read_requests(TO_A)
    http.begin_origin()
    http.budget = 1
    many = TO_A * 1000
    sent, at = http.read_requests(many)
    assert (sent, at) == (SENT_A, len(TO_A))
    http.budget = 1
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 1000
    assert 0 < http.note_responses(chunks) < len(chunks)


_WORDS = st.sampled_from(
    [
        TO_A,
        TO_B,
        OK,
        b"GET http://a.test/ HTTP/1.1\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
        b"Host: a\r\n",
        b"\r\n\r\n",
        b"0\r\n\r\n",
    ]
)


@given(st.lists(_WORDS | st.binary(max_size=20), max_size=12), st.randoms(use_true_random=False))
def test_any_bytes(parts: list[bytes], random: Random) -> None:
    """Nothing is raised and nothing loops, whatever both sides send, in whatever pieces."""
    data, http = b"".join(parts), Http1Forward()
    while data:
        piece, data = data[: (size := random.randint(1, 40))], data[size:]
        while piece and http.refusal is None:
            http.budget = random.randint(0, 30)
            _, at = http.read_requests(piece)
            assert at > 0 or http.refusal is not None
            piece = piece[at:]
            if http.next_origin is not None:
                http.begin_origin()
        http.note_responses(random.choice(parts))
    assert http.refusal is not None or http.next_origin is None


def test_origins_are_named_alike() -> None:
    """With the port, so that one origin is one agent for all clients."""
    assert make_origin("[::1]", 80, tls=False).text == "[::1]:80"
    assert make_origin("A.Test", 443, tls=True).text == "https://a.test:443"


def test_fields_for_the_proxy_in_trailers_are_removed() -> None:
    """In every split. The other trailers go on."""
    head = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    trailers = b"X-Sum: 1\r\nProxy-Authorization: Basic c2VjcmV0\r\nPROXY-x:\r\nX-End: 2\r\n\r\n"
    for pieces in splits(head + b"3\r\nabc\r\n0\r\n" + trailers + TO_A):
        (_, to_a), http = forwarded(pieces)[0][0], forwarded(pieces)[1]
        assert http.refusal is None
        assert to_a.endswith(b"3\r\nabc\r\n0\r\nX-Sum: 1\r\nX-End: 2\r\n\r\n" + SENT_A)


@pytest.mark.parametrize(
    "line", [b"Proxy-Authorization : x\r\n", b" Proxy-X: folded\r\n", b"no field\r\n", b"X: bare\n"]
)
def test_trailers_that_could_be_read_in_two_ways_are_refused(line: bytes) -> None:
    head = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    sent, http = forwarded([head + b"0\r\nX-Sum: 1\r\n" + line + b"\r\n"])
    assert http.refusal is not None
    assert line not in sent[0][1]


def test_empty_lines_before_a_request_are_left_out() -> None:
    """As RFC 9112 2.2 says, and as other servers do: old clients send one after a body."""
    for pieces in splits(b"\r\n" + TO_A + b"\r\n\n" + TO_A + b"\r\n"):
        sent, http = forwarded(pieces)
        assert sent == [("a.test:80", SENT_A * 2)]
        assert http.refusal is None


def test_http_1_0_with_a_transfer_coding_is_refused() -> None:
    """RFC 9112 6.1: an origin may read such a request without its body, and the body as the next
    request."""
    head = b"POST http://a.test/ HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    sent, http = forwarded([head + b"0\r\n\r\n"])
    assert sent == []
    assert http.refusal is not None
    assert "Transfer-Encoding with HTTP/1.0" in http.refusal.detail
