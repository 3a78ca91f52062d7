"""Traffic of a hostile client or agent that keeps a proxy busy: many small messages, or few that
are expensive to read.

As a program, `support_floods.py PORT COUNT` is the agent of all floods, which also answers valid
requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
from collections.abc import Awaitable, Callable

import msgspec

from a2a_proxy.http import PREFACE

Bytes = Callable[[int], bytes]
"""Return the bytes of that many messages."""

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"


class Flood(msgspec.Struct, frozen=True):
    """A hostile connection."""

    client: Bytes
    mark: bytes = b""
    """Bytes of the client by which the agent recognises the flood; empty if the agent only
    listens."""
    answer: bytes = b""
    """Bytes that the agent sends each time it reads the mark."""
    agent: Bytes | None = None
    """Bytes that the agent sends when it first reads the mark."""
    agent_ends: bool = False
    """Whether the agent closes after that; otherwise the client closes after its last byte."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return one HTTP/2 frame."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def repeated(before: bytes, message: bytes) -> Bytes:
    """Return a function that repeats one message that many times."""
    return lambda count: before + message * count


def numbered(before: bytes, frames: Callable[[int], bytes]) -> Bytes:
    """Return a function that makes one frame on each of that many streams."""
    return lambda count: before + b"".join(map(frames, range(1, 2 * count, 2)))


SETTINGS = frame(4, 0, 0)
START = PREFACE + SETTINGS
REQUEST = b"\x83\x86\x84\x41\x05agent"
GROWING = REQUEST + b"".join(b"\x40\x03x-%x\x04abcd" % number for number in range(10))
"""Header fields that change the dynamic table, so that no two blocks are equal."""
GRPC = b"\x88\x0f\x10\x10application/grpc"
CARD, CARDS = b"/lf.a2a.v1.A2AService/GetExtendedAgentCard", b"/a2a.v1.A2AService/GetAgentCard"
CALLS = 256
"""Calls for a card whose answers are pending at the same time."""


def call(stream: int, path: bytes) -> bytes:
    """Return the HEADERS frame of a call."""
    return frame(1, 5, stream, b"\x83\x86\x04" + bytes((len(path),)) + path)


def wide(stream: int) -> bytes:
    """Return a request with 8,000 header fields."""
    return frame(1, 5, stream, REQUEST + b"\x90" * 8_000)


def updates(count: int) -> bytes:
    """Return WINDOW_UPDATE frames that are sent while many cards are pending."""
    return (
        numbered(START, lambda stream: call(stream, CARDS))(CALLS)
        + frame(8, 0, 0, b"\0\0\0\1") * count
    )


def stream(path: bytes) -> bytes:
    """Return a call for a stream of events over HTTP/1.1."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{}}'
    return b"POST %s HTTP/1.1\r\nHost: agent\r\nContent-Length: %d\r\n\r\n%s" % (
        path,
        len(body),
        body,
    )


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
FAULT = "drop 2 of SendStreamingMessage"
"""A fault that makes the proxy read the events of these calls."""

FLOODS = {
    "requests": Flood(repeated(b"", b"GET / HTTP/1.1\r\n\r\n")),
    "requests and answers": Flood(
        repeated(b"", b"GET /answers HTTP/1.1\r\n\r\n"),
        b"/answers",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ),
    "1xx answers": Flood(
        lambda _: b"GET /continue HTTP/1.1\r\n\r\n",
        b"/continue",
        agent=repeated(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        agent_ends=True,
    ),
    "wide heads": Flood(
        lambda count: (b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 16_000 + b"\r\n") * (count // 4_000)
    ),
    "small chunks": Flood(
        repeated(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n")
    ),
    "rapid resets": Flood(
        numbered(START, lambda s: frame(1, 5, s, REQUEST) + frame(3, 0, s, bytes(4)))
    ),
    "resets, new fields": Flood(
        numbered(START, lambda s: frame(1, 5, s, GROWING) + frame(3, 0, s, bytes(4)))
    ),
    "wide blocks": Flood(lambda count: numbered(START, wide)(count // 2_000)),
    "PING": Flood(repeated(START, frame(6, 0, 0, bytes(8)))),
    "SETTINGS": Flood(repeated(START, frame(4, 0, 0, b"\0\4\0\1\0\0"))),
    "WINDOW_UPDATE": Flood(repeated(START, frame(8, 0, 0, b"\0\0\0\1"))),
    "empty DATA": Flood(repeated(START + frame(1, 4, 1, REQUEST), frame(0, 0, 1))),
    "empty CONTINUATION": Flood(repeated(START + frame(1, 0, 1, REQUEST), frame(9, 0, 1))),
    "empty DATA of a card": Flood(
        lambda _: START + call(1, CARD),
        CARD,
        agent=repeated(frame(1, 4, 1, GRPC), frame(0, 0, 1)),
        agent_ends=True,
    ),
    "an event in chunks of one byte": Flood(
        lambda _: stream(b"/chunks"),
        b"/chunks",
        agent=repeated(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        agent_ends=True,
    ),
    "CR between events": Flood(
        lambda _: stream(b"/returns"),
        b"/returns",
        agent=repeated(EVENTS + b"\r\n", b"\r" * 20),
        agent_ends=True,
    ),
    "small events": Flood(
        lambda _: stream(b"/events"),
        b"/events",
        agent=repeated(EVENTS + b"\r\n", b"data:1\n\n"),
        agent_ends=True,
    ),
    "frames of 16 MB": Flood(
        lambda _: START + frame(1, 4, 1, REQUEST) + frame(0, 0, 1, bytes((1 << 24) - 1)) * 2
    ),
    "updates for cards": Flood(
        updates,
        CARDS,
        agent=lambda _: numbered(b"", lambda s: frame(1, 4, s, GRPC) + frame(0, 0, s, b"\0"))(
            CALLS
        ),
    ),
}


def agent_for(
    count: int,
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Run the agent of valid clients and of all floods of that many messages."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read(1 << 18)
        flood = next(
            (flood for flood in FLOODS.values() if flood.mark and flood.mark in data),
            FLOODS["requests"],
        )
        good = data.startswith(b"POST") and b"chunked" not in data and not flood.mark
        if data.startswith(PREFACE):
            writer.write(SETTINGS)
        if flood.agent is not None:
            writer.write(flood.agent(count))
        while data and not flood.agent_ends:
            if good or flood.answer:
                writer.write(ANSWER if good else flood.answer * data.count(flood.mark))
                await writer.drain()
            data = await reader.read(1 << 18)
        writer.close()

    return serve


def send(port: int, data: bytes, agent_ends: bool, seconds: float) -> None:
    """Send all bytes as a hostile client, and read until the connection ends or is idle for
    `seconds`."""
    with socket.create_connection(("127.0.0.1", port)) as sock, contextlib.suppress(OSError):
        sock.settimeout(seconds)
        reading = threading.Thread(target=_read_all, args=(sock,))
        reading.start()
        with contextlib.suppress(OSError):
            sock.sendall(data)
            if not agent_ends:
                sock.shutdown(socket.SHUT_WR)
        reading.join()


def _read_all(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while sock.recv(1 << 18):
            pass


async def main(port: int, count: int) -> None:
    """Serve until killed."""
    server = await asyncio.start_server(agent_for(count), "127.0.0.1", port, backlog=100)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
