"""Faults through real sockets, and what the recorder makes of the journal."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio
import pytest
from hpack import Encoder

from a2a_proto import from_dict, message_class
from a2a_proxy.faults.live import parse_live_fault
from a2a_proxy.faults.plan import FaultPlan
from a2a_proxy.http.h1 import decode_chunked
from a2a_proxy.model.values import FAULT_MARK, Finding, Frame, FrameKind, MissedReason, Observation
from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay import connection
from a2a_proxy.relay.connection import MAX_BUFFERED
from a2a_proxy.relay.listener_state import EditPolicy
from support_http2 import REQUEST, frame, upstream
from support_observer import fresh, observe
from support_relay import Bench, Story, agent, relaying, until

Play = Callable[[Story], None]
STREAM = "/lf.a2a.v1.A2AService/SendStreamingMessage"
GET = "/lf.a2a.v1.A2AService/GetTask"
Json = dict[str, Any]
ABOUT = {"taskId": "t", "contextId": "c"}
CONTENT: Json = {"artifactId": "a", "parts": [{"text": "x"}]}


def snapshot(state: str, generation: int) -> Json:
    task = {
        "id": "t",
        "contextId": "c",
        "status": {"state": f"TASK_STATE_{state}"},
        "generation": str(generation),
    }
    return task | ({"artifacts": [CONTENT]} if generation > 2 else {})


def update(state: str, generation: int) -> Json:
    return {
        "statusUpdate": ABOUT
        | {"status": {"state": f"TASK_STATE_{state}"}, "generation": str(generation)}
    }


ARTIFACT: Json = {
    "artifactUpdate": ABOUT | {"artifact": CONTENT, "lastChunk": True, "generation": "3"}
}
EVENTS: list[Json] = [
    {"task": snapshot("SUBMITTED", 1)},
    update("WORKING", 2),
    ARTIFACT,
    update("COMPLETED", 4),
]
SEND = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}}


async def http_agent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer JSON-RPC: a stream of EVENTS, or the finished task."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            call = json.loads(await reader.readexactly(size))
            envelope = {"jsonrpc": "2.0", "id": call["id"]}
            if call["method"] == "GetTask":
                body = json.dumps(envelope | {"result": snapshot("COMPLETED", 4)}).encode()
                start = (
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n"
                )
                writer.write(start % len(body) + body)
                continue
            fields = (
                b"Content-Type: text/event-stream\r\n"
                b"Cache-Control: no-store\r\nTransfer-Encoding: chunked\r\n"
            )
            writer.write(b"HTTP/1.1 200 OK\r\n%s\r\n" % fields)
            for event in EVENTS:
                data = b"data: " + json.dumps(envelope | {"result": event}).encode() + b"\n\n"
                writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                await writer.drain()
                await asyncio.sleep(0.002)
            writer.write(b"0\r\n\r\n")


class GrpcAgent(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """The same over gRPC."""

    def service(self, details: Any) -> Any:
        if details.method == STREAM:
            return grpc.unary_stream_rpc_method_handler(self.stream)
        return grpc.unary_unary_rpc_method_handler(self.get)

    async def stream(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        for event in EVENTS:
            yield from_dict("1.0", "StreamResponse", event).SerializeToString()
            await asyncio.sleep(0.002)

    async def get(self, request: bytes, context: Any) -> bytes:
        return from_dict("1.0", "Task", snapshot("COMPLETED", 4)).SerializeToString()


@contextlib.asynccontextmanager
async def grpc_agent() -> AsyncIterator[int]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((GrpcAgent(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


class Client:
    """A client that makes calls over one binding, and keeps what it got."""

    def __init__(self, binding: str, port: int) -> None:
        self.binding, self._port = binding, port
        self.events: list[int] = []
        """Generations of the events of the last stream."""

    async def stream(self) -> str:
        """Make a streaming call; return how it ended."""
        self.events = []
        return await (self._stream_grpc() if self.binding == "grpc" else self._stream_http())

    async def _stream_grpc(self) -> str:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self._port}") as channel:
            request = from_dict("1.0", "SendMessageRequest", SEND).SerializeToString()
            response: Any = message_class("1.0", "StreamResponse")
            try:
                async for data in channel.unary_stream(STREAM)(
                    request, metadata=(("a2a-version", "1.1"),)
                ):
                    event = response.FromString(data)
                    self.events.append(getattr(event, event.WhichOneof("payload")).generation)
            except grpc.aio.AioRpcError as error:
                return error.code().name
        return "end"

    async def _stream_http(self) -> str:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(_rpc("SendStreamingMessage", SEND))
            got = b""
            while not got.endswith(b"0\r\n\r\n") and b"--fault" not in got:
                if not (data := await reader.read(65536)):
                    break
                got += data
            writer.close()
        except ConnectionError:
            return "reset"
        head, _, body = got.partition(b"\r\n\r\n")
        if got.endswith(b"0\r\n\r\n"):
            body = decode_chunked(body)
        for line in body.split(b"\n"):
            if line.startswith(b"data:") and b'"result"' in line:
                with contextlib.suppress(ValueError):
                    (event,) = json.loads(line[5:])["result"].values()
                    self.events.append(int(event["generation"]))
        return (
            "end"
            if got.endswith(b"0\r\n\r\n")
            else head.split(b" ")[1].decode()
            if b"Content-Length" in head
            else "cut"
        )

    async def get(self) -> None:
        """Get the task."""
        if self.binding == "grpc":
            async with grpc.aio.insecure_channel(f"127.0.0.1:{self._port}") as channel:
                request = from_dict("1.0", "GetTaskRequest", {"id": "t"}).SerializeToString()
                await channel.unary_unary(GET)(request, metadata=(("a2a-version", "1.1"),))
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(_rpc("GetTask", {"id": "t"}))
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        writer.close()


def _rpc(method: str, params: Json) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    fields = (
        b"Host: a\r\nContent-Type: application/json\r\nAccept: application/json, "
        b"text/event-stream\r\nA2A-Version: 1.1"
    )
    return b"POST /rpc HTTP/1.1\r\n%s\r\nContent-Length: %d\r\n\r\n" % (fields, len(body)) + body


class Seen:
    """What the recorder makes of a journal."""

    def __init__(self, bench: Bench) -> None:
        self.observer = fresh()
        out: list[Observation] = []
        for chunk in bench.journal.chunks:
            self.observer.feed(chunk, out)
        self.observer.tick(bench.journal.chunks[-1].at + 60 * 10**9, out)
        self.frames = [each for each in out if isinstance(each, Frame) and each.exchange]
        self.blamed = [
            each
            for each in out
            if isinstance(each, Finding) and not each.rule.startswith("A2A-LAT")
        ]
        changes = self.observer.pop_changes()
        self.exchanges, self.tasks = (
            sorted(changes.exchanges, key=lambda each: each.id),
            changes.tasks,
        )

    def notes(self) -> list[tuple[int, str]]:
        """Return generation and note of each frame with a fault."""
        return [(each.generation, each.note) for each in self.frames if "--fault" in each.note]


@contextlib.asynccontextmanager
async def faulted(binding: str, *faults: str) -> AsyncIterator[tuple[Bench, Client, FaultPlan]]:
    plan = FaultPlan([parse_live_fault(each) for each in faults])
    policy = EditPolicy("never", keep_host=True, faults=plan)
    peer = grpc_agent() if binding == "grpc" else agent(http_agent)
    async with peer as port, relaying(port, editing=policy) as bench:
        yield bench, Client(binding, bench.port), plan


BINDINGS = pytest.mark.parametrize("binding", ["jsonrpc", "grpc"])


@BINDINGS
@pytest.mark.parametrize(
    ("fault", "events", "note"),
    [
        ("drop artifact of SendStreamingMessage", [1, 2, 4], (3, "dropped")),
        ("dup 2 of SendStreamingMessage", [1, 2, 2, 3, 4], (2, "sent twice")),
        ("swap 2 3 of SendStreamingMessage", [1, 3, 2, 4], (2, "held")),
        ("gen+5 at 2 of SendStreamingMessage", [1, 7, 3, 4], (2, "sent with another generation")),
        ("slice 5 of SendStreamingMessage", [1, 2, 3, 4], (1, "changed")),
        ("stall 50ms before 3 of SendStreamingMessage", [1, 2, 3, 4], (3, "delayed")),
        ("slow 10ms every SendStreamingMessage", [1, 2, 3, 4], (1, "changed")),
    ],
)
def test_the_client_gets_the_fault_and_the_recording_what_the_agent_sent(
    binding: str, fault: str, events: list[int], note: tuple[int, str], play: Play
) -> None:
    async def story() -> None:
        async with faulted(binding, fault) as (bench, client, plan):
            assert await client.stream() == "end"
            await client.get()
            assert client.events == events
        assert plan.happened == [1]
        seen = Seen(bench)
        sent = [each.generation for each in seen.frames if each.kind is FrameKind.EVENT]
        assert sent == [1, 2, 3, 4]
        assert seen.notes()[0] == (note[0], f"{note[1]} by --fault: {fault}")
        assert [each.how for each in seen.exchanges] == ["complete", "complete"]
        assert seen.blamed == []

    play(story())


@BINDINGS
@pytest.mark.parametrize(
    ("fault", "ends", "events", "how"),
    [
        (
            "cut 3 of SendStreamingMessage @ 50%",
            {"jsonrpc": "cut", "grpc": "INTERNAL"},
            [1, 2],
            "cut by --fault",
        ),
        (
            "reset at SendStreamingMessage",
            {"jsonrpc": "reset", "grpc": "INTERNAL"},
            [],
            "cut by --fault",
        ),
        (
            "fail 503 at SendStreamingMessage",
            {"jsonrpc": "503", "grpc": "UNAVAILABLE"},
            [],
            "refused",
        ),
        ("fail -32603 at SendStreamingMessage", {"jsonrpc": "200"}, [], "refused"),
        (
            "fail RESOURCE_EXHAUSTED at SendStreamingMessage",
            {"grpc": "RESOURCE_EXHAUSTED"},
            [],
            "refused",
        ),
    ],
)
def test_a_call_ends_on_purpose(
    binding: str, fault: str, ends: dict[str, str], events: list[int], how: str, play: Play
) -> None:
    if binding not in ends:
        return
    words = fault.split(" @ ")
    text = " @ ".join([f"{words[0]} call 1", *words[1:]])

    async def story() -> None:
        async with faulted(binding, text) as (bench, client, plan):
            assert await client.stream() == ends[binding]
            assert client.events == events
            assert await client.stream() == "end"
            assert client.events == [1, 2, 3, 4]
        assert plan.happened == [1]
        seen = Seen(bench)
        assert [each.how for each in seen.exchanges] == [how, "complete"]
        assert any("--fault" in each.note for each in seen.frames)
        assert seen.blamed == []

    play(story())


@BINDINGS
def test_a_dropped_generation_is_the_proxys_and_healed(binding: str, play: Play) -> None:
    async def story() -> None:
        async with faulted(
            binding,
            "drop artifact of SendStreamingMessage call 1",
            "drop last of SendStreamingMessage call 1",
        ) as (bench, client, _):
            await client.stream()
            await client.get()
        (task,) = Seen(bench).tasks
        missed = [
            (each.first, each.last, each.reason, each.exchange, each.by, each.generation)
            for each in task.missed
        ]
        assert missed == [(number, number, MissedReason.DROPPED, 1, 2, 4) for number in (3, 4)]
        assert task.generation == 4

    play(story())


def test_a_fault_is_recorded_before_the_bytes_of_its_event(play: Play) -> None:
    async def story() -> None:
        async with faulted("jsonrpc", "drop 3 of SendStreamingMessage") as (bench, client, _):
            await client.stream()
        records = bench.journal.chunks
        (edit,) = [place for place, each in enumerate(records) if each.kind is ChunkKind.EDIT]
        sent = sum(
            len(each.data)
            for each in records[:edit]
            if each.kind is ChunkKind.DATA and each.direction is Direction.TO_CLIENT
        )
        assert json.loads(records[edit].data)["offset"] >= sent
        assert [each.at for each in records] == sorted(each.at for each in records)

    play(story())


def test_many_streams_on_one_connection_do_not_stop(play: Play) -> None:
    """300 faulted streams of one gRPC connection, 50 at a time (`tests/benchmarks/faults` makes
    10,000)."""

    async def story() -> None:
        from support_faulted_streams import stream_many

        faults = [
            f"{verb} of SendStreamingMessage" for verb in ("drop artifact", "dup 2", "slice 40")
        ]
        async with faulted("grpc", *faults, "cut 4 of SendStreamingMessage call 77") as (
            bench,
            _,
            plan,
        ):
            ended = await stream_many(
                bench.port, STREAM, from_dict("1.0", "SendMessageRequest", SEND), 300, 50
            )
        assert ended == {"4": 299, "INTERNAL": 1}
        assert plan.happened == [300, 300, 300, 1]

    play(story())


@BINDINGS
def test_a_recorder_that_restarts_sees_the_same_faults(binding: str, play: Play) -> None:
    async def story() -> None:
        faults = ("drop 2 of * call 1", "fail 503 at * call 2", "cut 3 of * call 3 @ 50%")
        async with faulted(binding, *faults) as (bench, client, _):
            for _ in range(3):
                await client.stream()
        chunks = bench.journal.chunks
        straight, restarted = observe(chunks), observe(chunks, restart_at=range(1, len(chunks)))
        notes = [
            [each.note for each in seen.out if isinstance(each, Frame)]
            for seen in (straight, restarted)
        ]
        assert notes[0] == notes[1]
        assert sum(FAULT_MARK in note for note in notes[0]) >= 3
        for seen in (straight, restarted):
            ends = [seen.exchanges[number].how for number in sorted(seen.exchanges)]
            assert ends == ["complete", "refused", "cut by --fault"]

    play(story())


def test_without_the_marks_a_client_would_be_blamed(play: Play) -> None:
    """The client sends its message again, because the stream broke off."""

    async def story() -> None:
        async with faulted("jsonrpc", "cut 1 of * call 1") as (bench, client, _):
            await client.stream()
            await client.stream()
        assert [each for each in Seen(bench).blamed if each.evidence["actor"] != "agent"] == []
        bench.journal.chunks = [
            each for each in bench.journal.chunks if each.kind is not ChunkKind.EDIT
        ]
        assert [each for each in Seen(bench).blamed if each.evidence["actor"] != "agent"]

    play(story())


@pytest.mark.parametrize("abort", [False, True])
def test_the_end_of_the_agents_bytes_waits_for_a_stalled_event(abort: bool, play: Play) -> None:
    """An agent that closes, or resets, the connection after its last event."""

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        data = [b"data: " + json.dumps({"result": event}).encode() + b"\n\n" for event in EVENTS]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(data))
        await writer.drain()
        await asyncio.sleep(0.05)
        if abort:
            writer.transport.abort()
        else:
            writer.close()

    async def story() -> None:
        plan = FaultPlan([parse_live_fault("stall 200ms before 2 of *")])
        policy = EditPolicy("never", keep_host=True, faults=plan)
        async with agent(closing) as port, relaying(port, editing=policy) as bench:
            reader, writer = await bench.connect()
            writer.write(_rpc("SendStreamingMessage", SEND))
            first = await reader.readuntil(b"\n\n")
            began = asyncio.get_running_loop().time()
            rest = b""
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(65536):
                    rest += data
            assert asyncio.get_running_loop().time() - began > 0.1
            assert (first + rest).count(b"data: ") == 4
            writer.close()
            await bench.closed()

    play(story())


@contextlib.asynccontextmanager
async def greeted(
    greeting: bytes,
) -> AsyncIterator[tuple[Bench, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A relay with a fault, an agent that sends at once, and a client that sends nothing."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        await writer.drain()
        await reader.read()
        writer.close()

    plan = FaultPlan([parse_live_fault("reset at *")])
    policy = EditPolicy("never", keep_host=True, faults=plan)
    async with agent(greet) as port, relaying(port, editing=policy) as bench:
        reader, writer = await bench.connect()
        yield bench, reader, writer
        writer.close()


def test_the_greeting_of_another_protocol_is_not_held(play: Play) -> None:
    """Its client waits for it before it sends anything."""

    async def story() -> None:
        async with greeted(b"220 mail.example\r\n") as (_, reader, _), asyncio.timeout(10):
            assert await reader.readline() == b"220 mail.example\r\n"

    play(story())


def test_the_first_bytes_of_an_agent_are_held_up_to_a_limit(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for the client's while they may be HTTP/2, and reach a client that sends
    nothing."""
    monkeypatch.setattr(connection, "SILENT_CLIENT_SECONDS", 60.0)
    greeting = b"\0\x40\0\x04\0\0\0\0\0" + bytes(32 << 20)

    async def story() -> None:
        async with greeted(greeting) as (bench, reader, writer), asyncio.timeout(60):
            await until(lambda: bench.relay.stats.bytes_to_client > MAX_BUFFERED)
            await asyncio.sleep(0.3)
            assert bench.relay.stats.bytes_to_client < MAX_BUFFERED + (1 << 20)
            writer.write_eof()
            assert await reader.readexactly(len(greeting)) == greeting

    play(story())


@pytest.mark.parametrize("keep_host", [True, False])
async def test_a_refused_connection_has_one_note(keep_host: bool) -> None:
    """Also if two editors refuse it: what the second gets from the first is not HTTP/2."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(4, 0, 0))
        with contextlib.suppress(ConnectionError):
            while await reader.read(65_536):
                pass
        writer.close()

    plan = FaultPlan([parse_live_fault("drop 1 of *")])
    policy = EditPolicy("never", keep_host=keep_host, faults=plan)
    async with agent(silent) as port, relaying(port, editing=policy) as bench:
        _, writer = await bench.connect()
        begin = upstream(frame(1, 4, 1, Encoder().encode(REQUEST)))
        writer.write(begin + frame(1, 0, 3) + frame(9, 0, 3) * 40_000)
        await until(lambda: bool(bench.notes))
        writer.close()
        await bench.closed()
        (note,) = bench.notes
    assert "header block of at most" in note.text
