"""Bodies of generated conversations against h11, random damage, and the reader of one body."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.wire import Body, Control, Direction, End, Head, Undecodable, WireEvent
from a2a_proxy.wire.http1 import Http1Decoder
from a2a_proxy.wire.http1_body import (
    MAX_SIZE_LINE,
    BodyError,
    BodyReader,
    Phase,
    request_framing,
    response_framing,
)
from a2a_proxy.wire.http1_head import MAX_HEAD_SIZE, HeadError, Leniencies, ParsedHead
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

    def __init__(self, phase: Phase, data: bytes, cuts: Iterable[int] = (), left: int = 0) -> None:
        leniencies, events = Leniencies(), list[WireEvent]()
        reader = BodyReader(7, Direction.TO_AGENT, phase, left, BASE, leniencies)
        at = 0
        for number, piece in enumerate(pieces_of(data, cuts), 1):
            reader = reload(reader)
            at += reader.feed(piece, 0, BASE + at, number, events)
            if not reader.phase:
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


def read(phase: Phase, data: bytes, left: int = 0) -> Read:
    """Read the bytes whole, byte by byte, and split once at each place: all give the same."""
    whole = Read(phase, data, left=left)
    assert Read(phase, data, range(len(data)), left) == whole
    for cut in range(1, len(data)):
        assert Read(phase, data, (cut,), left) == whole, cut
    return whole


def test_a_body_of_known_length() -> None:
    found = read(Phase.LENGTH, b"hello, more", 5)
    assert (found.body, found.consumed, found.ends) == (b"hello", 5, [BASE + 5])
    assert found.spans == [(BASE, BASE + 5)]
    assert read(Phase.LENGTH, b"hell", 5).ends == []


def test_a_body_until_the_end_of_the_connection() -> None:
    found = read(Phase.UNTIL_EOF, b"hello")
    assert (found.body, found.consumed, found.ends) == (b"hello", 5, [])


def test_a_chunked_body_with_extensions_and_trailers() -> None:
    found = read(Phase.SIZE, b"5;a=b\r\nhello\r\n00A\r\n0123456789\r\n0\r\nX: y\r\n\r\nnext")
    assert (found.body, found.consumed) == (b"hello0123456789", 42)
    assert found.ends == [BASE + 42]
    assert found.trailers == [(((b"X", b"y"),), BASE + 34, BASE + 42)]
    assert found.reports == []


def test_a_chunked_body_without_trailers() -> None:
    found = read(Phase.SIZE, b"1\r\nx\r\n0\r\n\r\nnext")
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
    found = read(Phase.SIZE, data)
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
        with pytest.raises(BodyError) as caught:
            Read(Phase.SIZE, data, cuts)
        assert (caught.value.offset, caught.value.expected) == (BASE + offset, expected)
        assert caught.value.got == got or not got


def test_a_size_of_15_digits_after_zeros() -> None:
    assert Read(Phase.SIZE, b"0" * 20 + b"5\r\nhello\r\n0\r\n\r\n").body == b"hello"
    assert Read(Phase.SIZE, b"f" * 15 + b"\r\nhello").body == b"hello"


@pytest.mark.parametrize("cuts", [(), (1,), (MAX_SIZE_LINE - 1,)])
def test_a_size_line_has_at_most_16_kib(cuts: tuple[int, ...]) -> None:
    longest = b"1;" + b"x" * (MAX_SIZE_LINE - 4) + b"\r\n"
    assert Read(Phase.SIZE, longest + b"y\r\n0\r\n\r\n", cuts).body == b"y"
    for data in (longest.replace(b"1;", b"1;x"), b"1;" + b"x" * MAX_SIZE_LINE):
        with pytest.raises(BodyError) as caught:
            Read(Phase.SIZE, data, cuts)
        assert (caught.value.offset, caught.value.got) == (BASE, "'1;xxxxxx'")
        assert str(MAX_SIZE_LINE) in caught.value.expected


@pytest.mark.parametrize("cuts", [(), (4,), (MAX_HEAD_SIZE,), (MAX_HEAD_SIZE + 2,)])
def test_a_trailer_section_has_at_most_the_size_of_a_head(cuts: tuple[int, ...]) -> None:
    longest = b"X: " + b"x" * (MAX_HEAD_SIZE - 7) + b"\r\n\r\n"
    assert len(longest) == MAX_HEAD_SIZE
    assert Read(Phase.SIZE, b"0\r\n" + longest, cuts).ends == [BASE + 3 + MAX_HEAD_SIZE]
    for data in (b"x" + longest, b"x" * MAX_HEAD_SIZE):
        with pytest.raises(BodyError, match="a trailer section of at most") as caught:
            Read(Phase.SIZE, b"0\r\n" + data, cuts)
        assert caught.value.offset == BASE + 3


def head_with(
    *, lengths: tuple[bytes, ...] = (), codings: tuple[bytes, ...] = (), status: int = 200
) -> ParsedHead:
    return ParsedHead((), "1.1", list(lengths), list(codings), status=status)


def test_the_framing_of_a_request() -> None:
    assert request_framing(head_with()) == (Phase.DONE, 0)
    assert request_framing(head_with(lengths=(b"0",))) == (Phase.DONE, 0)
    assert request_framing(head_with(lengths=(b"1",))) == (Phase.LENGTH, 1)
    assert request_framing(head_with(codings=(b"gzip", b"chunked"))) == (Phase.SIZE, 0)
    for codings, lengths in (((b"chunked", b"gzip"), ()), ((b"chunked",), (b"1",))):
        with pytest.raises(HeadError):
            request_framing(head_with(codings=codings, lengths=lengths))


def test_the_framing_of_a_response() -> None:
    assert response_framing(head_with(), b"GET") == (Phase.UNTIL_EOF, 0)
    assert response_framing(head_with(lengths=(b"0",)), b"GET") == (Phase.DONE, 0)
    assert response_framing(head_with(lengths=(b"1",)), b"GET") == (Phase.LENGTH, 1)
    assert response_framing(head_with(codings=(b"chunked",)), b"GET") == (Phase.SIZE, 0)
    assert response_framing(head_with(codings=(b"chunked", b"gzip")), b"GET") == (
        Phase.UNTIL_EOF,
        0,
    )
    assert response_framing(head_with(lengths=(b"1",)), b"HEAD") == (Phase.DONE, 0)
    for status in (100, 199, 204, 304):
        assert response_framing(head_with(lengths=(b"1",), status=status), b"GET") == (
            Phase.DONE,
            0,
        )
    for status, phase in (
        (200, Phase.DONE),
        (299, Phase.DONE),
        (300, Phase.LENGTH),
        (407, Phase.LENGTH),
    ):
        assert response_framing(head_with(lengths=(b"1",), status=status), b"CONNECT")[0] is phase
    with pytest.raises(HeadError):
        response_framing(head_with(codings=(b"chunked",), lengths=(b"1",)), b"GET")
