"""Expressions of the filter language, drawn by Hypothesis, and a recording that has something for each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame
from a2a_proxy.recording.query.fields import FIELDS, QueryField
from a2a_proxy.recording.query.tree import COMPARISONS, And, Anything, Match, Node, Not, Number, Op, Or, Range
from a2a_proxy.recording.query.words import FLAG
from a2a_proxy.recording.write.note_writer import NotePlace, annotate
from a2a_proxy.recording.write.writer import Writer
from support_conversation import Http
from support_observer import START, fresh, grpc_call, scripted, unary
from support_recording import facts

NUMBERS = {
    "number": ["0", "1", "2", "3", "7", "200", "404", "500", "-32001", "12345678901"],
    "duration": ["0ms", "100us", "1ms", "20ms", "0.5s", "2s", "1m"],
    "size": ["0", "5", "64", "200", "1kB", "2KiB"],
    "code": ["5", "-32001", "404", "TASK_NOT_FOUND", "UNAVAILABLE"],
    "time": ["+0s", "+1s", "+3.5s", "2026-11-21", "2026-11-21T20:28:13Z", "12:30"],
}
WORDS = [
    "a",
    "task",
    "order",
    "hello",
    "e7",
    "text/",
    "127.0.0.1",
    "json",
    "4d1144cc-dd",
    "1",
    "(",
    'say "',
    "\\",
    "é\n",
    "*",
]
PATTERNS = ["a.c", "^[0-9a-f]+-", "(?i)TASK", "x|y", "[0-9]{3}", "$"]
PATHS = [
    "$.result",
    "$.result.task.id",
    "$.params.message.parts[0].text",
    "$[*]",
    '$["jsonrpc"]',
    "$.result.statusUpdate.*",
]


def matches(words: list[str] | None = None) -> st.SearchStrategy[Match]:
    """One condition on any field, with a value of its kind."""
    said = st.sampled_from(words or WORDS)
    return st.one_of(st.sampled_from(list(FIELDS.values())).flatmap(lambda f: _of(f, said)), _path(said))


def _of(field: QueryField, said: st.SearchStrategy[str]) -> st.SearchStrategy[Match]:
    ways = [
        st.builds(Match, st.just(field.name), st.just(op), _value(field, op, said), _side(field))
        for op in field.kind.ops
    ]
    if field.kind.ranges:
        ends = st.sampled_from([each for each in NUMBERS[field.kind.name] if not each.isupper()]).map(field.kind.read)
        ranges = st.builds(Range, ends, ends).filter(_ordered)
        ways.append(st.builds(Match, st.just(field.name), st.just(Op.HAS), ranges, _side(field)))
    return st.one_of(ways)


def _ordered(range_: Range) -> bool:
    """Numbers the other way round are a mistake."""
    low, high = range_.low, range_.high
    return not (isinstance(low, Number) and isinstance(high, Number)) or low.value <= high.value


def _side(field: QueryField) -> st.SearchStrategy[str]:
    return st.sampled_from(["", "req", "resp"]) if field.sides else st.just("")


def _value(field: QueryField, op: Op, said: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    if op is Op.MATCHES:
        return st.sampled_from(PATTERNS)
    if field.kind.name in NUMBERS:
        texts = [text for text in NUMBERS[field.kind.name] if op not in COMPARISONS or not text.isupper()]
        found = st.sampled_from(texts).map(field.kind.read)
    elif field.kind.words:
        found = st.sampled_from(field.kind.words).map(field.kind.read)
    else:
        found = said.map(field.kind.read)
    any_value = op in (Op.HAS, Op.IS) and field.kind is not FLAG
    return found | st.just(Anything()) if any_value else found


def _path(said: st.SearchStrategy[str]) -> st.SearchStrategy[Match]:
    sides = st.sampled_from(["", "req", "resp"])
    texts = st.builds(
        Match, st.sampled_from(PATHS), st.sampled_from([Op.HAS, Op.IS]), said | st.just(Anything()), sides
    )
    numbers = st.sampled_from(["0", "1.5", "-3"])
    compared = st.builds(Match, st.sampled_from(PATHS), st.sampled_from(COMPARISONS), numbers, sides)
    return (
        texts
        | compared
        | st.builds(Match, st.sampled_from(PATHS), st.just(Op.MATCHES), st.sampled_from(PATTERNS), sides)
    )


def nodes(words: list[str] | None = None) -> st.SearchStrategy[Node]:
    """Any expression."""

    def deeper(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return inner.map(Not) | several.map(And) | several.map(Or)

    return st.recursive(st.just(And()) | matches(words), deeper, max_leaves=5)


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
_EXTENSION = "https://example.com/ext/traceability/v1"
_TASKS = (
    "1234",
    "12",
    "order-7",
    "B2A4D0C4-0000-4000-8000-00000000000A",
    'weird "é"\n',
    "b2a4d0c4-0000-4000-8000-00000000000b",
)


def _asks(number: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [
        {"text": f'Order {number}: \u00c4pfel \u00fc. "now" / later'},
        {"data": {"n": number, "metadata": {"no": 1}}},
    ]
    if number % 2:
        parts.append({"raw": "QUJD", "mediaType": "image/png", "filename": "a.png"})
    else:
        parts.append({"url": "https://example.com/a", "mediaType": "Text/Plain", "metadata": {"part": True}})
    message = {"messageId": f"m-{number}", "role": "ROLE_USER", "parts": parts, "extensions": [_EXTENSION]}
    return {"message": message, "metadata": {"tenant": "acme", "count": number}}


def _stream(number: int, task: str) -> Http:
    """A stream whose third event has a generation that leaves one out."""
    fields = {"A2A_Version": "1.1", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-0{number}"}
    if number != 1:
        fields["A2A_Extensions"] = _EXTENSION
    http = Http().call("SendStreamingMessage", _asks(number), rpc_id=number, **fields).stream()
    ids = {"taskId": task, "contextId": f"ctx-{number}"}
    http.rpc_event(
        {
            "task": {
                "id": task,
                "contextId": f"ctx-{number}",
                "status": {"state": "TASK_STATE_SUBMITTED"},
                "generation": "1",
            }
        },
        number,
    )
    http.rpc_event({"statusUpdate": {**ids, "status": {"state": "TASK_STATE_WORKING"}, "generation": "2"}}, number)
    chunk = {
        **ids,
        "artifact": {"artifactId": "a", "parts": [{"text": "x" * 5000}]},
        "lastChunk": True,
        "generation": str(2 + number),
    }
    http.rpc_event({"artifactUpdate": chunk}, number)
    http.rpc_event(
        {"statusUpdate": {**ids, "status": {"state": "TASK_STATE_COMPLETED"}, "generation": str(3 + number)}}, number
    )
    return http.done()


def rich(path: Path) -> Path:
    """A recording of two sessions that has what no sample has: gaps, traces, extensions, metadata, files, odd ids."""
    for session in (1, 2):
        talks = [
            scripted(_stream(number, task), number, START + number * 1_500_000_000)
            for number, task in enumerate(_TASKS, 1)
        ]
        talks += [scripted(grpc_call(), 8, START + 20_000_000_000), scripted(unary(), 9, START + 21_000_000_000)]
        observer = fresh()
        out: list[Any] = []
        chunks = [chunk for talk in talks for chunk in talk]
        for chunk in chunks:
            observer.feed(chunk, out)
        writer = Writer(path, facts(session, started=START, listens=("127.0.0.1:9000",), upstreams=("agent:8000",)))
        found = [each for each in out if isinstance(each, Finding)]
        writer.write([each for each in out if isinstance(each, Frame)], found, observer.changes())
        writer.finish(chunks[-1].at)
    annotate(path, NotePlace(1), START, text="the retry run")
    annotate(path, NotePlace(1, 2), START, text="the order that hello answers", bookmark=True)
    annotate(path, NotePlace(2, 3, 2), START + 1, text="a task: retry here", bookmark=True)
    annotate(path, NotePlace(2, 4, 0), START + 2, bookmark=True)
    return path
