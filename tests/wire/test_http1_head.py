"""The end and the fields of heads, compared with httptools on whole messages."""

from __future__ import annotations

from typing import Any

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.chunk import Direction
from a2a_proxy.wire.http1_head import HeadError, find_head_end, is_plausible, parse_request, parse_response
from support_http1 import conversations


@pytest.mark.parametrize(
    ("wire", "end"),
    [
        (b"a\r\n\r\nb\r\n\r\n", 5),
        (b"a\n\nb\r\n\r\n", 3),
        (b"a\n\r\nb\n\n", 4),
        (b"a\r\n\n\r\n", 4),
        (b"a\r\n\r", -1),
        (b"a\r\r", -1),
        (b"", -1),
    ],
)
def test_the_first_empty_line_ends_a_head(wire: bytes, end: int) -> None:
    """CRLF and bare LF mixed as they like."""
    assert find_head_end(wire) == end


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
        ours = parse_request(wire[: find_head_end(wire)])
        assert (ours.method, ours.target, list(ours.headers)) == (method, seen.target, seen.fields)
        assert ours.version == parser.get_http_version()


def test_fields_that_determine_the_body_are_read() -> None:
    """Names in any case, codings over several fields, the first Host."""
    head = parse_request(
        b"POST / HTTP/1.0\r\ntransfer-Encoding: Gzip ,\tx\r\nTRANSFER-ENCODING: chunked\r\nhost: a\r\nHost: b\r\n\r\n"
    )
    assert head.codings == [b"gzip", b"x", b"chunked"]
    assert (head.host, head.version, head.lengths) == (b"a", "1.0", [])


def test_errors_do_not_quote_the_head() -> None:
    """A head contains credentials; an error about it must not."""
    with pytest.raises(HeadError) as caught:
        parse_request(b"GET / HTTP/1.1\r\nAuthorization Bearer secret\r\n\r\n")
    assert "secret" not in str(caught.value)


def test_a_response_needs_no_reason() -> None:
    """Servers leave it out."""
    assert (parse_response(b"HTTP/1.1 204\r\n\r\n").status, parse_response(b"HTTP/1.1 204 \r\n\r\n").reason) == (
        204,
        b"",
    )


@given(prefix=st.binary(min_size=8, max_size=40), more=st.binary(max_size=10))
def test_an_implausible_head_stays_implausible_with_more_bytes(prefix: bytes, more: bytes) -> None:
    """More bytes never make a head of what was none: a split cannot change the verdict."""
    for direction in Direction:
        assert is_plausible(direction, prefix) or not is_plausible(direction, prefix + more)
