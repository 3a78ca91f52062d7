"""Server-sent events (manual/protocol.md "Event stream format")."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.wire import sse
from a2a_proxy.wire.sse import (
    MAX_IDLE_RUN,
    MAX_SINGLE_IDLE,
    SseEvent,
    SseSplitter,
    rebuild_event,
)
from support_sse import decode_stream
from support_wire import pieces_of, reload

BASE = 1000


def split(
    wire: bytes,
    cuts: Iterable[int] = (),
    restart: bool = False,
    limit: int = 1 << 20,
    keep: int = 8,
) -> list[SseEvent]:
    """All events of a body that stands unframed at offset `BASE`."""
    splitter = SseSplitter(limit, keep)
    out: list[SseEvent] = []
    at = BASE
    for piece in pieces_of(wire, cuts):
        splitter.feed(piece, 7, at, at + len(piece), out)
        at += len(piece)
        if restart:
            splitter = reload(splitter)
    splitter.finish(7, out)
    return out


def told(wire: bytes) -> list[SseEvent]:
    """The events, the same in every split, and the wire rebuilt from them."""
    whole = split(wire)
    for restart in (False, True):
        assert split(wire, range(len(wire)), restart) == whole
        for cut in range(1, len(wire)):
            assert split(wire, (cut,), restart) == whole, cut
    assert b"".join(rebuild_event(event.framing, event.data) for event in whole) == wire
    assert [wire[event.start - BASE : event.end - BASE] for event in whole] == [
        rebuild_event(event.framing, event.data) for event in whole
    ]
    return whole


def test_an_event_has_all_its_fields() -> None:
    """The output of an SDK, with every field."""
    wire = b'data: {"a":1}\r\n\r\n'
    assert told(wire) == [
        SseEvent(
            began=7,
            at=7,
            start=BASE,
            end=BASE + len(wire),
            data=b'{"a":1}',
            framing="data: \0\r\n\r\n",
            lines=1,
            dispatched=True,
            complete=True,
            size=7,
        )
    ]


def test_fields() -> None:
    """event, id, retry and comments belong to their event; the last one wins, unknown ones are
    text."""
    (event,) = told(
        b": hi\n:there\nevent: a\nevent: b\nid: 1\nid: 2\nretry: 10\ndata: x\nfoo: bar\nFoo\n\n"
    )
    assert (event.event, event.id, event.retry, event.comment, event.data) == (
        "b",
        "2",
        10,
        "hi\nthere",
        b"x",
    )
    assert (
        event.framing
        == ": hi\n:there\nevent: a\nevent: b\nid: 1\nid: 2\nretry: 10\ndata: \0\nfoo: bar\nFoo\n\n"
    )


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends(end: bytes) -> None:
    """CR, LF and CRLF all end lines."""
    events = told(end.join([b"data: a", b"data: b", b"", b"data: c", b"", b""]))
    assert [(event.data, event.lines) for event in events] == [(b"a\nb", 2), (b"c", 1)]


def test_line_ends_may_be_mixed() -> None:
    """LF then CR is two line ends, CR then LF is one."""
    assert [
        event.data for event in told(b"data: a\r\ndata: b\ndata: c\r\rdata: d\n\rdata: e\r\n\n")
    ] == [
        b"a\nb\nc",
        b"d",
        b"e",
    ]


def test_other_unicode_line_separators_are_data() -> None:
    """U+2028, U+0085, form feed and vertical tab do not end a line (1.6)."""
    text = "a\u2028b\u0085c\x0bd\x0ce\x1cf".encode()
    assert [event.data for event in told(b"data: " + text + b"\n\n")] == [text]


def test_values_lose_one_leading_space() -> None:
    """Exactly one, and only a space."""
    assert [e.data for e in told(b"data:a\n\ndata:  a\n\ndata:\ta\n\ndata: a \n\n")] == [
        b"a",
        b" a",
        b"\ta",
        b"a ",
    ]


def test_a_bom_is_dropped_once() -> None:
    """At the beginning of the stream, nowhere else."""
    first, second = told(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n")
    assert (first.data, first.dispatched, second.data, second.dispatched) == (
        b"a",
        True,
        b"",
        False,
    )
    assert [event.data for event in told(b"\xef\xbbdata: a\n\ndata: b\n\n")] == [b"", b"b"]
    assert [event.complete for event in told(b"\xef\xbb")] == [False]
    assert [event.dispatched for event in told(b"\xef\xbb\xbf\r\ndata: a\n\n")] == [False, True]


def test_a_block_without_data_is_reported_but_not_dispatched() -> None:
    """Comments, a lone event field, an empty line."""
    events = told(b": ping\r\n\r\nevent: a\n\n\ndata: x\n\n")
    assert [(e.dispatched, e.comment, e.event) for e in events] == [
        (False, "ping", ""),
        (False, "", "a"),
        (False, "", ""),
        (True, "", ""),
    ]


def test_empty_data_is_data() -> None:
    """WHATWG, the example under 9.2.6: a block `data` fires an event whose data is the empty
    string."""
    assert [(e.dispatched, e.lines, e.data) for e in told(b"data\n\ndata:\ndata\n\n")] == [
        (True, 1, b""),
        (True, 2, b"\n"),
    ]


def test_names_are_whole_and_case_sensitive() -> None:
    """`Data`, `data ` and `dataset` are other fields."""
    assert [e.dispatched for e in told(b"Data: a\n\ndata : a\n\ndataset: a\n\n data: a\n\n")] == [
        False
    ] * 4


def test_invalid_id_and_retry_are_ignored() -> None:
    """An id with NUL and a retry that is not all digits are ignored, their bytes are not lost."""
    (event,) = told(b"id: a\0b\nretry: 1x\nretry:\nretry: -1\ndata: \0\n\n")
    assert (event.id, event.retry, event.data) == (None, None, b"\0")
    assert [e.id for e in told(b"id\n\nid: 1\nid: \0\n\n")] == ["", "1"]


def test_an_unfinished_last_event_is_reported() -> None:
    """Clients drop it; a recorder keeps its bytes (rule 8)."""
    events = told(b"data: a\n\ndata: b\n")
    assert [(event.data, event.complete) for event in events] == [(b"a", True), (b"b", False)]
    assert [(event.data, event.complete) for event in told(b"data: a\r\r")] == [(b"a", True)]
    assert [(event.data, event.complete) for event in told(b"dat")] == [(b"", False)]


def test_times_are_of_the_first_and_last_byte() -> None:
    """An event that ends in CR is complete at that byte, although it is returned later."""
    splitter = SseSplitter()
    out: list[SseEvent] = []
    for at, piece in enumerate([b"da", b"ta: x\r\n\r", b"\ndata: y", b"\n\n"], 1):
        splitter.feed(piece, at, 0, len(piece), out)
    assert [(event.began, event.at) for event in out] == [(1, 2), (3, 4)]


def test_byte_ranges_include_the_framing_of_the_carrier() -> None:
    """A piece whose span is longer than its bytes carries its framing in front."""
    splitter = SseSplitter()
    out: list[SseEvent] = []
    splitter.feed(b"data: a\n\ndata: ", 1, 100, 120, out)
    splitter.feed(b"b\n\n: c\n\n", 2, 120, 133, out)
    assert [(event.start, event.end) for event in out] == [(100, 114), (114, 128), (128, 133)]


def test_byte_ranges_of_compressed_pieces_cover_the_pieces() -> None:
    """A piece that is longer than its span was compressed: nothing finer can be said."""
    splitter = SseSplitter()
    out: list[SseEvent] = []
    splitter.feed(b"data: a\n\n: c\n\ndata: ", 1, 100, 110, out)
    splitter.feed(b"b\n\n" * 4, 2, 110, 115, out)
    assert [(event.start, event.end) for event in out[:3]] == [(100, 110), (100, 110), (100, 115)]


LONG = b": c\r\ndata: " + b"a" * 20 + b"\r\ndata:b\r\nid: 1\r\ndata\r\n\r\n"


def test_an_event_over_the_limit_is_cut() -> None:
    """The first bytes of its data, the true size and the hash; the next event is whole again."""
    data = b"a" * 20 + b"\nb\n"
    wire = LONG + b"data: x\n\n"
    for cuts in ((), range(len(wire)), *((cut,) for cut in range(len(wire)))):
        cut_event, whole = split(wire, cuts, limit=24)
        assert (cut_event.data, cut_event.size, cut_event.lines) == (data[:8], len(data), 3)
        assert (cut_event.truncated, cut_event.sha256) == (True, hashlib.sha256(data).digest())
        assert (cut_event.framing, cut_event.start, cut_event.end) == ("", BASE, BASE + len(LONG))
        assert (whole.data, whole.truncated) == (b"x", False)


def test_a_restart_within_a_long_event_loses_only_its_hash() -> None:
    """A hash is no plain value."""
    expected = [msgspec.structs.replace(event, sha256=b"") for event in split(LONG, limit=24)]
    assert split(LONG, range(len(LONG)), restart=True, limit=24) == expected


def test_memory_is_bounded() -> None:
    """Of an endless line no more than the limit is held."""
    splitter = SseSplitter(limit=1000, keep=10)
    for _ in range(100):
        splitter.feed(b"data: " + b"x" * 100, 1, 0, 106, [])
    assert len(encode_state(splitter)) < 500


LINES = st.sampled_from(
    [
        *(
            b"data: a",
            b"data:b",
            b"data",
            b"data:  \xc3\xa9\xe2\x80\xa8",
            b"event: e",
            b"id: 1",
            b"id: a\0b",
            b"id",
        ),
        *(
            b"retry: 5",
            b"retry: x",
            b": c",
            b":",
            b"foo: x",
            b"",
            b"",
            b"\xef\xbb\xbfdata: q",
            b"data: \0",
        ),
    ]
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=12).map(
    lambda lines: b"".join(line + end for line, end in lines)
)
CUTS = st.lists(st.integers(1, 80), max_size=6)


IDLE_BLOCKS = [b"\n", b"\r", b"\r\n", b":\n\n", b": hi\r\n\r\n", b":a\r:b\r\r", b"data: x\n\n"]
IDLE_STREAMS = st.lists(
    st.tuples(st.sampled_from(IDLE_BLOCKS), st.integers(1, 2 * MAX_SINGLE_IDLE)), max_size=6
).map(lambda runs: b"".join(block * count for block, count in runs))


@settings(max_examples=200, deadline=None)
@given(wire=IDLE_STREAMS, cuts=CUTS, restart=st.booleans())
def test_idle_blocks_are_joined_in_the_same_way_in_every_split(
    wire: bytes, cuts: list[int], restart: bool
) -> None:
    """Nothing is lost; comments and byte ranges of a joined event are those of its bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sse, "MAX_IDLE_RUN", 24)
        whole = split(wire)
        assert split(wire, cuts, restart) == whole
        assert split(wire, range(len(wire)), restart) == whole
    pieces = [rebuild_event(event.framing, event.data) for event in whole]
    assert b"".join(pieces) == wire
    assert [wire[event.start - BASE : event.end - BASE] for event in whole] == pieces
    for event, piece in zip(whole, pieces, strict=True):
        lines = [line for line in piece.splitlines() if line.startswith(b":")]
        comments = [line[1:].removeprefix(b" ").decode() for line in lines]
        assert (event.comment, event.dispatched) == ("\n".join(comments), b"data" in piece)


@pytest.mark.parametrize("block", IDLE_BLOCKS[:-1])
def test_of_many_idle_blocks_at_one_time_only_the_first_are_events(block: bytes) -> None:
    """Those of another time, as heartbeats are, are events as they arrive."""
    splitter, out = SseSplitter(), list[SseEvent]()
    wire = block * 200_000
    for at in (1, 2):
        splitter.feed(wire, at, 0, len(wire), out)
    splitter.finish(3, out)
    assert len(out) <= 2 * (MAX_SINGLE_IDLE + 2 + len(wire) // MAX_IDLE_RUN)
    assert {event.at for event in out} == {1, 2}
    assert b"".join(rebuild_event(event.framing, event.data) for event in out) == wire * 2
    out.clear()
    for at in range(4, 40):
        splitter.feed(b"data: x\n\n" + block + b":\n\n", at, 0, 12 + len(block), out)
        assert len(out) == 3
        out.clear()


@settings(max_examples=400, deadline=None)
@given(
    wire=st.one_of(STREAMS, st.binary(max_size=40)),
    cuts=CUTS,
    restart=st.booleans(),
    bom=st.booleans(),
)
def test_any_split_gives_the_same_events_and_they_give_the_stream(
    wire: bytes, cuts: list[int], restart: bool, bom: bool
) -> None:
    """Lossless and independent of how the bytes come."""
    wire = b"\xef\xbb\xbf" + wire if bom else wire
    whole = split(wire)
    assert split(wire, cuts, restart) == whole
    assert b"".join(rebuild_event(event.framing, event.data) for event in whole) == wire


@settings(max_examples=400, deadline=None)
@given(wire=STREAMS)
def test_httpx_sse_reads_the_same(wire: bytes) -> None:
    """Complete events with data, with the id carried on as clients do."""
    wire = wire.removeprefix(b"\xef\xbb\xbf")
    # httpx-sse also yields blocks without data where an id is known.
    theirs = [(event.event, event.data, event.id, event.retry) for event in decode_stream(wire)]
    ours = []
    last = ""
    for event in split(wire):
        last = last if event.id is None else event.id
        if event.complete and (event.dispatched or event.event or last or event.retry is not None):
            ours.append((event.event or "message", event.data.decode(), last, event.retry))
    assert ours == theirs
