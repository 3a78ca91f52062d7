"""Generated HTTP/1.1 conversations, and their content as h11 reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h11
from hypothesis import strategies as st

from a2a_proxy.model.wire import Body, Direction, End, Head, Headers, HeadRole, WireEvent

NAMES = st.sampled_from([b"X-A", b"x-a", b"Accept", b"A2A-Version", b"Date"])
VALUES = st.sampled_from(
    [b"1", b"a, b", b"text/event-stream; charset=utf-8", b"\xc3\xa9", b"x" * 300]
)
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=4)
BYTES = st.one_of(
    st.binary(max_size=40), st.sampled_from([b"\r\n\r\n", b"0\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
)


def _fields(fields: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(b"%s: %s\r\n" % field for field in fields)


@st.composite
def bodies(draw: st.DrawFn, empty: bool, until_eof: bool = False) -> tuple[bytes, bytes]:
    """Generate (framing fields, bytes) of a body; `empty` allows a body without framing."""
    kind = draw(
        st.sampled_from(
            ["length", "chunked", *(["none"] if empty else []), *(["eof"] if until_eof else [])]
        )
    )
    data = draw(BYTES)
    if kind == "none":
        return b"", b""
    if kind == "eof":
        return b"", data
    if kind == "length":
        return b"Content-Length: %d\r\n" % len(data), data
    chunks = draw(st.lists(BYTES.filter(bool), max_size=3))
    extension = draw(st.sampled_from([b"", b";a", b';a="b"']))
    body = b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks)
    return b"Transfer-Encoding: chunked\r\n", body + b"0\r\n" + _fields(draw(FIELDS)) + b"\r\n"


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Generate (method, bytes)."""
    method = draw(st.sampled_from([b"GET", b"POST", b"HEAD", b"DELETE"]))
    framing, body = draw(bodies(empty=True))
    target = draw(st.sampled_from([b"/", b"/v1/message:stream?a=%20", b"http://h/a"]))
    return method, b"%s %s HTTP/1.1\r\nHost: h\r\n%s%s\r\n%s" % (
        method,
        target,
        _fields(draw(FIELDS)),
        framing,
        body,
    )


@st.composite
def responses(draw: st.DrawFn, method: bytes, last: bool) -> bytes:
    """Generate the bytes of a response to a `method` request."""
    early = draw(
        st.sampled_from(
            [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"]
        )
    )
    status = draw(st.sampled_from([200, 200, 204, 304, 404, 500]))
    framing, body = draw(bodies(empty=False, until_eof=last))
    if method == b"HEAD" or status in (204, 304):
        body = b""
    return early + b"HTTP/1.1 %d R\r\n%s%s\r\n%s" % (status, _fields(draw(FIELDS)), framing, body)


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[bytes, bytes, bytes]]:
    """Generate (method, request, response) of one keep-alive connection; the last response may end
    with the connection."""
    asked = draw(st.lists(requests(), min_size=1, max_size=3))
    return [(m, data, draw(responses(m, n == len(asked)))) for n, (m, data) in enumerate(asked, 1)]


Message = tuple[Any, list[tuple[bytes, bytes]], bytes, list[tuple[bytes, bytes]]]
"""(method and target, or status), fields, body, trailers; the field names are in lower case."""


def lower(fields: Any) -> list[tuple[bytes, bytes]]:
    """Return fields in the form of h11."""
    return [(bytes(name).lower(), bytes(value)) for name, value in fields]


def oracle_requests(wire: bytes) -> list[Message]:
    """Return the requests as h11 reads them as a server."""
    peer = h11.Connection(h11.SERVER)
    peer.receive_data(wire)
    found: list[Message] = []
    for message in _messages(peer):
        found.append(message)
        peer.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
        peer.send(h11.EndOfMessage())
        peer.start_next_cycle()
    return found


def oracle_responses(answers: list[tuple[bytes, bytes]], eof: bool) -> list[Message]:
    """Return the responses as h11 reads them as a client; `answers` are (method, bytes of the
    response)."""
    peer = h11.Connection(h11.CLIENT)
    found: list[Message] = []
    for number, (method, wire) in enumerate(answers, 1):
        peer.send(h11.Request(method=method, target="/", headers=[("host", "h")]))
        peer.send(h11.EndOfMessage())
        peer.receive_data(wire)
        if eof and number == len(answers):
            peer.receive_data(b"")
        for message in _messages(peer):
            found.append(message)
            if message[0] >= 200:
                break
        if peer.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
            peer.start_next_cycle()
    return found


def _messages(peer: h11.Connection) -> Iterator[Message]:
    while True:
        event = peer.next_event()
        if isinstance(event, h11.InformationalResponse):
            yield event.status_code, lower(event.headers), b"", []
        elif isinstance(event, h11.Request | h11.Response):
            fact = (
                (event.method, event.target)
                if isinstance(event, h11.Request)
                else event.status_code
            )
            body = b""
            while isinstance(part := peer.next_event(), h11.Data):
                body += part.data
            assert isinstance(part, h11.EndOfMessage)
            yield fact, lower(event.headers), body, lower(part.headers)
        else:
            return


def messages(events: list[WireEvent], direction: Direction) -> list[Message]:
    """Return the complete messages of one direction in the form of the oracle."""
    found: list[Message] = []
    head, body = None, b""
    trailers: Headers = ()
    for event in events:
        if event.direction is not direction:
            continue
        if isinstance(event, Head) and event.role is HeadRole.TRAILERS:
            trailers = event.headers
        elif isinstance(event, Head) and event.role is HeadRole.INFORMATIONAL:
            found.append((event.status, lower(event.headers), b"", []))
        elif isinstance(event, Head):
            head, body, trailers = event, b"", ()
        elif isinstance(event, Body):
            body += event.data
        elif isinstance(event, End):
            assert head is not None
            fact = (head.method, head.target) if direction is Direction.TO_AGENT else head.status
            found.append((fact, lower(head.headers), body, lower(trailers)))
    return found
