"""Bounded editing: a budget per turn of the event loop changes when bytes are sent, never which
bytes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.faults.live import parse_live_fault
from a2a_proxy.faults.plan import FaultPlan
from a2a_proxy.model.wire import Direction
from a2a_proxy.relay import connection_editing
from a2a_proxy.relay.connection_editing import ConnectionEditing, WorkQueue, make_editor
from a2a_proxy.relay.edits.edit import UNLIMITED, CardOutcome, EditFact, Editor, EditPlan
from a2a_proxy.relay.fault_editing import make_fault_editor
from a2a_proxy.relay.held_bytes import HeldBytes
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.run import loop_factory
from support_floods import (
    ANSWER,
    CARD,
    EVENTS,
    FAULT,
    FLOODS,
    GROWING,
    GRPC,
    START,
    agent_for,
    call,
    frame,
    send,
    stream,
)
from support_relay import SECONDS, CountingJournal, Story, agent, relaying
from support_wire import pieces_of

Play = Callable[[Story], None]
TO_AGENT, TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT
BUDGETS = ("WORK_AT_LEAST", "WORK_PER_STEP", "WORK_PER_TURN")
TURN_UNITS = 9
"""Processor time that no turn of the event loop needs, as a multiple of what a sum of 200,000
numbers takes beside it: one is usual."""
TURN_BYTES = 4 << 20
"""Bytes that no turn of the event loop receives. Twice as many take uvloop 15 ms, only to copy
them."""


def rewritten(payload: bytes, _form: str, _authority: str) -> CardOutcome:
    return CardOutcome(payload.replace(b"agent", b"proxy:9000"), (("agent", "proxy:9000"),))


def plan_of(name: str) -> EditPlan:
    if name == "faults":
        faults = map(parse_live_fault, (FAULT, "dup 3 of *", "slice 5 of *", "fail 503 at GetTask"))
        return EditPlan(b"agent:1", rewritten, "proxy:9000", faults=FaultPlan(list(faults)))
    authority, bits = (
        (None if name == "cards" else b"agent:1"),
        (Random(1).getrandbits if name == "trace" else None),
    )
    return EditPlan(authority, rewritten, "proxy:9000", bits)


GET = b"GET / HTTP/1.1\r\nHost: proxy\r\n\r\n"
POST = b"POST /rpc HTTP/1.1\r\nHost: proxy\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n" + b"3\r\nabc\r\n" * 20 + b"0\r\n\r\n"
ASK = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: proxy\r\nIf-None-Match: x\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CARD_ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n{"url":"http://agent/"}'
HEADERS = frame(1, 4, 1, GRPC)
GET_TASK = (
    b"POST /tasks HTTP/1.1\r\nHost: agent\r\nContent-Length: 30\r\n\r\n"
    b'{"id":1, "method":"tasks/get"}'
)
GRPC_PATH = b"/lf.a2a.v1.A2AService/SendStreamingMessage"
STREAM_CALL = b"\x83\x86\x04" + bytes((len(GRPC_PATH),)) + GRPC_PATH + GRPC[1:]
MESSAGE = b"\0\0\0\0\x05agent"

Steps = list[tuple[Direction, bytes]]
STORIES: dict[str, Steps] = {
    "requests and answers": [(TO_AGENT, GET * 20 + POST * 20), (TO_CLIENT, CONTINUE * 9 + OK * 40)],
    "chunks": [
        (TO_AGENT, b"POST / HTTP/1.1\r\n" + CHUNKED + GET),
        (TO_CLIENT, b"HTTP/1.1 200 OK\r\n" + CHUNKED + OK),
    ],
    "a card among others": [
        (TO_AGENT, GET * 3 + ASK + GET * 3),
        (TO_CLIENT, OK * 3 + CARD_ANSWER + OK * 3),
    ],
    "the end of editing": [
        (TO_AGENT, GET * 5 + b"GET / HTTP/1.1\r\nno field\r\n\r\n" + GET * 5),
        (TO_CLIENT, OK * 10),
    ],
    "an answer too many": [(TO_AGENT, GET * 2), (TO_CLIENT, OK * 6), (TO_AGENT, GET * 2)],
    "streams": [
        (
            TO_AGENT,
            START
            + b"".join(frame(1, 5, s, GROWING) + frame(3, 0, s, bytes(4)) for s in range(1, 60, 2)),
        ),
        (TO_CLIENT, frame(4, 0, 0) + frame(4, 1, 0) + frame(6, 0, 0, bytes(8)) * 30),
    ],
    "a card in pieces": [
        (TO_AGENT, START + call(1, CARD) + frame(8, 0, 0, b"\0\0\0\1") * 20),
        (
            TO_CLIENT,
            frame(4, 0, 0)
            + HEADERS
            + b"".join(frame(0, 0, 1, MESSAGE[n : n + 1]) for n in range(10)),
        ),
        (
            TO_CLIENT,
            frame(0, 0, 1) * 20
            + frame(1, 5, 1, b"\0\x0bgrpc-status\x010")
            + frame(6, 0, 0, bytes(8)),
        ),
        (TO_AGENT, frame(8, 0, 1, b"\0\0\1\0") * 20 + frame(6, 0, 0, bytes(8))),
    ],
    "events": [
        (TO_AGENT, stream(b"/") + GET_TASK + stream(b"/")),
        (TO_CLIENT, CONTINUE * 3 + EVENTS + CHUNKED.replace(b"3\r\nabc", b"8\r\ndata:1\n\n")),
        (TO_CLIENT, EVENTS + b"Content-Length: 90\r\n\r\n" + b"data: 2\r\n\r\n" * 8 + b"\n\r"),
    ],
    "messages": [
        (TO_AGENT, START + b"".join(frame(1, 5, s, STREAM_CALL) for s in (1, 3))),
        (
            TO_CLIENT,
            frame(4, 0, 0)
            + b"".join(frame(1, 4, s, GRPC) + frame(0, 0, s, MESSAGE * 9) for s in (1, 3)),
        ),
        (
            TO_CLIENT,
            b"".join(frame(0, 0, 1, MESSAGE[n : n + 1]) for n in range(10))
            + frame(0, 1, 3, bytes(9000)),
        ),
        (TO_AGENT, frame(8, 0, 0, b"\0\0\1\0") + frame(8, 0, 3, b"\0\0\1\0")),
        (TO_CLIENT, frame(1, 5, 1, b"\0\x0bgrpc-status\x010") + frame(6, 0, 0, bytes(8))),
    ],
    "the end of HTTP/2 editing": [
        (
            TO_AGENT,
            START + frame(6, 0, 0, bytes(8)) * 20 + frame(9, 4, 1) + frame(6, 0, 0, bytes(8)) * 20,
        ),
        (TO_CLIENT, frame(4, 0, 0) * 20),
    ],
}


def make_editor_of(http2: bool, plan: EditPlan) -> Editor:
    return (
        make_editor(http2, plan)
        if plan.faults is None
        else make_fault_editor(http2, plan, plan.faults)
    )


class Loop:
    """The part of an event loop that the editing of a connection uses; `run` is one turn."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def get_debug(self) -> bool:
        return False

    def time(self) -> float:
        return 1.0

    def call_soon(self, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def call_at(self, at: float, late: Callable[[], None]) -> asyncio.Handle:
        handle = asyncio.Handle(late, (), cast(asyncio.AbstractEventLoop, self))
        if at <= self.time():
            self.calls.append(lambda: None if handle.cancelled() else late())
        return handle

    def run(self) -> None:
        due, self.calls = self.calls, []
        for each in due:
            each()


class Line:
    """The editing of a connection as `ProxyConnection` uses it, and everything that it wrote."""

    def __init__(self, story: str, plan: str, beside: Line | None = None) -> None:
        self.loop = Loop() if beside is None else beside.loop
        self.out = [bytearray(), bytearray()]
        self.facts: list[EditFact] = []
        self.delays: list[tuple[Direction, bool]] = []
        self.line: ConnectionEditing | None = None
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        sinks = (self.out[0].extend, self.out[1].extend)
        editor = make_editor_of(STORIES[story][0][1].startswith(START[:24]), plan_of(plan))
        self.queue = WorkQueue(loop) if beside is None else beside.queue
        self.line = ConnectionEditing(
            editor,
            loop,
            self.queue,
            HeldBytes(loop),
            sinks,
            sinks,
            self.edited,
            lambda *delay: self.delays.append(delay),
        )

    def edited(self, facts: list[EditFact] | None) -> None:
        self.facts += facts or ()
        if self.line is not None and not self.line.is_active:
            line, self.line = self.line, None
            line.finish()

    def received(self, direction: Direction, data: bytes) -> None:
        if self.line is None:
            self.out[direction] += data
        else:
            self.edited(
                self.line.forward_to_agent(data)
                if direction is TO_AGENT
                else self.line.forward_to_client(data)
            )

    def drain(self) -> None:
        while self.loop.calls:
            self.loop.run()

    def end(self) -> tuple[list[bytes], list[tuple[Any, ...]]]:
        for direction in (*Direction, *Direction):  # again, because the first ones may be delayed
            if self.line is not None:
                self.edited(self.line.feed_eof(direction))
            self.drain()
        facts = [
            (
                fact.kind,
                fact.direction,
                fact.detail,
                fact.kind == "ended" or fact.offset,
            )  # of the piece where it ended
            for fact in sorted(  # of two editors
                self.facts,
                key=lambda fact: fact.kind in ("fault", "answer") or "refused" in fact.detail,
            )
        ]
        return [bytes(out) for out in self.out], facts


def played(story: str, plan: str, cuts: list[int], *, drained: bool = True) -> Line:
    """A story in pieces; `drained`: each piece comes when the one before has gone on."""
    line = Line(story, plan)
    for direction, data in STORIES[story]:
        for piece in pieces_of(data, sorted(cut for cut in cuts if cut < len(data))):
            line.received(direction, piece)
            if drained:
                line.drain()
        line.drain()
    return line


@pytest.mark.parametrize("plan", ["cards", "authority", "trace", "faults"])
@pytest.mark.parametrize("story", STORIES)
def test_every_budget_and_split_yields_the_same_bytes(story: str, plan: str) -> None:
    """The bytes and the edits are those of an editor without a budget, whatever a turn may do, in
    whatever pieces."""

    @settings(max_examples=25)
    @given(
        st.sampled_from([1, 2, 3, 30, 100, 400]),
        st.lists(st.integers(1, 1500), max_size=5),
        st.booleans(),
    )
    def check(budget: int, cuts: list[int], drained: bool) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connection_editing, "WORK_PER_TURN", UNLIMITED)
            whole = played(story, plan, [])
            assert whole.delays == []
            for name in BUDGETS:
                patch.setattr(connection_editing, name, budget)
            bounded = played(story, plan, cuts, drained=drained)
        for direction in Direction:  # each delay begins once and ends once
            found = [delayed for of, delayed in bounded.delays if of is direction]
            assert found == [True, False] * (len(found) // 2)
        assert bounded.end() == whole.end()

    check()


@pytest.mark.parametrize(
    ("story", "plan"),
    [
        *(
            (story, "authority")
            for story in ("requests and answers", "chunks", "streams", "a card in pieces")
        ),
        *((story, "faults") for story in ("requests and answers", "streams", "a card in pieces")),
    ],
)
def test_a_turn_stays_within_its_budget(
    story: str, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the smallest budget every message and frame has a turn of its own, and reading stops
    meanwhile."""
    for name in BUDGETS:
        monkeypatch.setattr(connection_editing, name, 1)
    line = Line(story, plan)
    direction, data = STORIES[story][0]
    line.received(direction, data)
    assert line.delays == [(direction, True)]
    turns = [len(line.out[direction])]
    while line.loop.calls:
        line.loop.run()
        turns.append(len(line.out[direction]))
    assert line.delays == [(direction, True), (direction, False)]
    assert max(after - before for before, after in pairwise(turns)) < len(data) / 2


def test_connections_take_turns() -> None:
    """Queued work is done round by round, half of WORK_PER_TURN in each turn of the event loop, and
    goes on after an error."""
    loop, done = Loop(), []
    queue = WorkQueue(cast(asyncio.AbstractEventLoop, loop))

    def step(name: str, left: int) -> int:
        done.append(name)
        if left:
            queue.add(lambda: step(name, left - 1))
        return connection_editing.WORK_PER_TURN // 4

    for name in "abc":
        queue.add(lambda name=name: step(name, 2))
    assert done == []
    for turn in ("ab", "ca", "bc", "ab", "c"):
        done.clear()
        loop.run()
        assert "".join(done) == turn
    assert loop.calls == []
    queue.add(lambda: 1 // 0)
    queue.add(lambda: step("d", 0))
    with pytest.raises(ZeroDivisionError):
        loop.run()
    loop.run()
    assert done[-1] == "d"


@pytest.mark.parametrize("plan", ["trace", "faults"])
def test_connections_share_the_work_of_a_turn(plan: str) -> None:
    """However many connections have bytes in one turn of the event loop, together they do the work
    of one turn; the last one goes on when the others have."""
    data, first = GET * 2_000, Line("requests and answers", plan)
    lines = [first, *(Line("requests and answers", plan, first) for _ in range(19))]
    sent = [0]

    def count() -> None:
        sent.append(sum(len(line.out[TO_AGENT]) for line in lines))

    for line in lines:
        line.received(TO_AGENT, data)
    count()
    while first.loop.calls:
        first.loop.run()
        count()
    assert max(after - before for before, after in pairwise(sent)) < 2 * len(data)
    whole = Line("requests and answers", plan)
    whole.received(TO_AGENT, data)
    whole.drain()
    assert sent[-1] == 20 * len(whole.out[TO_AGENT])
    assert all(line.delays[-1:] in ([], [(TO_AGENT, False)]) for line in lines)


def test_a_small_message_does_not_wait_for_many() -> None:
    """It goes on at once, although others have spent the work of the turn."""
    many = Line("requests and answers", "authority")
    small = Line("requests and answers", "authority", many)
    many.received(TO_AGENT, GET * 2_000)
    assert many.queue.left <= 0
    small.received(TO_AGENT, GET)
    assert small.out[TO_AGENT] == GET.replace(b"proxy", b"agent:1")
    assert small.delays == []


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One message for each turn of the event loop."""
    for name in BUDGETS:
        monkeypatch.setattr(connection_editing, name, 1)


REQUESTS = b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(500))


@pytest.mark.usefixtures("one_at_a_time")
@pytest.mark.parametrize("end", ["eof", "reset", "eof and reset"])
def test_the_end_of_a_stream_follows_delayed_bytes(play: Play, end: str) -> None:
    """FIN or RST of a client whose requests still wait reaches the agent after the last of them."""

    async def story() -> None:
        got: asyncio.Future[tuple[bytes, str]] = asyncio.get_running_loop().create_future()
        arrived = asyncio.Event()

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            data, how = b"", "FIN"
            try:
                while part := await reader.read(65536):
                    data += part
                    arrived.set()
            except ConnectionResetError:
                how = "RST"
            got.set_result((data, how))
            writer.close()

        async with agent(listen) as port, relaying(port, editing=EditPolicy()) as bench:
            _, writer = await bench.connect()
            writer.write(GET)
            await arrived.wait()  # captured bytes may still wait for the agent's connection
            (pair,) = bench.relay._connections
            pair.client.data_received(REQUESTS)
            assert pair.client.delayed
            pair.client.data_received(GET)
            if "eof" in end:
                pair.client.eof_received()
            if "reset" in end:
                pair.client.connection_lost(ConnectionResetError())
            assert pair.client.delayed
            data, how = await got
            assert data == GET + REQUESTS + GET
            assert how == ("FIN" if "eof" in end else "RST")
            await asyncio.sleep(0)
            kinds = [
                chunk.kind.name for chunk in bench.journal.chunks if chunk.direction is TO_AGENT
            ]
            ends = [kind.upper() for kind in end.split(" and ")]
            assert [kind for kind in kinds if kind not in ("OPEN", "DIALED", "CLOSED", "EDIT")] == [
                "DATA"
            ] * 3 + ends
            writer.close()

    play(story())


@pytest.mark.usefixtures("one_at_a_time")
def test_both_sides_end_while_edits_are_delayed(play: Play) -> None:
    """Each side gets all of the other's bytes before the FIN, and the connection closes."""

    async def story() -> None:
        at_agent: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            at_agent.set_result(await reader.read())
            writer.write(OK * 500)
            writer.write_eof()

        async with agent(serve) as port, relaying(port, editing=EditPolicy()) as bench:
            reader, writer = await bench.connect()
            writer.write(REQUESTS)
            writer.write_eof()
            assert await reader.read() == OK * 500
            assert await at_agent == REQUESTS
            writer.close()
            await bench.closed()
            assert bench.journal.kinds() == [
                "OPEN",
                "DIALED",
                "EOF to_agent",
                "EOF to_client",
                "CLOSED",
            ]

    play(story())


@pytest.mark.usefixtures("one_at_a_time")
def test_delayed_bytes_are_dropped_when_the_reader_is_gone(play: Play) -> None:
    """An agent that breaks off while requests wait ends the connection at once."""

    async def story() -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.transport.abort()

        async with agent(refuse) as port, relaying(port, editing=EditPolicy()) as bench:
            _, writer = await bench.connect()
            writer.write(REQUESTS * 20)
            await bench.closed()
            writer.close()

    play(story())


@pytest.mark.usefixtures("one_at_a_time")
def test_reading_resumes_when_neither_side_is_behind(play: Play) -> None:
    """A slow agent and delayed edits stop reading for reasons of their own; both over, all bytes
    arrive."""

    async def story() -> None:
        go = asyncio.Event()

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await go.wait()
            writer.write(b"%d" % len(await reader.read()))
            writer.close()

        many = (b"GET /" + b"x" * 30_000 + b" HTTP/1.1\r\n\r\n") * 300
        async with (
            agent(slow) as port,
            relaying(port, journal=CountingJournal(), editing=EditPolicy()) as bench,
        ):
            reader, writer = await bench.connect()
            writer.write(many)
            writer.write_eof()
            seen = -1
            while not seen or seen != bench.relay.stats.bytes_to_agent:
                seen = bench.relay.stats.bytes_to_agent
                await asyncio.sleep(0.05)
            assert seen < len(many)
            (pair,) = bench.relay._connections
            pair.client.resume_reading()
            pair._delay_reading(TO_AGENT, True)
            pair.agent.resume_writing()  # while edits are delayed that is not enough
            seen = bench.relay.stats.bytes_to_agent
            await asyncio.sleep(0.05)
            assert bench.relay.stats.bytes_to_agent == seen
            pair._delay_reading(TO_AGENT, False)
            go.set()
            assert await reader.read() == b"%d" % len(many)
            writer.close()

    play(story())


class Turns:
    """A relay on an event loop in a thread of its own, whose turns are measured by that thread's
    processor time."""

    def __init__(self, upstream: int, policy: EditPolicy) -> None:
        self._policy = policy
        self.longest = 0.0
        """Processor time of the longest turn, seconds."""
        self.unit = 0.0
        """The same of a sum of 200,000 numbers, before the turns or after them."""
        self.most_bytes = 0
        """Bytes received in one turn."""
        self.port = 0
        self._upstream = upstream
        self._ready, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Turns:
        gc.collect()
        gc.freeze()  # the objects of other tests are not this loop's to collect
        for http2 in (False, True):  # imported when it is first needed, and that takes 20 ms
            make_editor(http2, plan_of("cards"))
        self._thread.start()
        assert self._ready.wait(SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        gc.unfreeze()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        loop, journal, last, received = asyncio.get_running_loop(), CountingJournal(), 0.0, 0

        def tick() -> None:
            nonlocal last, received
            now, count = time.thread_time(), sum(journal.byte_counts)
            self.longest, last = max(self.longest, now - last), now
            self.most_bytes, received = max(self.most_bytes, count - received), count
            loop.call_soon(tick)

        self._measure_unit()
        async with relaying(self._upstream, journal=journal, editing=self._policy) as bench:
            self.port, last = bench.port, time.thread_time()
            tick()
            self._ready.set()
            while not self._stop.is_set():
                await asyncio.sleep(0.01)
        self._measure_unit()

    def _measure_unit(self) -> None:
        began = time.thread_time()
        sum(range(200_000))
        self.unit = max(self.unit, time.thread_time() - began)


@contextlib.contextmanager
def flooding_agent(messages: int) -> Iterator[int]:
    """The agent of all floods, in a thread of its own; its port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    serving = asyncio.start_server(agent_for(messages), "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(serving, loop).result(SECONDS)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


NOTHING_MORE = EditPolicy()
FAULTY = EditPolicy(propagate=True, faults=FaultPlan([parse_live_fault(FAULT)]))
CHEAP = ("PING", "SETTINGS", "WINDOW_UPDATE", "empty DATA", "empty CONTINUATION")


def beside(kinds: list[str], messages: int, policy: EditPolicy = NOTHING_MORE) -> None:
    """A good client gets its answers beside hostile ones, and no turn of the event loop takes long
    or receives many bytes."""
    with flooding_agent(messages) as upstream, Turns(upstream, policy) as turns:
        floods = [
            threading.Thread(
                target=send,
                args=(turns.port, FLOODS[kind].client(messages), FLOODS[kind].agent_ends, SECONDS),
            )
            for kind in kinds
        ]
        with socket.create_connection(("127.0.0.1", turns.port)) as good:
            good.settimeout(SECONDS)
            for flood in floods:
                flood.start()
            while any(flood.is_alive() for flood in floods):
                good.sendall(b"POST / HTTP/1.1\r\nHost: agent\r\nContent-Length: 0\r\n\r\n")
                assert good.recv(65536) == ANSWER
                time.sleep(0.005)
        for flood in floods:
            flood.join()
    assert turns.longest < TURN_UNITS * turns.unit
    assert turns.most_bytes < TURN_BYTES


@pytest.mark.parametrize("kind", FLOODS)
def test_a_hostile_connection_does_not_starve_others(kind: str) -> None:
    """A flood is handled in many short turns; without a budget one turn takes as long as all that
    was received."""
    beside([kind], 300_000 if kind in CHEAP else 60_000)


@pytest.mark.parametrize("kind", FLOODS)
def test_a_hostile_connection_does_not_starve_others_with_faults(kind: str) -> None:
    beside([kind], 300_000 if kind in CHEAP else 60_000, FAULTY)


def test_a_turn_receives_a_bounded_number_of_bytes() -> None:
    """Of peers that send as fast as they can, although nothing is edited."""
    beside(["frames of 16 MB"] * 3, 1, EditPolicy("never", keep_host=True))


@pytest.mark.parametrize("policy", [NOTHING_MORE, FAULTY], ids=["usual edits", "faults"])
@pytest.mark.parametrize("messages", [10_000, pytest.param(300_000, marks=pytest.mark.soak)])
def test_all_floods_together(messages: int, policy: EditPolicy) -> None:
    """Together they have the work of one turn, at the beginning too."""
    beside(list(FLOODS), messages, policy)
