"""Faults beside hostile input: the work is linear in the input and divided into steps, and held
bytes go on."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import msgspec
import pytest

from a2a_proxy.faults.live import parse_live_fault
from a2a_proxy.faults.plan import FaultPlan
from a2a_proxy.http.h2 import FrameScanner
from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.edit import EditPlan, Output
from a2a_proxy.relay.edits.fault_events import MAX_MESSAGE_BYTES
from a2a_proxy.relay.edits.fault_output import HOLD_SECONDS
from a2a_proxy.relay.fault_editing import make_fault_editor
from support_floods import EVENTS, GRPC, REQUEST, START, frame, stream

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT
BUDGET = 1024
STEP_SECONDS = 0.05
"""Processor time that no step needs: 1 to 15 ms are usual."""
PATH = b"/lf.a2a.v1.A2AService/SendStreamingMessage"
WINDOWS = frame(8, 0, 0, b"\x7f\0\0\0") + frame(8, 0, 1, b"\x7f\0\0\0")
CALL = START + frame(1, 5, 1, b"\x83\x86\x04" + bytes((len(PATH),)) + PATH + GRPC[1:]) + WINDOWS
ANSWER = frame(4, 0, 0) + frame(1, 4, 1, GRPC)
TRACED = EditPlan(b"other", None, "proxy:9000", lambda bits: 1)


def message(data: bytes) -> bytes:
    return b"\0" + len(data).to_bytes(4) + data


class Line:
    """A connection with a fault, whose editor has BUDGET units of work for each step."""

    def __init__(self, fault: str, *, http2: bool = False, plan: EditPlan = EditPlan()) -> None:  # noqa: B008 (frozen)
        self.editor = make_fault_editor(http2, plan, FaultPlan([parse_live_fault(fault)]))
        self.got = [bytearray(), bytearray()]
        self.now = 100.0
        self.longest = 0.0
        self.reasons: list[str] = []

    def send(self, direction: Direction, data: bytes, size: int = 65_536) -> None:
        for at in range(0, len(data), size):
            piece, position = data[at : at + size], 0
            while position < len(piece):
                self._take(
                    lambda piece=piece, start=position: self.editor.feed(
                        direction, piece, self.now, start
                    )
                )
                position = self.editor.position
            self.wait(0)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        while (due := self.editor.deadline) is not None and due <= self.now:
            self._take(lambda: self.editor.tick(self.now))

    def _take(self, step: Callable[[], list[Output]]) -> None:
        self.editor.budget = BUDGET
        began = time.process_time()
        outputs = step()
        self.longest = max(self.longest, time.process_time() - began)
        for each in outputs:
            self.got[each.direction] += each.data
        self.reasons += [
            fact.detail["reason"] for fact in self.editor.take_edits() if fact.kind == "untouched"
        ]


class Case(msgspec.Struct):
    fault: str
    client: Callable[[int], bytes]
    agent: Callable[[int], bytes]
    count: int
    size: int = 65_536
    """Bytes of a piece of the input."""


def fixed(data: bytes) -> Callable[[int], bytes]:
    return lambda _: data


def repeated(before: bytes, data: bytes) -> Callable[[int], bytes]:
    return lambda count: before + data * count


SLOW, OTHER = "slow 1ms every SendStreamingMessage", "fail 503 at GetTask"
ASK = fixed(stream(b"/"))
CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n"
CASES = {
    "an event in chunks of one byte": Case(
        SLOW, ASK, repeated(EVENTS + CHUNKS, b"1\r\nx\r\n"), 8_000
    ),
    "an event in pieces": Case(SLOW, ASK, repeated(EVENTS + b"\r\n", b"x" * 1_400), 700, 1_400),
    "CR between events": Case(SLOW, ASK, repeated(EVENTS + b"\r\n", b"\r"), 300_000),
    "small events": Case("drop 2 of *", ASK, repeated(EVENTS + b"\r\n", b"data:1\n\n"), 5_000),
    "events of a swap": Case(
        "swap 1 900000 of *", ASK, repeated(EVENTS + b"\r\n", b"data:1\n\n"), 8_000
    ),
    "slices of one byte": Case(
        "slice 1 of *",
        ASK,
        lambda n: EVENTS + CHUNKS + b"%x\r\n%s\n\n\r\n0\r\n\r\n" % (n + 2, b"x" * n),
        30_000,
    ),
    "lines of one event": Case(
        "gen+1 at 1 of *", ASK, lambda n: EVENTS + b"\r\n" + b"data\n" * n + b"\n", 90_000
    ),
    "1xx answers": Case(
        OTHER,
        fixed(b"GET / HTTP/1.1\r\n\r\n"),
        repeated(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        5_000,
    ),
    "a request in chunks": Case(
        OTHER, repeated(b"POST / HTTP/1.1\r\n" + CHUNKS, b"1\r\nx\r\n"), fixed(b""), 20_000
    ),
    "empty CONTINUATION": Case(
        OTHER, repeated(START + frame(1, 0, 1, REQUEST), frame(9, 0, 1)), fixed(b""), 20_000
    ),
    "CONTINUATION of one byte": Case(
        OTHER, repeated(START + frame(1, 0, 1), frame(9, 0, 1, b"x")), fixed(b""), 20_000
    ),
    "a long frame": Case(
        OTHER, lambda n: START + frame(0, 0, 1, bytes(n)), fixed(b""), 1_000_000, 1_400
    ),
    "a long frame of a call": Case(
        "drop 2 of *",
        fixed(CALL),
        lambda n: ANSWER + frame(0, 0, 1, message(bytes(n))),
        900_000,
        1_400,
    ),
    "empty messages": Case(
        "dup 2 of *", fixed(CALL), lambda n: ANSWER + frame(0, 0, 1, message(b"") * n), 8_000
    ),
    "a message in small frames": Case(
        "drop 2 of *",
        fixed(CALL),
        lambda n: (
            ANSWER + frame(0, 0, 1, message(bytes(100 * n))[:5]) + frame(0, 0, 1, bytes(100)) * n
        ),
        9_000,
    ),
    "slices of a message": Case(
        "slice 1 of *", fixed(CALL), lambda n: ANSWER + frame(0, 0, 1, message(bytes(n))), 20_000
    ),
}


def play(case: Case, count: int, plan: EditPlan) -> tuple[float, Line]:
    client, agent = case.client(count), case.agent(count)
    line = Line(case.fault, http2=client.startswith(START[:24]), plan=plan)
    gc.collect()
    began = time.process_time()
    line.send(UP, client, case.size)
    line.send(DOWN, agent, case.size)
    return time.process_time() - began, line


@pytest.mark.parametrize("plan", [EditPlan(), TRACED], ids=["alone", "with other edits"])
@pytest.mark.parametrize("name", CASES)
def test_the_work_is_linear_and_in_short_steps(name: str, plan: EditPlan) -> None:
    """Four times as much input takes at most ten times as long: 16 times if all is read again for
    each piece."""
    case = CASES[name]
    play(case, 10, plan)  # loads what is needed
    once = min(play(case, case.count, plan)[0] for _ in range(2))
    runs = [play(case, 4 * case.count, plan) for _ in range(2)]
    assert min(seconds for seconds, _ in runs) < 10 * once + 0.05
    assert min(line.longest for _, line in runs) < STEP_SECONDS


@pytest.mark.parametrize("name", CASES)
def test_steps_change_no_byte(name: str) -> None:
    """The bytes of short steps are those of one step, for all bytes that go on."""
    case, bounded = CASES[name], play(CASES[name], 50, TRACED)[1]
    client = case.client(50)
    whole = Line(case.fault, http2=client.startswith(START[:24]), plan=TRACED)
    for direction, data in ((UP, client), (DOWN, case.agent(50))):
        whole.editor.budget = 1 << 62
        for each in whole.editor.feed(direction, data, whole.now):
            whole.got[each.direction] += each.data
    whole.wait(0)
    assert bounded.got == whole.got


def test_a_request_that_is_held_too_long_goes_on() -> None:
    request = stream(b"/")
    line = Line(OTHER)
    line.send(UP, request[:-1])
    assert line.editor.held_bytes == (len(request) - 1, 0)
    line.wait(HOLD_SECONDS - 1)
    assert not line.got[UP]
    line.wait(1)
    assert line.got[UP] == request[:-1]
    assert line.editor.held_bytes == (0, 0)
    assert line.reasons == ["it was not complete after 30 s"]
    line.send(UP, request[-1:])
    assert line.got[UP] == request


@pytest.mark.parametrize(
    ("fault", "body"), [("drop 2 of *", b"data: 1\n\ndata: 2\n"), ("swap 1 2 of *", b"data: 1\n\n")]
)
def test_an_event_that_is_held_too_long_goes_on(fault: str, body: bytes) -> None:
    line = Line(fault)
    line.send(UP, stream(b"/"))
    line.send(DOWN, EVENTS + b"\r\n" + body)
    sent = bytes(line.got[DOWN])
    assert line.editor.held_bytes == (0, len(EVENTS) + 2 + len(body) - len(sent))
    line.wait(HOLD_SECONDS - 1)
    assert line.got[DOWN] == sent
    line.wait(1)
    assert line.got[DOWN] == EVENTS + b"\r\n" + body
    assert line.reasons == ["it was not complete after 30 s"]
    line.send(DOWN, b"\n" + body)
    assert line.got[DOWN] == EVENTS + b"\r\n" + body + b"\n" + body
    line.wait(HOLD_SECONDS)
    assert line.editor.held_bytes == (0, 0)
    assert len(line.reasons) == 1


def test_an_event_that_follows_another_in_time_is_not_late() -> None:
    """The time begins again with each complete event, although there is always one that is not
    complete."""
    line = Line("drop 9 of *")
    line.send(UP, stream(b"/"))
    line.send(DOWN, EVENTS + b"\r\ndata")
    for _ in range(4):
        line.wait(HOLD_SECONDS / 2)
        line.send(DOWN, b": 1\n\ndata")
    assert line.reasons == []
    assert line.got[DOWN].count(b"data: 1\n\n") == 4


def test_a_message_that_is_held_too_long_goes_on() -> None:
    line = Line("drop 2 of *", http2=True)
    line.send(UP, CALL)
    line.send(DOWN, ANSWER + frame(0, 0, 1, message(b"") + message(bytes(9))[:-1]))
    assert line.editor.held_bytes == (0, 13)
    line.wait(HOLD_SECONDS)
    assert line.got[DOWN].endswith(message(bytes(9))[:-1])
    assert line.editor.held_bytes == (0, 0)
    assert line.reasons == ["it was not complete after 30 s"]
    line.send(DOWN, frame(0, 1, 1, b"\0" + message(b"more")))
    assert line.got[DOWN].endswith(frame(0, 0, 1, b"\0" + message(b"more")) + frame(0, 1, 1))


def test_bytes_that_wait_for_their_time_are_held() -> None:
    line = Line("stall 60s before 1 of *")
    line.send(UP, stream(b"/"))
    line.send(DOWN, EVENTS + b"\r\ndata: 1\n\n")
    assert line.editor.held_bytes == (0, 9)
    assert line.editor.delays == (False, True)
    line.wait(HOLD_SECONDS)
    assert line.editor.held_bytes == (0, 9)
    line.wait(HOLD_SECONDS)
    assert line.editor.held_bytes == (0, 0)
    assert line.editor.delays == (False, False)
    assert line.reasons == []


def test_an_event_that_is_too_large_is_not_held() -> None:
    line = Line(SLOW)
    line.send(UP, stream(b"/"))
    line.send(DOWN, EVENTS + b"\r\n" + b"x" * (MAX_MESSAGE_BYTES + 1_000_000))
    assert line.editor.held_bytes == (0, 0)
    assert len(line.got[DOWN]) == len(EVENTS) + 2 + MAX_MESSAGE_BYTES + 1_000_000


def test_a_long_frame_that_is_not_data_ends_the_connection() -> None:
    line = Line(SLOW, http2=True)
    line.send(
        UP, START + frame(4, 0, 0, bytes(FrameScanner().max_payload + 1)) + frame(6, 0, 0, bytes(8))
    )
    assert line.got[UP].startswith(START)
    assert len(line.got[UP]) < 100
