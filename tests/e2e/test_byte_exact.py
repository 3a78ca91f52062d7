"""Unedited traffic through the real proxy arrives byte for byte and is recorded correctly.

The recording equals the same bytes decoded directly: in single bytes, in 64 MB, to slow readers,
half-closed and aborted.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from a2a_proto import from_dict
from a2a_proxy.model.values import Exchange, Frame
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.read.reader import Recording
from support_conversation import Grpc, Http, Script, frame
from support_kills import METHOD, marks, update
from support_observer import grpc_call, observe, scripted, streaming, unary
from support_proxy import Proxy, proxy
from support_relay import reset

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT
UNCHANGED = ("--rewrite-card", "never", "--keep-host", "--quiet")
SECONDS = 120.0
MANY = 1000


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """The port of the agent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        yield server


class Player:
    """Both peers of a script, with the proxy between them."""

    def __init__(
        self, between: Proxy, listener: socket.socket, step: int, pause: float = 0.0
    ) -> None:
        client = socket.create_connection(("127.0.0.1", between.port), SECONDS)
        agent, _ = listener.accept()
        self.ends = {UP: (client, agent), DOWN: (agent, client)}
        self._step, self._pause = step, pause
        for end in (client, agent):
            end.settimeout(SECONDS)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def play(self, script: Script) -> None:
        """Play the steps: each is sent by one peer and received by the other before the next."""
        for what, direction, data in script.steps:
            sender, receiver = self.ends[direction]
            if what == "data":
                sending = threading.Thread(target=self._send, args=(sender, data))
                sending.start()
                assert self._receive(receiver, len(data)) == data
                sending.join()
            elif what == "eof":
                sender.shutdown(socket.SHUT_WR)
                assert receiver.recv(1) == b""
            else:
                reset(sender)
                with pytest.raises(ConnectionResetError):
                    receiver.recv(1)
        for end, _ in self.ends.values():
            end.close()

    def _send(self, sender: socket.socket, data: bytes) -> None:
        for index in range(0, len(data), self._step):
            sender.sendall(data[index : index + self._step])

    def _receive(self, receiver: socket.socket, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            if self._pause:
                time.sleep(self._pause)
            data += receiver.recv(min(size - len(data), 1 << 20)) or b"END TOO EARLY"
        return bytes(data)


def seen(frames: list[Frame]) -> list[tuple[Any, ...]]:
    """Return a frame without its times."""
    return [
        (
            f.exchange,
            f.seq,
            f.direction,
            f.kind,
            f.event,
            f.start,
            f.end,
            f.size,
            f.payload,
            f.state,
            f.note,
            f.error_code,
        )
        for f in frames
    ]


def told(exchange: Exchange) -> tuple[Any, ...]:
    """Return the properties and the end of an exchange."""
    e = exchange
    sizes = (e.requests, e.events, e.bytes_to_agent, e.bytes_to_client)
    return (
        e.binding,
        e.operation,
        e.how,
        e.status,
        e.grpc_status,
        e.error,
        e.half_close,
        e.states,
        *sizes,
    )


def check(between: Proxy, script: Script) -> None:
    """Stop the proxy; its recording must equal the output of a decoder for the script."""
    summary = between.stop()
    expected = observe(scripted(script))
    with Recording(between.recording) as stored:
        frames = [row.frame for row in stored.frames_after(0)]
        exchanges = [row.exchange for row in stored.read_exchanges()]
        (connection,) = [row.connection for row in stored.read_connections()]
    assert seen(frames) == seen([each for each in expected.out if isinstance(each, Frame)])
    assert [told(each) for each in exchanges] == [
        told(each) for each in expected.exchanges.values()
    ]
    known = expected.connections[1]
    assert (connection.how, connection.kind, connection.counters) == (
        known.how,
        known.kind,
        known.counters,
    )
    assert (connection.bytes_to_agent, connection.bytes_to_client) == (
        known.bytes_to_agent,
        known.bytes_to_client,
    )
    assert (summary["complete"], summary["lost_bytes"]) == (True, 0)


def client_first(script: Script) -> Script:
    return script.end("eof", UP).end("eof", DOWN)


def agent_first(script: Script) -> Script:
    return script.end("eof", DOWN).end("eof", UP)


def rest() -> Http:
    """Return a streamed REST call."""
    http = (
        Http()
        .request("POST /message:stream", {"message": {"messageId": "m"}}, A2A_Version="1.0")
        .stream()
    )
    for state in ("SUBMITTED", "COMPLETED"):
        http.event(
            {"task": {"id": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}}
        )
    return http.done()


def half_closed() -> Http:
    """Return a call whose client half-closes before the answer."""
    return agent_late(Http().call("SendMessage", {"message": {}}, A2A_Version="1.0").end("eof", UP))


def agent_late(http: Http) -> Http:
    http.result({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "late"}]}})
    http.end("eof", DOWN)
    return http


def cut(script: Script, direction: Direction) -> Script:
    """Return the script with a reset in the middle of the last step of this direction."""
    index = max(
        i for i, (what, way, _) in enumerate(script.steps) if way is direction and what == "data"
    )
    what, way, data = script.steps[index]
    script.steps[index:] = [(what, way, data[: len(data) // 2])]
    return script.end("reset", direction)


STORIES: dict[str, Callable[[], Script]] = {
    "jsonrpc": lambda: client_first(unary()),
    "jsonrpc stream": lambda: agent_first(streaming("t-1")),
    "rest stream": lambda: client_first(rest()),
    "grpc": lambda: client_first(grpc_call()),
    "grpc, the agent closes first": lambda: agent_first(grpc_call()),
    "half-closed before the answer": half_closed,
    "the client breaks off in a request": lambda: cut(unary(), UP),
    "the agent breaks off in an event": lambda: cut(streaming("t-1"), DOWN),
    "the agent breaks off in a gRPC answer": lambda: cut(grpc_call(), DOWN),
    "the client breaks off a gRPC call": lambda: cut(grpc_call(), UP),
}


@pytest.mark.parametrize("story", STORIES)
def test_byte_by_byte(story: str, listener: socket.socket, tmp_path: Path) -> None:
    """On every binding, with every kind of end."""
    script = STORIES[story]()
    with proxy(tmp_path, f"127.0.0.1:{listener.getsockname()[1]}", "", *UNCHANGED) as between:
        Player(between, listener, 1).play(script)
        check(between, script)


BIG = b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "result": {"pad": "%s"}}' % (
    b"pad " * 16_000_000
)


def big_http() -> Script:
    return client_first(Http().request("POST /", BIG, A2A_Version="1.0").answer(BIG))


def big_grpc() -> Script:
    """Return one message of 64 MB in DATA frames of 16 KiB."""
    pad = {
        "message": {
            "messageId": "m",
            "role": "ROLE_AGENT",
            "parts": [{"text": "pad " * 16_000_000}],
        }
    }
    message = from_dict("1.0", "StreamResponse", pad).SerializeToString()
    data = b"\0" + len(message).to_bytes(4, "big") + message
    script = Grpc().open(METHOD).send(b"").respond()
    script.agent(
        b"".join(frame(0, 0, 1, data[at : at + 16384]) for at in range(0, len(data), 16384))
    )
    return client_first(script.trailers())


@pytest.mark.parametrize(
    ("make", "pause"),
    [
        pytest.param(big_http, 0.0, id="HTTP/1.1, fast", marks=pytest.mark.soak),
        pytest.param(big_grpc, 0.005, id="gRPC, slow reader"),
        pytest.param(big_http, 0.005, id="HTTP/1.1, slow reader", marks=pytest.mark.soak),
        pytest.param(big_grpc, 0.0, id="gRPC, fast", marks=pytest.mark.soak),
    ],
)
def test_64_megabytes(
    make: Callable[[], Script], pause: float, listener: socket.socket, tmp_path: Path
) -> None:
    """In one message, also to a slow reader."""
    script = make()
    with proxy(tmp_path, f"127.0.0.1:{listener.getsockname()[1]}", "", *UNCHANGED) as between:
        Player(between, listener, 1 << 20, pause).play(script)
        check(between, script)


class Crowd(grpc.GenericRpcHandler):
    """An agent that answers when all clients are connected."""

    def __init__(self) -> None:
        self._here = 0
        self.all_here = asyncio.Event()

    async def wait(self) -> None:
        self._here += 1
        if self._here == MANY:
            self.all_here.set()
        await asyncio.wait_for(self.all_here.wait(), SECONDS)

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        return grpc.unary_stream_rpc_method_handler(self.send)

    async def send(self, _request: bytes, context: Any) -> Any:
        stream = dict(context.invocation_metadata())["stream"]
        yield from_dict("1.0", "StreamResponse", update(stream, 0)).SerializeToString()
        await self.wait()
        yield from_dict("1.0", "StreamResponse", update(stream, 1)).SerializeToString()


async def test_a_thousand_streams_on_one_connection(tmp_path: Path) -> None:
    """All are open at once, each with its own events; each is recorded completely."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Crowd(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    with proxy(tmp_path, f"127.0.0.1:{port}", "", *UNCHANGED) as between:
        async with grpc.aio.insecure_channel(between.address) as channel:

            async def talk(number: int) -> list[tuple[str, int]]:
                call = channel.unary_stream(METHOD)(b"", metadata=(("stream", str(number)),))
                return [(stream, n) async for message in call for stream, (n, _) in marks(message)]

            got = await asyncio.gather(*map(talk, range(MANY)))
        await asyncio.to_thread(between.stop)
    await server.stop(0)
    assert got == [[(str(number), 0), (str(number), 1)] for number in range(MANY)]
    with Recording(between.recording) as stored:
        exchanges = [row.exchange for row in stored.read_exchanges()]
        found = sorted(
            (int(s), n) for row in stored.frames_after(0) for s, (n, _) in marks(row.frame.payload)
        )
    assert found == [(number, event) for number in range(MANY) for event in (0, 1)]
    assert {(each.how, each.events, each.connection) for each in exchanges} == {("complete", 2, 1)}
    assert max(each.started for each in exchanges) < min(each.closed for each in exchanges)


async def all_closed(recording: Path) -> None:
    """Wait until all connections are recorded to their end."""
    while True:
        with Recording(recording) as stored:
            if sum(1 for row in stored.read_connections() if row.connection.closed) == MANY:
                return
        await asyncio.sleep(0.05)


async def test_a_thousand_connections(tmp_path: Path) -> None:
    """All are open at once over HTTP/1.1, each with its own bytes in both directions."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4 * MANY:
        pytest.skip("too few files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * MANY), hard))
    crowd = Crowd()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(
            int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        )
        await crowd.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=MANY)
    port = server.sockets[0].getsockname()[1]
    with proxy(tmp_path, f"127.0.0.1:{port}", "", *UNCHANGED) as between:

        async def talk(number: int) -> bool:
            body = b'{"jsonrpc": "2.0", "id": %d, "method": "SendMessage", "result": {}}' % number
            reader, writer = await asyncio.open_connection("127.0.0.1", between.port)
            writer.write(
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            await reader.readuntil(b"\r\n\r\n")
            same = await reader.readexactly(len(body)) == body
            writer.close()
            return same

        assert all(await asyncio.wait_for(asyncio.gather(*map(talk, range(MANY))), SECONDS))
        await asyncio.wait_for(
            all_closed(between.recording), SECONDS
        )  # a stop would abort open connections
        await asyncio.to_thread(between.stop)
    server.close()
    with Recording(between.recording) as stored:
        exchanges = [row.exchange for row in stored.read_exchanges()]
        connections = [row.connection for row in stored.read_connections()]
    assert sorted(int(each.rpc_id) for each in exchanges) == list(range(MANY))
    assert {each.how for each in exchanges} == {"complete"}
    assert {(each.how, each.lost_bytes) for each in connections} == {("client eof", 0)}
    assert max(each.opened for each in connections) < min(each.closed for each in connections)
