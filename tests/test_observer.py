"""The whole pure core: every split and restart yields the same result; no input of peers raises."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.http import PREFACE
from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.model.values import Finding, Frame, FrameKind, Observation, Severity
from a2a_proxy.model.wire import Chunk, ChunkKind, ConnectionFacts, Direction, PassedFacts
from a2a_proxy.observer import Observer
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk
from a2a_proxy.protocol.completeness import COMPLETE, split_completeness
from a2a_proxy.protocol.outcome import outcome_of
from a2a_proxy.protocol.segments.tracker import SegmentTracker
from a2a_proxy.protocol.task import TaskExchangeView, TaskTracker
from a2a_proxy.redaction.labels import is_withheld
from a2a_proxy.rules.run.deadlines import DeadlineQueue
from a2a_proxy.wire import http1
from a2a_proxy.wire.connection import ConnectionDecoder
from a2a_proxy.wire.http1_head import MAX_HEAD_SIZE
from support_conversation import TO_AGENT, TO_CLIENT, Http, Script
from support_observer import (
    START,
    Seen,
    bytewise,
    captured,
    fresh,
    grpc_call,
    interleaved,
    note,
    observe,
    of_decoders,
    reloaded,
    scripted,
    streaming,
    unary,
)

SESSIONS = {
    "vendor": lambda: captured("vendor"),
    "js_grpc": lambda: captured("js_grpc"),
    "stream": lambda: scripted(streaming("t-1")),
    "several": lambda: interleaved(
        scripted(streaming("t-1"), 1),
        scripted(unary(), 2),
        scripted(grpc_call(), 3),
        scripted(streaming("t-2"), 4),
    ),
}


@pytest.fixture(params=SESSIONS)
def session(request: pytest.FixtureRequest) -> list[Chunk]:
    return SESSIONS[request.param]()


def frames(seen: Seen) -> list[Frame]:
    return [each for each in seen.out if isinstance(each, Frame)]


def test_a_real_conversation_yields_frames_of_every_call(session: list[Chunk]) -> None:
    """Nothing is undecodable, every exchange is closed and has frames."""
    seen = observe(session)
    assert not [each for each in seen.out if of_decoders(each)]
    assert seen.exchanges
    assert all(exchange.closed for exchange in seen.exchanges.values())
    assert {frame.exchange for frame in frames(seen)} - {0} == set(seen.exchanges)
    assert all(connection.closed for connection in seen.connections.values())


def test_restoring_before_any_chunk_yields_the_same(session: list[Chunk]) -> None:
    """A recorder may be replaced at any record."""
    whole = observe(session)
    assert observe(session, restart_at=range(1, len(session))) == whole
    for index in range(1, len(session), max(1, len(session) // 12)):
        assert observe(session, restart_at=[index]) == whole, index


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_splits_of_any_size_yield_the_same(session: list[Chunk], size: int) -> None:
    """How TCP cut them shows nowhere."""
    assert observe(bytewise(session, size)) == observe(session)


def test_restarting_at_odd_offsets_yields_the_same(session: list[Chunk]) -> None:
    """Pieces of 61 bytes with a new observer for each: decoders are saved in the middle of
    everything."""
    pieces = list(bytewise(session, 61))
    assert observe(pieces, restart_at=range(1, len(pieces))) == observe(session)


def test_the_frequency_of_change_queries_does_not_matter(session: list[Chunk]) -> None:
    """Snapshots are snapshots."""
    seldom = observe(session, commit_every=10**6)
    often = observe(session)
    assert (seldom.exchanges, seldom.tasks, seldom.connections) == (
        often.exchanges,
        often.tasks,
        often.connections,
    )
    assert seldom.out == often.out


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(ChunkKind), st.sampled_from(Direction), st.binary(max_size=60)),
        max_size=12,
    )
)
def test_garbage_never_raises(records: list[tuple[ChunkKind, Direction, bytes]]) -> None:
    """Whatever a record holds, also one of ours that is damaged."""
    observer = fresh()
    out: list[Frame | Finding] = []
    observer.feed(scripted(Http())[0], out)
    for at, (kind, direction, data) in enumerate(records):
        for number in (0, 1, 2):
            observer.feed(Chunk(number, kind, direction, START + at, data), out)
        observer = reloaded(observer)
    observer.interrupt_session(START + 100, out)
    observer.pop_changes()


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(SESSIONS)), st.integers(0, 2**32), st.integers(1, 40))
def test_bytes_that_were_flipped_never_raise(name: str, seed: int, flips: int) -> None:
    """Real traffic with some bytes changed: findings perhaps, exceptions never, and restarts see
    the same."""
    chance = random.Random(seed)
    session = SESSIONS[name]()
    for _ in range(flips):
        index = chance.randrange(len(session))
        chunk = session[index]
        if chunk.kind is ChunkKind.DATA and chunk.data:
            raw = bytearray(chunk.data)
            raw[chance.randrange(len(raw))] = chance.randrange(256)
            session[index] = msgspec.structs.replace(chunk, data=bytes(raw))
    whole = observe(session)
    assert not [each for each in whole.out if isinstance(each, Finding) and each.rule == "RECORDER"]
    assert observe(session, restart_at=[chance.randrange(1, len(session))]) == whole


def test_a_connection_with_lost_bytes_becomes_opaque() -> None:
    """LOST ends the reading of one connection, with its open calls cut; bytes are counted."""
    broken = scripted(streaming("t-1"), 1)
    broken.insert(6, Chunk(1, ChunkKind.LOST, TO_CLIENT, broken[5].at, b'{"bytes":400}'))
    chunks = interleaved(broken, scripted(unary(), 2))
    observer, seen = fresh(), Seen([], {}, {}, {})
    for chunk in chunks:
        observer.feed(chunk, seen.out)
    note(observer, seen)
    assert seen.exchanges[1].how == "connection lost"
    assert seen.exchanges[2].how == "complete"
    assert seen.connections[1].lost_bytes == observer.lost == 400
    lost, *rest = observer.gaps.named
    assert (lost.direction, lost.size, lost.why) == (
        TO_CLIENT,
        400,
        "were not captured: the disk was too slow",
    )
    assert {gap.why for gap in rest} == {"were not decoded: bytes before them were not captured"}
    after = [
        frame for frame in frames(seen) if frame.connection == 1 and frame.kind is FrameKind.EVENT
    ]
    assert len(after) < 6


def test_a_damaged_journal_makes_open_connections_opaque() -> None:
    """LOST on connection 0 with damage: one finding, open connections are over, new ones are
    read."""
    first, second = scripted(streaming("t-1"), 1), scripted(unary(), 2)
    damage = Chunk(
        0,
        ChunkKind.LOST,
        TO_AGENT,
        START + 10,
        b'{"bytes":7,"damage":"segment 1: a wrong checksum"}',
    )
    observer, seen = fresh(), Seen([], {}, {}, {})
    for chunk in [*first[:6], damage, *first[6:], *second]:
        observer.feed(chunk, seen.out)
    note(observer, seen)
    assert [each.summary for each in seen.out if of_decoders(each)] == [
        "segment 1: a wrong checksum"
    ]
    assert [seen.exchanges[number].how for number in (1, 2)] == ["connection lost", "complete"]
    assert observer.lost == 7


def test_a_connection_without_its_start_is_not_decoded() -> None:
    """Its bytes count as lost and no row is made of it."""
    session = scripted(streaming("t-1"))
    observer, seen = fresh(), Seen([], {}, {}, {})
    for chunk in session[4:]:
        observer.feed(chunk, seen.out)
    note(observer, seen)
    assert seen == Seen([], {}, {}, {})
    assert observer.lost == sum(len(chunk.data) for chunk in session[4:])


def test_responses_of_the_proxy_are_marked() -> None:
    """A 502 of ours is not the agent's."""
    script = Http().call("SendMessage", {"message": {}})
    chunks = scripted(script)[:-1]
    answer = Http().answer({"title": "no agent"}, "502 Bad Gateway").steps[0][2]
    chunks += [
        Chunk(1, ChunkKind.OURS, TO_CLIENT, START + 9000, answer),
        Chunk(1, ChunkKind.CLOSED, TO_AGENT, START + 9001),
    ]
    seen = observe(chunks)
    assert seen.exchanges[1].ours
    assert {frame.ours for frame in frames(seen) if frame.direction is TO_CLIENT} == {True}
    assert {frame.ours for frame in frames(seen) if frame.direction is TO_AGENT} == {False}


def test_an_interrupted_session_closes_everything(session: list[Chunk]) -> None:
    """The relay died: open exchanges end as `proxy killed`."""
    for length in range(1, len(session), max(1, len(session) // 10)):
        observer, seen = fresh(), Seen([], {}, {}, {})
        for chunk in session[:length]:
            observer.feed(chunk, seen.out)
        observer.interrupt_session(session[length].at, seen.out)
        note(observer, seen)
        assert all(exchange.closed for exchange in seen.exchanges.values())
        assert all(connection.closed for connection in seen.connections.values())
        assert not observer.save().connections


@pytest.mark.parametrize("how", ["proxy stopped", "proxy killed"])
@pytest.mark.parametrize("script", [streaming, grpc_call], ids=["http", "grpc"])
def test_cuts_by_the_proxy_are_not_attributed_to_a_peer(
    script: Callable[..., Script], how: str
) -> None:
    """A clean stop closes connections without FIN or RST of a peer; a crash leaves the journal
    without an end."""
    session = scripted(script("t-1") if script is streaming else script())[:-3]
    observer, seen = fresh(), Seen([], {}, {}, {})
    for chunk in session:
        observer.feed(chunk, seen.out)
    if how == "proxy stopped":
        observer.feed(Chunk(1, ChunkKind.CLOSED, TO_AGENT, session[-1].at + 1), seen.out)
    else:
        observer.interrupt_session(session[-1].at + 1, seen.out)
    note(observer, seen)
    assert seen.exchanges[1].how == how
    assert [frame.note for frame in frames(seen) if frame.kind is FrameKind.CUT] == [how]
    assert seen.connections[1].how == ("closed" if how == "proxy stopped" else "proxy killed")


def test_a_task_is_joined_over_connections_and_restarts() -> None:
    """A stream and a later call on another connection tell of one task; a restart in between
    forgets nothing."""
    asks = Http().call("GetTask", {"id": "t-1"}, A2A_Version="1.0")
    asks.result({"id": "t-1", "contextId": "c-t-1", "status": {"state": "TASK_STATE_COMPLETED"}})
    chunks = scripted(streaming("t-1"), 1) + scripted(asks, 2, START + 10**9)
    whole = observe(chunks)
    ((_, task),) = whole.tasks.items()
    assert task.exchanges == (1, 2)
    assert [state for _, state in task.states] == [1, 2, 3]
    assert (task.artifacts[0].chunks, task.artifacts[0].complete) == (3, True)
    for index in range(1, len(chunks)):
        assert observe(chunks, restart_at=[index]).tasks == whole.tasks, index


def test_a_repeated_state_after_a_restart_is_a_change() -> None:
    """`working`, `input-required`, restart, `working`: the second `working` is no repetition."""
    http = Http().call("SendStreamingMessage", {"message": {}}, A2A_Version="1.0").stream()
    for state in ("WORKING", "INPUT_REQUIRED", "WORKING", "COMPLETED"):
        http.rpc_event(
            {
                "statusUpdate": {
                    "taskId": "t",
                    "contextId": "c",
                    "status": {"state": f"TASK_STATE_{state}"},
                }
            }
        )
    chunks = scripted(http.done())
    whole = observe(chunks)
    ((_, task),) = whole.tasks.items()
    assert [state for _, state in task.states] == [2, 6, 2, 3]
    for index in range(1, len(chunks)):
        assert observe(chunks, restart_at=[index]).tasks == whole.tasks, index


def test_ids_with_lone_surrogates_survive_a_snapshot() -> None:
    """A lone surrogate in JSON cannot be written as UTF-8; a snapshot with it can."""
    for raw in (b'"\\ud800"', b'"\xed\xa0\x80"', b'"\\u0000"', b'"a\\udfff b"'):
        body = b'{"jsonrpc":"2.0","id":%s,"method":"GetTask","params":{"id":%s}}' % (raw, raw)
        answer = (
            b'{"jsonrpc":"2.0","id":%s,"result":{"id":%s,"contextId":%s,'
            b'"status":{"state":"TASK_STATE_WORKING"}}}'
        )
        http = Http().request("POST /", body, A2A_Version="1.0").answer(answer % (raw, raw, raw))
        chunks = scripted(http)
        assert observe(chunks, restart_at=range(1, len(chunks))) == observe(chunks)


def test_a_decoder_bug_costs_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that raises makes its connection opaque, with one finding; others are read on."""
    read = ConnectionDecoder.feed

    def feed(
        self: ConnectionDecoder, direction: Direction, data: bytes, at: int, out: list[object]
    ) -> None:
        if b"poison" in data:
            raise RuntimeError("the decoder is wrong")
        read(self, direction, data, at, out)  # type: ignore[arg-type]

    monkeypatch.setattr(ConnectionDecoder, "feed", feed)
    bad = (
        Http()
        .call("SendMessage", {"message": {}})
        .answer({"poison": 1})
        .call("SendMessage", {"message": {}})
    )
    seen = observe(interleaved(scripted(bad, 1), scripted(unary(), 2)))
    (finding,) = [each for each in seen.out if of_decoders(each)]
    assert (finding.connection, "the decoder is wrong" in finding.summary) == (1, True)
    assert [exchange.how for exchange in seen.exchanges.values()] == ["connection lost", "complete"]


def test_a_bug_in_a_later_step_costs_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of several connections are delivered together: those of the others are not lost."""
    apply = TaskTracker.apply_frame

    def apply_frame(
        self: TaskTracker,
        frame: Frame,
        exchange: TaskExchangeView,
        chunk: ArtifactChunk | None = None,
    ) -> None:
        if frame.task_id == "t-1":
            raise RuntimeError("the tracker is wrong")
        apply(self, frame, exchange, chunk)

    monkeypatch.setattr(TaskTracker, "apply_frame", apply_frame)
    observer, out = fresh(), list[Observation]()
    observer.hold_rules()
    for chunk in interleaved(scripted(streaming("t-1"), 1), scripted(streaming("t-2"), 2)):
        observer.feed(chunk, out)
    observer.judge_held(out)
    findings = [each for each in out if of_decoders(each)]
    assert {(each.connection, "the tracker is wrong" in each.summary) for each in findings} == {
        (1, True)
    }
    expected = [
        each for each in observe(scripted(streaming("t-2"), 2)).out if isinstance(each, Frame)
    ]
    frames = [each for each in out if isinstance(each, Frame) and each.connection == 2]
    assert [each.payload for each in frames] == [each.payload for each in expected]


@pytest.mark.parametrize(
    ("first", "more", "words"),
    [
        (b"\x16\x03\x01\x00\x05\x01", b"\x16\x03\x03\x00\x02\x02", "TLS"),
        (b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n", "not HTTP"),
        (b"GE", b"", "not HTTP"),
    ],
)
def test_a_connection_that_is_not_http_is_one_finding(
    first: bytes, more: bytes, words: str
) -> None:
    """However its bytes come, and across restarts."""
    for size in (len(first), 1):
        script = Script()
        for at in range(0, len(first), size):
            script.client(first[at : at + size])
        for data in (more, more):
            script.agent(data)
        session = scripted(script.end("eof", TO_AGENT))
        seen = observe(session)
        (finding,) = [each for each in seen.out if of_decoders(each)]
        assert (finding.rule, finding.severity, finding.connection) == (
            "UNDECODABLE",
            Severity.WARNING,
            1,
        )
        assert words in finding.summary
        assert observe(session, restart_at=range(1, len(session))) == seen


def test_upgraded_and_lost_connections_are_no_finding() -> None:
    """An upgrade is not read, a hole cannot be: neither is garbage of a peer."""
    upgraded = Http().request("GET /", Connection="upgrade", Upgrade="x")
    upgraded.agent(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").client(
        b"\x00\x01"
    )
    silent = scripted(Script().client(b"GE"))
    hole = Chunk(1, ChunkKind.LOST, TO_AGENT, silent[2].at, b'{"bytes":4}')
    for session in (
        scripted(upgraded),
        [*silent[:3], hole, *silent[3:]],
        scripted(Script().agent(b"220 mail\r\n")),
    ):
        assert not [each for each in observe(session).out if of_decoders(each)]


SWITCH = b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: irc\r\n\r\n"
TO_HTTP2 = SWITCH.replace(b"irc", b"h2c")
GOAWAY = b"\0\0\x08\7\0\0\0\0\0" + bytes(8)
NO_FRAME = b"\0\0\5\x08\0\0\0\0\0garba"


@pytest.mark.parametrize(
    ("script", "to_agent", "to_client", "why"),
    [
        (
            Http().request("GET /").agent(SWITCH).client(b"\0\1").agent(b"\2"),
            2,
            1,
            "switched to irc",
        ),
        (
            Http().request("CONNECT a:1").agent(b"HTTP/1.1 200 OK\r\n\r\n").client(b"abc"),
            3,
            0,
            "switched to connect",
        ),
        (
            Http().request("GET /").client(b"GET /\0 HTTP/1.1\r\n\r\n").agent(b""),
            19,
            0,
            "request head",
        ),
        (Script().client(b"GET /" + b"x" * MAX_HEAD_SIZE), MAX_HEAD_SIZE + 5, 0, "no end within"),
        (Http().request("GET /").agent(b"SSH-2.0 what is this\r\n"), 0, 22, "response head"),
        (Script().client(PREFACE + GOAWAY + NO_FRAME), 14, 0, "WINDOW_UPDATE of 4 bytes"),
        (
            Script().client(PREFACE).agent(GOAWAY + NO_FRAME).agent(b"more"),
            0,
            18,
            "WINDOW_UPDATE of 4 bytes",
        ),
        (
            Script().client(b"\x16\x03\x01\x00\x06\x01bcdef").agent(b"12"),
            11,
            2,
            "TLS that is not opened",
        ),
        (Script().client(b"\0what").agent(b"1"), 5, 1, "not HTTP"),
        (
            Http().request("GET /").agent(TO_HTTP2 + b"hello, this is not HTTP/2"),
            0,
            25,
            "SETTINGS first",
        ),
        (
            Http().request("GET /").agent(TO_HTTP2 + b"hello").end("eof", TO_CLIENT),
            0,
            5,
            "end after 5 bytes",
        ),
    ],
)
def test_bytes_that_are_not_decoded_are_named(
    script: Script, to_agent: int, to_client: int, why: str
) -> None:
    """Connection, direction, number and reason; the same across restarts."""
    session = scripted(script)
    for restarts in (range(0), range(1, len(session))):
        observer = fresh()
        for index, chunk in enumerate(session):
            observer = reloaded(observer) if index in restarts else observer
            observer.feed(chunk, [])
        sizes = {gap.direction: gap.size for gap in observer.gaps.named}
        expected = {TO_AGENT: to_agent, TO_CLIENT: to_client}
        assert sizes == {direction: size for direction, size in expected.items() if size}
        assert all(
            why in gap.why and gap.connection == 1 and not gap.is_chosen
            for gap in observer.gaps.named
        )


def test_more_pipelined_requests_than_are_paired_are_not_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the first one too many."""
    monkeypatch.setattr(http1, "MAX_PIPELINED", 2)
    observer = fresh()
    for chunk in scripted(Script().client(b"GET / HTTP/1.1\r\n\r\n" * 4)):
        observer.feed(chunk, [])
    assert [(gap.offset, gap.size) for gap in observer.gaps.named] == [(36, 36)]


@pytest.mark.parametrize("name", SESSIONS)
def test_a_whole_conversation_has_no_gaps(name: str) -> None:
    """Nor has one whose client resets its connection or breaks off in a message, or that sends
    nothing."""
    whole = [chunk for chunk in SESSIONS[name]() if chunk.kind is not ChunkKind.CLOSED]
    for end in (ChunkKind.EOF, ChunkKind.RESET):
        for count in (len(whole) // 2, len(whole)):
            observer = fresh()
            cut = whole[:count]
            numbers = sorted({chunk.connection for chunk in cut})
            for chunk in [
                *cut,
                *(Chunk(n, end, TO_AGENT, cut[-1].at) for n in numbers),
                *whole[count : count + 3],
            ]:
                observer.feed(chunk, [])
            observer.interrupt_session(cut[-1].at, [])
            assert observer.gaps.describe() == COMPLETE
    observer = fresh()
    for chunk in scripted(Script().agent(b"220 mail\r\n" * 10_000)):
        observer.feed(chunk, [])
    assert observer.gaps.describe() == COMPLETE


def test_a_call_that_leaves_http_did_not_end_well() -> None:
    """Its answer is not known: the protocol is named, and that the rest is not decoded."""
    (exchange,) = observe(
        scripted(Http().call("SendMessage", {}).agent(SWITCH).agent(b"\0"))
    ).exchanges.values()
    assert (exchange.status, outcome_of(exchange)) == (101, "cut")
    assert exchange.how == "switched to irc: the rest is not decoded"
    (tunnel,) = observe(
        scripted(Http().request("CONNECT a:1").agent(b"HTTP/1.1 200 OK\r\n\r\n"))
    ).exchanges.values()
    assert tunnel.how == "switched to a tunnel: the rest is not decoded"


def test_an_abandoned_connection_stays_opaque() -> None:
    """Also after a restart, and what follows raises nothing."""
    session = scripted(streaming("t-1"))
    observer, seen = fresh(), Seen([], {}, {}, {})
    for chunk in session[:5]:
        observer.feed(chunk, seen.out)
    observer.abandon_connection(1, session[5].at, "test", seen.out)
    observer = reloaded(observer)
    note(observer, seen)
    count = len(seen.out)
    for chunk in session[6:]:
        observer.feed(chunk, seen.out)
    note(observer, seen)
    assert len(seen.out) == count
    assert seen.exchanges[1].how == "connection lost"
    assert seen.connections[1].closed


def test_edits_and_the_end_are_counted_and_survive() -> None:
    """EDIT records change no observation."""
    observer = fresh()
    out: list[Frame | Finding] = []
    for chunk in [*scripted(Http())[:1], Chunk(1, ChunkKind.EDIT, TO_CLIENT, START, b"{}")]:
        observer.feed(chunk, out)
    observer = reloaded(observer)
    assert (observer.edits, observer.ended, out) == (1, False, [])
    observer.feed(Chunk(0, ChunkKind.END, TO_AGENT, START), out)
    assert observer.ended


def test_trace_edits_stay_with_their_exchange() -> None:
    """Wherever the recorder is replaced; an edit of an unknown or finished call is ignored."""
    chunks, sent = scripted(streaming("t-1")), f"00-{'a' * 32}-{'b' * 16}-01"
    plain = observe(chunks)

    def edited(stream: int, after: str) -> Chunk:
        return Chunk(
            1,
            ChunkKind.EDIT,
            TO_AGENT,
            START,
            b'{"kind":"traceparent","stream":%d,"after":"%s"}' % (stream, after.encode()),
        )

    first = next(at for at, chunk in enumerate(chunks, 1) if chunk.kind is ChunkKind.DATA)
    chunks[first:first] = [edited(1, sent), edited(99, "x")]
    chunks.insert(-1, edited(1, "late"))
    seen = observe(chunks)
    assert seen.exchanges[1].sent_traceparent == seen.exchanges[1].trace_context == sent
    assert msgspec.structs.replace(seen.exchanges[1], sent_traceparent="") == plain.exchanges[1]
    assert seen.out == plain.out
    assert observe(chunks, restart_at=range(1, len(chunks))) == seen


def test_secrets_leave_the_observer_as_labels() -> None:
    """Neither frames nor exchanges carry a credential."""
    secret = "sk-canary-4f9a8b7c6d5e"
    http = Http().call("SendMessage", {"message": {}}, authorization=f"Bearer {secret}")
    seen = observe(
        scripted(http.result({"message": {"messageId": "m", "parts": [{"text": f"key {secret}"}]}}))
    )
    assert secret not in repr(seen)
    assert isinstance(fresh(), Observer)


def test_an_ended_exchange_is_redacted_once_its_secret_is_known() -> None:
    """Redacted at its end and stored later: another exchange may teach the secret in the
    meantime."""
    secret = "kq7Zw3xTnB5vRj8m"
    echo = Http().call("SendMessage", {"message": {}}, x_echo=secret).result({})
    teach = Http().call("SendMessage", {"message": {}}, x_api_key=secret).result({})
    observer, out = fresh(), list[Observation]()
    for chunk in scripted(echo, 1) + scripted(teach, 2, START + 1_000_000):
        observer.feed(chunk, out)
    assert secret.encode() not in msgspec.msgpack.encode(observer.pop_changes())


@pytest.mark.parametrize("forwarded", [False, True])
def test_other_http_through_a_forward_proxy_has_no_bodies(forwarded: bool) -> None:
    """Heads, sizes and status of requests that are not A2A are recorded, their content is not; A2A
    is whole. At other listeners all is recorded."""
    http = (
        Http()
        .request("POST /v1/chat", {"ask": "private-1"})
        .stream()
        .event({"say": "private-2"})
        .done()
    )
    http.request("GET /x").answer(
        {"error": {"code": 5, "message": "private-3", "status": "X"}}, status="500 Oops"
    )
    http.request("POST /form", b"private-4", content_type="text/plain").answer(
        b"private-5", content_type="text/plain"
    )
    http.call("SendMessage", {"message": {"messageId": "m", "parts": [{"text": "for the agent"}]}})
    chunks = scripted(
        http.result({"message": {"messageId": "n", "parts": [{"text": "for the client"}]}})
    )
    if forwarded:
        facts = msgspec.json.decode(chunks[0].data, type=ConnectionFacts)
        chunks[0] = msgspec.structs.replace(
            chunks[0], data=msgspec.json.encode(msgspec.structs.replace(facts, forwarded=True))
        )
    seen = observe(chunks)
    assert ("private-" in repr(seen)) is not forwarded
    assert "for the agent" in repr(seen)
    assert "for the client" in repr(seen)
    frames = [
        each for each in seen.out if isinstance(each, Frame) and each.exchange == 1 and each.size
    ]
    assert [is_withheld(frame) for frame in frames] == [forwarded] * 2
    assert frames[0].size == len(b'{"ask": "private-1"}')
    assert seen.exchanges[2].error.startswith("HTTP 500")
    assert observe(chunks, restart_at=range(1, len(chunks))) == seen


def test_bytes_that_passed_unread_are_counted() -> None:
    """A tunnel with TLS: a connection with its sizes and kind, without frames and findings."""
    begin, *_, end = scripted(Http())
    chunks = [begin]
    for direction, size in ((TO_AGENT, 517), (TO_CLIENT, 4000)):
        facts = msgspec.json.encode(PassedFacts(size, "tls"))
        chunks.append(Chunk(1, ChunkKind.PASSED, direction, START + 5, facts))
    chunks.append(end)
    seen = observe(chunks)
    connection = seen.connections[1]
    assert (connection.kind, connection.bytes_to_agent, connection.bytes_to_client) == (
        "tls",
        517,
        4000,
    )
    assert connection.counters == {"opaque_to_agent": 517, "opaque_to_client": 4000}
    assert seen.out == []
    assert observe(chunks, restart_at=range(1, len(chunks))) == seen


@pytest.mark.parametrize(("kind", "is_missing"), [("tls", False), ("opaque", True)])
def test_tls_of_a_tunnel_is_left_unread_by_choice(kind: str, is_missing: bool) -> None:
    """The user decides with `--intercept` which TLS is opened; its bytes are named all the same."""
    begin, *_, end = scripted(Http())
    passed = msgspec.json.encode(PassedFacts(517, kind))
    observer = fresh()
    for chunk in (begin, Chunk(1, ChunkKind.PASSED, TO_AGENT, START + 5, passed), end):
        observer = reloaded(observer)
        observer.feed(chunk, [])
    missing, choice = split_completeness(observer.gaps.describe())
    assert (bool(missing), bool(choice)) == (is_missing, not is_missing)
    assert "517 bytes to the agent from byte 0 were not decoded: " in missing + choice


def broken(direction: Direction, reason: str) -> list[Chunk]:
    begin, *_, end = scripted(Http())
    return [begin, Chunk(1, ChunkKind.RESET, direction, START + 5, reason.encode()), end]


def test_a_failed_handshake_is_the_reason_of_its_connection() -> None:
    """In words, with a finding: the connection has no exchange that could show it."""
    reason = "TLS handshake failed: the client closed the connection"
    seen = observe(broken(TO_AGENT, reason))
    (finding,) = seen.out
    assert isinstance(finding, Finding)
    assert (finding.rule, finding.summary, finding.connection) == ("HANDSHAKE", reason, 1)
    assert seen.connections[1].how == reason


def test_an_end_without_close_notify_is_the_reason_of_its_connection() -> None:
    reason = "TLS ended by the agent without close_notify"
    seen = observe(broken(TO_CLIENT, reason))
    assert seen.out == []
    assert seen.connections[1].how == reason


def test_snapshots_do_not_grow_with_the_session() -> None:
    """A thousand connections later a snapshot is as large as after a hundred, but for the tasks
    touched last and what they wait for."""
    observer = fresh()
    sizes = []
    for number in range(1, 1001):
        out: list[Frame | Finding] = []
        for chunk in scripted(unary(f"t-{number}"), number, START + number * 10**6):
            observer.feed(chunk, out)
        observer.pop_changes()
        if number in (100, 1000):
            saved = observer.save()
            saved.rules.session.tasks, saved.rules.deadlines, saved.tasks = [], DeadlineQueue(), []
            saved.segments = SegmentTracker().save()
            sizes.append(len(encode_state(saved)))
    assert sizes[1] - sizes[0] < 100


@pytest.mark.parametrize(
    ("deliverer", "sent", "actor"),
    [
        (
            "agent:8000",
            [
                (TO_AGENT, b"POST /hook HTTP/1.1\r\nHost: a\r\n\r\n"),
                (TO_CLIENT, b"<!DOCTYPE html>"),
            ],
            "client",
        ),
        ("agent:8000", [(TO_AGENT, b"POST /hook HTTP/1.1\r\n no field\r\n\r\n")], "agent"),
        (
            "",
            [
                (TO_AGENT, b"POST /hook HTTP/1.1\r\nHost: a\r\n\r\n"),
                (TO_CLIENT, b"<!DOCTYPE html>"),
            ],
            "agent",
        ),
    ],
)
def test_undecodable_bytes_of_a_delivery_are_their_sender_s(
    deliverer: str, sent: list[tuple[Direction, bytes]], actor: str
) -> None:
    """The agent sends the requests, and the client's webhook the responses."""
    facts = ConnectionFacts(
        "127.0.0.1:5009", "127.0.0.1:9100", "client.example:80", deliverer=deliverer
    )
    observer, out = fresh(), list[Observation]()
    observer.feed(Chunk(9, ChunkKind.OPEN, TO_AGENT, START, msgspec.json.encode(facts)), out)
    for direction, data in sent:
        observer.feed(Chunk(9, ChunkKind.DATA, direction, START + 1, data), out)
    found = [each for each in out if isinstance(each, Finding) and each.rule == "UNDECODABLE"]
    assert [each.evidence["actor"] for each in found] == [actor]


def test_a_call_with_an_unreadable_response_ends_with_its_connection() -> None:
    """It does not stay open, which the recording would show as live for ever."""
    observer, out = fresh(), list[Observation]()
    observer.feed(
        Chunk(
            9,
            ChunkKind.OPEN,
            TO_AGENT,
            START,
            msgspec.json.encode(ConnectionFacts("c:1", "p:2", "a:3")),
        ),
        out,
    )
    observer.feed(
        Chunk(9, ChunkKind.DATA, TO_AGENT, START + 1, b"GET /v1/card HTTP/1.1\r\nHost: a\r\n\r\n"),
        out,
    )
    observer.feed(Chunk(9, ChunkKind.DATA, TO_CLIENT, START + 2, b"<!DOCTYPE html>\r\n"), out)
    observer.feed(Chunk(9, ChunkKind.EOF, TO_CLIENT, START + 3), out)
    observer.feed(Chunk(9, ChunkKind.CLOSED, TO_AGENT, START + 4), out)
    (call,) = observer.pop_changes().exchanges
    assert (call.how, call.closed) == ("connection lost", START + 4)
    assert [each.rule for each in out if isinstance(each, Finding)] == ["UNDECODABLE"]


@pytest.mark.parametrize("deliverer", ["agent:8000", ""])
def test_a_delivery_before_the_answer_belongs_to_its_agent(deliverer: str) -> None:
    """The task has one row, and one record of the rules, if the connection names the agent that
    delivers."""
    body = b'{"task":{"id":"t-u","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}'
    head = b"POST /hook HTTP/1.1\r\nHost: client.example\r\nContent-Length: %d\r\n\r\n" % len(body)
    facts = ConnectionFacts(
        "127.0.0.1:5009", "127.0.0.1:9100", "client.example:80", deliverer=deliverer
    )
    observer, out = fresh(), list[Observation]()
    for chunk in (
        Chunk(9, ChunkKind.OPEN, TO_AGENT, START, msgspec.json.encode(facts)),
        Chunk(9, ChunkKind.DATA, TO_AGENT, START + 1, head + body),
        Chunk(9, ChunkKind.DATA, TO_CLIENT, START + 2, b"HTTP/1.1 204 No Content\r\n\r\n"),
        *scripted(unary(), start=START + 10),
    ):
        observer.feed(chunk, out)
    agents = {(task.agent, task.task_id) for task in observer.pop_changes().tasks}
    assert (agents == {("agent:8000", "t-u")}) is bool(deliverer)
    assert set(observer._rules.session.tasks) == agents
