"""Expressions of the filter language, drawn by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from a2a_proxy.recording.query.fields import FIELDS, Field
from a2a_proxy.recording.query.tree import COMPARISONS, And, Anything, Match, Node, Not, Op, Or, Range

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


def _of(field: Field, said: st.SearchStrategy[str]) -> st.SearchStrategy[Match]:
    ways = [
        st.builds(Match, st.just(field.name), st.just(op), _value(field, op, said), _side(field))
        for op in field.kind.ops
    ]
    if field.kind.ranges:
        ends = st.sampled_from([each for each in NUMBERS[field.kind.name] if not each.isupper()]).map(field.kind.read)
        ranges = st.builds(Range, ends, ends)
        ways.append(st.builds(Match, st.just(field.name), st.just(Op.HAS), ranges, _side(field)))
    return st.one_of(ways)


def _side(field: Field) -> st.SearchStrategy[str]:
    return st.sampled_from(["", "req", "resp"]) if field.sides else st.just("")


def _value(field: Field, op: Op, said: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    if op is Op.MATCHES:
        return st.sampled_from(PATTERNS)
    if field.kind.name in NUMBERS:
        texts = [text for text in NUMBERS[field.kind.name] if op not in COMPARISONS or not text.isupper()]
        found = st.sampled_from(texts).map(field.kind.read)
    elif field.kind.words:
        found = st.sampled_from(field.kind.words).map(field.kind.read)
    else:
        found = said.map(field.kind.read)
    any_value = op in (Op.HAS, Op.IS) and field.kind.name != "answer"
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
