"""Extended cards over gRPC: what is held, how long, and consistent windows (`h2` as both peers)."""

from __future__ import annotations

import gzip
import itertools
import struct
import time

import pytest
from h2.events import DataReceived, StreamEnded, StreamReset, TrailersReceived
from h2.settings import SettingCodes
from hpack import Encoder
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.http import PREFACE
from a2a_proxy.relay.edits.edit import CardOutcome, EditPlan
from a2a_proxy.relay.edits.http2 import Http2Editor
from support_http2 import frame
from support_http2_pair import (
    CARD_PATH,
    DOWN,
    PLAIN_PATH,
    RESPONSE,
    TRAILERS,
    UP,
    Pair,
    message,
    replayed,
    request,
    rewriter,
    single,
    whole,
)

LISTEN = "127.0.0.1:9000"
AGENT = b"agent.example:8443"
CARD = b"the card " * 50
LONGER = rewriter(lambda payload: payload + b" and more" * 20)
SHORTER = rewriter(lambda payload: payload[:-100])
WINDOW = 65_535


def plan(cards, authority=None):
    return EditPlan(authority=authority, cards=cards, listen=LISTEN)


def call(pair, stream, path=CARD_PATH, **more):
    pair.client.send_headers(stream, request(path, **more))
    pair.client.send_data(stream, message(b"question"), end_stream=True)
    pair.move()


def ended(pair, stream):
    return any(
        isinstance(event, StreamEnded) and event.stream_id == stream for event in pair.client_events
    )


def reasons(pair):
    return [fact.detail["reason"] for fact in pair.editor.take_edits() if fact.kind == "untouched"]


@pytest.mark.parametrize("cut", [whole, single])
@pytest.mark.parametrize("authority", [None, AGENT])
@pytest.mark.parametrize("cards", [LONGER, SHORTER, rewriter(lambda payload: payload[::-1])])
def test_rewriting_a_card_keeps_flow_control_windows_consistent(cards, authority, cut):
    """Whatever the split; the fact says where, what and how long."""
    pair = Pair(plan(cards, authority), cut)
    pair.move()
    call(pair, 1)
    pair.agent.send_headers(1, RESPONSE)
    pair.move()
    offset = len(pair.given[DOWN])
    pair.send(1, message(CARD))
    pair.agent.send_headers(1, TRAILERS, end_stream=True)
    pair.move()
    new = cards(CARD, "lf.a2a.v1", LISTEN).payload
    assert pair.got(1) == message(new)
    assert ended(pair, 1)
    assert pair.windows() == (WINDOW, WINDOW)
    (fact,) = (fact for fact in pair.editor.take_edits() if fact.kind == "card")
    lengths = {"length_before": 5 + len(CARD), "length_after": 5 + len(new)}
    assert (fact.direction, fact.offset, fact.detail) == (
        DOWN,
        offset,
        {"urls": [["before", "after"]], **lengths},
    )
    assert pair.editor.deadline is None
    assert pair.editor.is_active


@pytest.mark.parametrize(
    ("path", "form"),
    [
        (CARD_PATH, "lf.a2a.v1"),
        (b"/a2a.v1.A2AService/GetAgentCard", "a2a.v1"),
        (PLAIN_PATH, None),
        (b"/GetAgentCard", None),
    ],
)
@pytest.mark.parametrize(("authority", "called"), [(b"proxy:9000", "proxy:9000"), (b"", LISTEN)])
def test_the_rewriter_gets_package_and_authority(path, form, authority, called):
    """Package of the service, and the authority used by the client; other calls are not passed to
    it."""
    asked = []

    def rewrite(payload, form, authority):
        asked.append((payload, form, authority))
        return CardOutcome()

    pair = Pair(plan(rewrite))
    pair.move()
    fields = [field for field in request(path, authority=authority) if field[1]]
    pair.client.config.validate_outbound_headers = False
    pair.client.send_headers(1, fields, end_stream=True)
    pair.move()
    pair.answer(1, CARD)
    pair.move()
    assert asked == ([(CARD, form, called)] if form else [])
    assert pair.given[DOWN] == pair.sent[DOWN]
    assert reasons(pair) == []


def test_a_changed_compressed_card_is_sent_uncompressed():
    """Messages of gRPC may be uncompressed; an unchanged card stays compressed."""
    packed = gzip.compress(CARD, mtime=0)
    for cards, expected in (
        (SHORTER, message(CARD[:-100])),
        (rewriter(lambda payload: None), message(packed, 1)),
    ):
        pair = Pair(plan(cards))
        pair.move()
        call(pair, 1)
        pair.answer(1, packed, compressed=1)
        pair.move()
        assert pair.got(1) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (message(bytes((32 << 10) + 1)), "message of 32769 bytes, limit 32768"),
        (message(CARD) + message(CARD), "more than one message"),
        (message(b"no gzip", 1), "unknown compression"),
        (message(gzip.compress(bytes(2 << 20), mtime=0), 1), "unknown compression"),
        (message(CARD, 7), "unknown compression"),
    ],
)
def test_cards_that_are_not_rewritten_are_unchanged(data, reason):
    """Byte for byte, and said."""
    for cut in (whole, single):
        pair = Pair(plan(SHORTER), cut)
        pair.move()
        call(pair, 1)
        pair.agent.send_headers(1, RESPONSE)
        pair.send(1, data)
        pair.agent.send_headers(1, TRAILERS, end_stream=True)
        pair.move()
        assert pair.sent[DOWN] == pair.given[DOWN]
        assert reasons(pair) == [reason]
        assert ended(pair, 1)


@pytest.mark.parametrize(
    "head",
    [
        [*RESPONSE, (b"content-length", b"455")],
        [(b":status", b"200"), (b"content-type", b"text/html")],
    ],
)
def test_responses_that_are_not_plain_grpc_are_not_held(head):
    """A length that was announced would be wrong; a web page is no card."""
    pair = Pair(plan(SHORTER))
    pair.move()
    call(pair, 1)
    pair.agent.send_headers(1, head)
    pair.agent.send_data(1, message(CARD))
    pair.agent.end_stream(1)
    pair.move()
    assert pair.got(1) == message(CARD)
    assert reasons(pair) == ["not gRPC, or its length is announced in a header"]


def test_a_card_in_pieces_with_padding_among_other_streams():
    """Others flow while it is held; trailers stay behind; padding is given back to the agent."""
    pair = Pair(plan(SHORTER))
    pair.move()
    call(pair, 1)
    call(pair, 3, PLAIN_PATH)
    data = message(CARD)
    pair.agent.send_headers(1, RESPONSE)
    pair.agent.send_data(1, data[:3], pad_length=10)
    pair.agent.send_data(1, data[3:100])
    pair.answer(3, b"other")
    pair.move()
    assert pair.got(3) == message(b"other")
    assert ended(pair, 3)
    assert pair.got(1) == b""
    assert pair.editor.deadline == pair.now + 1
    pair.agent.send_data(1, data[100:], pad_length=0)
    pair.agent.send_headers(1, TRAILERS, end_stream=True)
    pair.move()
    assert pair.got(1) == message(CARD[:-100])
    assert pair.windows() == (WINDOW, WINDOW)


def test_known_trailers_wait_for_the_card_before_them():
    """Heads and trailers are equal in all calls, so the scanner knows them when the card
    arrives."""
    pair = Pair(plan(SHORTER))
    pair.move()
    for stream in (1, 3, 5):
        call(pair, stream, PLAIN_PATH)
        pair.answer(stream, b"plain")
        pair.move()
    call(pair, 7)
    data = message(CARD)
    pair.agent.send_headers(7, RESPONSE)
    pair.agent.send_data(7, data[:9])
    pair.move()
    pair.agent.send_data(7, data[9:])
    pair.agent.send_headers(7, TRAILERS, end_stream=True)
    pair.move()
    assert pair.got(7) == message(CARD[:-100])
    assert ended(pair, 7)


def test_an_equal_block_asks_for_a_card_after_a_change_of_the_table():
    """The path is the newest entry of the table in both calls."""

    def add_path(path):
        return b"\x44" + bytes([len(path)]) + path

    calls = [
        add_path(b"/a2a.v1.A2AService/GetTask"),
        b"\xbe",
        b"\xbe",
        add_path(CARD_PATH),
        b"\xbe",
    ]
    editor = Http2Editor(plan(SHORTER))
    requests = [frame(1, 5, 1 + 2 * number, block) for number, block in enumerate(calls)]
    editor.feed(UP, PREFACE + b"".join(requests), 0.0)
    plain, card = (frame(0, 0, stream, message(CARD)) for stream in (5, 9))
    sent = b"".join(
        item.data for item in editor.feed(DOWN, plain + card, 0.0) if item.direction is DOWN
    )
    assert sent == plain + frame(0, 0, 9, message(CARD[:-100]))


@pytest.mark.parametrize("cut", [0, 3, 5, 9, 12, 100])
def test_a_card_held_for_a_second_is_released_unchanged(cut):
    """Also in the middle of a frame, whose rest then passes as it arrives."""
    pair = Pair(plan(SHORTER))
    pair.move()
    call(pair, 1)
    pair.answer(1, CARD)
    data = pair.agent.data_to_send()
    begin = data.index(struct.pack(">IBI", (5 + len(CARD)) << 8, 0, 1)) + cut
    pair.feed(DOWN, data[:begin])
    pair.tick(0.9)
    assert pair.got(1) == b""
    pair.tick(0.2)
    assert pair.editor.deadline is None
    held_head_only = cut <= 9
    assert len(pair.sent[DOWN]) >= len(pair.given[DOWN]) - (9 if held_head_only else 0)
    pair.feed(DOWN, data[begin:])
    if cut >= 9:
        assert pair.sent[DOWN] == pair.given[DOWN]
        assert reasons(pair) == ["not complete, or larger than the client's window, after 1 s"]
    pair.move()
    assert ended(pair, 1)
    assert pair.windows() == (WINDOW, WINDOW)


def full(pair):
    """Fill the client's window for the connection on a plain stream, but for a card that does not
    grow."""
    pair.consume = False
    call(pair, 1, PLAIN_PATH)
    call(pair, 3)
    call(pair, 5, PLAIN_PATH)
    pair.agent.send_headers(1, RESPONSE)
    pair.send(1, bytes(WINDOW - len(message(CARD)) - 10))
    pair.move()


def test_a_longer_card_waits_for_window_without_blocking_other_streams():
    """Header blocks of other streams overtake the held trailers, and still mean what they meant."""
    pair = Pair(plan(LONGER))
    pair.move()
    full(pair)
    pair.answer(3, CARD)
    pair.move()
    assert pair.got(3) == b""
    pair.agent.send_headers(5, [*RESPONSE, (b"x-new", b"value")])
    pair.agent.send_headers(5, [*TRAILERS, (b"x-new", b"value")], end_stream=True)
    pair.move()
    trailers = next(event for event in pair.client_events if isinstance(event, TrailersReceived))
    assert (trailers.stream_id, trailers.headers) == (5, [*TRAILERS, (b"x-new", b"value")])
    pair.consume = True
    pair.grant(20_000, 1)
    pair.move()
    assert pair.got(3) == message(CARD + b" and more" * 20)
    assert ended(pair, 3)
    last = [event for event in pair.client_events if isinstance(event, TrailersReceived)][-1]
    assert (last.stream_id, last.headers) == (3, TRAILERS)
    pair.agent.send_headers(1, [*TRAILERS, (b"x-new", b"value")], end_stream=True)
    pair.move()
    assert ended(pair, 1)
    pair.grant(WINDOW - pair.windows()[0])
    pair.move()
    assert pair.windows() == (WINDOW, WINDOW)


def test_a_longer_card_without_window_is_released_unchanged_after_a_second():
    """The agent kept to the windows, so its own bytes fit."""
    pair = Pair(plan(LONGER))
    pair.move()
    full(pair)
    pair.answer(3, CARD)
    pair.move()
    pair.tick(1.0)
    assert pair.got(3) == message(CARD)
    assert ended(pair, 3)
    assert reasons(pair) == ["not complete, or larger than the client's window, after 1 s"]
    assert pair.windows() == (10, 10)


@pytest.mark.parametrize(
    "who", ["client resets", "agent resets", "client ends", "agent ends", "smaller windows"]
)
@pytest.mark.parametrize("complete", [True, False])
def test_resets_fins_and_smaller_windows_release_a_held_card(who, complete):
    """A reset, a FIN or smaller windows: what the agent sent arrives before it, or behind a
    complete answer."""
    pair = Pair(plan(LONGER))
    pair.move()
    full(pair)
    pair.agent.send_headers(3, RESPONSE)
    pair.agent.send_data(3, message(CARD) if complete else message(CARD)[:-1])
    pair.move()
    assert pair.got(3) == b""
    if who == "client resets":
        pair.client.reset_stream(3)
    elif who == "agent resets":
        pair.agent.reset_stream(3)
    elif who == "smaller windows":
        pair.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 10})
    else:
        pair.take(pair.editor.feed_eof(UP if who == "client ends" else DOWN, pair.now))
    pair.move()
    data = message(CARD) if complete else message(CARD)[:-1]
    assert bytes(pair.sent[DOWN]).endswith(data) or data in bytes(pair.sent[DOWN])
    assert pair.editor.deadline is None
    assert len(reasons(pair)) == 1
    if who == "agent resets":
        assert any(isinstance(event, StreamReset) for event in pair.client_events)
    if who != "client resets":  # h2 gives the window of a stream it has reset back by itself
        assert pair.windows()[0] == pair.windows()[1]


def test_a_reset_after_a_complete_response_follows_it():
    """RST_STREAM(NO_ERROR) of gRPC servers, where the client has not said all."""
    pair = Pair(plan(LONGER))
    pair.move()
    full(pair)
    pair.answer(3, CARD)
    data = pair.agent.data_to_send() + frame(3, 0, 3, bytes(4))
    pair.feed(DOWN, data)
    assert pair.got(3) == b""
    before = len(pair.sent[DOWN])
    pair.grant(5000)
    pair.feed(UP, pair.client.data_to_send())
    assert bytes(pair.sent[DOWN][before:]).endswith(frame(3, 0, 3, bytes(4)))


def beyond(pair):
    """A longer card, then a stream that fills the window as far as the agent knows it, but for 300
    bytes."""
    pair.move()
    pair.consume = False
    call(pair, 1)
    call(pair, 3, PLAIN_PATH)
    pair.answer(1, CARD)
    pair.move()
    client, agent = pair.windows()
    assert agent - client == 180
    pair.agent.send_headers(3, RESPONSE)
    while (room := pair.agent.local_flow_control_window(3)) > 300:
        pair.agent.send_data(3, bytes(min(room - 300, 16_000)))
    pair.move()
    pair.agent.send_data(3, bytes(290), pad_length=9)


def test_agent_data_beyond_the_client_window_waits():
    """After a longer card the agent thinks too much of the client's window: the excess waits, to
    the byte."""
    pair = Pair(plan(LONGER))
    beyond(pair)
    pair.agent.send_headers(3, TRAILERS, end_stream=True)
    pair.move()
    assert pair.windows() == (
        0,
        0,
    )  # padding cannot be split: it was left out, and so much less is owed
    assert not ended(pair, 3)
    pair.grant(100)
    pair.move()
    assert pair.windows() == (0, 0)
    pair.grant(1000)
    pair.move()
    assert ended(pair, 3)
    assert pair.windows()[0] == pair.windows()[1]


def test_data_after_a_longer_card_waits_for_the_window_of_its_stream():
    """The connection has room, the stream has not: the client refuses a byte too many."""
    pair = Pair(plan(LONGER))
    pair.move()
    pair.consume = False
    call(pair, 1)
    pair.grant(10_000)
    pair.move()
    pair.agent.send_headers(1, RESPONSE)
    pair.agent.send_data(1, message(CARD))
    pair.move()
    assert pair.got(1) == message(CARD + b" and more" * 20)
    while room := pair.agent.local_flow_control_window(1):
        pair.agent.send_data(1, bytes(min(room, 16_000)))
    pair.move()
    assert len(pair.got(1)) == WINDOW
    pair.grant(500, 1)
    pair.move()
    assert len(pair.got(1)) == WINDOW + 180


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_nothing_is_sent_after_a_fin(direction):
    """Neither a window to an agent that got the client's FIN, nor DATA to a client that got the
    agent's."""
    pair = Pair(plan(LONGER))
    beyond(pair)
    if direction is UP:
        pair.take(pair.editor.feed_eof(UP, pair.now))
        data = pair.agent.data_to_send()
    else:
        pair.move()
        pair.take(pair.editor.feed_eof(DOWN, pair.now))
        pair.grant(5000)
        data = pair.client.data_to_send()
    assert direction not in {
        item.direction for item in pair.editor.feed(direction.other, data, pair.now)
    }


def lazy(pair, owing, limit):
    """A client that grants what it consumed once that is half a window, as most do."""
    for event in pair.client_events:
        if isinstance(event, DataReceived):
            owing[0] += event.flow_controlled_length
            owing[event.stream_id] = owing.get(event.stream_id, 0) + event.flow_controlled_length
    pair.client_events.clear()
    for stream, data in list(owing.items()):
        if data > limit // 2:
            owing[stream] = 0
            if not stream:
                pair.grant(data)
            elif stream in pair.client.streams and not pair.client.streams[stream].closed:
                pair.client.increment_flow_control_window(data, stream)


@pytest.mark.parametrize("authority", [None, AGENT])
def test_a_thousand_cards_longer_and_shorter_then_ten_megabytes(authority):
    """One channel with a window of 65,535: nothing stalls, and at the end both peers have the same
    window."""
    sizes = itertools.cycle([137, -90, 250, -31, 300])
    pair = Pair(
        plan(
            rewriter(
                lambda payload: (
                    payload + b"+" * size if (size := next(sizes)) > 0 else payload[:size]
                )
            ),
            authority,
        )
    )
    pair.move()
    pair.consume = False
    owing = {0: 0}
    for number in range(1000):
        stream = 1 + 2 * number
        call(pair, stream)
        pair.answer(stream, CARD)
        pair.move()
        assert ended(pair, stream), number
        lazy(pair, owing, WINDOW)
        pair.move()
    stream, left, got = 2001, 10 << 20, 0
    call(pair, stream, PLAIN_PATH)
    pair.agent.send_headers(stream, RESPONSE)
    while left:
        room = min(
            pair.agent.local_flow_control_window(stream), pair.agent.max_outbound_frame_size, left
        )
        assert room, f"stalled with {left} bytes left"
        pair.agent.send_data(stream, bytes(room), end_stream=room == left)
        left -= room
        pair.move()
        got += sum(
            len(event.data) for event in pair.client_events if isinstance(event, DataReceived)
        )
        lazy(pair, owing, WINDOW)
        pair.move()
    assert got == 10 << 20
    pair.grant(owing[0] + 1)
    pair.move()
    assert pair.windows() == (WINDOW + 1, WINDOW + 1)
    assert [fact.kind for fact in pair.editor.take_edits() if fact.kind != "authority"] == [
        "card"
    ] * 1000


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.booleans(), st.integers(1, 3000)),
        st.tuples(
            st.sampled_from(["send", "send", "send padded", "finish"]),
            st.integers(0, 9),
            st.integers(1, 9000),
        ),
        st.tuples(
            st.sampled_from(["grant", "grant stream"]), st.integers(0, 9), st.integers(1, 4000)
        ),
        st.tuples(st.sampled_from(["reset", "agent resets"]), st.integers(0, 9), st.just(0)),
        st.tuples(
            st.just("initial window"), st.just(0), st.sampled_from([100, 2000, 65_535, 200_000])
        ),
        st.tuples(st.just("tick"), st.just(0), st.integers(0, 1200)),
    ),
    max_size=60,
)


def cut_small(data, size):
    """Pieces of that size; what fills a window stays whole."""
    return (
        [data[at : at + size] for at in range(0, len(data), size)] if len(data) < 4000 else [data]
    )


class Story:
    """Calls, answers sent as the windows let them, and a client that grants when it likes."""

    def __init__(self, growth, filled, authority, cut):
        self.growth = growth
        self.new: dict[bytes, bytes] = {}
        self.plan = plan(rewriter(self.rewrite), authority)
        self.pair = Pair(self.plan, cut)
        self.pair.consume = False
        self.todo: dict[int, bytes] = {}
        self.whole: dict[int, bytes] = {}
        self.gone: set[int] = set()
        self.fill(filled)
        self.pair.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 2000})
        self.pair.move()

    def fill(self, data):
        """So much of the connection's window is taken by a stream of its own."""
        cut, self.pair.cut = self.pair.cut, whole
        self.pair.move()
        self.call(False, data - 10)
        while 1 in self.todo:
            self.send(1, 1 << 20)
        self.pair.move()
        self.pair.cut = cut

    def rewrite(self, payload):
        growth = self.growth[payload[3] % len(self.growth)]
        self.new[payload] = (
            payload + b"+" * growth if growth > 0 else payload[: max(0, len(payload) + growth)]
        )
        return self.new[payload]

    def step(self, what, one, two):
        pair, streams = self.pair, list(self.todo)
        if what == "call":
            self.call(one, two)
        elif what == "grant":
            pair.grant(two)
        elif what == "initial window":
            pair.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: two})
        elif what == "tick":
            pair.tick(two / 1000)
        elif streams:
            self.act(what, streams[one % len(streams)], two)
        pair.move()

    def call(self, card, size):
        stream = 1 + 2 * (len(self.todo) + len(self.gone) + self.done())
        number = stream.to_bytes(4, "big")
        self.whole[stream] = self.todo[stream] = message(number + b"." * size)
        call(self.pair, stream, CARD_PATH if card else PLAIN_PATH)
        self.pair.agent.send_headers(stream, RESPONSE)

    def done(self):
        return len(self.whole) - len(self.todo) - len(self.gone)

    def act(self, what, stream, size):
        pair = self.pair
        if what == "grant stream":
            pair.client.increment_flow_control_window(size, stream)
        elif what in ("reset", "agent resets"):
            (pair.client if what == "reset" else pair.agent).reset_stream(stream)
            del self.todo[stream]
            self.gone.add(stream)
        else:
            self.send(
                stream, 1 << 20 if what == "finish" else size, 7 if what == "send padded" else None
            )

    def send(self, stream, size, padding=None):
        pair, left = self.pair, self.todo[stream]
        room = max(
            0, pair.agent.local_flow_control_window(stream) - (padding + 1 if padding else 0)
        )
        piece = left[: min(size, room, 16_000)]
        if piece:
            pair.agent.send_data(stream, piece, pad_length=padding)
        self.todo[stream] = left[len(piece) :]
        if not self.todo[stream]:
            pair.agent.send_headers(stream, TRAILERS, end_stream=True)
            del self.todo[stream]

    def finish(self):
        """Everything is sent and granted; who still owes something gets the chance to pay."""
        pair = self.pair
        for _ in range(200):
            pair.tick(2)
            for stream in list(self.todo):
                self.send(stream, 1 << 20)
            pair.grant(3000)
            for stream in list(self.whole):
                if stream not in self.gone and not ended(pair, stream):
                    pair.client.increment_flow_control_window(3000, stream)
            pair.move()
            if not self.todo and all(
                ended(pair, stream) for stream in self.whole if stream not in self.gone
            ):
                break
        pair.grant(100_000)
        pair.move()


@given(
    STEPS,
    st.lists(st.integers(-200, 400), min_size=1, max_size=4),
    st.sampled_from([10, 60_000, 65_000, 65_500]),
    st.sampled_from([None, AGENT]),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_whatever_happens_the_windows_agree_and_every_answer_is_whole(
    steps, growth, filled, authority, bytewise
):
    """The client is never sent more than it granted (`h2` would object), and in the end both know
    the same window."""
    story = Story(growth, filled, authority, single if bytewise else whole)
    for step in steps:
        story.step(*step)
    story.finish()
    pair = story.pair
    for stream, raw in story.whole.items():
        got = pair.got(stream)
        if stream not in story.gone:
            assert ended(pair, stream)
            assert got in (raw, message(story.new.get(raw[5:], b"")))
    assert pair.windows()[0] == pair.windows()[1]
    assert pair.editor.is_active
    assert pair.editor.deadline is None
    for size in (1, 11, 1 << 20):
        assert (
            replayed(pair.log, story.plan, lambda data, size=size: cut_small(data, size))
            == pair.sent
        )


def test_a_long_frame_that_is_no_card_is_split_in_linear_time():
    """Its receiver takes frames of 16 KiB. Four times as many bytes take at most ten times as
    long."""

    def release(size):
        editor, wide = Http2Editor(plan(SHORTER)), (2**31 - 1 - WINDOW).to_bytes(4)
        settings = frame(4, 0, 0, b"\0\4\x7f\xff\xff\xff")
        request = frame(1, 5, 1, b"\x83\x86\x04" + bytes([len(CARD_PATH)]) + CARD_PATH)
        editor.feed(UP, PREFACE + settings + frame(8, 0, 0, wide) + request, 0.0)
        head = frame(4, 0, 0) + frame(4, 1, 0) + frame(1, 4, 1, b"\x88\x0f\x10\x10application/grpc")
        editor.feed(DOWN, head, 0.0)
        data = frame(0, 0, 1, b"\0\0\0\x10\0" + bytes(size))
        began = time.process_time()
        sent = b"".join(item.data for item in editor.feed(DOWN, data, 0.0))
        assert len(sent) == size + 5 + 9 * -(-(size + 5) // 16_384)
        return time.process_time() - began

    assert (
        min(release(16_000_000) for _ in range(2))
        < 10 * min(release(4_000_000) for _ in range(2)) + 0.05
    )


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_card_that_waits_for_the_end_of_a_frame_is_sent_when_editing_has_ended(cut):
    """The client makes an error, so that nothing is scanned any more: all bytes go on in order."""
    editor, sent = Http2Editor(plan(LONGER)), {UP: b"", DOWN: b""}

    def feed(direction, data):
        if not editor.is_active:
            sent[direction] += data
            return
        for output in editor.feed(direction, data, 1.0):
            sent[output.direction] += output.data

    requests, answers = Encoder(), Encoder()
    feed(UP, PREFACE + frame(4, 0, 0, struct.pack(">HI", 4, 50)))
    feed(DOWN, frame(4, 0, 0) + frame(4, 1, 0))
    feed(UP, frame(4, 1, 0))
    for stream, path in ((1, PLAIN_PATH), (3, CARD_PATH)):
        feed(UP, frame(1, 5, stream, requests.encode(request(path))))
        feed(DOWN, frame(1, 4, stream, answers.encode(RESPONSE)))
    feed(DOWN, frame(0, 0, 3, message(b"a card")))  # longer than the window
    event, rest = frame(0, 0, 1, b"e" * 40), frame(0, 0, 1, b"more") + frame(0, 1, 1, b"end")
    feed(DOWN, event[:20])
    feed(UP, frame(8, 0, 3, (1000).to_bytes(4, "big")))
    feed(UP, frame(9, 4, 1, b"\x83"))  # CONTINUATION without HEADERS
    feed(DOWN, event[20:] + rest[:cut])
    feed(DOWN, rest[cut:])
    begin = sent[DOWN].index(event)
    assert b"a card and more" in sent[DOWN][begin + len(event) :]
    assert sent[DOWN].endswith(rest)


def test_data_is_passed_without_windows_if_no_card_is_rewritten():
    """Nothing is held then, so that nothing counts how much the client takes."""
    editor = Http2Editor(plan(None, AGENT))
    editor.feed(UP, PREFACE + frame(4, 0, 0), 1.0)
    editor.feed(UP, frame(1, 5, 1, Encoder().encode(request(PLAIN_PATH))), 1.0)
    editor.feed(DOWN, frame(4, 0, 0), 1.0)
    event = frame(0, 0, 1, bytes(1000))
    assert all(editor.pass_to_client(event) for _ in range(2 * WINDOW // 1000))
