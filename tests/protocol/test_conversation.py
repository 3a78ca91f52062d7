from __future__ import annotations

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.model.values import Dialect, Finding, FrameKind
from a2a_proxy.model.wire import Body, Cut, End, Head, HeadRole, Undecodable
from a2a_proxy.protocol.conversation import (
    MAX_ANSWERED_CALLS,
    SessionContext,
    open_conversation,
)
from a2a_proxy.protocol.describe import describe_frame
from a2a_proxy.protocol.event import normalise_event
from support_conversation import (
    FACTS,
    TO_AGENT,
    TO_CLIENT,
    Grpc,
    Http,
    Played,
    Player,
    Script,
    play,
    play_bytewise,
    play_split,
    reload_conversation,
    splits,
)
from support_messages import artifact, ask, old_ask, status, task, v1


def grpc_script() -> Script:
    script = (
        Grpc()
        .open("/lf.a2a.v1.A2AService/SendStreamingMessage")
        .send(v1("SendMessageRequest", ask()))
        .respond()
    )
    script.give(v1("StreamResponse", {"task": task()})).open("/a2a.v1.A2AService/GetTask", 3).send(
        b"\n\x08tasks/t1", 3
    )
    script.give(v1("StreamResponse", artifact("one"))).trailers_only(5, 3).give(
        v1("StreamResponse", status())
    ).trailers()
    return script


def rpc_script() -> Script:
    script = (
        Http().call("SendStreamingMessage", ask(), "r").stream().rpc_event({"task": task()}, "r")
    )
    script.chunk(b": ping\r\n\r\n").rpc_event(status("COMPLETED", generation="2"), "r").done()
    script.call("message/send", old_ask()).result(
        {"kind": "task", "id": "t1", "status": {"state": "completed"}}
    )
    return script.end("eof", TO_AGENT).end("eof", TO_CLIENT)


def rest_script() -> Script:
    script = Http().request("GET /.well-known/agent-card.json").answer({"name": "a", "skills": []})
    script.request("POST /message:stream", ask()).stream().event(status()).event(
        artifact("x"), "id: 1\r\n"
    ).done()
    script.request("POST /hook", {"task": task()}).answer(b"", "204 No Content").request(
        "GET /x"
    ).answer(b"hello", content_type="text/plain")
    return (
        script.request("POST /message:stream", ask())
        .stream()
        .event(status())
        .chunk(b"data: {")
        .end("reset", TO_CLIENT)
    )


_SCRIPTS = [grpc_script, rpc_script, rest_script]


def same(one: Played, other: Played) -> None:
    assert other.frames == one.frames
    assert other.connection_frames == one.connection_frames
    assert other.findings == one.findings
    assert other.exchanges == one.exchanges


@pytest.mark.parametrize("make", _SCRIPTS)
def test_every_split(make: type) -> None:
    """Cut anywhere, the same bytes give the same frames and exchanges."""
    script: Script = make()
    whole = play(script)
    assert len(whole.frames) > 5

    same(whole, play_bytewise(script))
    for step, at in splits(script):
        same(whole, play_split(script, step, at, restart=False))


@pytest.mark.parametrize("make", _SCRIPTS)
def test_every_restart(make: type) -> None:
    """Saved as bytes and restored at a cut, the same."""
    script: Script = make()
    whole = play(script)
    places = list(splits(script))

    for step, at in random.Random(7).sample(places, min(len(places), 150)):
        same(whole, play_split(script, step, at, restart=True))


@pytest.mark.parametrize("make", _SCRIPTS)
def test_restart_between_steps(make: type) -> None:
    """Saved and restored before every step, the same."""
    script: Script = make()
    player = Player()
    for number, (what, direction, data) in enumerate(script.steps):
        player.restart()
        player.step(what, direction, data, 1000 + number)

    same(
        play(script), Played(player.out, player.conversation.pop_changed_exchanges(), player.shared)
    )


def test_changes_are_returned_once() -> None:
    """A snapshot of what moved since the last time; a closed exchange is given once more and then
    forgotten."""
    player = Player()
    steps = rpc_script().steps
    seen = []
    for number, (what, direction, data) in enumerate(steps):
        player.step(what, direction, data, 1000 + number)
        seen.append(
            [(each.id, each.closed > 0) for each in player.conversation.pop_changed_exchanges()]
        )

    assert seen[0] == [(1, False)]
    assert [(1, True)] in seen
    assert seen[-1] == []
    assert player.conversation.find_exchange(1) is None


def test_an_open_exchange_is_found_by_its_number() -> None:
    """One of several on a connection, which has not changed since the last snapshot."""
    script = Grpc()
    for stream in (1, 3, 5):
        script.open("/lf.a2a.v1.A2AService/GetTask", stream).send(
            v1("GetTaskRequest", {"id": "t1"}), stream
        )
    player = Player()
    for number, (what, direction, data) in enumerate(script.steps):
        player.step(what, direction, data, 1000 + number)
    player.conversation.pop_changed_exchanges()
    found = [player.conversation.find_exchange(number) for number in range(5)]
    assert [each and each.id for each in found] == [None, 1, 2, 3, None]


def test_numbers_are_shared() -> None:
    """Exchanges are numbered over connections, in the order of their first bytes."""
    shared = SessionContext()
    first, second = Player(shared), Player(shared, connection=2)
    for number, step in enumerate(Http().request("GET /a").request("GET /b").steps):
        for player in (first, second):
            player.step(*step, 1000 + number)

    assert [
        (each.connection, each.id)
        for player in (first, second)
        for each in player.conversation.pop_changed_exchanges()
    ] == [
        (1, 1),
        (1, 3),
        (2, 2),
        (2, 4),
    ]


def test_responses_of_the_proxy_are_marked() -> None:
    """What the proxy answers itself is marked, and the exchange refused."""
    player = Player()
    (ask_step,) = Http().call("GetTask", {"id": "t"}).steps
    (answer_step,) = Http().answer({"title": "agent:8000 is down"}, "502 Bad Gateway").steps
    player.step(*ask_step, 1000)
    player.conversation.ours = True
    player.step(*answer_step, 1001)
    (exchange,) = player.conversation.pop_changed_exchanges()
    request, answer = Played(player.out, [], player.shared).frames

    assert (request.ours, answer.ours, exchange.ours, exchange.how) == (
        False,
        True,
        True,
        "refused",
    )
    assert answer.kind is FrameKind.ERROR


def test_control_and_opaque() -> None:
    """Wire events of the connection are frames of exchange 0; an opaque connection is a finding as
    well."""
    played = play(grpc_script())
    broken = play(
        Http().client(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").agent(b"\x00\x01nonsense" * 9)
    )

    assert [each.note for each in played.connection_frames][:2] == ["preface", "settings"]
    assert [each.seq for each in played.connection_frames] == list(
        range(len(played.connection_frames))
    )
    assert [each.rule for each in broken.findings] == ["UNDECODABLE"]


def test_answered_calls_are_forgotten() -> None:
    """Calls that were answered before their request ended do not pile up."""
    script = Grpc()
    for stream in range(1, 8 * MAX_ANSWERED_CALLS, 2):
        script.open("/lf.a2a.v1.A2AService/GetTask", stream).trailers_only(5, stream)
    player = Player()
    for number, step in enumerate(script.steps):
        player.step(*step, 1000 + number)

    player.conversation.pop_changed_exchanges()
    assert encode_state(player.conversation).count(b"request_headers") <= 2 * MAX_ANSWERED_CALLS + 1


_HEADERS = st.sampled_from(
    [
        (),
        ((b"content-type", b"application/grpc"),),
        ((b"content-type", b"text/event-stream"),),
        ((b"Content-Encoding", b"gzip"),),
    ]
)
_DIRECTIONS = st.sampled_from([TO_AGENT, TO_CLIENT])
_STREAMS = st.integers(0, 3)
_TARGETS = st.sampled_from(
    [
        b"/",
        b"/tasks/%ff",
        b"/lf.a2a.v1.A2AService/SendLiveMessage",
        b"/a2a.v1.A2AService/GetTask",
        b"/message:stream",
        b"http://[x",
    ]
)
_DATA = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b'{"jsonrpc":"2.0","method":7,"params":[]}',
            b"[[]]",
            b'data: {"result":{"task":7}}\n\n',
            b'{"jsonrpc":1,"method":"GetTask","params":{"id":[1]}}',
            b"\0\0\0\0\2\x0a\0",
        ]
    ),
)
_EVENTS = st.one_of(
    st.builds(
        Head,
        _STREAMS,
        _DIRECTIONS,
        st.just(1),
        st.just(1),
        st.just(0),
        st.just(9),
        st.sampled_from(HeadRole),
        _HEADERS,
        st.sampled_from([b"GET", b"POST"]),
        _TARGETS,
        st.just(b"a"),
    ),
    st.builds(Body, _STREAMS, _DIRECTIONS, st.just(2), st.just(9), st.just(20), _DATA),
    st.builds(End, _STREAMS, _DIRECTIONS, st.just(3), st.just(20)),
    st.builds(
        Cut,
        _STREAMS,
        _DIRECTIONS,
        st.just(4),
        st.just(20),
        st.sampled_from(["rst_stream", "eof", "lost"]),
        st.integers(0, 99),
    ),
    st.builds(
        Undecodable, _DIRECTIONS, st.just(5), st.just(20), st.just("x"), st.just("y"), _STREAMS
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_EVENTS, max_size=12))
def test_never_raises(events: list) -> None:
    """No order of wire events, and no bytes in them, raise or meet an error of our own; the state
    can be saved. A wire decoder ends each direction of a stream once."""
    ends = [(event.stream, event.direction) for event in events if isinstance(event, End)]
    assume(len(ends) == len(set(ends)))
    conversation = open_conversation(1, FACTS, SessionContext())
    out: list = []
    conversation.feed(events, out)
    conversation.pop_changed_exchanges()
    restored = reload_conversation(conversation, SessionContext())

    assert encode_state(restored) == encode_state(conversation)
    assert [
        each.summary
        for each in out
        if isinstance(each, Finding) and "cannot read this stream" in each.summary
    ] == []


_DEEP = b"[" * 50_000 + b"]" * 50_000


@pytest.mark.parametrize(
    "script",
    [
        Http()
        .request(
            "POST /",
            b'{"jsonrpc":"2.0","method":"SendMessage","params":{"message":' + _DEEP + b"}}",
        )
        .answer({}),
        Http().request("POST /", _DEEP).answer(_DEEP),
        Http()
        .call("GetTask", {"id": "t"})
        .answer(b'{"jsonrpc":"2.0","result":{"metadata":' + _DEEP + b"}}"),
        Http()
        .call("SendStreamingMessage", ask())
        .stream()
        .chunk(b'data: {"result":' + _DEEP + b"}\n\n")
        .done(),
        Http()
        .request("POST /message:send", b'{"message":' + _DEEP + b"}")
        .answer(b'{"task":' + _DEEP + b"}"),
        Http().request("GET /.well-known/agent.json").answer(b'{"name":' + _DEEP + b"}"),
        Http().request("POST /x", b'{"task":{"id":' + _DEEP + b"}}").answer(b"\xff{"),
        Http()
        .request("POST /", b'[{"jsonrpc":"2.0","method":"GetTask"},\xff]')
        .answer(b'[{"result":"\xff"}]'),
        Http()
        .request("POST /", b'{"jsonrpc":"2.0","id":"\xff","method":"GetTask"}')
        .answer(b'{"id":"\xff","result":{}}'),
    ],
)
def test_hostile_json(script: Script) -> None:
    """Nesting without end, and bytes that are no UTF-8: a frame each, and no error of our own."""
    played = play(script)

    assert played.findings == []
    assert [each.direction for each in played.frames[:2]] == [TO_AGENT, TO_CLIENT]
    for frame in played.frames:
        assert describe_frame(frame)
        assert isinstance(
            normalise_event(frame.payload, frame.schema, Dialect.UNKNOWN, "", frame.kind), dict
        )
