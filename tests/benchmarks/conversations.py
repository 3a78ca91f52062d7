"""Endless A2A conversations as bytes on the wire: gRPC streams, JSON-RPC streams over SSE, unary
calls.

Each source yields the bytes that one peer sent at once, as (direction, bytes), and the number of
A2A messages that they completed.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

import msgspec
from english import English
from hpack import Encoder

from a2a_proto import from_dict
from a2a_proxy.model.wire import Direction

Step = tuple[Direction, bytes, int]

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT
EVENTS = 50
"""Number of events of one stream: a task, status updates with a message each, two artifact chunks,
the final status."""
AGENT_EVENTS = 23
"""Number of events of one stream of an agent that writes with a language model."""
WORDS = 12
"""Bytes of text in one of its artifact chunks."""
GRPC_TEXT, JSON_TEXT = 160, 40
"""Bytes of text in a status update; with ids and names an event has about 300 bytes in both
bindings."""
_TASK, _CONTEXT, _MESSAGE = (digit * 36 for digit in "123")
_DATA, _HEADERS, _SETTINGS, _ACK = 0, 1, 4, 1
_END_STREAM, _END_HEADERS = 1, 4
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_REQUEST_FIELDS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/lf.a2a.v1.A2AService/SendStreamingMessage"),
    (":authority", "127.0.0.1:9000"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
    ("user-agent", "grpc-python-asyncio/1.85.1 grpc-c/52.0.0 (linux; chttp2)"),
    ("a2a-version", "1.0"),
]


def _update(text: str) -> dict[str, object]:
    message = {"messageId": _MESSAGE, "role": "ROLE_AGENT", "parts": [{"text": text}]}
    status = {"state": "TASK_STATE_WORKING", "message": message}
    return {"statusUpdate": {"taskId": _TASK, "contextId": _CONTEXT, "status": status}}


def _chunk(text: str, **members: bool) -> dict[str, object]:
    artifact = {"artifactId": "report", "parts": [{"text": text}]}
    return {
        "artifactUpdate": {"taskId": _TASK, "contextId": _CONTEXT, "artifact": artifact, **members}
    }


def _state(state: str) -> dict[str, object]:
    return {
        "statusUpdate": {
            "taskId": _TASK,
            "contextId": _CONTEXT,
            "status": {"state": f"TASK_STATE_{state}"},
        }
    }


_FIRST = {"task": {"id": _TASK, "contextId": _CONTEXT, "status": {"state": "TASK_STATE_SUBMITTED"}}}
_ASK = {
    "message": {"messageId": _MESSAGE, "role": "ROLE_USER", "parts": [{"text": "?" * GRPC_TEXT}]}
}


def json_text(value: object) -> bytes:
    return msgspec.json.encode(value)


def grpc_message(name: str, value: dict[str, object]) -> bytes:
    data = from_dict("1.0", name, value).SerializeToString()
    return struct.pack(">BI", 0, len(data)) + data


def _script(text: int) -> list[dict[str, object]]:
    """Return the events of one stream, without text and ids."""
    middle = [_update("?" * text) for _ in range(1, EVENTS - 1)]
    middle[EVENTS // 3] = _chunk("?" * text)
    middle[EVENTS // 2] = _chunk("?" * text, append=True, lastChunk=True)
    return [_FIRST, *middle, _state("COMPLETED")]


class Filler:
    """Fills new text and ids into a template without changing its length, so that the lengths in it
    stay correct."""

    def __init__(self, english: English) -> None:
        self._english = english

    def begin(self) -> None:
        """Start another task."""
        self._task, self._context = self._english.uuid(), self._english.uuid()

    def fill(self, template: bytes, text: int) -> bytes:
        """Fill one message."""
        filled = template.replace(_TASK.encode(), self._task).replace(
            _CONTEXT.encode(), self._context
        )
        if b"?" * text in filled:
            filled = filled.replace(b"?" * text, self._english.sentence(text))
        return filled.replace(_MESSAGE.encode(), self._english.uuid())


def grpc_connection(english: English, streams: int) -> Iterator[Step]:
    """Yield one HTTP/2 connection with that many streams at the same time; a new one replaces each
    that ends."""
    yield UP, _PREFACE + frame(_SETTINGS, 0, 0), 0
    yield DOWN, frame(_SETTINGS, 0, 0) + frame(_SETTINGS, _ACK, 0), 0
    client, server, numbers = Encoder(), Encoder(), itertools.count(1, 2)
    events = [grpc_message("StreamResponse", event) for event in _script(GRPC_TEXT)]
    ask = grpc_message("SendMessageRequest", _ASK)

    def calls() -> Iterator[Step]:
        filler = Filler(english)
        while True:
            number = next(numbers)
            filler.begin()
            head = frame(_HEADERS, _END_HEADERS, number, client.encode(_REQUEST_FIELDS))
            yield UP, head + frame(_DATA, _END_STREAM, number, filler.fill(ask, GRPC_TEXT)), 1
            fields = [(":status", "200"), ("content-type", "application/grpc")]
            head = frame(_HEADERS, _END_HEADERS, number, server.encode(fields))
            for event in events:
                yield DOWN, head + frame(_DATA, 0, number, filler.fill(event, GRPC_TEXT)), 1
                head = b""
            trailers = server.encode([("grpc-status", "0")])
            yield DOWN, frame(_HEADERS, _END_HEADERS | _END_STREAM, number, trailers), 0

    yield from _in_turn([calls() for _ in range(streams)])


def sse_connection(english: English) -> Iterator[Step]:
    """Yield one HTTP/1.1 connection with one JSON-RPC stream after another."""
    filler = Filler(english)
    numbers = itertools.count(1)
    template = b'{"jsonrpc":"2.0","id":%d,"result":%b}'
    events = [json_text(event) for event in _script(JSON_TEXT)]
    ask = json_text(_ASK)
    while True:
        number = next(numbers)
        filler.begin()
        body = b'{"jsonrpc":"2.0","id":%d,"method":"SendStreamingMessage","params":%b}'
        yield (
            UP,
            post(body % (number, filler.fill(ask, GRPC_TEXT)), b"Accept: text/event-stream\r\n"),
            1,
        )
        head = _STREAM_HEAD
        for event in events:
            data = b"data: %b\r\n\r\n" % (template % (number, filler.fill(event, JSON_TEXT)))
            yield DOWN, head + b"%x\r\n%b\r\n" % (len(data), data), 1
            head = b""
        yield DOWN, b"0\r\n\r\n", 0


def agent_connection(english: English) -> Iterator[Step]:
    """Yield one HTTP/1.1 connection with one JSON-RPC stream after another, of an agent that
    streams its answer as a language model writes it: a task, a status, artifact chunks of some
    words, the final status."""
    filler = Filler(english)
    template = b'{"jsonrpc":"2.0","id":"%b","result":%b}'
    chunk, last = (
        _chunk("?" * WORDS, append=True, lastChunk=False),
        _chunk("?" * WORDS, append=True, lastChunk=True),
    )
    first = _chunk("?" * WORDS, append=False, lastChunk=False)
    script = [
        _FIRST,
        _state("WORKING"),
        first,
        *[chunk] * (AGENT_EVENTS - 5),
        last,
        _state("COMPLETED"),
    ]
    events = list(map(json_text, script))
    ask = json_text({**_ASK, "configuration": {"acceptedOutputModes": ["text/plain"]}})
    body = b'{"jsonrpc":"2.0","id":"%b","method":"SendStreamingMessage","params":%b}'
    while True:
        filler.begin()
        rpc = english.uuid()
        yield (
            UP,
            post(body % (rpc, filler.fill(ask, GRPC_TEXT)), b"Accept: text/event-stream\r\n"),
            1,
        )
        head = _STREAM_HEAD
        for event in events:
            data = b"data: %b\r\n\r\n" % (template % (rpc, filler.fill(event, WORDS)))
            yield DOWN, head + b"%x\r\n%b\r\n" % (len(data), data), 1
            head = b""
        yield DOWN, b"0\r\n\r\n", 0


def unary_connection(english: English) -> Iterator[Step]:
    """Yield one HTTP/1.1 connection with one JSON-RPC call after another; each creates a task and
    does not wait for its end."""
    filler = Filler(english)
    ask, answer = (
        json_text({**_ASK, "configuration": {"returnImmediately": True}}),
        json_text({"task": _update("?" * GRPC_TEXT)["statusUpdate"]}).replace(b'"taskId"', b'"id"'),
    )
    for number in itertools.count(1):
        filler.begin()
        call = b'{"jsonrpc":"2.0","id":%d,"method":"SendMessage","params":%b}'
        yield UP, post(call % (number, filler.fill(ask, GRPC_TEXT))), 1
        body = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (number, filler.fill(answer, GRPC_TEXT))
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(body)
        )
        yield DOWN, head + body, 1


def post(body: bytes, more: bytes = b"") -> bytes:
    head = (
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n"
        b"Content-Type: application/json\r\nA2A-Version: 1.0\r\n"
    )
    return head + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def _in_turn(sources: list[Iterator[Step]]) -> Iterator[Step]:
    for source in itertools.cycle(sources):
        yield next(source)
