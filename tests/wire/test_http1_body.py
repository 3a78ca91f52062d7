"""Bodies of generated conversations against h11, random damage, and the reader of one body."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.http.h1 import CHUNKED, UNTIL_CLOSE, Http1Error
from a2a_proxy.model.wire import Body, Control, Direction, End, Head, Undecodable, WireEvent
from a2a_proxy.wire.http1 import Http1Decoder
from a2a_proxy.wire.http1_body import MAX_SIZE_LINE, BodyReader
from a2a_proxy.wire.http1_head import MAX_HEAD_SIZE, Leniencies
from support_http1 import conversations, messages, oracle_requests, oracle_responses
from support_wire import Step, merged, pieces_of, play, reload

Conversation = list[tuple[bytes, bytes, bytes]]
SETTINGS = settings(max_examples=150, deadline=None)


def steps_of(conversation: Conversation, pipelined: bool) -> list[Step]:
    if pipelined:
        wires = [("C", b"".join(request for _, request, _ in conversation))]
        wires += [("S", b"".join(response for _, _, response in conversation))]
    else:
        wires = [
            step
            for _, request, response in conversation
            for step in (("C", request), ("S", response))
        ]
    return [*wires, ("s-eof", b""), ("c-eof", b"")]


@SETTINGS
@given(conversation=conversations(), pipelined=st.booleans())
def test_h11_reads_the_same(conversation: Conversation, pipelined: bool) -> None:
    """Both directions of any valid conversation are what h11 as server and as client reads in
    them."""
    events = play(Http1Decoder(), steps_of(conversation, pipelined))
    wire = b"".join(request for _, request, _ in conversation)
    assert messages(events, Direction.TO_AGENT) == oracle_requests(wire)
    answers = [(method, response) for method, _, response in conversation]
    assert messages(events, Direction.TO_CLIENT) == oracle_responses(answers, eof=True)


@SETTINGS
@given(
    conversation=conversations(),
    pipelined=st.booleans(),
    step=st.integers(1, 60),
    restart=st.booleans(),
)
def test_any_split_gives_the_same_events(
    conversation: Conversation, pipelined: bool, step: int, restart: bool
) -> None:
    """However the bytes come, also with the decoder saved and restored between them."""
    steps = steps_of(conversation, pipelined)
    split = play(Http1Decoder(), steps, lambda data: range(0, len(data), step), restart)
    assert split == play(Http1Decoder(), steps)


@st.composite
def damaged(draw: st.DrawFn) -> list[Step]:
    """A conversation with some bytes replaced, removed or put in, and ends anywhere."""
    steps = steps_of(draw(conversations()), draw(st.booleans()))
    for _ in range(draw(st.integers(1, 4))):
        index = draw(st.integers(0, len(steps) - 1))
        what, data = steps[index]
        if len(what) > 1:
            steps.insert(
                index,
                (draw(st.sampled_from(["c-eof", "s-eof", "c-reset", "s-reset", "c-lost"])), b""),
            )
            continue
        at = draw(st.integers(0, len(data)))
        gone = draw(st.integers(0, 5))
        steps[index] = (what, data[:at] + draw(st.binary(max_size=5)) + data[at + gone :])
    return steps


@settings(max_examples=300, deadline=None)
@given(steps=damaged(), size=st.integers(1, 60), restart=st.booleans())
def test_damage_never_raises(steps: list[Step], size: int, restart: bool) -> None:
    """At most one finding a direction, and the same events in any split."""
    whole = play(Http1Decoder(), steps)
    findings = [event.direction for event in whole if isinstance(event, Undecodable)]
    assert len(findings) == len(set(findings))
    assert play(Http1Decoder(), steps, lambda data: range(0, len(data), size), restart) == whole


@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(st.tuples(st.sampled_from("CS"), st.binary(max_size=60)), max_size=6))
def test_noise_never_raises(pieces: list[Step]) -> None:
    """Bytes that are no HTTP at all."""
    whole = play(Http1Decoder(), pieces)
    assert play(Http1Decoder(), pieces, lambda data: range(len(data)), restart=True) == whole


# --- the reader of one body

BASE = 1000
"""Offset of the first byte of a body."""


class Read:
    """What a reader made of bytes in pieces."""

    def __init__(self, framing: int, data: bytes, cuts: Iterable[int] = ()) -> None:
        leniencies, events = Leniencies(), list[WireEvent]()
        reader = BodyReader(7, Direction.TO_AGENT, framing, BASE, leniencies)
        at = 0
        for number, piece in enumerate(pieces_of(data, cuts), 1):
            reader = reload(reader)
            try:
                at += reader.feed(piece, 0, BASE + at, number, events)
            except Http1Error as error:
                error.start += BASE + at
                raise
            if not reader.left:
                break
        self.body = b"".join(each.data for each in events if isinstance(each, Body))
        self.spans = [(each.start, each.end) for each in merged(events) if isinstance(each, Body)]
        self.ends = [each.start for each in events if isinstance(each, End)]
        self.reports = [
            (each.detail["what"], each.start, each.end)
            for each in events
            if isinstance(each, Control)
        ]
        self.trailers = [
            (each.headers, each.start, each.end) for each in events if isinstance(each, Head)
        ]
        self.consumed = at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Read) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def read(framing: int, data: bytes) -> Read:
    """Read the bytes whole, byte by byte, and split once at each place: all give the same."""
    whole = Read(framing, data)
    assert Read(framing, data, range(len(data))) == whole
    for cut in range(1, len(data)):
        assert Read(framing, data, (cut,)) == whole, cut
    return whole


def test_a_body_of_known_length() -> None:
    found = read(5, b"hello, more")
    assert (found.body, found.consumed, found.ends) == (b"hello", 5, [BASE + 5])
    assert found.spans == [(BASE, BASE + 5)]
    assert read(5, b"hell").ends == []


def test_a_body_until_the_end_of_the_connection() -> None:
    found = read(UNTIL_CLOSE, b"hello")
    assert (found.body, found.consumed, found.ends) == (b"hello", 5, [])


def test_a_chunked_body_with_extensions_and_trailers() -> None:
    found = read(CHUNKED, b"5;a=b\r\nhello\r\n00A\r\n0123456789\r\n0\r\nX: y\r\n\r\nnext")
    assert (found.body, found.consumed) == (b"hello0123456789", 42)
    assert found.ends == [BASE + 42]
    assert found.trailers == [(((b"X", b"y"),), BASE + 34, BASE + 42)]
    assert found.reports == []


def test_a_chunked_body_without_trailers() -> None:
    found = read(CHUNKED, b"1\r\nx\r\n0\r\n\r\nnext")
    assert (found.body, found.consumed, found.ends, found.trailers) == (b"x", 11, [BASE + 11], [])


@pytest.mark.parametrize(
    ("data", "reports"),
    [
        (b"1 \r\nx\r\n0\r\n\r\n", [("chunk_size_space", BASE, BASE + 4)]),
        (b"1\t;a\r\nx\r\n0\r\n\r\n", [("chunk_size_space", BASE, BASE + 6)]),
        (b"1\nx\r\n0\r\n\r\n", [("bare_lf", BASE, BASE + 2)]),
        (b"001\nx\r\n0\r\n\r\n", [("bare_lf", BASE, BASE + 4)]),
        (b"1\r\nx\n0\r\n\r\n", [("bare_lf", BASE + 4, BASE + 5)]),
        (b"1\r\nx\r\n0\r\n\n", [("bare_lf", BASE + 9, BASE + 10)]),
        (
            b"1 \r\nx\n0\n\n",
            [("chunk_size_space", BASE, BASE + 4), ("bare_lf", BASE + 5, BASE + 6)],
        ),
        (b"1\r\nx\r\n0\r\nX: y\n\r\n", [("bare_lf", BASE + 9, BASE + 16)]),
    ],
)
def test_leniencies_are_reported_at_their_place(
    data: bytes, reports: list[tuple[str, int, int]]
) -> None:
    found = read(CHUNKED, data)
    assert (found.body, found.consumed, found.reports) == (b"x", len(data), reports)


@pytest.mark.parametrize(
    ("data", "offset", "expected", "got"),
    [
        (b"x\r\n", 0, "a chunk size in hexadecimal digits", "'x\\r\\n'"),
        (b"\r\n", 0, "a chunk size in hexadecimal digits", "'\\r\\n'"),
        (b"-1\r\n", 0, "a chunk size in hexadecimal digits", "'-1\\r\\n'"),
        (b"1 x\r\n", 0, "a chunk size in hexadecimal digits", "'1 x\\r\\n'"),
        (b"1" * 16 + b"\r\n", 0, "a chunk size in hexadecimal digits", "'11111111'"),
        (b"1\r\nxyz", 4, "CRLF after a chunk", "'y'"),
        (b"1\r\nx\rz", 4, "CRLF after a chunk", "'\\r'"),
        (b"1\r\nx\r\nz\r\n", 6, "a chunk size in hexadecimal digits", "'z\\r\\n'"),
        (b"0\r\nX y\r\n\r\n", 3, "a trailer section", ""),
    ],
)
def test_other_bytes_are_refused_at_their_offset(
    data: bytes, offset: int, expected: str, got: str
) -> None:
    for cuts in ((), range(len(data)), *((cut,) for cut in range(1, len(data)))):
        with pytest.raises(Http1Error) as caught:
            Read(CHUNKED, data, cuts)
        assert (caught.value.start, caught.value.expected) == (BASE + offset, expected)
        assert caught.value.got == got or not got


def test_a_size_of_15_digits_after_zeros() -> None:
    assert Read(CHUNKED, b"0" * 20 + b"5\r\nhello\r\n0\r\n\r\n").body == b"hello"
    assert Read(CHUNKED, b"f" * 15 + b"\r\nhello").body == b"hello"


@pytest.mark.parametrize("cuts", [(), (1,), (MAX_SIZE_LINE - 1,)])
def test_a_size_line_has_at_most_16_kib(cuts: tuple[int, ...]) -> None:
    longest = b"1;" + b"x" * (MAX_SIZE_LINE - 4) + b"\r\n"
    assert Read(CHUNKED, longest + b"y\r\n0\r\n\r\n", cuts).body == b"y"
    for data in (longest.replace(b"1;", b"1;x"), b"1;" + b"x" * MAX_SIZE_LINE):
        with pytest.raises(Http1Error) as caught:
            Read(CHUNKED, data, cuts)
        assert (caught.value.start, caught.value.got) == (BASE, "'1;xxxxxx'")
        assert str(MAX_SIZE_LINE) in caught.value.expected


@pytest.mark.parametrize("cuts", [(), (4,), (MAX_HEAD_SIZE,), (MAX_HEAD_SIZE + 2,)])
def test_a_trailer_section_has_at_most_the_size_of_a_head(cuts: tuple[int, ...]) -> None:
    longest = b"X: " + b"x" * (MAX_HEAD_SIZE - 7) + b"\r\n\r\n"
    assert len(longest) == MAX_HEAD_SIZE
    assert Read(CHUNKED, b"0\r\n" + longest, cuts).ends == [BASE + 3 + MAX_HEAD_SIZE]
    for data in (b"x" + longest, b"x" * (MAX_HEAD_SIZE + 1)):
        with pytest.raises(Http1Error, match="too long") as caught:
            Read(CHUNKED, b"0\r\n" + data, cuts)
        assert caught.value.start == BASE + 3
