"""Authority on HTTP/2, and unedited streams: `h2` as both peers, `hyperframe` and `hpack` check the
bytes."""

from __future__ import annotations

import struct
from random import Random

import pytest
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hpack import Decoder, Encoder
from hpack.struct import HeaderTuple, NeverIndexedHeaderTuple
from hyperframe.frame import ContinuationFrame, Frame, HeadersFrame
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.http import PREFACE
from a2a_proxy.relay.edits.edit import EditPlan
from a2a_proxy.relay.edits.http2 import Http2Editor
from support_http2 import frame, literal
from support_http2_pair import (
    CARD_PATH,
    DOWN,
    PLAIN_PATH,
    RESPONSE,
    UP,
    Pair,
    message,
    request,
    rewriter,
    single,
    whole,
)

AGENT = b"agent.example:8443"
HERE = EditPlan(authority=AGENT, listen="127.0.0.1:9000")
CARDS = EditPlan(cards=rewriter(lambda payload: None), listen="127.0.0.1:9000")
BOTH = EditPlan(authority=AGENT, cards=rewriter(lambda payload: None), listen="127.0.0.1:9000")
TRACED = EditPlan(trace=Random(1).getrandbits)
START = PREFACE + frame(4, 0, 0)


def judged(content, table=4096):
    """Frames of a client as values; a header block is its fields, wherever it was cut."""
    decoder = Decoder(max_header_list_size=1 << 24)
    decoder.max_allowed_table_size = table
    out, block, pos = [], b"", len(PREFACE)
    assert content[:pos] == PREFACE
    while pos < len(content):
        parsed, length = Frame.parse_frame_header(memoryview(content)[pos : pos + 9])
        body = memoryview(content)[pos + 9 : pos + 9 + length]
        pos += 9 + length
        if isinstance(parsed, HeadersFrame | ContinuationFrame):
            assert length <= 16_384 or table > 4096
            parsed.parse_body(body)
            block += parsed.data
            if isinstance(parsed, HeadersFrame):
                first = parsed
            if "END_HEADERS" in parsed.flags:
                fields = decoder.decode(block, raw=True)
                marked = [(*field, isinstance(field, NeverIndexedHeaderTuple)) for field in fields]
                priority = (first.depends_on, first.stream_weight, first.exclusive)
                out.append((first.stream_id, "END_STREAM" in first.flags, priority, marked))
                block = b""
        else:
            assert not block
            out.append((parsed.stream_id, parsed.type, sorted(parsed.flags), bytes(body)))
    return out


def renamed(frames):
    """The same with the agent's authority."""
    return [
        (
            *head[:3],
            [
                (name, AGENT if name in (b":authority", b"host") else value, never)
                for name, value, never in last
            ],
        )
        if isinstance(last := head[3], list) and last and last[0][0].startswith(b":")
        else head
        for head in frames
    ]


def fed(plan, data, pieces=None):
    """The editor, and what it sent to the agent."""
    editor = Http2Editor(plan)
    out = b""
    for piece in pieces or [data]:
        for sent in editor.feed(UP, piece, 0.0):
            assert sent.direction is UP
            out += sent.data
    return editor, out


HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [b"traceparent", b"x-request-id", b"authorization", b"x-bin", b"user-agent"]
        ),
        st.sampled_from([b"a", b"\x00raw\xff\x01", b"b" * 300]) | st.binary(max_size=20),
        st.booleans(),
    ),
    max_size=5,
)
CALLS = st.lists(
    st.tuples(
        HEADERS, st.booleans(), st.integers(0, 3), st.none() | st.sampled_from([0, 100, 4096])
    ),
    max_size=6,
)


@given(CALLS, st.integers(1, 60))
@settings(max_examples=80, deadline=None)
def test_every_split_gives_the_same_bytes_and_only_the_authority_changes(calls, size):
    """Indexed and never indexed fields, raw bytes, padding, priority, CONTINUATION, trailers, table
    sizes."""
    encoder, data = Encoder(), START
    for number, (extra, trailers, shape, table) in enumerate(calls):
        stream = 1 + 2 * number
        if table is not None:
            encoder.header_table_size = table
        fields = [HeaderTuple(name, value) for name, value in request()]
        fields += [
            (NeverIndexedHeaderTuple if never else HeaderTuple)(name, value)
            for name, value, never in extra
        ]
        data += shaped(shape, stream, encoder.encode(fields)) + frame(0, 0, stream, b"data")
        if trailers:
            data += frame(
                1, 5, stream, encoder.encode([(b"x-end", b"1"), (b"host", b"in trailers")])
            )
    editor, once = fed(HERE, data)
    assert judged(once) == renamed(judged(data))
    for pieces in (single(data), [data[at : at + size] for at in range(0, len(data), size)]):
        assert fed(HERE, data, pieces)[1] == once
    assert [(fact.kind, fact.detail) for fact in editor.take_edits()] == (
        [("authority", {"before": "proxy:9000", "after": AGENT.decode()})] if calls else []
    )


def shaped(shape, stream, block):
    """A header block in the frames of a certain kind of client."""
    priority = struct.pack(">IB", 0x80000000, 200)
    if shape == 0:
        return frame(1, 4, stream, block)
    if shape == 1:
        return frame(1, 4 | 8, stream, b"\x07" + block + bytes(7))
    if shape == 2:
        return frame(1, 4 | 8 | 32, stream, b"\x00" + priority + block)
    return (
        frame(1, 32, stream, priority + block[:5])
        + frame(9, 0, stream)
        + frame(9, 4, stream, block[5:])
    )


@given(
    st.lists(
        st.sampled_from(["call", "answer", "data", "settings", "agent settings", "reset"]),
        max_size=25,
    ),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("plan", [EditPlan(), HERE, CARDS, BOTH])
def test_both_peers_hold_any_conversation(plan, steps, bytewise):
    """Neither peer finds fault, the agent gets the client's frames in order, the client gets the
    agent's bytes."""
    pair = Pair(plan, single if bytewise else whole)
    pair.move()
    opened, answered = [], set()
    for number, step in enumerate(steps):
        stream = opened[number % len(opened)] if opened else None
        if step == "call":
            opened.append(1 + 2 * len(opened))
            pair.client.send_headers(
                opened[-1], request(PLAIN_PATH, (b"traceparent", b"%d" % number))
            )
        elif step == "settings":
            pair.client.update_settings({SettingCodes.HEADER_TABLE_SIZE: number * 100})
        elif step == "agent settings":
            pair.agent.update_settings(
                {SettingCodes.HEADER_TABLE_SIZE: number * 100, SettingCodes.MAX_FRAME_SIZE: 20_000}
            )
        elif stream is None or stream in answered:
            continue
        elif step == "answer":
            pair.answer(stream, b"answer %d" % number)
            answered.add(stream)
        elif step == "data":
            pair.client.send_data(stream, message(b"%d" % number))
        elif step == "reset":
            pair.client.reset_stream(stream)
            answered.add(stream)
        pair.move()
    assert judged(bytes(pair.sent[UP]), 1 << 16) == (renamed if plan.authority else list)(
        judged(bytes(pair.given[UP]), 1 << 16)
    )
    assert pair.sent[DOWN] == pair.given[DOWN]
    assert pair.windows() == (65_535, 65_535)


@pytest.mark.parametrize("limit", [16_384, 1 << 20])
def test_oversized_header_blocks_use_continuation_frames(limit):
    """64 KB of headers, in frames as large as the receiver takes from everybody, or has taken from
    this client."""
    encoder = Encoder()
    fields = [
        *request(),
        *((b"x-%d" % number, bytes([65 + number % 26]) * 6000) for number in range(11)),
    ]
    block = encoder.encode(fields) + encoder.encode(fields)
    pieces = [block[at : at + limit] for at in range(0, len(block), limit)]
    frames = [
        frame(9 if at else 1, 4 if at == len(pieces) - 1 else 0, 1, piece)
        for at, piece in enumerate(pieces)
    ]
    _, out = fed(HERE, START + b"".join(frames))
    table = 4096 if limit == 16_384 else 4097
    assert judged(out, table) == renamed(judged(START + b"".join(frames), table))
    assert len(out) > 64 << 10


def test_the_dynamic_table_is_disabled_once_and_repeated_blocks_are_cached(monkeypatch):
    """One size update in the first block; a repeated block with an unchanged table costs one
    look-up."""
    encoder = Encoder()
    blocks = [encoder.encode(request()) for _ in range(50)]
    editor = Http2Editor(HERE)
    editor.feed(UP, START, 0.0)
    sent = [
        editor.feed(UP, frame(1, 5, 1 + 2 * at, block), 0.0)[0].data
        for at, block in enumerate(blocks)
    ]
    assert sent[0][9] == 0x20
    assert {data[9:] for data in sent[1:]} == {sent[0][10:]}
    monkeypatch.setattr("a2a_proxy.http.hpack.HpackDecoder.decode_block", None)
    assert editor.feed(UP, frame(1, 5, 1001, blocks[-1]), 0.0)[0].data[9:] == sent[0][10:]


def test_raw_binary_metadata_and_both_names_of_the_host():
    """C-core sends `-bin` values as a NUL and raw bytes; `host` is renamed as `:authority` is."""
    block = (
        b"\x83\x86"
        + literal(b":path", b"/x")
        + literal(b":authority", b"proxy")
        + literal(b"host", b"proxy")
    )
    block += literal(b"trace-bin", b"\x00\xff\x80")
    editor, out = fed(HERE, START + frame(1, 5, 1, block))
    fields = judged(out)[1][3]
    assert (b"trace-bin", b"\x00\xff\x80", False) in fields
    assert [value for name, value, _ in fields if name in (b":authority", b"host")] == [
        AGENT,
        AGENT,
    ]
    assert [fact.kind for fact in editor.take_edits()] == ["authority", "host"]


def test_the_table_size_of_the_agent_applies_to_the_client():
    """An agent that allows a large table gets its use of it understood."""
    encoder = Encoder()
    encoder.header_table_size = 60_000
    fields = [*request(), *((b"x-%d" % number, b"v" * 500) for number in range(60))]
    first, second = encoder.encode(fields), encoder.encode(fields)
    editor = Http2Editor(HERE)
    editor.feed(UP, START, 0.0)
    editor.feed(DOWN, frame(4, 0, 0, struct.pack(">HI", 1, 60_000)), 0.0)
    raw = [
        editor.feed(UP, frame(1, 5, 1 + 2 * at, block), 0.0)[0].data
        for at, block in enumerate([first, second])
    ]
    assert len(second) < 100
    one, two = judged(START + b"".join(raw), 60_000)[1:]
    assert one[3] == two[3]
    assert len(one[3]) == len(fields)


# What cannot be followed


@pytest.mark.parametrize("plan", [HERE, CARDS, BOTH, TRACED])
@pytest.mark.parametrize(
    "wrong",
    [
        frame(1, 4, 1, b"\x80"),
        frame(1, 4, 0, b"\x83"),
        frame(1, 4 | 8, 1, b"\x09a"),
        frame(9, 4, 1, b"\x83"),
        frame(1, 0, 1, b"\x83") + frame(0, 0, 1, b"data"),
        frame(1, 0, 1, b"\x83") + frame(9, 4, 1, b"\x80"),
        struct.pack(">IBI", (1 << 20) << 8 | 1, 4, 1) + bytes(2000),
        frame(1, 4, 1, b"\x83" * 10_001),
    ],
)
def test_invalid_bytes_before_any_edit_are_unchanged(plan, wrong):
    """The agent handles it as without the proxy; editing ends and bytes are forwarded unchanged."""
    for data in (wrong, START[:24] + wrong + b"more"):
        editor, out = fed(plan, data, single(data))
        assert out == data
        assert not editor.is_active
        assert [fact.kind for fact in editor.take_edits()] == ["ended"]


@pytest.mark.parametrize(
    "wrong", [frame(1, 4, 3, b"\x80"), frame(1, 0, 3, b"\x83") + frame(0, 0, 1, b"data")]
)
def test_invalid_bytes_after_an_edit_make_the_agent_close(wrong):
    """The agent has no dynamic table to decode the rest: it gets an undecodable block, and nothing
    after it."""
    pair = Pair(HERE)
    pair.client.send_headers(1, request())
    pair.move()
    sent = len(pair.sent[UP])
    out = b"".join(
        item.data for item in pair.editor.feed(UP, wrong + frame(6, 0, 0, bytes(8)), 0.0)
    )
    assert out == frame(1, 4, 3, b"\x80")
    with pytest.raises(ProtocolError, match="Error decoding"):
        pair.agent.receive_data(out)
    assert pair.agent.data_to_send()[3] == 7  # GOAWAY
    assert pair.editor.is_active
    assert pair.editor.feed(UP, frame(6, 0, 0, bytes(8)), 0.0) == []
    assert (
        pair.editor.feed(DOWN, b"anything at all, goes on", 0.0)[0].data
        == b"anything at all, goes on"
    )
    assert sent == len(pair.sent[UP])
    assert pair.editor.take_edits()[-1].kind == "ended"


def test_an_invalid_agent_stream_does_not_stop_request_editing():
    """Its bytes are no longer parsed; requests of the client are still edited."""
    for plan in (HERE, BOTH):
        editor = Http2Editor(plan)
        editor.feed(UP, START, 0.0)
        nonsense = frame(4, 0, 0, b"12345") + b"rest"
        assert editor.feed(DOWN, nonsense, 0.0)[0].data == nonsense
        assert editor.is_active
        assert AGENT in editor.feed(UP, frame(1, 5, 1, Encoder().encode(request())), 0.0)[0].data


def test_without_edits_nothing_is_parsed():
    """The splice may forward by itself from the start."""
    editor = Http2Editor(EditPlan())
    assert not editor.is_active
    assert editor.feed(UP, b"\x00", 0.0)[0].data == b"\x00"


def test_a_fin_in_mid_frame_releases_held_bytes():
    """Also of a header block that was never finished."""
    for plan in (HERE, CARDS, BOTH, TRACED):
        rest = frame(1, 0, 1, b"\x83") + frame(9, 0, 1, b"\x86")[:-1]
        editor, out = fed(plan, START + rest)
        assert out == START
        assert b"".join(item.data for item in editor.feed_eof(UP, 0.0)) == rest
        assert b"".join(item.data for item in editor.feed_eof(DOWN, 0.0)) == b""


GARBAGE = st.lists(
    st.tuples(
        st.sampled_from([UP, DOWN]),
        st.sampled_from(range(11)),
        st.integers(0, 255),
        st.integers(0, 9),
        st.binary(max_size=40),
    ),
    max_size=40,
)


@given(GARBAGE, st.sampled_from([HERE, CARDS, BOTH, TRACED]), st.binary(max_size=30), st.booleans())
@settings(max_examples=300, deadline=None)
def test_garbage_never_raises(frames, plan, tail, call):
    """Frames of every type with any flags and content, and bytes that are no frames."""
    editor = Http2Editor(plan)
    editor.feed(UP, START, 0.0)
    if call:
        editor.feed(UP, frame(1, 5, 1, Encoder().encode(request(CARD_PATH))), 0.0)
        editor.feed(DOWN, frame(1, 4, 1, Encoder().encode(RESPONSE)), 0.0)
    for now, (direction, kind, flags, stream, payload) in enumerate(frames):
        editor.feed(direction, frame(kind, flags, stream, payload), now / 10)
        if editor.deadline is not None and editor.deadline < now / 10:
            editor.tick(now / 10)
    for direction in (UP, DOWN):
        editor.feed(direction, tail, 9.0)
        editor.feed_eof(direction, 9.0)
    editor.take_edits()


@given(GARBAGE, st.sampled_from([HERE, CARDS, BOTH]), st.booleans())
@settings(max_examples=300, deadline=None)
def test_what_passes_is_what_would_stay_unchanged(frames, plan, call):
    """DATA that `pass_to_client` accounts for leaves an editor as the same DATA in `feed`."""
    passing, feeding = Http2Editor(plan), Http2Editor(plan)
    sent = [b"", b""]
    opening = [(UP, START)]
    if call:
        opening.append((UP, frame(1, 5, 1, Encoder().encode(request(CARD_PATH)))))
        opening.append((DOWN, frame(1, 4, 1, Encoder().encode(RESPONSE))))
    data = [(each, frame(kind % 10, flags, n, body)) for each, kind, flags, n, body in frames]
    for now, (direction, piece) in enumerate([*opening, (DOWN, frame(0, 0, 7, b"event")), *data]):
        for index, editor in enumerate((passing, feeding)):
            if editor is passing and direction is DOWN and editor.pass_to_client(piece):
                sent[index] += piece
                continue
            for item in editor.feed(direction, piece, now / 10):
                mark = b"to the agent:" if item.direction is UP else b""
                sent[index] += mark + item.data
        assert sent[0] == sent[1]
        assert passing.held_bytes == feeding.held_bytes
    assert passing.take_edits() == feeding.take_edits()


def test_the_events_of_a_stream_pass():
    """Whole DATA frames of a response that cannot be edited; no other bytes."""
    editor, event = Http2Editor(BOTH), frame(0, 0, 1, message(b"event"))
    editor.feed(UP, START + frame(1, 5, 1, Encoder().encode(request())), 0.0)
    editor.feed(DOWN, frame(4, 0, 0) + frame(1, 4, 1, Encoder().encode(RESPONSE)), 0.0)
    assert editor.pass_to_client(event)
    assert not editor.pass_to_client(event[:-1])
    assert not editor.pass_to_client(event * 2)
    assert not editor.pass_to_client(frame(6, 0, 0, bytes(8)))
    editor.feed(DOWN, event[:5], 0.0)
    assert not editor.pass_to_client(event)
    editor.feed(DOWN, event[5:], 0.0)
    assert editor.pass_to_client(event)
    editor.feed(UP, frame(1, 5, 3, Encoder().encode(request(CARD_PATH))), 0.0)
    assert not editor.pass_to_client(event)
