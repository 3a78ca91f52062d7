"""Calls on a pipe: matched by id, ended by their last response or the exit of the agent."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.values import Binding, Dialect, EventKind, Exchange, Frame, FrameKind
from a2a_proxy.protocol.bindings import rpc_calls
from a2a_proxy.protocol.describe import describe_frame
from support_observer import Seen, bytewise, observe
from support_pipe import COMMAND, DOWN, UP, Stdio, framed

SEND = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hällo"}]}}

LEFT = "client eof, then agent exited with code"


def state(name: str, task: str = "t-1") -> dict[str, Any]:
    """A status update."""
    return {
        "statusUpdate": {
            "taskId": task,
            "contextId": "c-1",
            "status": {"state": f"TASK_STATE_{name}"},
        }
    }


def task(name: str, task: str = "t-1") -> dict[str, Any]:
    """A task, bare."""
    return {"id": task, "contextId": "c-1", "status": {"state": f"TASK_STATE_{name}"}}


def look(session: Stdio) -> Seen:
    """What is seen of it: the same in pieces of any size, and across restarts."""
    chunks = session.session()
    seen = observe(chunks)
    for size in (1, 7):
        again = observe(bytewise(chunks, size), restart_at=range(3, 4000, 90), commit_every=5)
        assert again.out == seen.out
        assert again.exchanges == seen.exchanges
        assert again.connections == seen.connections
    return seen


def frames(seen: Seen, exchange: int | None = None) -> list[Frame]:
    """The frames, of one exchange or of all."""
    found = [each for each in seen.out if isinstance(each, Frame)]
    return [each for each in found if exchange is None or each.exchange == exchange]


def kinds(seen: Seen, exchange: int) -> list[FrameKind]:
    """What an exchange is made of."""
    return [each.kind for each in frames(seen, exchange)]


def hows(seen: Seen) -> list[str]:
    """How the exchanges ended."""
    return [seen.exchanges[number].how for number in sorted(seen.exchanges)]


def loose(seen: Seen) -> list[tuple[FrameKind, str]]:
    """Frames of the connection."""
    return [(each.kind, each.note) for each in frames(seen, 0)]


def test_a_call_has_its_method_dialect_ids_and_times() -> None:
    """Its method, dialect and header fields; binding, ids and times."""
    fields = {"A2A_Version": "1.0", "A2A_Extensions": "https://x/1", "traceparent": "00-1-2-01"}
    session = (
        Stdio().call("SendMessage", SEND, "a", **fields).result({"task": task("COMPLETED")}, "a")
    )
    seen = look(session.eof(UP).exit().closed())
    one = seen.exchanges[1]
    assert (one.binding, one.dialect, one.operation, one.rpc_id) == (
        Binding.STDIO,
        Dialect.V1_0,
        "SendMessage",
        '"a"',
    )
    assert (one.version_header, one.extensions, one.traceparent) == (
        "1.0",
        "https://x/1",
        "00-1-2-01",
    )
    assert one.request_headers[2:] == tuple(
        (name.replace("_", "-").encode(), value.encode()) for name, value in fields.items()
    )
    assert [name for name, _ in one.response_headers] == [b"Content-Length", b"Content-Type"]
    request, answer = frames(seen, 1)
    assert (one.how, one.closed, one.started, one.response_started) == (
        "complete",
        answer.at,
        request.began,
        answer.at,
    )
    assert (one.bytes_to_agent, one.bytes_to_client) == (
        request.end - request.start,
        answer.end - answer.start,
    )
    assert (one.task_id, one.states, one.status, one.streaming) == ("t-1", ("completed",), 0, False)
    assert seen.tasks[COMMAND, "t-1"].exchanges == (1,)
    connection = seen.connections[1]
    assert (connection.kind, connection.how) == (
        "stdio",
        "client eof, then agent exited with code 0",
    )
    assert (connection.client, connection.peer, connection.upstream) == (
        "pid 123",
        "pid 456",
        COMMAND,
    )


def test_interleaved_calls_and_a_stream() -> None:
    """Ids as they stand there: 7 and "7" are two. A stream ends with a terminal state."""
    session = Stdio().call("SendStreamingMessage", SEND, 7).result({"task": task("SUBMITTED")}, 7)
    session.call("GetTask", {"id": "t-1"}, "7").result(state("WORKING"), 7).result(
        task("WORKING"), "7"
    )
    session.error(-32001, "no such task", "7").result(state("COMPLETED"), 7).closed()
    seen = look(session)
    assert kinds(seen, 1) == [FrameKind.REQUEST, FrameKind.EVENT, FrameKind.EVENT, FrameKind.EVENT]
    assert kinds(seen, 2) == [FrameKind.REQUEST, FrameKind.RESPONSE]
    assert seen.exchanges[1].states == ("submitted", "working", "completed")
    assert hows(seen) == ["complete", "complete"]
    assert loose(seen) == [(FrameKind.OTHER, rpc_calls.NOTE_SECOND_RESPONSE)]


@pytest.mark.parametrize(
    "last",
    [
        {
            "result": {
                "message": {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "done"}]}
            }
        },
        {"error": {"code": -32603, "message": "broken"}},
        {"result": state("FAILED")},
        {
            "result": {
                "kind": "status-update",
                "taskId": "t",
                "status": {"state": "working"},
                "final": True,
            }
        },
    ],
)
def test_the_end_of_a_stream_is_inferred(last: dict[str, Any]) -> None:
    """Nothing on the wire says so: it is inferred (manual/protocol.md "Stdio streams"). Later
    frames belong to no exchange."""
    session = Stdio().call("SendStreamingMessage", SEND)
    if "message" not in last.get("result", {}):
        session.result(state("WORKING"))
    session.answer({"jsonrpc": "2.0", "id": 1, **last}).result(state("WORKING")).closed()
    seen = look(session)
    assert hows(seen) == ["complete"]
    assert seen.exchanges[1].closed == frames(seen, 1)[-1].at
    assert loose(seen) == [(FrameKind.OTHER, rpc_calls.NOTE_AFTER_END)]


def test_a_message_in_a_task_stream_does_not_end_it() -> None:
    """It is a fault; what ends a stream of a task is the task's end. Some agents repeat the task
    then."""
    message = {"message": {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "half way"}]}}
    session = (
        Stdio().call("SendStreamingMessage", SEND).result({"task": task("WORKING")}).result(message)
    )
    session.result(state("COMPLETED")).result({"task": task("COMPLETED")}).result(
        {"task": task("WORKING")}
    )
    seen = look(session.closed())
    assert seen.exchanges[1].states == ("working", "completed")
    assert loose(seen) == [
        (FrameKind.OTHER, rpc_calls.NOTE_REPEATED_SNAPSHOT),
        (FrameKind.OTHER, rpc_calls.NOTE_AFTER_END),
    ]


def test_ids_are_reusable_after_the_call_has_ended() -> None:
    """But not before."""
    session = (
        Stdio()
        .call("GetTask", {"id": "t-1"})
        .result(task("WORKING"))
        .call("GetTask", {"id": "t-1"})
    )
    session.call("GetTask", {"id": "t-2"}).result(task("WORKING", "t-2")).result(
        task("WORKING")
    ).closed()
    seen = look(session)
    assert hows(seen) == ["complete", rpc_calls.HOW_ID_REUSED, "complete"]
    assert [frames(seen, number)[0].note for number in (1, 2, 3)] == [
        "",
        "",
        rpc_calls.NOTE_ID_IN_FLIGHT,
    ]
    assert seen.exchanges[3].task_id == "t-2"
    assert loose(seen) == [(FrameKind.OTHER, rpc_calls.NOTE_UNCLEAR_ID)]


def test_an_interrupted_stream_ends_without_fault() -> None:
    """It goes on, or it was over: the end of the pipe is no fault of it."""
    session = (
        Stdio()
        .call("SendStreamingMessage", SEND)
        .result(state("AUTH_REQUIRED"))
        .result(state("WORKING"))
    )
    session.result(state("INPUT_REQUIRED")).call("SendMessage", SEND, 2).result(
        {"task": task("INPUT_REQUIRED")}, 2
    )
    seen = look(session.exit(0).closed())
    assert hows(seen) == ["complete", "complete"]
    assert kinds(seen, 1)[-1] is FrameKind.EVENT
    assert seen.exchanges[1].states == ("auth-required", "working", "input-required")


@pytest.mark.parametrize(
    ("ends", "how", "note", "connection"),
    [
        (lambda s: s.exit(3), "agent exited", "exited with code 3", "agent exited with code 3"),
        (
            lambda s: s.exit(None, "SIGKILL"),
            "agent exited",
            "killed by SIGKILL",
            "agent killed by SIGKILL",
        ),
        (lambda s: s.eof(UP).exit(0), "client gone", "exited with code 0", f"{LEFT} 0"),
        (
            lambda s: s.eof(UP).exit(3),
            "agent exited",
            "exited with code 3",
            "client eof, then agent exited with code 3",
        ),
        (
            lambda s: s.signal().exit(143),
            "client gone",
            "exited with code 143",
            "agent exited with code 143",
        ),
        (
            lambda s: s.hang_up().exit(1),
            "client gone",
            "reset",
            "client reset, then agent exited with code 1",
        ),
        (
            lambda s: s.eof(UP).hang_up().exit(None, "SIGPIPE"),
            "client gone",
            "reset",
            "client eof, then agent killed by SIGPIPE",
        ),
        (lambda s: s.eof(DOWN), "agent gone", "eof", "agent eof"),
        (lambda s: s, "proxy stopped", "proxy stopped", "closed"),
    ],
)
def test_open_calls_are_cut_when_the_agent_exits(
    ends: Any, how: str, note: str, connection: str
) -> None:
    """Who ended it, and in what words."""
    session = Stdio().call("SendStreamingMessage", SEND).result(state("WORKING"))
    seen = look(ends(session).closed())
    assert hows(seen) == [how]
    last = frames(seen, 1)[-1]
    assert (last.kind, last.note) == (FrameKind.CUT, note)
    assert seen.connections[1].how == connection


def test_output_may_follow_the_exit_record() -> None:
    """The process is waited for while its output is still in the pipe."""
    session = Stdio().call("GetTask", {"id": "t-1"})
    session.exit(0)
    eof, ended = session.chunks[-2:]
    session.chunks[-2:] = []
    session.chunks.append(ended)
    session.result(task("WORKING"))
    session.eof(DOWN).closed()
    assert eof.kind == session.chunks[-2].kind
    assert hows(look(session)) == ["complete"]


def test_a_death_of_the_proxy_cuts_open_calls() -> None:
    """Nobody ended these calls."""
    from support_observer import fresh

    observer, out = fresh(), list[Any]()
    for chunk in Stdio().call("GetTask", {"id": "t-1"}).chunks:
        observer.feed(chunk, out)
    observer.interrupt_session(out[-1].at + 1, out)
    (exchange,) = observer.pop_changes().exchanges
    assert exchange.how == "proxy killed"


@pytest.mark.parametrize(
    ("asked", "answered"),
    [(r'"\u00e9/1"', r'"é\/1"'), ("1.0", "1"), ("7", "7.0"), (r'"a"', r'"\u0061"'), ("-3e0", "-3")],
)
def test_ids_are_compared_by_value(asked: str, answered: str) -> None:
    """JSON writers differ in what they escape, and in how they write whole numbers."""
    session = Stdio().write(
        framed(
            f'{{"jsonrpc":"2.0","id":{asked},"method":"GetTask","params":{{"id":"t"}}}}'.encode()
        )
    )
    for _ in range(2):
        session.read(framed(f'{{"jsonrpc":"2.0","id":{answered},"result":{{"id":"t"}}}}'.encode()))
    seen = look(session.closed())
    assert (hows(seen), kinds(seen, 1)) == (["complete"], [FrameKind.REQUEST, FrameKind.RESPONSE])
    assert loose(seen)[0] == (FrameKind.OTHER, rpc_calls.NOTE_SECOND_RESPONSE)
    assert [each.rpc_id for each in frames(seen, 1)] == [asked, answered]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [("1", '"1"'), ("1.5", "1"), ("1e400", "1"), ("1e300", "1"), ("{}", "[]")],
)
def test_unusual_ids_are_distinct(asked: str, answered: str) -> None:
    """Also ids that JSON-RPC does not allow, and numbers out of range."""
    session = Stdio().write(framed(f'{{"jsonrpc":"2.0","id":{asked},"method":"GetTask"}}'.encode()))
    session.read(framed(f'{{"jsonrpc":"2.0","id":{answered},"result":{{"id":"t"}}}}'.encode()))
    assert loose(look(session.closed()))[0] == (FrameKind.OTHER, rpc_calls.NOTE_UNKNOWN_ID)


def test_frames_outside_calls_are_kept() -> None:
    """Unknown ids, the agent's own requests, handshakes, other JSON, stray output, logs,
    signals."""
    session = Stdio().result({}, 9).answer({"jsonrpc": "2.0", "id": 3, "method": "ping"})
    session.answer({"type": "handshake", "sessionId": "s"}).say(
        {"type": "handshakeAck", "accept": True}
    )
    session.say({"jsonrpc": "2.0", "id": 3, "result": {}}).answer([1]).answer({"a": 1})
    session.read(b"Starting\n").read(framed(b"hello")).read(framed(b'{"a":"', 9)).log(
        b"one\ntwo"
    ).signal().exit(2)
    seen = look(session.closed())
    assert loose(seen) == [
        (FrameKind.OTHER, rpc_calls.NOTE_UNKNOWN_ID),
        (FrameKind.OTHER, rpc_calls.NOTE_FROM_AGENT),
        (FrameKind.OTHER, "handshake"),
        (FrameKind.OTHER, "handshakeAck"),
        (FrameKind.OTHER, "answer to the agent"),
        (FrameKind.OTHER, rpc_calls.NOTE_NOT_JSONRPC),
        (FrameKind.OTHER, rpc_calls.NOTE_NOT_JSONRPC),
        (FrameKind.OTHER, "outside any message"),
        (FrameKind.UNDECODABLE, rpc_calls.NOTE_NOT_JSON),
        (FrameKind.LOG, ""),
        (FrameKind.CONTROL, "signal"),
        (FrameKind.UNDECODABLE, "broke off"),
        (FrameKind.CONTROL, "eof"),
        (FrameKind.LOG, ""),
        (FrameKind.CONTROL, "exit"),
    ]
    assert [
        describe_frame(each)
        for each in frames(seen, 0)
        if each.kind in (FrameKind.LOG, FrameKind.CONTROL)
    ] == [
        "log one",
        "signal SIGTERM passed on to the agent",
        "agent closes its side",
        "log two",
        "agent exited with code 2",
    ]
    assert describe_frame(frames(seen, 0)[7]) == 'outside any message: "Starting"'
    assert not seen.exchanges


def test_notifications_of_the_agent() -> None:
    """They belong to no call: a stream has responses with its id alone."""
    session = Stdio().call("SendStreamingMessage", SEND, 1)
    session.result({"task": task("WORKING")}, 1)
    session.answer(
        {"jsonrpc": "2.0", "method": "event/streamResponse", "params": state("COMPLETED")}
    )
    session.result({"task": task("COMPLETED")}, 1)
    seen = look(session.closed())
    assert kinds(seen, 1) == [FrameKind.REQUEST, FrameKind.EVENT, FrameKind.EVENT]
    assert seen.exchanges[1].states == ("working", "completed")
    assert hows(seen) == ["complete"]
    assert loose(seen) == [(FrameKind.OTHER, rpc_calls.NOTE_FROM_AGENT)]


def test_an_error_without_an_id_answers_the_only_call() -> None:
    """The agent could not read the request."""
    seen = look(Stdio().call("GetTask", {"id": "t-1"}).error(-32700, "parse error", None).closed())
    assert hows(seen) == ["complete"]
    assert seen.exchanges[1].error_code == -32700


def test_generations() -> None:
    """As strings and as numbers, a gap and what heals it, a long poll, a precondition that no
    longer holds."""

    def at(number: int | str) -> dict[str, Any]:
        return {**task("WORKING"), "generation": number}

    def update(number: int | str) -> dict[str, Any]:
        return {"statusUpdate": {**state("WORKING")["statusUpdate"], "generation": number}}

    session = Stdio().call("SendStreamingMessage", SEND).result({"task": at("1")}).result(update(2))
    session.result(update("4")).call("GetTask", {"id": "t-1", "currentGeneration": "4"}, 2)
    session.wait(3).result(at(5), 2)
    session.call("SendMessage", {**SEND, "configuration": {"ifGenerationMatch": "4"}}, 3)
    seen = look(session.error(-32010, "it is 5", 3).closed())
    known = seen.tasks[COMMAND, "t-1"]
    assert (known.generation, [(each.first, each.last, each.by) for each in known.missed]) == (
        5,
        [(3, 3, 2)],
    )
    assert {exchange.dialect for exchange in seen.exchanges.values()} == {Dialect.V1_1}
    assert seen.exchanges[3].error == "TASK_GENERATION_MISMATCH -32010: it is 5"
    assert (
        describe_frame(frames(seen, 2)[0]) == "GetTask for task t-1 waits for a generation above 4"
    )


def test_newline_delimited() -> None:
    """The same conversation."""
    session = Stdio(lines=True).call("message/send", {"message": {"kind": "message", "parts": []}})
    seen = look(session.result({"kind": "task", **task("COMPLETED")}).closed())
    one = seen.exchanges[1]
    assert (one.operation, one.dialect, one.request_headers) == ("SendMessage", Dialect.V0_3, ())
    assert {each.framing for each in frames(seen, 1)} == {"\0\n"}


def test_the_extended_card_is_learned() -> None:
    """And push configurations are."""
    card = {"name": "a", "supportedInterfaces": [], "skills": []}
    push = {"taskId": "t-1", "url": "http://localhost:9/hook"}
    session = Stdio().call("GetExtendedAgentCard").result(card)
    seen = look(session.call("CreateTaskPushNotificationConfig", push, 2).result(push, 2).closed())
    assert [frames(seen, number)[1].event for number in (1, 2)] == [
        EventKind.CARD,
        EventKind.PUSH_CONFIG,
    ]


def test_the_number_of_open_calls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held is bounded."""
    monkeypatch.setattr(rpc_calls, "MAX_OPEN_CALLS", 2)
    monkeypatch.setattr(rpc_calls, "MAX_FINISHED_CALLS", 1)
    session = Stdio()
    for number in range(4):
        session.call("GetTask", {"id": "t-1"}, number)
    session.result(task("WORKING"), 0).result(task("WORKING"), 1).result(task("WORKING"), 2)
    seen = observe(session.closed().session())
    assert hows(seen) == [
        rpc_calls.HOW_FORGOTTEN,
        rpc_calls.HOW_FORGOTTEN,
        "complete",
        "proxy stopped",
    ]
    assert loose(seen) == [
        (FrameKind.OTHER, rpc_calls.NOTE_UNKNOWN_ID),
        (FrameKind.OTHER, rpc_calls.NOTE_UNCLEAR_ID),
    ]


def test_exchanges_are_snapshots() -> None:
    """An open one is known to those who ask."""
    seen = observe(Stdio().call("GetTask", {"id": "t-1"}).chunks)
    assert isinstance(seen.exchanges[1], Exchange)
    assert not seen.exchanges[1].closed
