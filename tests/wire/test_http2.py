"""HTTP/2 decoding, compared with h2 and hyperframe, and by hand."""

from __future__ import annotations

import base64
import struct

import h2.events as h2e
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes
from hpack import Encoder
from hyperframe.frame import Frame
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.http import PREFACE
from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.model.wire import Body, Control, Cut, End, Head, HeadRole, Undecodable
from a2a_proxy.wire.http2 import MAX_FRAME_SIZE, Http2Decoder
from support_http2 import DOWN, REQUEST, UP, decode, frame, literal, upstream
from support_wire import FEED_END, merged, reload

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["open", "ask", "early", "answer", "reply", "trail", "ping", "table", "reset", "big"]
        ),
        st.sampled_from(["client", "server"]),
        st.integers(0, 3),
        st.integers(0, 300),
        st.booleans(),
    ),
    max_size=30,
)


class Talk:
    """Two h2 peers, and every byte they exchange."""

    def __init__(self):
        self.client = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self.server = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.peers = {
            "client": (self.client, self.server, UP),
            "server": (self.server, self.client, DOWN),
        }
        self.chunks, self.seen, self.streams = [], {UP: [], DOWN: []}, {}
        self.resized = set()
        self.client.initiate_connection()
        self.server.initiate_connection()
        self.carry()

    def carry(self):
        moved = True
        while moved:
            moved = False
            for sender, receiver, direction in self.peers.values():
                if data := sender.data_to_send():
                    moved = True
                    self.chunks.append((direction, data))
                    self.seen[direction] += receiver.receive_data(data)

    def act(self, what, who, pick, size, flag):
        peer, _, _ = self.peers[who]
        open_streams = list(self.streams)
        if what == "open":
            stream = self.client.get_next_available_stream_id()
            self.client.send_headers(stream, [*REQUEST, (b"x-size", b"%d" % size)], end_stream=flag)
            self.streams[stream] = {"client": not flag, "server": None}
        elif what == "ping":
            peer.ping(struct.pack(">Q", size))
        elif (
            what == "table" and who not in self.resized
        ):  # h2 cannot read what it writes after two such changes
            self.resized.add(who)
            peer.update_settings({SettingCodes.HEADER_TABLE_SIZE: size * 20})
        elif open_streams:
            self.on_stream(what, who, peer, open_streams[pick % len(open_streams)], size, flag)
        self.carry()

    def on_stream(self, what, who, peer, stream, size, flag):
        state = self.streams[stream]
        pad = size if flag and size < 200 else None
        if what == "reset":
            peer.reset_stream(stream, error_code=8)
            del self.streams[stream]
        elif what == "ask" and state["client"]:
            self.client.send_data(stream, b"q" * size, end_stream=flag, pad_length=pad)
            state["client"] = not flag
        elif what == "early" and state["server"] is None:
            self.server.send_headers(stream, [(b":status", b"103"), (b"link", b"x" * size)])
        elif what in ("answer", "big") and state["server"] is None:
            fields = [(b":status", b"200"), (b"x-long", b"v" * (30000 if what == "big" else size))]
            self.server.send_headers(stream, fields)
            state["server"] = True
        elif what == "reply" and state["server"]:
            self.server.send_data(stream, b"a" * size, pad_length=pad)
        elif what == "trail" and state["server"]:
            self.server.send_headers(
                stream, [(b"grpc-status", b"%d" % (size % 17))], end_stream=True
            )
            state["server"] = False
        if not state["client"] and state["server"] is False:
            self.streams.pop(stream, None)


KINDS = {
    h2e.RequestReceived: HeadRole.REQUEST,
    h2e.ResponseReceived: HeadRole.RESPONSE,
    h2e.InformationalResponseReceived: HeadRole.INFORMATIONAL,
    h2e.TrailersReceived: HeadRole.TRAILERS,
}


def told_by_h2(events):
    """What the receiving h2 reports, by stream, bodies joined."""
    told = {}
    for event in events:
        stream = told.setdefault(getattr(event, "stream_id", 0), [])
        if type(event) in KINDS:
            stream.append((KINDS[type(event)], [tuple(field) for field in event.headers]))
        elif isinstance(event, h2e.DataReceived) and event.data:
            stream.append(event.data)
        elif isinstance(event, h2e.StreamEnded):
            stream.append("end")
        elif isinstance(event, h2e.StreamReset):
            stream.append(("reset", int(event.error_code)))
    return {stream: joined(items) for stream, items in told.items() if items}


def told_by_us(events, direction):
    told = {}
    for event in events:
        if event.direction is not direction or not isinstance(event, Head | Body | End | Cut):
            continue
        stream = told.setdefault(event.stream, [])
        if isinstance(event, Head):
            stream.append((event.role, pseudo(event) + list(event.headers)))
        elif isinstance(event, Body) and event.data:
            stream.append(event.data)
        elif isinstance(event, End):
            stream.append("end")
        elif isinstance(event, Cut):
            stream.append(("reset", event.code))
    return {stream: joined(items) for stream, items in told.items() if items}


def pseudo(head):
    values = ((b":method", head.method), (b":scheme", head.scheme), (b":path", head.target))
    values += (
        (b":authority", head.authority),
        (b":status", b"%d" % head.status if head.status else b""),
    )
    return [field for field in values if field[1]]


def joined(items):
    out = []
    for item in items:
        if out and isinstance(item, bytes) and isinstance(out[-1], bytes):
            out[-1] += item
        else:
            out.append(item)
    return out


def talk_of(operations):
    talk = Talk()
    for operation in operations:
        talk.act(*operation)
    talk.client.close_connection(error_code=3, additional_data=b"bye")
    talk.carry()
    return talk


@given(OPERATIONS)
@settings(max_examples=60, deadline=None)
def test_both_directions_are_told_as_the_receiving_h2_tells_them(operations):
    """Interleaved streams, padding, long headers, table sizes, trailers, informational answers,
    resets."""
    talk = talk_of(operations)
    _, events = decode(talk.chunks)
    assert not [event for event in events if isinstance(event, Undecodable)]
    for direction in (UP, DOWN):
        assert told_by_us(events, direction) == told_by_h2(talk.seen[direction])
    goaway = events[-1]
    assert (goaway.name, goaway.detail["code"], goaway.detail["debug"]) == ("goaway", 3, "bye")


@given(OPERATIONS, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_any_split_gives_the_same_events_also_saved_and_restored_there(operations, random):
    """Random cuts, the decoder reload from plain values at some of them."""
    chunks = talk_of(operations).chunks
    whole, expected = decode(chunks)
    decoder, out = Http2Decoder(), []
    for direction, data in chunks:
        at = 0
        while at < len(data):
            step = random.choice((1, 2, 8, 9, 10, 50, 20000))
            decoder.feed(direction, data[at : at + step], 7, out)
            at += step
            if random.random() < 0.2:
                decoder = reload(decoder)
    assert merged(out) == merged(expected)
    assert decoder.counters == whole.counters


BLOCK = Encoder().encode(REQUEST)
STORY = [
    (UP, upstream(settings=struct.pack(">HI", 0xFE03, 1))),
    (DOWN, frame(4, 0, 0) + frame(4, 1, 0)),
    (UP, frame(1, 0x28, 1, b"\x03" + b"\0\0\0\0\x10" + BLOCK[:5] + b"pad")),
    (UP, frame(9, 0, 1, BLOCK[5:7]) + frame(9, 0, 1) + frame(9, 4, 1, BLOCK[7:])),
    (
        UP,
        frame(0, 8, 1, b"\x04hello\0\0\0\0")
        + frame(0, 9, 1, b"\x02\0\0")
        + frame(2, 0, 1, b"\0\0\0\0\x10"),
    ),
    (
        DOWN,
        frame(6, 0, 0, b"12345678") + frame(0xA, 0, 0, b"alt-svc") + frame(8, 0, 0, b"\0\0\x10\0"),
    ),
    (
        DOWN,
        frame(5, 4, 1, b"\0\0\0\x02" + BLOCK)
        + frame(1, 4, 1, b"\x88")
        + frame(0, 0, 1, b"world" * 9),
    ),
    (
        DOWN,
        frame(0, 0, 1) + frame(1, 5, 1, literal(b"grpc-status", b"0")) + frame(1, 5, 2, b"\x88"),
    ),
    (UP, frame(6, 1, 0, b"12345678")),
]


def test_every_single_split_of_a_conversation_by_hand():
    """Each chunk cut at each byte, with and without a restart there, gives the events of the
    whole."""
    decoder, expected = decode(STORY)
    for number, (direction, data) in enumerate(STORY):
        for cut in range(1, len(data)):
            chunks = [*STORY[:number], (direction, data[:cut])]
            tail = [(direction, data[cut:]), *STORY[number + 1 :]]
            first, out = decode(chunks)
            for second in (reload(first), first):
                assert merged(out + decode(tail, decoder=second)[1]) == merged(expected)
                assert second.counters == decoder.counters


def test_byte_by_byte_gives_the_same_events():
    _, expected = decode(STORY)
    _, out = decode(
        [(direction, data[i : i + 1]) for direction, data in STORY for i in range(len(data))]
    )
    assert merged(out) == merged(expected)


def test_events_have_roles_and_byte_ranges():
    """Roles, pseudo-fields, spans with framing, padding as an empty piece, controls and
    counters."""
    decoder, events = decode(STORY)
    names = [event.name if isinstance(event, Control) else type(event).__name__ for event in events]
    assert names == [
        *("preface", "settings", "settings", "Head", "Body", "Body", "End", "ping"),
        *("push_promise", "Head", "Body", "Head", "End", "Head", "End", "ping"),
    ]
    assert events[1].detail == {str(0xFE03): 1}
    request, data, padding, end = events[3:7]
    assert (request.role, request.method, request.target) == (
        HeadRole.REQUEST,
        b"POST",
        REQUEST[2][1],
    )
    assert (request.authority, request.scheme, request.version) == (b"agent:9000", b"http", "2")
    assert request.headers == tuple(REQUEST[4:])
    block = 24 + 15
    assert (request.start, request.end) == (block, data.start)
    assert (data.data, data.end - data.start) == (b"hello", 9 + 1 + 5)
    assert (padding.data, padding.end - padding.start, padding.start) == (b"", 4, data.end)
    assert end.start == padding.end + 9 + 3
    assert [event.role for event in events if isinstance(event, Head)] == [
        *(HeadRole.REQUEST, HeadRole.RESPONSE, HeadRole.TRAILERS, HeadRole.RESPONSE)
    ]
    promise = next(
        event for event in events if isinstance(event, Control) and event.name == "push_promise"
    )
    assert (promise.detail["promised"], promise.detail["target"]) == (2, REQUEST[2][1].decode())
    assert decoder.counters == {
        "settings_ack": 1,
        "data_frames": 4,
        "priority": 1,
        "ping": 2,
        "unknown_frames": 1,
        "window_update": 1,
    }
    assert b"_streams" not in encode_state(decoder)


def test_a_frame_begins_at_the_time_of_its_first_byte():
    """`began` is the arrival of the first byte of the block, `at` of the last."""
    decoder, out = Http2Decoder(), []
    wire = frame(1, 0, 1, BLOCK[:3]) + frame(9, 5, 1, BLOCK[3:])
    decoder.feed(UP, upstream() + wire[:1], 10, out)
    decoder.feed(UP, wire[1:-1], 20, out)
    decoder.feed(UP, wire[-1:], 30, out)
    head = next(event for event in out if isinstance(event, Head))
    assert (head.began, head.at) == (10, 30)


def test_data_is_not_held():
    """Each chunk of a 16 MB frame is passed on when it arrives, and nothing of it is kept."""
    decoder, out = decode(
        [(UP, frame(1, 4, 1, BLOCK) + struct.pack(">IBI", 0xFFFFFF << 8, 1, 1))], start=upstream()
    )
    out.clear()
    decoder.feed(UP, b"x" * 1000, 7, out)
    assert [len(event.data) for event in out] == [1000]
    assert len(encode_state(decoder)) < 2000


RST_CASES = [
    (DOWN, 0, True, [], "rst_no_error"),
    (DOWN, 8, True, [("rst_stream", DOWN, 8)], None),
    (DOWN, 0, False, [("rst_stream", DOWN, 0)], None),
    (UP, 8, True, [("rst_stream", UP, 8)], None),
    (UP, 0, True, [], "rst_no_error"),
    (UP, 0, False, [("rst_stream", UP, 0)], None),
]


@pytest.mark.parametrize(("direction", "code", "answered", "cuts", "counted"), RST_CASES)
def test_rst_stream_is_a_cut_unless_without_error_after_the_answer(
    direction, code, answered, cuts, counted
):
    """NO_ERROR after the server's END_STREAM cuts nothing; what was in flight then is late, not an
    error."""
    decoder, out = decode([(UP, frame(1, 4, 1, BLOCK)), (DOWN, frame(4, 0, 0))], start=upstream())
    if answered:
        decoder.feed(DOWN, frame(1, 5, 1, b"\x88"), 7, out)
    decoder.feed(direction, frame(3, 0, 1, struct.pack(">I", code)), 7, out)
    decoder.feed(UP, frame(0, 0, 1, b"late"), 7, out)
    assert [(cut.how, cut.direction, cut.code) for cut in out if isinstance(cut, Cut)] == cuts
    assert not [event for event in out if isinstance(event, Body | Undecodable)]
    assert decoder.counters["late_frames"] == 1
    assert counted is None or decoder.counters[counted] == 1
    assert b"_streams" not in encode_state(decoder)


def test_late_header_blocks_keep_the_table_in_step():
    """A block for a stream that was reset adds to the dynamic table all the same."""
    encoder = Encoder()
    first, late, third = (encoder.encode([*REQUEST, (b"x-n", n)]) for n in (b"1", b"2", b"2"))
    chunks = [(UP, frame(1, 4, 1, first)), (DOWN, frame(4, 0, 0) + frame(3, 0, 1, b"\0\0\0\x08"))]
    _, out = decode([*chunks, (UP, frame(1, 4, 1, late) + frame(1, 5, 3, third))], start=upstream())
    heads = [event for event in out if isinstance(event, Head)]
    assert [(head.stream, head.headers[-1]) for head in heads] == [
        (1, (b"x-n", b"1")),
        (3, (b"x-n", b"2")),
    ]


def test_goaway_cuts_unserved_streams():
    decoder, out = decode([(UP, frame(1, 4, 1, BLOCK) + frame(1, 4, 3, b"\x83"))], start=upstream())
    decoder.feed(DOWN, frame(7, 0, 0, b"\0\0\0\x01\0\0\0\x0bcalm \xff"), 7, out)
    control, cut = out[-2:]
    assert control.detail == {"last_stream": 1, "code": 11, "debug": "calm \\xff"}
    assert (cut.stream, cut.how, cut.direction, cut.code) == (3, "goaway", DOWN, 11)


def test_the_end_cuts_open_streams_once():
    """A stream that is open in either direction is cut by the first FIN; the other direction is
    decoded on."""
    requests = frame(1, 5, 1, BLOCK) + frame(1, 4, 3, b"\x83")
    decoder, out = decode([(UP, requests), (DOWN, frame(1, 4, 1, b"\x88"))], start=upstream())
    decoder.feed_eof(UP, 8, out)
    assert [(cut.stream, cut.how, cut.direction) for cut in out[-2:]] == [
        (1, "eof", UP),
        (3, "eof", UP),
    ]
    decoder = reload(decoder)
    decoder.feed(DOWN, frame(0, 1, 1, b"still read"), 9, out)
    assert [type(event) for event in out[-2:]] == [Body, End]
    decoder.feed_eof(DOWN, 10, out)
    assert isinstance(out[-1], End)


def named_at_the_end(*pieces):
    """Return the bytes of the client that are named as not decoded after its end."""
    before = upstream()
    decoder, out = decode([(UP, piece) for piece in pieces], start=before)
    decoder = reload(decoder)
    decoder.feed_eof(UP, 8, out)
    named = [event.offset for event in out if isinstance(event, Undecodable)]
    sent = before + b"".join(pieces)
    assert decoder.counters["opaque_to_agent"] == (len(sent) - named[0] if named else 0)
    return sent[named[0] :] if named else b""


def test_an_end_within_a_frame_is_reported():
    """With its beginning; its bytes count as not decoded."""
    block = frame(1, 0, 1, BLOCK)
    for rest in (b"\0\0", frame(1, 4, 1, BLOCK)[:-1], block, block + frame(9, 4, 1, b"x")[:-1]):
        assert named_at_the_end(rest) == rest
    grease = frame(11, 0, 0, b"grease")
    assert named_at_the_end(frame(2, 0, 1, bytes(5)) + grease, grease[:-1]) == grease[:-1]
    assert named_at_the_end(grease) == b""
    decoder, out = decode([], start=upstream(frame(1, 4, 1, BLOCK)) + frame(0, 1, 1, b"data")[:-1])
    decoder.feed_eof(UP, 8, out)
    assert [type(event) for event in out[-2:]] == [Body, Cut]
    assert not decoder.counters["opaque_to_agent"]


@pytest.mark.parametrize("how", ["reset", "lost"])
def test_reset_and_loss_cut_all_and_end_decoding(how):
    decoder, out = decode([(UP, frame(1, 5, 1, BLOCK))], start=upstream())
    getattr(decoder, FEED_END[how])(DOWN, 8, out)
    assert [(cut.stream, cut.how, cut.direction) for cut in out[-1:]] == [(1, how, DOWN)]
    count = len(out)
    decoder.feed(DOWN, frame(4, 0, 0) + frame(1, 5, 1, b"\x88"), 9, out)
    decoder.feed(UP, frame(1, 5, 3, b"\x83"), 9, out)
    decoder.feed_eof(DOWN, 9, out)
    assert len(out) == count


VIOLATIONS = {
    "data on stream 0": frame(0, 0, 0, b"x"),
    "headers on stream 0": frame(1, 4, 0, BLOCK),
    "index beyond the table": frame(1, 4, 1, b"\xff\x20"),
    "padding beyond the frame": frame(0, 8, 1, b"\x05abc"),
    "padded without a length": frame(0, 8, 1),
    "padded headers without a length": frame(1, 12, 1),
    "headers padding beyond the frame": frame(1, 12, 1, b"\x09abc"),
    "headers interrupted by a ping": frame(1, 0, 1, BLOCK) + frame(6, 0, 0, b"12345678"),
    "headers interrupted by another stream": frame(1, 0, 1, BLOCK) + frame(9, 4, 3),
    "continuation of nothing": frame(9, 4, 1),
    "settings of five bytes": frame(4, 0, 0, b"12345"),
    "ping of one byte": frame(6, 0, 0, b"1"),
    "window update of one byte": frame(8, 0, 0, b"1"),
    "rst of one byte": frame(3, 0, 1, b"1"),
    "goaway of one byte": frame(7, 0, 0, b"1"),
    "push promise of one byte": frame(5, 4, 1, b"1"),
    "header block beyond the limit": struct.pack(">IBI", (MAX_FRAME_SIZE + 1) << 8 | 1, 4, 1),
    "header block beyond the limit in parts": frame(1, 0, 1, b"x" * MAX_FRAME_SIZE)
    + frame(9, 4, 1, b"x"),
    "http/1.1 in mid-stream": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 30000,
}


@pytest.mark.parametrize("wrong", VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_violation_makes_only_its_direction_opaque(wrong):
    """One Undecodable at the invalid frame (or block), nothing after it; the other direction
    continues."""
    before = upstream()
    decoder, out = decode(
        [(UP, wrong + frame(1, 5, 5, BLOCK)), (UP, frame(1, 5, 7, BLOCK))], start=before
    )
    undecodable = [event for event in out if isinstance(event, Undecodable)]
    assert [(event.direction, event.stream) for event in undecodable] == [(UP, 0)]
    assert len(before) <= undecodable[0].offset < len(before) + len(wrong)
    assert out[-1] is undecodable[0]
    out.clear()
    decoder.feed(DOWN, frame(4, 0, 0) + frame(1, 5, 1, b"\x88"), 9, out)
    assert [type(event) for event in out] == [Control, Head, End]
    for cut in range(1, min(len(wrong), 60)):
        _, again = decode([(UP, wrong[:cut]), (UP, wrong[cut:])], start=before)
        assert [event for event in again if isinstance(event, Undecodable)] == undecodable


def test_bytes_that_are_not_http2_are_reported():
    _, out = decode([(UP, b"GET / HTTP/1.1\r\n"), (UP, b"Host: example\r\n\r\n")])
    assert [(event.offset, event.expected) for event in out] == [(0, "HTTP/2 connection preface")]


@given(
    st.lists(st.tuples(st.sampled_from([UP, DOWN]), st.binary(max_size=80)), max_size=12),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_garbage_never_raises(chunks, polite):
    """Any bytes in any order; at most one Undecodable for each direction, and one more at its
    end."""
    decoder, out = decode(chunks, start=PREFACE if polite else b"")
    for direction in (UP, DOWN):
        decoder.feed_eof(direction, 9, out)
        assert (
            len(
                [
                    event
                    for event in out
                    if isinstance(event, Undecodable) and event.direction is direction
                ]
            )
            <= 1
        )


FRAMES = st.tuples(
    st.integers(0, 12), st.integers(0, 255), st.integers(0, 5), st.binary(max_size=30)
)


@given(st.lists(FRAMES, max_size=12))
@settings(max_examples=300, deadline=None)
def test_random_frames_never_raise_in_any_split(frames):
    wire = b"".join(frame(*each) for each in frames)
    _, expected = decode([(UP, wire), (DOWN, wire)], start=PREFACE)
    pieces = [(UP, wire[i : i + 1]) for i in range(len(wire))] + [
        (DOWN, wire[i : i + 7]) for i in range(0, len(wire), 7)
    ]
    assert merged(decode(pieces, start=PREFACE)[1]) == merged(expected)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 9).map(lambda n: 2 * n - 1), st.binary(max_size=40), st.booleans()
        ),
        max_size=20,
    )
)
@settings(max_examples=100, deadline=None)
def test_the_frame_loop_sees_what_hyperframe_sees(frames):
    """DATA of open streams, padded or not: stream and bytes as hyperframe parses them."""
    opened = b"".join(
        frame(1, 4, stream, BLOCK if stream == 1 else b"\x83") for stream in range(1, 19, 2)
    )
    wire = b"".join(
        frame(0, 8, s, b"\x03" + d + b"\0\0\0") if pad else frame(0, 0, s, d)
        for s, d, pad in frames
    )
    expected, rest = [], wire
    while rest:
        parsed, length = Frame.parse_frame_header(memoryview(rest[:9]))
        parsed.parse_body(memoryview(rest[9 : 9 + length]))
        rest = rest[9 + length :]
        expected += [(parsed.stream_id, parsed.data)] if parsed.data else []
    _, out = decode([(UP, opened), (UP, wire)], start=upstream())
    assert [
        (body.stream, body.data) for body in out if isinstance(body, Body) and body.data
    ] == expected


def test_invalid_pseudo_fields_stay_in_the_headers():
    """Repeated, unknown and unreadable pseudo-fields are evidence for a rule."""
    odd = (
        literal(b":status", b"2x0")
        + literal(b":protocol", b"ws")
        + b"\x82\x83"
        + literal(b"-bin", b"\0\xff")
    )
    _, out = decode([(UP, frame(1, 4, 1, odd))], start=upstream())
    assert out[-1].headers == (
        (b":status", b"2x0"),
        (b":protocol", b"ws"),
        (b":method", b"POST"),
        (b"-bin", b"\0\xff"),
    )
    assert out[-1].method == b"GET"


def test_a_million_streams_leave_nothing_behind():
    """State is kept for open streams only (a few thousand show it)."""
    decoder, out = decode(
        [(UP, frame(1, 5, 1, BLOCK)), (DOWN, frame(1, 5, 1, b"\x88"))], start=upstream()
    )
    size = len(encode_state(decoder))
    for stream in range(3, 8003, 2):
        decoder.feed(UP, frame(1, 5, stream, b"\xbe"), 7, out)
        decoder.feed(DOWN, frame(1, 5, stream, b"\x88"), 7, out)
    assert len(encode_state(decoder)) < size + 50
    assert len([event for event in out if isinstance(event, End)]) == 8002


def test_raw_binary_metadata_reaches_the_head():
    """GRPC C-core sends `-bin` metadata raw; the value reaches the head as it was sent."""
    value = b"\0" + base64.b64decode("/+7dzA==")
    _, out = decode([(UP, frame(1, 4, 1, BLOCK + literal(b"x-bin", value)))], start=upstream())
    assert out[-1].headers[-1] == (b"x-bin", value)


def test_padding_beyond_the_frame_is_reported_with_both_sizes():
    _, out = decode([(UP, frame(0, 8, 1, b"\x05abc"))], start=upstream())
    assert out[-1].got == "4 bytes, padding 5"


def test_frames_of_the_proxy_are_read_in_the_middle_of_a_frame_of_the_agent():
    """They use no dynamic table, and their bytes do not count."""
    decoder = Http2Decoder()
    client = H2Connection(H2Configuration(client_side=True, header_encoding=None))
    client.initiate_connection()
    for stream in (1, 3):
        client.send_headers(stream, REQUEST, end_stream=True)
    events = []
    decoder.feed(UP, client.data_to_send(), 1, events)
    agent = frame(1, 4, 1, literal(b":status", b"200")) + frame(0, 1, 1, b"data")
    own = frame(1, 5, 3, literal(b":status", b"503"))
    events.clear()
    decoder.feed(DOWN, agent[:-2], 2, events)
    decoder.feed_ours(DOWN, own, 3, events)
    decoder.feed(DOWN, agent[-2:], 4, events)
    assert [(type(each).__name__, each.stream) for each in events] == [
        *(("Head", 1), ("Body", 1), ("Head", 3), ("End", 3), ("Body", 1), ("End", 1))
    ]
    assert events[2].status == 503
    assert events[-1].start == len(agent)


def test_a_read_with_a_large_header_block_is_read_to_its_end():
    """However much was read before it."""
    decoder, events = Http2Decoder(), []
    decoder.feed(UP, PREFACE + frame(4, 0, 0) + frame(1, 5, 1, b"\x83\x86\x84"), 1, events)
    decoder.feed(DOWN, frame(4, 0, 0) + frame(1, 4, 1, b"\x88"), 1, events)
    events.clear()
    decoder._sides[DOWN].budget = MAX_FRAME_SIZE + 1
    field = Encoder().encode([(b"x", b"y" * (MAX_FRAME_SIZE - 20))], huffman=False)
    ignored = frame(1, 4, 2, field)
    read = ignored + frame(0, 0, 1, b"hello ") + frame(0, 1, 1, b"world")
    decoder.feed(DOWN, read, 2, events)
    assert [type(each).__name__ for each in events] == ["Body", "Body", "End"]
