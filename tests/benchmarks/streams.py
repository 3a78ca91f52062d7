"""Journals with many streams of one task, and with empty messages: `many-streams` of
`tests/benchmarks/run`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from conversations import DOWN, UP, frame, grpc_message, json_text, post
from hpack import Encoder
from journals import Record

from a2a_proxy.model.wire import ChunkKind, ConnectionFacts, DialFacts

EVENTS = 20
"""Number of events of each stream."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS, _HEADERS, _DATA, _ACK, _END_STREAM, _END_HEADERS = 4, 1, 0, 1, 1, 4
_PATH = "/lf.a2a.v1.A2AService/"
_ANSWER = [(":status", "200"), ("content-type", "application/grpc")]
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def opening(number: int) -> Iterator[Record]:
    """Yield the beginning of a connection."""
    facts = ConnectionFacts(
        f"127.0.0.1:{20000 + number % 40000}", "127.0.0.1:9000", "127.0.0.1:8000"
    )
    yield ChunkKind.OPEN, UP, number, msgspec.json.encode(facts), 0
    yield ChunkKind.DIALED, UP, number, msgspec.json.encode(DialFacts("127.0.0.1:8000")), 0


def _events(events: int, last: str) -> list[dict[str, Any]]:
    """Return the events of a subscription: the task, updates with different texts and pieces of an
    artifact, a final state if there is one."""
    facts = {"taskId": "?task", "contextId": "c"}
    made: list[dict[str, Any]] = [
        {"task": {"id": "?task", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}
    ]
    for number in range(1, events):
        part = {"parts": [{"text": f"step {number} of the work"}]}
        if number % 4 == 3:
            artifact = {"artifactId": "report", **part}
            made.append({"artifactUpdate": {**facts, "artifact": artifact, "append": number > 3}})
            continue
        message = {"messageId": f"m{number}", "role": "ROLE_AGENT", **part}
        status = {"state": "TASK_STATE_WORKING", "message": message}
        made.append({"statusUpdate": {**facts, "status": status}})
    if last:
        made.append({"statusUpdate": {**facts, "status": {"state": f"TASK_STATE_{last}"}}})
    return made


def sse(
    streams: int, tasks: int, events: int = EVENTS, last: str = "COMPLETED"
) -> Iterator[Record]:
    """Yield that many JSON-RPC subscriptions, each on its own connection, which send the same
    events in turn."""
    for number in range(1, streams + 1):
        yield from opening(number)
        body = b'{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"t%d"}}' % (
            number % tasks
        )
        yield ChunkKind.DATA, UP, number, post(body, b"Accept: text/event-stream\r\n"), 1
    head = _STREAM_HEAD
    for event in map(json_text, _events(events, last)):
        for number in range(1, streams + 1):
            told = event.replace(b"?task", b"t%d" % (number % tasks))
            data = b'data: {"jsonrpc":"2.0","id":1,"result":%b}\n\n' % told
            yield ChunkKind.DATA, DOWN, number, head + b"%x\r\n%b\r\n" % (len(data), data), 1
        head = b""
    for number in range(1, streams + 1) if last else ():
        yield ChunkKind.DATA, DOWN, number, b"0\r\n\r\n", 0
        yield ChunkKind.CLOSED, UP, number, b"", 0


def grpc(
    streams: int, tasks: int, events: int = EVENTS, last: str = "COMPLETED"
) -> Iterator[Record]:
    """Yield the same on one HTTP/2 connection."""
    client, agent = yield from _http2()
    for number in range(streams):
        call = grpc_message("SubscribeToTaskRequest", {"id": f"t{number % tasks}"})
        yield ChunkKind.DATA, UP, 1, _call(client, "SubscribeToTask", 2 * number + 1, call), 1
    begun = False
    for event in _events(events, last):
        for number in range(streams):
            text = msgspec.json.encode(event).replace(b"?task", b"t%d" % (number % tasks))
            data = frame(
                _DATA, 0, 2 * number + 1, grpc_message("StreamResponse", msgspec.json.decode(text))
            )
            head = (
                b""
                if begun
                else frame(_HEADERS, _END_HEADERS, 2 * number + 1, agent.encode(_ANSWER))
            )
            yield ChunkKind.DATA, DOWN, 1, head + data, 1
        begun = True
    for number in range(streams) if last else ():
        trailers = agent.encode([("grpc-status", "0")])
        yield (
            ChunkKind.DATA,
            DOWN,
            1,
            frame(_HEADERS, _END_HEADERS | _END_STREAM, 2 * number + 1, trailers),
            0,
        )


def empty(messages: int, size: int = 16_000) -> Iterator[Record]:
    """Yield one gRPC subscription whose agent sends that many empty messages, in large pieces."""
    client, agent = yield from _http2()
    yield (
        ChunkKind.DATA,
        UP,
        1,
        _call(client, "SubscribeToTask", 1, grpc_message("SubscribeToTaskRequest", {"id": "t0"})),
        1,
    )
    yield ChunkKind.DATA, DOWN, 1, frame(_HEADERS, _END_HEADERS, 1, agent.encode(_ANSWER)), 0
    each = size // 5
    for at in range(0, messages, 4 * each):
        counts = [
            min(each, messages - begin) for begin in range(at, min(messages, at + 4 * each), each)
        ]
        yield (
            ChunkKind.DATA,
            DOWN,
            1,
            b"".join(frame(_DATA, 0, 1, b"\0" * 5 * many) for many in counts),
            sum(counts),
        )


def _http2() -> Iterator[Any]:
    yield from opening(1)
    yield ChunkKind.DATA, UP, 1, _PREFACE + frame(_SETTINGS, 0, 0), 0
    yield ChunkKind.DATA, DOWN, 1, frame(_SETTINGS, 0, 0) + frame(_SETTINGS, _ACK, 0), 0
    return Encoder(), Encoder()


def _call(client: Encoder, method: str, number: int, message: bytes) -> bytes:
    fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", _PATH + method),
        (":authority", "127.0.0.1:9000"),
    ]
    fields += [("content-type", "application/grpc"), ("te", "trailers"), ("a2a-version", "1.0")]
    head = frame(_HEADERS, _END_HEADERS, number, client.encode(fields))
    return head + frame(_DATA, _END_STREAM, number, message)
