"""h11, httpx-sse, h2 and grpcio read the same messages as the decoders in every sample, as bytes of
its peers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import h11
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived

from a2a_proxy.http import PREFACE
from a2a_proxy.model.values import Frame, FrameKind
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from support_http2 import frame, literal
from support_mutations import SAMPLES, chunks, loaded
from support_observer import observe
from support_sse import read_events

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT
NAMES = sorted(
    str(path.relative_to(SAMPLES)).removesuffix(".a2a.jsonl")
    for path in SAMPLES.rglob("*.a2a.jsonl")
    if path.name != "stdio.a2a.jsonl"  # no library reads it
)
BESIDE = {
    FrameKind.COMMENT,
    FrameKind.END,
    FrameKind.CUT,
    FrameKind.CONTROL,
    FrameKind.UNDECODABLE,
    FrameKind.LOG,
}
SECONDS = 20.0
SETTINGS_BYTES = 9
RESET_BYTES = 13
DATA, HEADERS, RST_STREAM = 0, 1, 3
END_STREAM, END_HEADERS = 1, 4
LAST_DATA = frame(DATA, END_STREAM, 1)
TRAILERS = frame(HEADERS, END_STREAM | END_HEADERS, 1, literal(b"grpc-status", b"0"))
Messages = dict[Direction, list[bytes]]


def bytes_of(pieces: list[Chunk]) -> dict[int, dict[Direction, bytes]]:
    """Return the bytes of each connection in both directions."""
    sent: dict[int, dict[Direction, bytes]] = {}
    for chunk in pieces:
        if chunk.kind is ChunkKind.DATA:
            connection = sent.setdefault(chunk.connection, {UP: b"", DOWN: b""})
            connection[chunk.direction] += chunk.data
    return sent


def messages_of(pieces: list[Chunk]) -> dict[int, Messages]:
    """Return the messages of each connection as the decoders read them, without empty ones."""
    found: dict[int, Messages] = {}
    for each in observe(pieces).out:
        if isinstance(each, Frame) and each.kind not in BESIDE and each.payload:
            found.setdefault(each.connection, {UP: [], DOWN: []})[each.direction].append(
                each.payload
            )
    return found


def read_http1(sent: dict[Direction, bytes]) -> Messages:
    """Return the bodies as h11 reads them, an event stream as the events that httpx-sse reads in
    it."""
    agent, client = h11.Connection(h11.SERVER), h11.Connection(h11.CLIENT)
    method, _, request = read_body(agent, sent[UP])
    client.send(h11.Request(method=method, target="/", headers=[("Host", "h")]))
    client.send(h11.EndOfMessage())
    _, kind, response = read_body(client, sent[DOWN]) if sent[DOWN] else (b"", b"", b"")
    events = read_events(response) if kind.startswith(b"text/event-stream") else [response]
    return {UP: [request] if request else [], DOWN: [each for each in events if each]}


def read_body(peer: h11.Connection, wire: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the method, the content type and the body of the one message; the body up to where it
    breaks off."""
    method, kind, body = b"", b"", b""
    peer.receive_data(wire)
    while (event := peer.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
        if isinstance(event, h11.Request | h11.Response):
            method = event.method if isinstance(event, h11.Request) else b""
            kind = dict(event.headers).get(b"content-type", b"")
        elif isinstance(event, h11.Data):
            body += event.data
        else:
            break
    return method, kind, body


def read_http2(sent: dict[Direction, bytes]) -> Messages:
    """Return the gRPC messages in the DATA frames that h2 reads."""
    lenient: dict[str, Any] = {"validate_inbound_headers": False, "header_encoding": None}
    agent = H2Connection(H2Configuration(client_side=False, **lenient))
    client = H2Connection(H2Configuration(client_side=True, **lenient))
    for peer in (agent, client):
        peer.initiate_connection()
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"h")]
    client.send_headers(1, fields)
    return {
        direction: list(
            split_messages(
                b"".join(
                    each.data
                    for each in peer.receive_data(sent[direction])
                    if type(each) is DataReceived
                )
            )
        )
        for direction, peer in ((UP, agent), (DOWN, client))
    }


def split_messages(body: bytes) -> Iterator[bytes]:
    """Yield the complete messages that are not empty."""
    while len(body) >= 5 and len(body) >= 5 + (size := int.from_bytes(body[1:5])):
        if size:
            yield body[5 : 5 + size]
        body = body[5 + size :]


def read_grpc(sent: dict[Direction, bytes]) -> Messages:
    """Return the messages that a server and a client of grpcio receive when their peer sends these
    bytes."""
    return {
        UP: serve_grpc(with_end(sent[UP], LAST_DATA)),
        DOWN: call_grpc(with_end(sent[DOWN], TRAILERS)),
    }


def serve_grpc(wire: bytes) -> list[bytes]:
    """Send the bytes of a client to a server."""
    got: list[bytes] = []
    done = threading.Event()

    def take(requests: Iterator[bytes], _: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            got.extend(requests)
        finally:
            done.set()
        return iter(())

    class Handler(grpc.GenericRpcHandler):
        def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            return grpc.stream_stream_rpc_method_handler(take)

    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool, handlers=[Handler()])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(wire)
            assert done.wait(SECONDS)
        server.stop(0).wait()
    return [each for each in got if each]


def call_grpc(wire: bytes) -> list[bytes]:
    """Answer the call of a client with the bytes of an agent."""
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener, wire))
        thread.start()
        with (
            grpc.insecure_channel(f"127.0.0.1:{listener.getsockname()[1]}") as channel,
            contextlib.suppress(grpc.RpcError),  # its status is not compared
        ):
            got.extend(channel.unary_stream("/a/b")(b"", timeout=SECONDS))
        thread.join()
    return [each for each in got if each]


def answer(listener: socket.socket, wire: bytes) -> None:
    """Send SETTINGS, on which grpcio waits, and all else after the HEADERS of the call."""
    client, _ = listener.accept()
    with client:
        client.settimeout(SECONDS)
        client.sendall(wire[:SETTINGS_BYTES])
        received = b""
        while HEADERS not in (kind for kind, _ in read_frames(received)):
            received += client.recv(65536)
        client.sendall(wire[SETTINGS_BYTES:])
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while client.recv(65536):
                pass


def read_frames(wire: bytes) -> Iterator[tuple[int, int]]:
    """Yield the type and the flags of each HTTP/2 frame."""
    wire = wire.removeprefix(PREFACE)
    while len(wire) >= 9:
        yield wire[3], wire[4]
        wire = wire[9 + int.from_bytes(wire[:3]) :]


def with_end(wire: bytes, end: bytes) -> bytes:
    """Return the bytes without RST_STREAM, and with the end of the stream where they have none:
    grpcio drops messages that it receives together with a reset or the end of the connection."""
    frames = list(read_frames(wire))
    wire = wire[:-RESET_BYTES] if RST_STREAM in (kind for kind, _ in frames) else wire
    has_end = any(kind in (DATA, HEADERS) and flags & END_STREAM for kind, flags in frames)
    return wire if has_end else wire + end


@pytest.mark.parametrize("name", NAMES)
def test_libraries_read_the_same_messages(name: str) -> None:
    """In each connection and direction."""
    pieces = chunks(loaded(name))
    ours = messages_of(pieces)
    assert ours
    for number, sent in bytes_of(pieces).items():
        found = ours.get(number, {UP: [], DOWN: []})
        if sent[UP].startswith(PREFACE):
            assert read_http2(sent) == found, number
            assert read_grpc(sent) == found, number
        else:
            assert read_http1(sent) == found, number
