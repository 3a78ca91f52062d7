"""The wire traps of manual/protocol.md "Wire traps", one test each."""

from __future__ import annotations

import gzip
import json

import pytest

from a2a_proxy.model.values import EventKind, FrameKind
from support_conversation import TO_AGENT, TO_CLIENT, Grpc, Http, frame, play
from support_messages import ask, message, status, task, v1

_STREAM = "/lf.a2a.v1.A2AService/SendStreamingMessage"


def test_raw_binary_metadata() -> None:
    """C-core sends `-bin` metadata as raw bytes; nothing breaks, the value is kept as Latin-1."""
    script = (
        Grpc()
        .open(_STREAM)
        .send(v1("SendMessageRequest", ask()))
        .trailers_only(2, grpc_status_details_bin=b"\0\xff\xfe\x80")
    )
    end = play(script).frames[-1]

    assert ["grpc-status-details-bin", "\0\xff\xfe\x80"] in json.loads(end.payload)


def test_pings_are_not_frames_of_calls() -> None:
    """PINGs all the time do not show up in the calls."""
    ping = frame(6, 0, 0, b"12345678")
    script = (
        Grpc()
        .open(_STREAM)
        .agent(ping * 20)
        .send(v1("SendMessageRequest", ask()))
        .respond()
        .client(ping * 20)
    )
    script.give(v1("StreamResponse", status())).trailers()

    assert [each.kind.name for each in play(script).frames] == ["REQUEST", "END", "EVENT", "END"]


def test_messages_over_16_kb() -> None:
    """A message of a megabyte in one frame and in many is one event."""
    large = v1("StreamResponse", status("WORKING", "x" * 1_000_000))
    script = Grpc().open(_STREAM).send(v1("SendMessageRequest", ask())).respond().give(large)
    data = b"\0" + len(large).to_bytes(4, "big") + large
    script.agent(
        b"".join(frame(0, 0, 1, data[at : at + 16384]) for at in range(0, len(data), 16384))
    )
    events = [each for each in play(script).frames if each.kind is FrameKind.EVENT]

    assert [each.size for each in events] == [len(large)] * 2
    assert events[0].payload == events[1].payload


def test_reset_after_the_trailers_is_no_fault() -> None:
    """RST_STREAM after the end, NO_ERROR or another, leaves the call complete."""
    for code in (0, 8):
        script = (
            Grpc()
            .open(_STREAM)
            .send(v1("SendMessageRequest", ask()), end=False)
            .respond()
            .trailers()
            .rst(TO_CLIENT, code)
        )
        played = play(script)

        assert played.exchange.how == "complete"
        assert FrameKind.CUT not in [each.kind for each in played.frames]


def test_disconnects_of_clients_are_no_faults() -> None:
    """Cancelled on HTTP/2, closed or reset on HTTP/1.1: each is the client's doing, and no
    cancelled task."""
    grpc = (
        Grpc()
        .open(_STREAM)
        .send(v1("SendMessageRequest", ask()))
        .respond()
        .give(v1("StreamResponse", status()))
        .rst(TO_AGENT, 8)
    )
    closed = (
        Http().call("SendStreamingMessage", ask()).stream().rpc_event(status()).end("eof", TO_AGENT)
    )
    broken = (
        Http()
        .call("SendStreamingMessage", ask())
        .stream()
        .rpc_event(status())
        .end("reset", TO_AGENT)
    )
    exchanges = [play(script).exchange for script in (grpc, closed, broken)]

    assert [each.how for each in exchanges] == ["client cancel", "client gone", "client gone"]
    assert [each.states for each in exchanges] == [("working",)] * 3


def test_agent_errors_after_a_disconnect_are_ignored() -> None:
    """The client dies, its connection ends; the agent's library then closes the stream with
    UNAVAILABLE."""
    script = (
        Grpc()
        .open("/lf.a2a.v1.A2AService/SendLiveMessage")
        .send(v1("SendMessageRequest", ask()), end=False)
    )
    script.respond().give(v1("StreamResponse", status())).end("eof", TO_AGENT)
    exchange = play(script.trailers(14, grpc_message="Socket%20closed")).exchange
    assert (exchange.how, exchange.error, exchange.half_close) == ("client gone", "", "")
    assert exchange.grpc_status == 14


def test_two_dialects_on_one_connection() -> None:
    """`lf.a2a.v1` and `a2a.v1` side by side on one connection: dialect is per call."""
    script = (
        Grpc()
        .open("/lf.a2a.v1.A2AService/GetTask")
        .send(v1("GetTaskRequest", {"id": "t1"}))
        .respond()
        .give(v1("Task", task()))
        .trailers()
    )
    script.open("/a2a.v1.A2AService/GetTask", 3).send(
        message("0.3", "GetTaskRequest", {"name": "tasks/t2"}), 3
    )
    script.respond(3).give(message("0.3", "Task", {"id": "t2"}), 3).trailers(stream=3)
    played = play(script)

    assert [(each.dialect, each.task_id) for each in played.exchanges] == [
        ("1.0", "t1"),
        ("0.3", "t2"),
    ]


def test_missing_version_header() -> None:
    """An absent A2A-Version does not hide an obvious 1.0 call (Q-21); compat clients say 0.3 and
    mean it."""
    plain = play(Http().call("SendMessage", ask()).result({"task": task()}))
    compat = play(
        Http().call("tasks/get", {"id": "t"}, a2a_version="0.3").result({"id": "t", "kind": "task"})
    )

    assert (plain.exchange.dialect, compat.exchange.dialect) == ("1.0", "0.3")


def test_head_and_body_apart() -> None:
    """Head and body in separate segments are one request."""
    script = Http().call("GetTask", {"id": "t1"})
    head, _, body = script.steps.pop()[2].partition(b"\r\n\r\n")
    script.client(head + b"\r\n\r\n").client(body).result(task())
    request = play(script).frames[0]

    assert (request.task_id, request.began, request.start) == ("t1", 1001, len(head) + 4)


def test_colons_and_escapes_in_paths() -> None:
    """`:` and `%20` occur in paths; the target stays as it was sent."""
    played = play(
        Http().request("POST /tasks/a%20b:c:subscribe").stream().event({"task": task()}).done()
    )

    assert (played.exchange.task_id, played.exchange.target) == (
        "a b:c",
        "/tasks/a%20b:c:subscribe",
    )


def test_event_over_many_data_lines() -> None:
    """0.3 REST servers pretty-print one event over many `data:` lines."""
    text = json.dumps(
        {
            "statusUpdate": {
                "taskId": "t1",
                "status": {"state": "TASK_STATE_WORKING"},
                "final": False,
            }
        },
        indent=2,
    )
    lines = "".join(f"data: {line}\r\n" for line in text.split("\n")) + "\r\n"
    event = play(
        Http().request("POST /v1/message:stream", ask()).stream().chunk(lines.encode()).done()
    ).frames[1]

    assert (event.event, event.payload.decode(), event.framing.count("\0")) == (
        EventKind.STATUS,
        text,
        text.count("\n") + 1,
    )


def test_line_separators_inside_data() -> None:
    """U+2028 and U+0085 inside data end no line."""
    result = {"jsonrpc": "2.0", "id": 1, "result": status("WORKING", "a\u2028b\u0085c")}
    script = Http().call("SendStreamingMessage", ask()).stream()
    script.chunk(b"data: " + json.dumps(result, ensure_ascii=False).encode() + b"\r\n\r\n").done()

    assert [each.kind.name for each in play(script).frames] == ["REQUEST", "EVENT", "END"]


def test_a_stream_may_fail_by_closing() -> None:
    """0.3 REST answers 200 with SSE headers and closes without the last chunk."""
    played = play(Http().request("POST /v1/message:stream", ask()).stream().end("eof", TO_CLIENT))

    assert (played.exchange.status, played.exchange.how, played.frames[-1].note) == (
        200,
        "agent gone",
        "eof",
    )


def test_compressed_responses() -> None:
    """A reverse proxy compresses: the copy is read, the coding gone."""
    body = gzip.compress(json.dumps({"task": task("COMPLETED")}).encode(), mtime=0)
    played = play(Http().request("POST /message:send", ask()).answer(body, content_encoding="gzip"))

    assert (played.frames[1].event, played.frames[1].state) == (EventKind.TASK, 3)


def test_conditional_card() -> None:
    """A card fetched again is answered 304; the card known before stays known."""
    script = Http().request("GET /.well-known/agent-card.json").answer({"name": "a", "skills": []})
    script.request("GET /.well-known/agent-card.json").agent(b"HTTP/1.1 304 Not Modified\r\n\r\n")
    played = play(script)

    assert [each.status for each in played.exchanges] == [200, 304]
    assert played.shared.get_card("agent:8000").name == "a"


@pytest.mark.parametrize("parts", [1, 3])
def test_a_half_closed_client_gets_the_rest_of_the_response(parts: int) -> None:
    """The response continues, also if the half-close splits a message: nothing is repeated, nothing
    lost."""
    whole = b"".join(
        b"data: " + json.dumps(status(generation=str(n))).encode() + b"\n\n" for n in (1, 2, 3)
    )
    cut = len(whole) * parts // 5
    script = (
        Http()
        .request("POST /message:stream", ask())
        .stream()
        .chunk(whole[:cut])
        .end("eof", TO_AGENT)
    )
    played = play(script.chunk(whole[cut:]).done())
    told = [each.generation for each in played.frames if each.kind is FrameKind.EVENT]
    assert (told, played.exchange.how) == ([1, 2, 3], "client gone")
    assert not [each for each in played.frames if each.kind is FrameKind.UNDECODABLE]


def test_a_response_continues_after_a_half_close() -> None:
    """The same with one in a single piece."""
    data = json.dumps(task()).encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    ).encode()
    script = (
        Http().request("GET /tasks/t1").agent(head + data[:9]).end("eof", TO_AGENT).agent(data[9:])
    )
    played = play(script)
    assert [each.kind for each in played.frames if each.direction] == [FrameKind.RESPONSE]


def test_a_partial_message_after_a_half_close_is_kept() -> None:
    """After its client had closed its own side."""
    script = (
        Http()
        .request("POST /message:stream", ask())
        .stream()
        .event(status())
        .chunk(b'data: {"statusUp')
    )
    played = play(script.end("eof", TO_AGENT).end("eof", TO_CLIENT))
    assert [each.payload for each in played.frames if each.kind is FrameKind.UNDECODABLE] == [
        b'{"statusUp'
    ]
