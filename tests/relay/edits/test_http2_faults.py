"""Faults on gRPC calls of one HTTP/2 connection, between two real HTTP/2 peers."""

from __future__ import annotations

import gzip
import random
from typing import Any

import h2.events as ev
import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from a2a_proto import message_class
from a2a_proxy.faults.live import parse_live_fault
from a2a_proxy.faults.plan import FaultPlan
from a2a_proxy.relay.connection_editing import encode_edit_record, note_for_edit
from a2a_proxy.relay.edits.edit import EditPlan
from a2a_proxy.relay.edits.fault_editor import FaultEditor
from a2a_proxy.relay.edits.http2 import Http2Editor
from a2a_proxy.relay.edits.http2_faults import RESET_DELAY, Http2Faults
from support_http2 import UP, frame
from support_http2_pair import DOWN, RESPONSE, TRAILERS, Cut, Pair, message, request, single, whole

PATH = b"/lf.a2a.v1.A2AService/SendStreamingMessage"
RESPONSE_CLASS: Any = message_class("1.0", "lf.a2a.v1.StreamResponse")
SUBMITTED, WORKING, COMPLETED = 1, 2, 3


def status(state: int, generation: int = 0, text: str = "") -> bytes:
    event = RESPONSE_CLASS()
    event.status_update.task_id = "t" + text
    event.status_update.status.state = state
    event.status_update.generation = generation
    return message(event.SerializeToString())


def artifact(text: str = "text") -> bytes:
    event = RESPONSE_CLASS()
    event.artifact_update.task_id = "t"
    event.artifact_update.artifact.artifact_id = text
    return message(event.SerializeToString())


EVENTS = [
    status(SUBMITTED, 1),
    status(WORKING, 2),
    artifact(),
    status(WORKING, 4),
    status(COMPLETED, 5),
]


class Faulted(Pair):
    """Two peers with faults between them. The client grants what it gets, and `owed` may differ
    only in between."""

    def __init__(self, *faults: str, cut: Cut = whole, inner: EditPlan | None = None) -> None:
        self.plan = FaultPlan([parse_live_fault(each) for each in faults])
        self.stage = Http2Faults(self.plan)
        self.facts: list[Any] = []
        self._next = 1
        super().__init__(
            cut=cut, editor=FaultEditor(self.stage, None if inner is None else Http2Editor(inner))
        )

    def take(self, sent: list[Any]) -> None:
        super().take(sent)
        self.facts += self.editor.take_edits()

    def call(self, path: bytes = PATH, *, body: bytes = b"ask") -> int:
        """Start a call and return its stream."""
        stream, self._next = self._next, self._next + 2
        self.client.send_headers(stream, request(path))
        self.client.send_data(stream, message(body), end_stream=True)
        self.move()
        return stream

    def stream(self, number: int, events: list[bytes], *, last: bool = True) -> None:
        """Send the agent's response, a frame for each event."""
        self.agent.send_headers(number, RESPONSE)
        for event in events:
            self.send(number, event)
            self.move()
        if last:
            self.agent.send_headers(number, TRAILERS, end_stream=True)
        self.move()

    def ended(self, number: int) -> str:
        """Return how the client saw the end of a stream."""
        for event in self.client_events:
            if isinstance(event, ev.StreamReset) and event.stream_id == number and event.error_code:
                return ErrorCodes(event.error_code).name
            if isinstance(event, ev.StreamEnded) and event.stream_id == number:
                return "ended"
        return "open"

    def check_windows(self) -> None:
        """Check that both peers have the same window for the connection."""
        client, agent = self.windows()
        assert client == agent


def faulted(*faults: str, cut: Cut = whole, events: list[bytes] = EVENTS) -> tuple[Faulted, int]:
    pair = Faulted(*faults, cut=cut)
    number = pair.call()
    pair.stream(number, events)
    return pair, number


@pytest.mark.parametrize("cut", [whole, single])
@pytest.mark.parametrize(
    ("fault", "sent"),
    [
        ("drop status 2 of SendStreamingMessage call 1", [0, 2, 3, 4]),
        ("drop last of *", [0, 1, 2, 3]),
        ("dup completed of *", [0, 1, 2, 3, 4, 4]),
        ("swap 2 3 of *", [0, 2, 1, 3, 4]),
        ("swap artifact working 2 of *", [0, 1, 3, 2, 4]),
        ("slice 7 of *", [0, 1, 2, 3, 4]),
        ("drop 9 of *", [0, 1, 2, 3, 4]),
    ],
)
def test_messages_are_lost_repeated_and_moved(fault: str, sent: list[int], cut: Cut) -> None:
    pair, number = faulted(fault, cut=cut)
    assert pair.got(number) == b"".join(EVENTS[each] for each in sent)
    assert pair.ended(number) == "ended"
    assert [each.fault.text for each in pair.plan.missed] == ([] if "9" not in fault else [fault])
    pair.check_windows()


def test_a_mark_is_in_the_bytes_of_its_message() -> None:
    pair, _ = faulted("drop 2 of *")
    (mark,) = [each for each in pair.facts if each.kind == "fault"]
    begin = bytes(pair.given[DOWN]).index(EVENTS[1])
    assert begin <= mark.offset < begin + len(EVENTS[1])


def test_a_stream_is_sliced_into_frames() -> None:
    pair, number = faulted("slice 7 of *")
    frames = [
        each
        for each in pair.client_events
        if isinstance(each, ev.DataReceived) and each.stream_id == number
    ]
    assert max(len(frame.data) for frame in frames) == 7


@pytest.mark.parametrize("encoding", [b"identity", b"gzip"])
def test_a_generation_changes_in_one_message(encoding: bytes) -> None:
    pair = Faulted("gen+2 at 1 of *")
    number = pair.call()
    pair.agent.send_headers(number, [*RESPONSE, (b"grpc-encoding", encoding)])
    plain = status(WORKING, 2)
    sent = plain if encoding == b"identity" else message(gzip.compress(plain[5:], mtime=0), 1)
    pair.send(number, sent)
    pair.agent.send_headers(number, TRAILERS, end_stream=True)
    pair.move()
    assert pair.got(number) == status(WORKING, 4)
    pair.check_windows()


def test_a_cut_resets_the_stream_and_no_other() -> None:
    pair = Faulted("cut 2 of * call 1 @ 50%")
    first, second = pair.call(), pair.call()
    pair.agent.send_headers(first, RESPONSE)
    pair.agent.send_headers(second, RESPONSE)
    pair.move()
    for event in EVENTS[:2]:
        pair.send(first, event)
    pair.send(first, EVENTS[2])  # on its way when the reset comes
    pair.move()
    assert pair.ended(first) == "open"
    pair.tick(RESET_DELAY)
    pair.move()
    half = round(len(EVENTS[1]) / 2)
    assert pair.got(first) == EVENTS[0] + EVENTS[1][:half]
    assert pair.ended(first) == "INTERNAL_ERROR"
    assert any(
        isinstance(each, ev.StreamReset) and each.stream_id == first for each in pair.agent_events
    )
    pair.send(second, EVENTS[0])
    pair.agent.send_headers(second, TRAILERS, end_stream=True)
    pair.move()
    assert pair.got(second) == EVENTS[0]
    (end,) = [each for each in pair.facts if each.kind == "fault-end"]
    assert end.detail == {"note": "cut by --fault: cut 2 of * call 1 @ 50%", "stream": first}
    pair.check_windows()


def test_one_stream_stalls_and_others_do_not() -> None:
    pair = Faulted("stall 5s before 2 of * call 1")
    first, second = pair.call(), pair.call()
    pair.stream(first, EVENTS)
    pair.stream(second, EVENTS)
    assert pair.got(first) == EVENTS[0]
    assert pair.got(second) == b"".join(EVENTS)
    assert pair.editor.delays == (False, False)
    pair.tick(4.9)
    assert pair.ended(first) == "open"
    pair.tick(0.1)
    pair.move()
    assert pair.got(first) == b"".join(EVENTS)
    assert pair.ended(first) == "ended"
    assert pair.editor.deadline is None
    pair.check_windows()


def test_every_message_is_slow() -> None:
    pair, number = faulted("slow 200ms every *")
    for count in range(len(EVENTS) + 1):
        assert pair.got(number) == b"".join(EVENTS[:count])
        pair.tick(0.2)
    assert pair.ended(number) == "ended"


def test_pings_after_late_messages_do_not_reach_the_agent() -> None:
    """Clients of gRPC send one for each message, and servers that sent no message end the
    connection after three."""
    pair, number = faulted("slow 200ms every SendStreamingMessage")

    def pings(events: list[Any], kind: type[Any]) -> list[bytes]:
        return [each.ping_data for each in events if isinstance(each, kind)]

    for count in range(4):
        pair.tick(0.2)
        pair.client.ping(b"late %03d" % count)
        pair.move()
    assert pings(pair.agent_events, ev.PingReceived) == []
    assert pings(pair.client_events, ev.PingAckReceived) == [
        b"late 000",
        b"late 001",
        b"late 002",
        b"late 003",
    ]
    pair.client.ping(b"no late1")
    pair.move()
    pair.tick(0.2)
    other = pair.call(b"/lf.a2a.v1.A2AService/GetTask")
    pair.stream(other, [status(WORKING)])
    pair.client.ping(b"no late2")
    pair.move()
    assert pings(pair.agent_events, ev.PingReceived) == [b"no late1", b"no late2"]
    assert pair.ended(number) == "ended"


def test_bytes_of_others_do_not_hold_back_what_is_due() -> None:
    """A frame that arrives when a message is due, before the timer has run."""
    pair, number = faulted("slow 200ms every *")
    for count in range(1, len(EVENTS) + 1):
        pair.now += 0.2
        pair.client.ping(b"%08d" % count)
        pair.move()
        assert pair.got(number) == b"".join(EVENTS[:count])
    assert pair.ended(number) == "ended"


def test_what_waits_is_sent_before_the_end_of_the_connection() -> None:
    pair, number = faulted("stall 5s before 2 of *")
    pair.take(pair.editor.feed_eof(DOWN, pair.now))
    assert pair.got(number) == b"".join(EVENTS)


def test_a_call_fails_without_reaching_the_agent() -> None:
    pair = Faulted("fail UNAVAILABLE at SendStreamingMessage call 2", "fail 503 at GetTask")
    streams = [pair.call() for _ in range(3)]
    last = pair.call(b"/lf.a2a.v1.A2AService/GetTask")
    seen = [each.stream_id for each in pair.agent_events if isinstance(each, ev.RequestReceived)]
    assert seen == [streams[0], streams[2]]
    answers = {
        each.stream_id: dict(each.headers)
        for each in pair.client_events
        if isinstance(each, ev.ResponseReceived)
    }
    assert answers[streams[1]][b"grpc-status"] == b"14"
    assert b"--fault fail UNAVAILABLE" in answers[streams[1]][b"grpc-message"]
    assert answers[last][b":status"] == b"503"
    for number in (streams[0], streams[2]):
        pair.stream(number, EVENTS)
        assert pair.got(number) == b"".join(EVENTS)
    assert [each.kind for each in pair.facts] == ["fault", "answer"] * 2
    pair.check_windows()


def test_the_body_of_a_failing_request_is_given_back() -> None:
    pair = Faulted("fail UNAVAILABLE at * call 1", "reset at * call 2")
    for stream in (1, 3):
        pair.client.send_headers(stream, request(PATH))
        for _ in range(3):
            pair.client.send_data(stream, b"x" * 10_000)
    before = pair.client.outbound_flow_control_window
    pair.move()
    assert before == 65_535 - 60_000
    assert pair.client.outbound_flow_control_window == 65_535
    assert not [each for each in pair.agent_events if isinstance(each, ev.RequestReceived)]
    pair._next = 5
    number = pair.call()
    pair.stream(number, EVENTS)
    assert pair.got(number) == b"".join(EVENTS)


def test_a_stream_is_reset() -> None:
    pair = Faulted("reset at SendStreamingMessage")
    number = pair.call()
    assert pair.ended(number) == "INTERNAL_ERROR"
    assert not [each for each in pair.agent_events if isinstance(each, ev.RequestReceived)]
    assert [each.kind for each in pair.facts] == ["fault-end"]


@pytest.mark.parametrize("fault", ["drop 2 of *", "dup 2 of *", "swap 2 3 of *", "gen+1 at 1 of *"])
def test_messages_larger_than_the_window_arrive(fault: str) -> None:
    """The agent gets a larger window while a message is held, and less of the client's next
    windows."""
    events = [
        status(WORKING, 1, "a" * 100_000),
        status(WORKING, 2, "b" * 150_000),
        status(COMPLETED, 3, "c" * 70_000),
    ]
    pair = Faulted(fault)
    number = pair.call()
    pair.agent.send_headers(number, RESPONSE)
    rest = b"".join(events)
    while rest:
        room = min(pair.agent.local_flow_control_window(number), 16_384)
        assert room > 0, "the agent has no window"
        pair.agent.send_data(number, rest[:room])
        rest = rest[room:]
        pair.move()
    pair.agent.send_headers(number, TRAILERS, end_stream=True)
    pair.move()
    assert pair.ended(number) == "ended"
    order = {"drop": [0, 2], "dup": [0, 1, 1, 2], "swap": [0, 2, 1]}.get(
        fault[:4].strip(), [0, 1, 2]
    )
    expected = [events[each] for each in order]
    if fault.startswith("gen"):
        expected[0] = status(WORKING, 2, "a" * 100_000)
    assert pair.got(number) == b"".join(expected)
    pair.check_windows()


def test_a_repeated_message_waits_for_the_windows_of_a_slow_client() -> None:
    pair = Faulted("dup 1 of *")
    pair.consume = False
    number = pair.call()
    event = status(WORKING, 1, "a" * 40_000)
    pair.stream(number, [event])
    assert len(pair.got(number)) == 65_535
    other = pair.call(b"/lf.a2a.v1.A2AService/GetTask")
    pair.agent.send_headers(other, RESPONSE)
    pair.agent.send_data(other, b"x" * 1000)
    pair.move()
    assert pair.got(other) == b""
    pair.grant(65_535, number)
    pair.move()
    assert pair.got(number) == event * 2
    assert pair.got(other) == b"x" * 1000
    assert pair.ended(number) == "ended"


def test_a_client_that_gives_up_gets_its_windows_back() -> None:
    pair = Faulted("stall 5s before 1 of *")
    number = pair.call()
    pair.stream(number, [status(WORKING, 1, "a" * 30_000)], last=False)
    pair.client.reset_stream(number)
    pair.move()
    assert pair.editor.deadline is None
    assert pair.stage.streams == {}
    client, agent = pair.windows()
    assert client == agent


@pytest.mark.parametrize("cut", [whole, single])
def test_other_streams_pass_with_all_their_frames(cut: Cut) -> None:
    pair = Faulted("drop 1 of SubscribeToTask", cut=cut)
    pair.client.update_settings(
        {SettingCodes.INITIAL_WINDOW_SIZE: 100_000, SettingCodes.HEADER_TABLE_SIZE: 1000}
    )
    pair.client.ping(b"12345678")
    number = pair.call()
    pair.stream(number, EVENTS)
    assert pair.got(number) == b"".join(EVENTS)
    assert any(isinstance(each, ev.PingAckReceived) for each in pair.client_events)
    pair.agent.close_connection()
    pair.move()
    assert any(isinstance(each, ev.ConnectionTerminated) for each in pair.client_events)
    pair.check_windows()


def test_a_direction_that_cannot_be_decoded_ends_with_a_compression_error() -> None:
    pair = Faulted("drop 1 of *")
    pair.call()
    sent = pair.editor.feed(DOWN, b"\x00\x00\x01\x01\x04\x00\x00\x00\x01\x80", pair.now)
    assert sent[-1].data.endswith(b"\x80")
    assert pair.editor.feed(DOWN, b"more", pair.now) == []


def test_other_edits_are_made_next_to_the_client() -> None:
    pair = Faulted("drop 2 of *", inner=EditPlan(authority=b"remote"))
    number = pair.call()
    pair.stream(number, EVENTS)
    (head,) = [
        dict(each.headers) for each in pair.agent_events if isinstance(each, ev.RequestReceived)
    ]
    assert head[b":authority"] == b"remote"
    assert pair.got(number) == b"".join(EVENTS[:1] + EVENTS[2:])


FAULTS = (
    *("drop 2 of * {}", "dup artifact of * {}", "swap 1 3 of * {}"),
    *("cut 4 of * {} @ 30%", "stall 1s before 2 of * {}"),
)


@pytest.mark.parametrize("seed", range(5))
def test_windows_stay_right_over_many_faulted_streams(seed: int) -> None:
    """80 streams, four at a time, with faults of every kind and messages of any size: none
    stops."""
    chance = random.Random(seed)
    calls = 80
    faults = [FAULTS[call % len(FAULTS)].format(f"call {call}") for call in range(1, calls + 1)]
    pair = Faulted(*faults, "slice 900 of SubscribeToTask")
    for _ in range(calls // 4):
        streams = [pair.call() for _ in range(4)]
        pending = {number: b"".join(_events(chance)) for number in streams}
        for number in streams:
            pair.agent.send_headers(number, RESPONSE)
        rounds = 0
        while pending:
            rounds += 1
            assert rounds < 2000, "the streams have stopped"
            for number in list(pending):
                _send_some(pair, number, pending, chance)
            pair.move()
            pair.tick(0.5)
            pair.move()
        for _ in range(4):
            pair.tick(1.0)
            pair.move()
        assert {pair.ended(number) for number in streams} <= {"ended", "INTERNAL_ERROR"}
    assert [each.fault.text for each in pair.plan.missed] == ["slice 900 of SubscribeToTask"]
    assert pair.stage.streams == {}
    pair.check_windows()


def _events(chance: random.Random) -> list[bytes]:
    sizes = [chance.choice((1, 100, 20_000, 70_000)) for _ in range(4)]
    return [*(artifact("a" * size) for size in sizes), status(COMPLETED)]


def _send_some(
    pair: Faulted, number: int, pending: dict[int, bytes], chance: random.Random
) -> None:
    if any(
        isinstance(each, ev.StreamReset) and each.stream_id == number for each in pair.agent_events
    ):
        del pending[number]
        return
    room = min(pair.agent.local_flow_control_window(number), chance.choice((10, 5_000, 16_384)))
    if room > 0 and pending[number]:
        pair.agent.send_data(number, pending[number][:room])
        pending[number] = pending[number][room:]
    if not pending[number]:
        pair.agent.send_headers(number, TRAILERS, end_stream=True)
        del pending[number]


def test_header_blocks_beyond_the_limit_are_refused_with_one_note() -> None:
    """The proxy decodes header blocks to fault calls. The note names the peer, the limit and the
    way out."""
    pair, _ = faulted("drop 1 of *")
    pair.facts.clear()
    flood = frame(1, 0, 3, b"") + frame(9, 0, 3, b"") * 30_000
    sent = [item for item in pair.editor.feed(UP, flood, 0.0) if item.data]
    assert [len(item.data) for item in sent] == [len(frame(1, 4, 3, b"\x80"))]
    facts = pair.editor.take_edits()
    notes = [note for fact in facts if (note := note_for_edit(fact)) is not None]
    (note,) = notes
    assert "a client" in note.text
    assert "header block of at most 262144 bytes" in note.text
    assert "unchanged" in note.hint
    assert not [fact for fact in facts if encode_edit_record(fact) is not None]
