"""Calls on a WebSocket: matched by id, streams that end by `streamEnd`, and other subprotocols."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.values import Binding, Dialect, EventKind, Exchange, Finding, Frame, FrameKind
from a2a_proxy.model.wire import ConnectionFacts, Control, Framed
from a2a_proxy.protocol.completeness import COMPLETE
from a2a_proxy.protocol.conversation import SessionContext, open_conversation
from a2a_proxy.protocol.outcome import outcome_of
from support_conversation import Script
from support_observer import Seen, bytewise, fresh, observe, of_decoders, scripted
from support_pipe import DOWN, UP
from support_websocket import (
    BINARY,
    CLOSE,
    KEY,
    PING,
    TEXT,
    Deflater,
    agreed,
    asked,
    closing,
    frame,
    up,
)

SEND = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}
DEFLATE = "permessage-deflate"


def task(name: str, task: str = "t-1") -> dict[str, Any]:
    """A task."""
    return {"id": task, "contextId": "c-1", "status": {"state": f"TASK_STATE_{name}"}}


def status(name: str, task: str = "t-1") -> dict[str, Any]:
    """A status update."""
    state = {"state": f"TASK_STATE_{name}"}
    return {"statusUpdate": {"taskId": task, "contextId": "c-1", "status": state}}


class Ws(Script):
    """A WebSocket after its handshake."""

    def __init__(self, protocol: str = "a2a.v1", extensions: str = "", **fields: str) -> None:
        super().__init__()
        fields = {"Sec_WebSocket_Protocol": "a2a.v1", "A2A_Version": "1.0"} | fields
        self.client(asked(**fields)).agent(agreed(protocol, extensions))
        self._deflaters = [Deflater(), Deflater()] if extensions else None

    def say(self, value: Any, opcode: int = TEXT) -> Ws:
        """Add a message of the client."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        if self._deflaters is not None:
            return self.client(up(opcode, self._deflaters[0].compress(data), reserved=4))
        return self.client(up(opcode, data))

    def answer(self, value: Any, opcode: int = TEXT) -> Ws:
        """Add a message of the agent."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        if self._deflaters is not None:
            return self.agent(frame(opcode, self._deflaters[1].compress(data), reserved=4))
        return self.agent(frame(opcode, data))

    def call(self, method: str, params: Any, rpc_id: Any = "r-1", **members: Any) -> Ws:
        """Add a request."""
        value = {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params}
        return self.say(value | members)

    def result(self, value: Any, rpc_id: Any = "r-1") -> Ws:
        """Add a response, or an event."""
        return self.answer({"jsonrpc": "2.0", "id": rpc_id, "result": value})

    def stream_end(self, rpc_id: Any = "r-1") -> Ws:
        """Add the end of a stream."""
        return self.answer({"jsonrpc": "2.0", "id": rpc_id, "streamEnd": True})

    def cancel(self, rpc_id: Any = "r-1") -> Ws:
        """Add the client's end of a stream."""
        return self.say({"jsonrpc": "2.0", "id": rpc_id, "cancelStream": True})

    def close(self, code: int = 1000) -> Ws:
        """Close the socket, the client first."""
        self.client(up(CLOSE, closing(code))).agent(frame(CLOSE, closing(code)))
        return self.end("eof", DOWN).end("eof", UP)


def look(script: Script) -> Seen:
    """What is seen of it: the same in pieces of any size, and across restarts."""
    chunks = scripted(script)
    seen = observe(chunks)
    for size in (1, 7):
        again = observe(bytewise(chunks, size), restart_at=range(3, 6000, 90), commit_every=5)
        assert again.out == seen.out
        assert again.exchanges == seen.exchanges
        assert again.connections == seen.connections
    assert [each.kind for each in seen.connections.values()] == ["websocket"]
    return seen


def gaps(script: Script) -> str:
    """What the capture lacks."""
    observer = fresh()
    for chunk in scripted(script):
        observer.feed(chunk, [])
    return observer.gaps.describe()


def frames(seen: Seen, exchange: int) -> list[Frame]:
    """The frames of an exchange."""
    return [each for each in seen.out if isinstance(each, Frame) and each.exchange == exchange]


def kinds(seen: Seen, exchange: int) -> list[tuple[FrameKind, str]]:
    """The kinds and notes of the frames of an exchange."""
    return [(each.kind, each.note) for each in frames(seen, exchange)]


def calls(seen: Seen) -> list[Exchange]:
    """The A2A calls."""
    return [each for each in seen.exchanges.values() if each.binding is Binding.WEBSOCKET]


def hows(seen: Seen) -> list[str]:
    """How the calls ended."""
    return [each.how for each in calls(seen)]


def findings(seen: Seen) -> list[str]:
    """All findings, of decoders and of rules."""
    return [f"{each.rule} {each.summary}" for each in seen.out if isinstance(each, Finding)]


@pytest.mark.parametrize("extensions", ["", DEFLATE])
def test_a_stream_beside_other_calls(extensions: str) -> None:
    """One exchange for each call, whatever is between its messages; the tasks are followed."""
    script = Ws(extensions=extensions)
    script.call("SendStreamingMessage", SEND, "s").result({"task": task("WORKING")}, "s")
    script.call("GetTask", {"id": "t-2"}, 2).result(status("WORKING"), "s")
    script.result(task("COMPLETED", "t-2"), 2).result(status("COMPLETED"), "s").stream_end("s")
    seen = look(script.close())
    handshake = seen.exchanges[1]
    assert (handshake.binding, handshake.method, handshake.status) == (Binding.OTHER, "GET", 101)
    assert (handshake.how, outcome_of(handshake)) == ("complete", "ok")
    stream, get = calls(seen)
    assert (stream.operation, stream.rpc_id, stream.how) == (
        "SendStreamingMessage",
        '"s"',
        "complete",
    )
    assert (stream.states, stream.streaming, stream.dialect) == (
        ("working", "completed"),
        True,
        Dialect.V1_0,
    )
    assert (get.operation, get.rpc_id, get.how, get.target) == (
        "GetTask",
        "2",
        "complete",
        "/a2a/ws",
    )
    assert stream.agent == get.agent == "agent:8000/a2a/ws"
    assert kinds(seen, stream.id) == [
        (FrameKind.REQUEST, ""),
        (FrameKind.EVENT, ""),
        (FrameKind.EVENT, ""),
        (FrameKind.EVENT, ""),
        (FrameKind.END, "streamEnd"),
    ]
    assert [each.framing for each in frames(seen, stream.id)] == [extensions] * 5
    assert {each.task_id for each in seen.tasks.values()} == {"t-1", "t-2"}
    (connection,) = seen.connections.values()
    assert connection.how == "client close 1000"
    assert not findings(seen)


def test_service_parameters_of_a_call() -> None:
    """They come before the fields of the handshake; a trace is that of one call."""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    script = Ws(A2A_Version="1.0", A2A_Extensions="https://e.example/x", traceparent=trace)
    own = trace.replace("b7ad", "b7ae")
    fields = {"a2a-version": "1.1", "traceparent": own, "x-number": 3}
    script.call("GetTask", {"id": "t-1"}, 1, serviceParams=fields).result(task("WORKING"), 1)
    script.call("GetTask", {"id": "t-1"}, 2, serviceParams=[1]).result(task("WORKING"), 2)
    first, second = calls(look(script.close()))
    assert (first.version_header, first.extensions) == ("1.1", "https://e.example/x")
    assert (first.traceparent, second.traceparent) == (own, "")
    assert second.version_header == "1.0"
    names = [name for name, _ in first.request_headers]
    assert names[:2] == [b"a2a-version", b"traceparent"]
    assert b"x-number" not in names


@pytest.mark.parametrize(
    ("states", "how"),
    [
        ([], "agent gone"),
        (["WORKING"], "agent gone"),
        (["WORKING", "INPUT_REQUIRED"], "complete"),
        (["COMPLETED"], "complete"),
        (["COMPLETED", "WORKING"], "agent gone"),
    ],
)
def test_the_agent_leaves_without_the_end_of_a_stream(states: list[str], how: str) -> None:
    """The stream is whole if its task has come to rest."""
    script = Ws().call("SendStreamingMessage", SEND).result({"task": task("SUBMITTED")})
    for each in states:
        script.result(status(each))
    assert hows(look(script.end("eof", DOWN).end("eof", UP))) == [how]


@pytest.mark.parametrize(
    ("ends", "how", "note"),
    [
        ([(UP, closing(1000))], "client gone", "close 1000"),
        ([(DOWN, closing(1011, "no"))], "agent gone", "close 1011 no"),
        ([(DOWN, b""), (UP, b"")], "agent gone", "close"),
        ([(UP, closing(1001)), (DOWN, closing(1000))], "client gone", "close 1001"),
    ],
)
def test_a_close_frame_ends_the_open_calls(
    ends: list[tuple[Any, bytes]], how: str, note: str
) -> None:
    """The peer that closes first ends them; the handshake is complete."""
    script = Ws().call("GetTask", {"id": "t-1"})
    for way, payload in ends:
        script.steps.append(("data", way, (frame if way is DOWN else up)(CLOSE, payload)))
    seen = look(script.end("eof", DOWN).end("eof", UP))
    assert hows(seen) == [how]
    assert kinds(seen, 2)[-1] == (FrameKind.CUT, note)
    assert seen.exchanges[1].how == "complete"


@pytest.mark.parametrize(
    ("what", "way", "how"),
    [("eof", UP, "client gone"), ("reset", DOWN, "agent gone"), ("eof", DOWN, "agent gone")],
)
def test_a_peer_leaves_without_closing(what: str, way: Any, how: str) -> None:
    """All calls and the handshake break off."""
    seen = look(Ws().call("GetTask", {"id": "t-1"}).end(what, way))
    assert [each.how for each in seen.exchanges.values()] == [how, how]


@pytest.mark.parametrize(
    ("script", "how", "note"),
    [
        (Ws().end("eof", DOWN), "agent gone", "eof"),
        (Ws().agent(frame(CLOSE)).end("eof", DOWN), "agent gone", "close"),
        (Ws().agent(frame(CLOSE)).client(up(CLOSE)), "agent gone", "close"),
        (Ws().client(up(CLOSE)).agent(frame(CLOSE)), "client gone", "close"),
    ],
)  # fmt: skip
def test_calls_after_the_end_of_the_socket(script: Ws, how: str, note: str) -> None:
    """They cannot be answered, so they end at once."""
    script.call("GetTask", {"id": "t-1"}).call("SendStreamingMessage", SEND, 2)
    seen = look(script.end("eof", UP))
    assert hows(seen) == [how, how]
    assert [outcome_of(each) for each in calls(seen)] == ["cut", "cut"]
    assert kinds(seen, 2) == kinds(seen, 3) == [(FrameKind.REQUEST, ""), (FrameKind.CUT, note)]


@pytest.mark.parametrize("unread", [frame(TEXT, b"\xff"), frame(TEXT, b"x", key=KEY)])
@pytest.mark.parametrize("is_closed", [True, False])
def test_calls_whose_answers_cannot_be_read(unread: bytes, *, is_closed: bool) -> None:
    """No peer has ended them: their answers are in bytes that cannot be decoded."""
    script = Ws().call("GetTask", {"id": "t-1"}).agent(unread).result(task("WORKING"))
    script.call("SendStreamingMessage", SEND, 2).result({"task": task("COMPLETED")}, 2)
    seen = look(script.close() if is_closed else script.end("eof", UP).end("eof", DOWN))
    assert hows(seen) == ["connection lost", "connection lost"]
    assert [each.split()[0] for each in findings(seen)] == ["UNDECODABLE"]


def test_an_answer_after_the_half_close_of_its_client() -> None:
    """The call is over, and its id stands for it alone."""
    script = Ws().call("GetTask", {"id": "t-1"}).end("eof", UP).result(task("WORKING"))
    seen = look(script.end("eof", DOWN))
    assert hows(seen) == ["client gone"]
    assert kinds(seen, 1)[-1] == (FrameKind.OTHER, "after its call broke off")


def test_a_client_cancels_a_stream() -> None:
    """Later messages of the stream belong to no call; the socket and other calls continue."""
    script = Ws().call("SendStreamingMessage", SEND).result({"task": task("WORKING")})
    script.cancel().result(status("WORKING")).stream_end()
    script.cancel("other").call("GetTask", {"id": "t-1"}, 7).cancel(7).result(task("WORKING"), 7)
    seen = look(script.close())
    assert hows(seen) == ["client cancel", "complete"]
    assert kinds(seen, 2)[-1] == (FrameKind.CUT, "cancelStream")
    assert kinds(seen, 1)[1:] == [
        (FrameKind.OTHER, "after cancelStream"),
        (FrameKind.OTHER, "after cancelStream"),
        (FrameKind.OTHER, "cancelStream without an open stream"),
        (FrameKind.OTHER, "cancelStream without an open stream"),
    ]
    assert not findings(seen)


def test_errors_end_calls() -> None:
    """Of a stream too; the id may be null if one call is open."""
    script = Ws().call("SendStreamingMessage", SEND, 1)
    error = {"code": -32001, "message": "no such task"}
    script.answer({"jsonrpc": "2.0", "id": 1, "error": error}).stream_end(1)
    script.call("GetTask", {"id": "t-1"}, 2).answer({"jsonrpc": "2.0", "id": None, "error": error})
    seen = look(script.close())
    assert [(each.how, each.error_code) for each in calls(seen)] == [("complete", -32001)] * 2
    assert kinds(seen, 1)[1:] == [(FrameKind.OTHER, "after the end of the stream")]


def test_events_in_a_member_of_their_own() -> None:
    """The first draft of the binding has `event` in place of `result`, and no `jsonrpc`."""
    script = Ws().say({"id": "r-1", "method": "SendStreamingMessage", "params": SEND})
    for event in ({"task": task("WORKING")}, status("COMPLETED"), {"what": 1}):
        script.answer({"id": "r-1", "event": event})
    script.answer({"id": "r-1", "streamEnd": True}).answer(
        {"id": "r-1", "event": status("WORKING")}
    )
    script.say({"id": "r-2", "method": "GetTask", "params": {"id": "x"}})
    script.answer({"id": "r-2", "error": {"type": "TaskNotFoundError", "message": "no x"}})
    seen = look(script.close())
    stream, get = calls(seen)
    assert (stream.states, stream.how) == (("working", "completed"), "complete")
    found = [each for each in frames(seen, stream.id) if each.kind is FrameKind.EVENT]
    assert [(each.event, each.note, each.rpc_id) for each in found] == [
        (EventKind.TASK, "in `event`", '"r-1"'),
        (EventKind.STATUS, "in `event`", '"r-1"'),
        (EventKind.NONE, "in `event`", '"r-1"'),
    ]
    assert json.loads(found[0].payload) == {"task": task("WORKING")}
    assert "no x" in get.error
    assert kinds(seen, 1)[1:] == [(FrameKind.OTHER, "after the end of the stream")]


def test_a_draft_is_no_fault() -> None:
    """Neither the members of the first draft nor its errors without a code."""
    script = Ws().say({"id": "r-1", "method": "SendStreamingMessage", "params": SEND})
    script.answer({"id": "r-1", "event": {"task": task("WORKING")}})
    script.answer({"id": "r-1", "event": status("COMPLETED")})
    script.answer({"id": "r-1", "streamEnd": True})
    for number, (method, name) in enumerate(
        [
            ("GetTask", "TaskNotFoundError"),
            ("CancelTask", "TaskNotCancelableError"),
            ("CreateTaskPushNotificationConfig", "PushNotificationNotSupportedError"),
            ("SubscribeToTask", "UnsupportedOperationError"),
            ("SendMessage", "VersionNotSupportedError"),
        ]
    ):
        params = SEND if method == "SendMessage" else {"id": "t-1"}
        if "Push" in method:
            params = {"taskId": "t-1", "url": "https://client.example/hook"}
        script.say({"id": f"e-{number}", "method": method, "params": params})
        script.answer({"id": f"e-{number}", "error": {"type": name, "message": "no"}})
    assert not findings(look(script.close()))


def test_rules_judge_calls() -> None:
    """With the path of the member in the message, or in the event of the first draft."""
    script = Ws().call("SendStreamingMessage", SEND, 1).result({"task": {"id": "t-1"}}, 1)
    script.stream_end(1).call("SendStreamingMessage", SEND | {}, 2)
    script.answer({"id": 2, "event": {"task": {"id": "t-2"}}}).stream_end(2)
    script.call("SendStreamingMessage", SEND, 3).stream_end(3)
    seen = look(script.close())
    paths = {
        (each.exchange, each.evidence["path"])
        for each in seen.out
        if isinstance(each, Finding) and each.rule.startswith("A2A-SCH")
    }
    assert {(2, "result.task.status"), (3, "task.status")} <= paths
    assert calls(seen)[2].error == "answer without a result of SendStreamingMessage"
    empty = [each for each in seen.out if isinstance(each, Finding) and "STREAM" in each.rule]
    assert [(each.rule, each.exchange) for each in empty] == [("A2A-STREAM-009", 4)]


def test_messages_that_belong_to_no_call() -> None:
    """They are frames of the handshake, and no rule judges them."""
    script = Ws().answer({"jsonrpc": "2.0", "method": "ReauthenticationRequired", "params": {}})
    script.answer({"jsonrpc": "2.0", "id": 9, "result": {}}).say([1]).say(b"{x").say(b"\0", BINARY)
    script.client(up(PING)).agent(frame(PING))
    seen = look(script.close())
    assert kinds(seen, 1)[1:] == [
        (FrameKind.OTHER, "from the agent"),
        (FrameKind.OTHER, "unknown id"),
        (FrameKind.OTHER, "no JSON-RPC message"),
        (FrameKind.UNDECODABLE, "not JSON"),
        (FrameKind.OTHER, ""),
    ]
    assert [each.note for each in frames(seen, 0)] == ["upgrade", "ping", "ping", "close", "close"]
    assert not findings(seen)


@pytest.mark.parametrize("protocol", ["", "graphql-ws"])
def test_other_subprotocols(protocol: str) -> None:
    """Text, JSON and bytes as such, and a complete capture."""
    script = Ws(protocol).call("GetTask", {"id": "t-1"}).answer(b"plain").answer(b"\xff\0", BINARY)
    seen = look(script.close())
    assert [(each.kind, each.direction, each.schema) for each in frames(seen, 1)[1:]] == [
        (FrameKind.OTHER, UP, "json"),
        (FrameKind.OTHER, DOWN, "text"),
        (FrameKind.OTHER, DOWN, "bytes"),
    ]
    assert [each.how for each in seen.exchanges.values()] == ["complete"]
    assert gaps(script) == COMPLETE


@pytest.mark.parametrize("path", ["/a2a/ws", "/lf.a2a.v1.A2AService/SubscribeToTask"])
def test_a_handshake_with_the_content_type_of_grpc(path: str) -> None:
    """It is a handshake all the same."""
    script = Ws(path=path, content_type="application/grpc").call("GetTask", {"id": "t-1"})
    seen = look(script.result(task("WORKING")).say(b"x", BINARY).close())
    assert hows(seen) == ["complete"]
    assert not findings(seen)
    assert kinds(seen, 1)[-1] == (FrameKind.OTHER, "")
    assert (seen.exchanges[1].how, seen.exchanges[1].error) == ("complete", "")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/tasks/t-9:subscribe",
        "/tenant/tasks/t-9",
        "/message:send",
        "/.well-known/agent-card.json",
    ],
)
@pytest.mark.parametrize("protocol", ["a2a.v1", ""])
def test_a_handshake_on_the_path_of_a_call(path: str, protocol: str) -> None:
    """It is none, and no rule judges it as one."""
    seen = look(Ws(protocol, path=path).answer({"hello": 1}).close())
    handshake = seen.exchanges[1]
    assert (handshake.binding, handshake.operation, handshake.task_id) == (Binding.OTHER, "", "")
    assert (handshake.dialect, handshake.how) == (Dialect.UNKNOWN, "complete")
    assert not findings(seen)
    assert not seen.tasks


def test_messages_without_a_handshake() -> None:
    """They are frames of the connection."""
    facts = ConnectionFacts("127.0.0.1:1", "127.0.0.1:2", "http://agent")
    conversation = open_conversation(1, facts, SessionContext())
    upgrade: dict[str, object] = {"protocol": "websocket", "stream": 1}
    out: list[Frame | Finding] = []
    conversation.feed(
        [
            Control(DOWN, 1, 0, 9, "upgrade", upgrade),
            Framed(DOWN, 2, 2, 9, 12, b"x", size=1),
            Framed(UP, 3, 3, 0, 7, b"\0", broken="broke off", size=1, is_binary=True),
        ],
        out,
    )
    found = [(each.schema, each.payload, each.note) for each in out[1:] if isinstance(each, Frame)]
    assert found == [("text", b"x", ""), ("bytes", b"\0", "broke off")]


def test_a_limit_of_the_recorder_is_no_fault() -> None:
    """A bomb is a gap of the capture, without a finding."""
    script = Ws(extensions=DEFLATE).answer(bytes(20 << 20), BINARY)
    seen = observe(scripted(script.close()))
    assert not findings(seen)
    assert [each[0] for each in kinds(seen, 1)[1:]] == [FrameKind.UNDECODABLE]
    assert "were not decoded: expected a message within the recorder's limits" in gaps(script)


@pytest.mark.parametrize("protocol", ["a2a.v1", ""])
@pytest.mark.parametrize(("opcode", "schema"), [(TEXT, "text"), (BINARY, "bytes")])
def test_a_message_that_breaks_off(protocol: str, opcode: int, schema: str) -> None:
    """It is stored, in the exchange of the handshake, and no rule judges it."""
    script = Ws(protocol).agent(frame(opcode, b'{"jsonrpc":"2.0","id":1,"res', last=False))
    seen = look(script.end("reset", DOWN))
    (found,) = frames(seen, 1)[1:-1]
    assert (found.kind, found.note, found.schema) == (FrameKind.UNDECODABLE, "broke off", schema)
    assert found.payload == b'{"jsonrpc":"2.0","id":1,"res'
    assert not findings(seen)
    assert gaps(script) == COMPLETE


def test_a_frame_that_breaks_off() -> None:
    """The capture names it, and no peer is blamed."""
    script = Ws().agent(frame(TEXT, b"x")[:1]).end("eof", DOWN)
    assert not findings(look(script))
    expected = "1 bytes to the client from byte {} were not decoded: expected the rest of a frame"
    assert expected.format(len(agreed("a2a.v1"))) in gaps(script)
    late = Ws().end("eof", DOWN).client(up(TEXT, b"late", last=False)).end("eof", UP)
    assert frames(look(late), 0)[-1].note == "broke off"


def test_bytes_that_are_not_a_frame() -> None:
    """One finding, which names the peer; the other direction is decoded, the open call is
    lost."""
    script = Ws().call("GetTask", {"id": "t-1"}).client(frame(TEXT, b"bare") + b"more")
    script.agent(frame(PING)).end("eof", DOWN)
    chunks = scripted(script)
    seen = look(script)
    (finding,) = [each for each in seen.out if of_decoders(each)]
    assert isinstance(finding, Finding)
    assert finding.summary == "expected a masked frame, got a frame without mask"
    assert (finding.evidence["actor"], finding.exchange) == ("client", 1)
    assert hows(seen) == ["connection lost"]
    observer = fresh()
    for chunk in chunks:
        observer.feed(chunk, [])
    (gap,) = observer.gaps.named
    assert (gap.size, gap.why) == (10, f"were not decoded: {finding.summary}")


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.one_of(
                st.binary(max_size=40),
                st.sampled_from(
                    [
                        {"id": 1, "method": "SendStreamingMessage", "params": {}},
                        {"id": 1, "cancelStream": True},
                        {"id": 1, "streamEnd": True},
                        {"id": 1, "event": {"task": {}}, "streamEnd": True},
                        {"id": 1, "event": 3},
                        {"id": 1, "result": None, "error": None},
                        {"id": None, "error": []},
                        {"id": 1, "serviceParams": {"a": "\u20ac", "\ud800": "x"}, "method": "x"},
                        {"id": {}, "method": 3},
                        [[[]]],
                    ]
                ),
            ),
        ),
        max_size=8,
    ),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_no_bytes_fail(steps: list[tuple[bool, Any]], is_frame: bool) -> None:
    """Whatever peers send is a frame or a finding, never a failure of the proxy."""
    script = Ws()
    for from_client, value in steps:
        if isinstance(value, bytes) and not is_frame:
            (script.client if from_client else script.agent)(value)
        else:
            (script.say if from_client else script.answer)(value)
    seen = observe(scripted(script.close()))
    told = [each for each in findings(seen) if each.startswith(("RECORDER", "A2A-RULE"))]
    assert not told
    assert not any("cannot read this stream" in each for each in findings(seen))
    assert len(calls(seen)) <= sum(from_client for from_client, _ in steps)


def test_messages_after_the_end_are_kept() -> None:
    """A client that writes on after its agent has left."""
    script = Ws().end("eof", DOWN).call("GetTask", {"id": "t-1"}).say(b"x", BINARY)
    seen = look(script.end("eof", UP))
    assert frames(seen, 0)[-1].note == "after the end of the WebSocket"
