"""A request that repeats the previous one is recognised by its bytes, and edited alike."""

from __future__ import annotations

import pytest

from a2a_proxy.protocol.trace_context import origin_of
from a2a_proxy.relay.edits.http1_repeat import RepeatedRequest, remember_request

FIRST = f"00-{'1' * 32}-{'2' * 16}-01"
SECOND = f"00-{'3' * 32}-{'4' * 16}-00"
NEXT = f"00-{'3' * 32}-{'5' * 16}-00".encode()
BODY = b'{"method":"SendMessage"}'


def request(
    trace: str | None,
    *,
    host: str = "localhost",
    path: str = "/a2a",
    last: str = "Content-Length: 24",
) -> bytes:
    """The head of a request, with its `traceparent` in the middle."""
    line = f"Traceparent: {trace}\r\n" if trace is not None else ""
    return f"POST {path} HTTP/1.1\r\nHost: {host}\r\n{line}{last}\r\n\r\n".encode()


def remembered(trace: str | None) -> RepeatedRequest:
    origin = origin_of([trace.encode()] if trace is not None else [])
    found = remember_request(
        request(trace), request(trace, host="agent"), origin, len(BODY), stateless=False
    )
    assert found is not None
    return found


def test_the_next_request_has_its_own_trace_and_body() -> None:
    like, body = remembered(FIRST), BODY.replace(b"Send", b"Find")
    data = request(SECOND) + body
    assert like.origin_of(data) == origin_of([SECOND.encode()])
    assert like.next_request(data, NEXT) == request(NEXT.decode(), host="agent") + body


def test_a_request_without_trace_gets_one_as_its_last_field() -> None:
    like = remembered(None)
    data = request(None) + BODY
    assert like.origin_of(data) == origin_of([])
    head = request(None, host="agent")[:-2] + b"traceparent: " + NEXT + b"\r\n\r\n"
    assert like.next_request(data, NEXT) == head + BODY


@pytest.mark.parametrize("trace", [FIRST, None])
@pytest.mark.parametrize(
    "data",
    [
        request(SECOND) + BODY + b" ",
        request(SECOND) + BODY[:-1],
        request(SECOND, path="/a2b") + BODY,
        request(SECOND, last="content-length: 24") + BODY,
        request("00-" + "0" * 32 + SECOND[35:]) + BODY,
        request(SECOND) + BODY.replace(b"SendMessag", b"  Extended"),
        request(None, path="/a2b") + BODY,
        request(None) + BODY.replace(b"SendMessag", b"  Extended"),
    ],
    ids=["longer", "shorter", "path", "name", "trace", "card", "plain-path", "plain-card"],
)
def test_any_other_request_is_parsed(trace: str | None, data: bytes) -> None:
    assert remembered(trace).origin_of(data) is None


def test_the_name_of_a_card_call_counts_only_in_the_body() -> None:
    """`Extended` in the head, before or after the value of `traceparent`, is not a call."""
    for trace in (FIRST, None):
        origin = origin_of([trace.encode()] if trace is not None else [])
        head = request(trace, path="/Extended", last="X: Extended\r\nContent-Length: 24")
        like = remember_request(head, head, origin, len(BODY), stateless=False)
        assert like is not None
        assert like.origin_of(head + BODY) == origin


@pytest.mark.parametrize(
    "trace", ["", "no trace", FIRST + "0", f"cc{FIRST[2:]}-more", FIRST[:-1] + "g"]
)
def test_an_unusual_trace_is_not_remembered(trace: str) -> None:
    origin = origin_of([trace.encode()])
    assert remember_request(request(trace), request(trace), origin, 0, stateless=True) is None
