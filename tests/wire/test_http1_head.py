"""The fields of heads, compared with httptools on whole messages."""

from __future__ import annotations

from typing import Any

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.http.h1 import HeadScanner
from a2a_proxy.model.wire import Control, Direction, WireEvent
from a2a_proxy.wire.http1_head import (
    MAX_HEAD_SIZE,
    HeadError,
    Leniencies,
    is_plausible,
    parse_request,
    parse_response,
    parse_trailers,
)
from support_http1 import conversations
from support_wire import reload


class _Seen:
    def __init__(self) -> None:
        self.fields: list[tuple[bytes, bytes]] = []
        self.target = b""
        self.complete: list[int] = []

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.complete:
            self.fields.append((name, value))

    def on_headers_complete(self) -> None:
        self.complete.append(len(self.fields))


@settings(max_examples=100, deadline=None)
@given(conversation=conversations())
def test_httptools_reads_the_same_request(conversation: list[tuple[bytes, bytes, bytes]]) -> None:
    """The head that our scanner cuts out is the head that httptools finds in the whole message."""
    for method, wire, _ in conversation:
        seen: Any = _Seen()
        parser = httptools.HttpRequestParser(seen)
        parser.feed_data(wire)
        ours = parse_request(HeadScanner(MAX_HEAD_SIZE).scan(wire, 0)[0])
        assert (ours.method, ours.target, list(ours.headers)) == (method, seen.target, seen.fields)
        assert ours.version == parser.get_http_version()


def test_fields_that_determine_the_body_are_read() -> None:
    """Names in any case, codings over several fields, the first Host."""
    head = parse_request(
        b"POST / HTTP/1.0\r\ntransfer-Encoding: Gzip ,\tx\r\n"
        b"TRANSFER-ENCODING: chunked\r\nhost: a\r\nHost: b\r\n\r\n"
    )
    assert (head.host, head.version, head.length, head.coding) == (b"a", "1.0", None, b"chunked")


def test_errors_do_not_quote_the_head() -> None:
    """A head contains credentials; an error about it must not."""
    with pytest.raises(HeadError) as caught:
        parse_request(b"GET / HTTP/1.1\r\nAuthorization Bearer secret\r\n\r\n")
    assert "secret" not in str(caught.value)


def test_a_response_needs_no_reason() -> None:
    """Servers leave it out."""
    assert (
        parse_response(b"HTTP/1.1 204\r\n\r\n").status,
        parse_response(b"HTTP/1.1 204 \r\n\r\n").reason,
    ) == (
        204,
        b"",
    )


@given(prefix=st.binary(min_size=8, max_size=40), more=st.binary(max_size=10))
def test_an_implausible_head_stays_implausible_with_more_bytes(prefix: bytes, more: bytes) -> None:
    """More bytes never make a head of what was none: a split cannot change the verdict."""
    for direction in Direction:
        assert is_plausible(direction, prefix) or not is_plausible(direction, prefix + more)


LENIENT_FIELDS = [
    (b"Host: a\n\r\n", "bare_lf"),
    (b"Host: a\r\nX: y\n\r\n", "bare_lf"),
    (b"X: a\r\n b\r\n\r\n", "obs_fold"),
    (b"X: a\r\n\tb\r\n\r\n", "obs_fold"),
    (b"X: a\n b\n\n", "bare_lf"),
    (b"X: a\x01b\r\n\r\n", "field"),
    (b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "field"),
]


@pytest.mark.parametrize(
    ("fields", "leniency"), [(b"Host: a\r\nX: y\r\n\r\n", ""), *LENIENT_FIELDS]
)
@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_the_leniency_that_fields_need_is_named(fields: bytes, leniency: str, end: bytes) -> None:
    expected = "bare_lf" if end == b"\n" else leniency
    for head in (
        parse_request(b"POST /a HTTP/1.1" + end + fields),
        parse_response(b"HTTP/1.1 404 Not Found" + end + fields),
        parse_trailers(fields) if end == b"\r\n" else None,
    ):
        if head is not None:
            assert (head.leniency, bool(head.complaint)) == (expected, bool(expected))
            assert len(head.headers) == fields.count(b":")


@pytest.mark.parametrize(
    ("line", "method", "target", "version"),
    [
        (b"QUERYX / HTTP/1.1", b"QUERYX", b"/", "1.1"),
        (b"GET /\xc3\xa9 HTTP/1.0", b"GET", b"/\xc3\xa9", "1.0"),
        (b"GET  /a  HTTP/1.1 ", b"GET", b"/a", "1.1"),
    ],
)
def test_request_lines_that_a_strict_parser_rejects(
    line: bytes, method: bytes, target: bytes, version: str
) -> None:
    head = parse_request(line + b"\r\nHost: a\r\n\r\n")
    assert (head.leniency, head.method, head.target, head.version) == (
        "request_line",
        method,
        target,
        version,
    )
    assert (head.host, head.headers) == (b"a", ((b"Host", b"a"),))
    assert head.complaint
    assert parse_request(line + b"\nHost: a\n\n").leniency == "bare_lf"
    assert parse_request(line + b"\r\nX: a\r\n b\r\n\r\n").leniency == "obs_fold"


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET / HTTP/1.2\r\n\r\n",
        b"GET / HTTP/0.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\rHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"QUERYX / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
    ],
)
def test_request_heads_that_no_leniency_explains(head: bytes) -> None:
    with pytest.raises(HeadError):
        parse_request(head)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/0.9 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
    ],
)
def test_response_heads_that_no_leniency_explains(head: bytes) -> None:
    with pytest.raises(HeadError):
        parse_response(head)


def test_an_upgrade_and_a_tunnel_are_requests_like_others() -> None:
    head = parse_request(b"GET /a HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n")
    assert (head.upgrade, head.leniency) == (b"h2c", "")
    head = parse_request(b"CONNECT a:1 HTTP/1.1\r\n\r\n")
    assert (head.method, head.target, head.leniency) == (b"CONNECT", b"a:1", "")
    answer = parse_response(b"HTTP/1.0 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
    assert (answer.status, answer.reason, answer.upgrade, answer.version) == (
        101,
        b"S",
        b"x",
        "1.0",
    )


@pytest.mark.parametrize(
    ("prefix", "asks", "answers"),
    [
        (b"GET / HT", True, False),
        (b"M" * 24 + b" /", True, False),
        (b"M" * 25 + b" /", False, False),
        (b"M" * 24, True, False),
        (b"M" * 25, False, False),
        (b"HTTP/1.1 200", False, True),
        (b"HTTP/x", False, True),
        (b"http/1.1 200", False, False),
        (b" GET / HTTP", False, False),
        (b"G{T / HTTP", False, False),
        (b"GET\n/ HTTP", False, False),
        (b'{"jsonrpc":', False, False),
    ],
)
def test_plausible_beginnings(prefix: bytes, asks: bool, answers: bool) -> None:
    assert is_plausible(Direction.TO_AGENT, prefix) is asks
    assert is_plausible(Direction.TO_CLIENT, prefix) is answers


def test_a_leniency_is_reported_once_in_each_direction() -> None:
    out: list[WireEvent] = []
    leniencies = Leniencies()
    for direction in (Direction.TO_AGENT, Direction.TO_AGENT, Direction.TO_CLIENT):
        for what in ("field", "bare_lf"):
            leniencies.report_leniency(what, "why", direction, 5, 10, 20, out)
            leniencies = reload(leniencies)
    seen = [(each.direction, each.detail["what"]) for each in out if isinstance(each, Control)]
    assert seen == [(direction, what) for direction in Direction for what in ("field", "bare_lf")]
    assert out[0] == Control(
        Direction.TO_AGENT, 5, 10, 20, "leniency", {"what": "field", "reason": "why"}
    )
