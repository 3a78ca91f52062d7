"""The life of exchanges: the table, and walks through it with real streams."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_proxy.model.transitions import UndefinedTransitionError
from a2a_proxy.model.values import Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Cut, End, Head, HeadRole
from a2a_proxy.protocol.conversation import (
    ConnectionConversation,
    SessionContext,
    open_conversation,
)
from a2a_proxy.protocol.exchange import LIFE, Life, LifeEvent, LifeMeaning
from a2a_proxy.wire.connection import ConnectionDecoder
from support_conversation import (
    FACTS,
    TO_AGENT,
    TO_CLIENT,
    Grpc,
    Http,
    Script,
    play,
    play_bytewise,
    reload_conversation,
)
from support_wire import FEED_END

_WIRE_EVENTS = {
    "request end": (End(1, TO_AGENT, 2, 0), LifeEvent.REQUEST_END),
    "response end": (End(1, TO_CLIENT, 2, 0), LifeEvent.RESPONSE_END),
    "client gone": (Cut(1, TO_AGENT, 2, 0, "eof"), LifeEvent.CLIENT_GONE),
    "client reset": (Cut(1, TO_AGENT, 2, 0, "reset"), LifeEvent.CLIENT_GONE),
    "client cancel": (Cut(1, TO_AGENT, 2, 0, "rst_stream", 8), LifeEvent.CLIENT_CUT),
    "client lost": (Cut(1, TO_AGENT, 2, 0, "lost"), LifeEvent.CLIENT_CUT),
    "agent reset": (Cut(1, TO_CLIENT, 2, 0, "rst_stream", 2), LifeEvent.AGENT_CUT),
    "agent gone": (Cut(1, TO_CLIENT, 2, 0, "eof"), LifeEvent.AGENT_CUT),
    "proxy stopped": (Cut(1, TO_CLIENT, 2, 0, "proxy stopped"), LifeEvent.AGENT_CUT),
}
_HALF_CLOSES = {LifeMeaning.HALF_CLOSED: "client", LifeMeaning.ANSWERED_EARLY: "agent"}


class Walk:
    """What the table says of a sequence of events, and whether it is over."""

    def __init__(self) -> None:
        self.life = Life.OPEN
        self.half_close, self.how, self.cuts = "", "", 0

    def step(self, event: LifeEvent, how: str) -> None:
        self.life, meaning = LIFE[self.life, event]
        self.half_close = self.half_close or _HALF_CLOSES.get(meaning, "")
        if meaning is LifeMeaning.BROKEN_OFF:
            self.how, self.cuts = how, self.cuts + 1
        elif meaning in (LifeMeaning.COMPLETE, LifeMeaning.ANSWERED_EARLY):
            self.how = "complete"


_HOWS = {"client reset": "client gone", "client lost": "connection lost"}


def open_exchange(
    fields: tuple[tuple[bytes, bytes], ...],
) -> tuple[ConnectionConversation, list[object]]:
    conversation = open_conversation(1, FACTS, SessionContext())
    out: list[object] = []
    conversation.feed(
        [Head(1, TO_AGENT, 1, 1, 0, 0, HeadRole.REQUEST, fields, b"POST", b"/x", version="2")], out
    )  # type: ignore[arg-type]
    return conversation, out


@pytest.mark.parametrize(("life", "event"), list(itertools.product(Life, LifeEvent)))
def test_every_pair_is_defined_or_raises(life: Life, event: LifeEvent) -> None:
    cannot_happen = life is Life.OVER or (life, event) == (
        Life.REQUEST_ENDED,
        LifeEvent.REQUEST_END,
    )
    if not cannot_happen:
        assert LIFE[life, event][0] in Life
        return
    with pytest.raises(UndefinedTransitionError, match=f"{event} in state {life}"):
        LIFE[life, event]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(_WIRE_EVENTS)), max_size=8),
    st.sampled_from([(), ((b"content-type", b"application/grpc"),)]),
    st.integers(0, 8),
)
@example(["client gone", "request end", "agent gone"], (), 1)
def test_a_real_stream_follows_the_table(
    names: list[str], fields: tuple[tuple[bytes, bytes], ...], restart_at: int
) -> None:
    """HTTP and gRPC, also across a restart: the row, the CUT frames, and the moment at which the
    decoder is gone."""
    conversation, out = open_exchange(fields)
    row = conversation.pop_changed_exchanges()[0]
    walk = Walk()
    for number, name in enumerate(names):
        wire_event, event = _WIRE_EVENTS[name]
        if (walk.life, event) not in LIFE:
            break
        if number == restart_at:
            conversation = reload_conversation(conversation, SessionContext())
        conversation.feed([wire_event], out)  # type: ignore[arg-type]
        walk.step(event, _HOWS.get(name, name))
        (row,) = conversation.pop_changed_exchanges()
        assert (row.how, row.half_close) == (walk.how, walk.half_close)
        assert bool(row.closed) is bool(walk.how)
        assert (conversation.find_exchange(row.id) is None) is (walk.life is Life.OVER)
    cuts = [each for each in out if isinstance(each, Frame) and each.kind is FrameKind.CUT]
    assert len(cuts) == walk.cuts


def test_an_event_that_cannot_happen_becomes_a_finding() -> None:
    """The conversation goes on, because a peer's bytes must not stop the recorder."""
    conversation, out = open_exchange(())
    conversation.feed([End(1, TO_AGENT, 2, 0), End(1, TO_AGENT, 3, 0)], out)  # type: ignore[arg-type]
    assert "UndefinedTransitionError: request ends in state request ended" in str(out[-1])


_GRPC_STEPS = [
    "half_close",
    "trailers",
    "rst client",
    "rst agent",
    "eof client",
    "eof agent",
    "reset agent",
]


def grpc_script(steps: list[str]) -> Script:
    script = (
        Grpc().open("/lf.a2a.v1.A2AService/SendStreamingMessage").send(b"", end=False).respond()
    )
    for step in steps:
        what, _, side = step.partition(" ")
        direction = TO_AGENT if side == "client" else TO_CLIENT
        if what == "rst":
            script.rst(direction, 8)
        elif side:
            script.end(what, direction)
        else:
            getattr(script, what)()
    return script


def http_script(steps: list[str]) -> Script:
    script = Http().client(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n")
    script.agent(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
    for step in steps:
        what, _, side = step.partition(" ")
        direction = TO_AGENT if side == "client" else TO_CLIENT
        if what in ("half_close", "trailers"):
            _ = script.client(b"abc") if what == "half_close" else script.agent(b"abc")
        else:
            script.end("reset" if what == "rst" else what, direction)
    return script


def walk_of_bytes(script: Script) -> Walk:
    """Decode the bytes and walk through the table with the events of the first stream."""
    decoder, walk = ConnectionDecoder(), Walk()
    for number, (what, direction, data) in enumerate(script.steps):
        events: list[object] = []
        if what == "data":
            decoder.feed(direction, data, number, events)  # type: ignore[arg-type]
        else:
            getattr(decoder, FEED_END[what])(direction, number, events)
        for each in events:
            if not isinstance(each, End | Cut) or each.stream != 1 or walk.life is Life.OVER:
                continue
            by_agent = each.direction == TO_CLIENT
            if isinstance(each, End):
                walk.step(LifeEvent.RESPONSE_END if by_agent else LifeEvent.REQUEST_END, "")
            elif by_agent:
                walk.step(
                    LifeEvent.AGENT_CUT, "agent reset" if each.how == "rst_stream" else "agent gone"
                )
            elif each.how == "rst_stream":
                walk.step(LifeEvent.CLIENT_CUT, "client cancel")
            else:
                walk.step(LifeEvent.CLIENT_GONE, "client gone")
    return walk


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(_GRPC_STEPS), max_size=6), st.sampled_from([grpc_script, http_script])
)
def test_bytes_follow_the_table(steps: list[str], script_of: object) -> None:
    """The wire decoders never yield an undefined pair, and rows agree with the walk, in pieces of
    any size."""
    script = script_of(steps)  # type: ignore[operator]
    walk = walk_of_bytes(script)
    for played in (play(script), play_bytewise(script)):
        row: Exchange = played.exchanges[0]
        assert (row.how, row.half_close) == (walk.how, walk.half_close)
