"""Faults on an HTTP/1.1 connection, without sockets."""

from __future__ import annotations

import json
import re
from typing import Any

import h11
import pytest

from a2a_proxy.faults.live import parse_live_fault
from a2a_proxy.faults.plan import FaultPlan
from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.connection_editing import note_for_edit
from a2a_proxy.relay.edits.edit import EditPlan
from a2a_proxy.relay.edits.fault_editor import FaultEditor
from a2a_proxy.relay.edits.http1 import Http1Editor
from a2a_proxy.relay.edits.http1_faults import Http1Faults

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT


def status(state: str, generation: int) -> dict[str, Any]:
    return {
        "statusUpdate": {
            "taskId": "t",
            "status": {"state": f"TASK_STATE_{state}"},
            "generation": str(generation),
        }
    }


EVENTS = [
    {"task": {"id": "t", "status": {"state": "TASK_STATE_SUBMITTED"}, "generation": "1"}},
    status("WORKING", 2),
    {"artifactUpdate": {"taskId": "t", "artifact": {"artifactId": "a"}, "generation": "3"}},
    status("WORKING", 4),
    status("COMPLETED", 5),
]


def rpc(method: str = "SendStreamingMessage", ident: int = 1) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": {}}).encode()
    return b"POST / HTTP/1.1\r\nHost: agent\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def sse(*events: dict[str, Any], ident: int = 1) -> list[bytes]:
    envelopes = [{"jsonrpc": "2.0", "id": ident, "result": event} for event in events]
    return [b"data: " + json.dumps(each).encode() + b"\n\n" for each in envelopes]


def chunked(*parts: bytes, kind: bytes = b"text/event-stream") -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % kind
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def sized(body: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
        status,
        len(body),
    )
    return head + body


class Line:
    """A connection with faults: what each peer gets, and what is recorded."""

    def __init__(self, *faults: str, step: int = 0, inner: EditPlan | None = None) -> None:
        self.plan = FaultPlan([parse_live_fault(each) for each in faults])
        editor = None if inner is None else Http1Editor(inner)
        self.editor = FaultEditor(Http1Faults(self.plan), editor)
        self.got = {UP: b"", DOWN: b""}
        self.facts: list[Any] = []
        self.now = 100.0
        self._step = step

    def send(self, direction: Direction, data: bytes) -> None:
        step = self._step or len(data)
        for at in range(0, len(data), step):
            self._take(self.editor.feed(direction, data[at : at + step], self.now))

    def end(self, direction: Direction) -> None:
        self._take(self.editor.feed_eof(direction, self.now))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self._take(self.editor.tick(self.now))

    def _take(self, outputs: list[Any]) -> None:
        for each in outputs:
            self.got[each.direction] += each.data
        self.facts += self.editor.take_edits()

    def bodies(self, count: int = 1) -> list[bytes]:
        """Return the bodies of the client's responses, as another implementation reads them."""
        client = h11.Connection(h11.CLIENT)
        client.receive_data(self.got[DOWN])
        found = []
        for _ in range(count):
            client.send(
                h11.Request(
                    method="POST", target="/", headers=[("Host", "a"), ("Content-Length", "0")]
                )
            )
            client.send(h11.EndOfMessage())
            body = b""
            while not isinstance(event := client.next_event(), h11.EndOfMessage):
                assert event is not h11.NEED_DATA, "the response is not complete"
                if isinstance(event, h11.Data):
                    body += bytes(event.data)
            found.append(body)
            client.start_next_cycle()
        return found

    def events(self) -> list[dict[str, Any]]:
        """Return the events that the client got."""
        lines = re.findall(rb"^data: (.*)$", self.bodies()[0], re.MULTILINE)
        return [json.loads(line)["result"] for line in lines]

    def marks(self) -> list[tuple[int, str]]:
        return [(each.offset, each.detail["note"]) for each in self.facts if each.kind == "fault"]


def streamed(*faults: str, step: int = 0, response: bytes = b"") -> Line:
    line = Line(*faults, step=step)
    line.send(UP, rpc())
    assert line.got[UP] == rpc()
    line.send(DOWN, response or chunked(b": ping\n\n", *sse(*EVENTS)))
    return line


@pytest.mark.parametrize("step", [0, 1, 7])
def test_request_offers_no_http2(step: int) -> None:
    """Faults follow the connection in HTTP/1, so that the agent must not switch."""
    line = Line("drop 1 of *", step=step)
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEA\r\n"
    line.send(UP, rpc().replace(b"Content-Length", offer + b"Content-Length"))
    assert line.got[UP] == rpc()
    line.send(DOWN, chunked(*sse(*EVENTS)))
    assert line.events() == EVENTS[1:]


@pytest.mark.parametrize("step", [0, 1, 7])
@pytest.mark.parametrize(
    ("fault", "sent"),
    [
        ("drop status 2 of SendStreamingMessage call 1", [0, 1, 2, 4]),
        ("drop 1 of *", [1, 2, 3, 4]),
        ("drop last of *", [0, 1, 2, 3]),
        ("drop artifact of *", [0, 1, 3, 4]),
        ("dup completed of *", [0, 1, 2, 3, 4, 4]),
        ("swap 2 3 of *", [0, 2, 1, 3, 4]),
        ("swap artifact working 2 of *", [0, 1, 3, 2, 4]),
        ("drop 9 of *", [0, 1, 2, 3, 4]),
    ],
)
def test_events_are_lost_repeated_and_moved(fault: str, sent: list[int], step: int) -> None:
    line = streamed(fault, step=step)
    assert line.events() == [EVENTS[number] for number in sent]
    assert b": ping\n\n" in line.bodies()[0]
    assert [each.fault.text for each in line.plan.missed] == ([] if len(line.marks()) else [fault])


def test_a_mark_is_in_the_bytes_of_its_event() -> None:
    response = chunked(*sse(*EVENTS))
    for step in (0, 1):
        ((place, note),) = streamed("drop 2 of *", step=step, response=response).marks()
        begin = response.index(sse(EVENTS[1])[0])
        assert begin <= place < begin + len(sse(EVENTS[1])[0])
        assert note == "dropped by --fault: drop 2 of *"


@pytest.mark.parametrize("step", [0, 1])
def test_an_event_after_a_byte_order_mark_is_the_first(step: int) -> None:
    """The mark belongs to the stream, not to its first event."""
    bom = b"\xef\xbb\xbf"
    first, *others = sse(*EVENTS)
    line = streamed("drop 1 of *", step=step, response=chunked(bom + first, *others))
    assert line.bodies()[0] == bom + b"".join(others)


def test_a_generation_changes_in_one_event() -> None:
    assert streamed("gen+2 at 2 of *").events()[1]["statusUpdate"]["generation"] == "4"
    assert streamed("gen-9 at 1 of *").events()[0]["task"]["generation"] == "0"


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_a_cut_ends_the_connection(framing: str) -> None:
    response = chunked(*sse(*EVENTS))
    if framing == "close":
        response = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(
            sse(*EVENTS)
        )
    line = streamed("cut 2 of * @ 50%", response=response)
    event = sse(EVENTS[1])[0]
    assert line.got[DOWN].endswith(
        event[: round(len(event) / 2)] + (b"\r\n" if framing == "chunked" else b"")
    )
    (end,) = [each for each in line.facts if each.kind == "fault-end"]
    assert end.detail == {
        "note": "cut by --fault: cut 2 of * @ 50%",
        "reset": framing == "close",
        "stream": 1,
    }
    before = line.got[DOWN]
    line.send(DOWN, b"more")
    assert line.got[DOWN] == before


def test_an_event_stalls_and_the_rest_waits_with_it() -> None:
    line = streamed("stall 5s before 3 of *")
    assert line.got[DOWN].count(b"data:") == 2
    assert line.editor.delays[DOWN]
    assert line.editor.deadline == line.now + 5
    line.wait(5)
    assert not line.editor.delays[DOWN]
    assert line.events() == EVENTS


def test_every_event_is_slow() -> None:
    line = streamed("slow 200ms every *")
    for count in range(len(EVENTS) + 1):
        assert line.got[DOWN].count(b"data:") == count
        line.wait(0.2)
    assert line.events() == EVENTS


def test_a_stream_is_sliced() -> None:
    line = streamed("slice 7 of *")
    assert line.events() == EVENTS
    body = line.got[DOWN].partition(b"\r\n\r\n")[2]
    assert all(int(size, 16) <= 7 for size in re.findall(rb"(?:^|\r\n)([0-9a-f]+)\r\n", body))


@pytest.mark.parametrize("step", [0, 1])
def test_a_call_fails_and_the_next_one_does_not(step: int) -> None:
    line = Line("fail 503 at GetTask call 2", step=step)
    for ident in (1, 2, 3):
        line.send(UP, rpc("GetTask", ident))
        if ident != 2:
            line.send(DOWN, sized(b'{"id":%d}' % ident))
    assert line.got[UP] == rpc("GetTask", 1) + rpc("GetTask", 3)
    first, failed, third = line.bodies(3)
    assert (first, third) == (b'{"id":1}', b'{"id":3}')
    assert json.loads(failed)["status"] == 503
    assert "--fault fail 503 at GetTask call 2" in json.loads(failed)["detail"]
    (answer,) = [each for each in line.facts if each.kind == "answer"]
    assert answer.detail["data"] in line.got[DOWN]


def test_pipelined_calls_are_answered_in_order() -> None:
    line = Line("fail 503 at GetTask call 2")
    line.send(UP, rpc("GetTask", 1) + rpc("GetTask", 2) + rpc("GetTask", 3))
    assert line.got[DOWN] == b""
    line.send(DOWN, sized(b"1") + sized(b"3"))
    first, failed, third = line.bodies(3)
    assert (first, third) == (b"1", b"3")
    assert b"503" in failed


def test_a_json_rpc_error_has_the_id_of_its_call() -> None:
    line = Line("fail -32603 at *")
    line.send(UP, rpc("GetTask", 7))
    line.send(UP, rpc("SendStreamingMessage", 8))
    plain, stream = line.bodies(2)
    assert json.loads(plain)["error"]["code"] == -32603
    assert json.loads(plain)["id"] == 7
    assert stream.startswith(b"data: ")
    assert json.loads(stream[6:])["id"] == 8
    assert line.got[UP] == b""


def test_a_gRPC_status_concerns_gRPC_alone() -> None:
    line = Line("fail UNAVAILABLE at *")
    line.send(UP, rpc("GetTask"))
    assert line.got[UP] == rpc("GetTask")


def test_rest_calls_and_cards_fail_by_their_head() -> None:
    line = Line("fail 500 at GetTask", "fail 404 at GetAgentCard")
    line.send(
        UP,
        b"GET /v1/tasks/7 HTTP/1.1\r\nHost: a\r\n\r\n"
        b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: a\r\n\r\n",
    )
    assert line.got[UP] == b""
    assert [json.loads(each)["status"] for each in line.bodies(2)] == [500, 404]


def test_a_delivery_to_a_webhook_fails() -> None:
    body = json.dumps(EVENTS[1]).encode()
    delivery = b"POST /hook HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    line = Line("fail 503 at webhook call 1")
    line.send(UP, delivery + delivery)
    assert line.got[UP] == delivery
    assert line.got[DOWN].startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert (
        b"answered by a2a-proxy, not by the webhook: --fault fail 503 at webhook call 1"
        in line.got[DOWN]
    )


def test_a_connection_is_reset() -> None:
    line = Line("reset at GetTask")
    line.send(UP, rpc("GetTask"))
    assert line.got == {UP: b"", DOWN: b""}
    (end,) = [each for each in line.facts if each.kind == "fault-end"]
    assert end.detail == {"note": "reset by --fault: reset at GetTask", "reset": True, "stream": 1}


def test_a_connection_is_reset_after_the_whole_request() -> None:
    """The recording then has the request, whose operation is known by its head."""
    line = Line("reset at SendMessage")
    request = b"POST /v1/message:send HTTP/1.1\r\nHost: agent\r\nContent-Length: 2\r\n\r\n{}"
    line.send(UP, request[:-1])
    assert line.facts == []
    line.send(UP, request[-1:])
    assert [each.kind for each in line.facts] == ["fault-end"]
    assert line.got == {UP: b"", DOWN: b""}


def test_an_answer_with_a_length_is_cut_stalled_and_changed() -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": EVENTS[0]}).encode()
    line = Line(
        "gen+1 at 1 of GetTask call 1",
        "stall 1s before task of GetTask call 1",
        "cut 1 of GetTask call 2 @ 10%",
    )
    line.send(UP, rpc("GetTask"))
    line.send(DOWN, sized(body))
    assert b'"generation"' not in line.got[DOWN]
    line.wait(1)
    assert json.loads(line.bodies()[0])["result"]["task"]["generation"] == "2"
    line.send(UP, rpc("GetTask"))
    line.send(DOWN, sized(body))
    assert line.facts[-1].detail["stream"] == 2


@pytest.mark.parametrize("length", [b"Content-Length: 2\r\n", b""])
def test_a_response_of_http_1_0_is_forwarded_byte_for_byte(length: bytes) -> None:
    """It cannot have the chunked coding."""
    line = Line("cut 1 of SendMessage @ 50%")
    answer = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n%b\r\n{}" % length
    line.send(UP, rpc("SendMessage"))
    line.send(DOWN, answer)
    line.end(DOWN)
    assert line.got[DOWN] == answer
    assert line.plan.missed


def test_what_no_fault_concerns_is_forwarded_byte_for_byte() -> None:
    conversation = [
        (UP, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (DOWN, sized(b"x", b"404 Not Found")),
        (UP, rpc("tasks/unknown")),
        (DOWN, chunked(b"a", b"b", kind=b"text/plain")),
        (UP, b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}"),
        (DOWN, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
        (UP, rpc("SendMessage")),
        (DOWN, b"HTTP/1.1 200 OK\r\n\r\nuntil the end"),
    ]
    for step in (0, 1):
        line = Line("drop 1 of SendStreamingMessage", step=step)
        for direction, data in conversation:
            line.send(direction, data)
        line.end(DOWN)
        for direction in (UP, DOWN):
            assert line.got[direction] == b"".join(
                data for way, data in conversation if way is direction
            )


@pytest.mark.parametrize("garbage", [b"\x00\x01\r\n\r\nrest", b"HTTP/1.1 abc\r\n\r\nrest"])
def test_bytes_that_cannot_be_followed_pass(garbage: bytes) -> None:
    for step in (0, 1):
        for direction in (UP, DOWN):
            line = Line("drop 1 of *", step=step)
            if direction is DOWN:
                line.send(UP, rpc())
            line.send(direction, garbage)
            line.end(direction)
            assert line.got[direction] == garbage


@pytest.mark.parametrize("step", [0, 1])
def test_a_connection_that_leaves_http_has_no_faults(step: int) -> None:
    """The user reads why a fault does not happen, and the bytes are forwarded."""
    line = Line("drop 1 of *", step=step)
    line.send(UP, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    switch = b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02{}"
    line.send(DOWN, switch)
    assert line.got[DOWN] == switch
    (note,) = filter(None, map(note_for_edit, line.facts))
    assert "leaves HTTP/1.1" in note.text


def test_other_edits_are_made_next_to_the_client() -> None:
    line = Line("fail 503 at GetTask", inner=EditPlan(authority=b"remote"))
    line.send(UP, rpc("GetTask"))
    line.send(UP, rpc("SendMessage"))
    assert line.got[UP] == rpc("SendMessage").replace(b"Host: agent", b"Host: remote")
    assert b"503" in line.got[DOWN]


@pytest.mark.parametrize("end", ["FIN", "damage"])
def test_what_waits_is_sent_when_the_response_breaks_off(end: str) -> None:
    """The first event of a swap, and the begin of the next event."""
    line = Line("swap 2 5 of SendStreamingMessage")
    line.send(UP, rpc())
    parts = [*sse(*EVENTS[:3]), b"data: {"]
    line.send(DOWN, chunked(*parts).removesuffix(b"0\r\n\r\n"))
    assert sse(EVENTS[1])[0] not in line.got[DOWN]
    if end == "FIN":
        line.end(DOWN)
    else:
        line.send(DOWN, b"no chunk\r\n")
    assert [line.got[DOWN].count(part) for part in parts] == [1, 1, 1, 4]
    assert line.got[DOWN].endswith(b"data: {\r\n" + (b"no chunk\r\n" if end == "damage" else b""))


def test_an_incomplete_answer_is_sent_when_the_agent_breaks_off() -> None:
    line = Line("cut 1 of GetTask")
    line.send(UP, rpc("GetTask"))
    line.send(DOWN, sized(b'{"id":1}')[:-2])
    line.end(DOWN)
    assert line.got[DOWN].endswith(b'\r\n\r\n6\r\n{"id":\r\n')
    assert [each.fault.text for each in line.plan.missed] == ["cut 1 of GetTask"]


def test_an_incomplete_head_is_sent_when_the_agent_breaks_off() -> None:
    line = Line("cut 1 of GetTask")
    line.send(UP, rpc("GetTask"))
    line.send(DOWN, b"HTTP/1.1 200 OK\r\nServ")
    line.end(DOWN)
    assert line.got[DOWN] == b"HTTP/1.1 200 OK\r\nServ"


def test_an_answer_that_ends_with_the_connection_is_sent_once() -> None:
    line = Line("stall 1s before 1 of GetTask")
    line.send(UP, rpc("GetTask"))
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
        b'{"jsonrpc":"2.0","id":1,"result":{"id":"t"}}'
    )
    line.send(DOWN, answer)
    line.end(DOWN)
    line.wait(1.0)
    assert line.got[DOWN] == answer
    assert line.plan.missed == ()


def test_bytes_that_are_no_request_leave_the_response_in_progress_whole() -> None:
    """It is sent with the chunked coding to its end; what the agent sends after it stays as it
    is."""
    line = Line("stall 1s before 9 of GetTask")
    line.send(UP, rpc("GetTask"))
    body = b'{"id":1,"result":{"id":"t"}}'
    line.send(DOWN, sized(body)[:-9])
    line.send(UP, b"garbage\r\n\r\n")
    refusal = sized(b"{}", b"400 Bad Request")
    line.send(DOWN, sized(body)[-9:] + refusal)
    assert line.got[UP] == rpc("GetTask") + b"garbage\r\n\r\n"
    assert line.bodies() == [body]
    assert line.got[DOWN].endswith(b"0\r\n\r\n" + refusal)
    assert not line.editor.is_active
