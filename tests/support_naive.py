"""A second implementation of the filter language, over decoded values, for comparison with the
SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from a2a_proxy.model.values import Connection, Exchange, Finding, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.outcome import latency_origin, outcome_of
from a2a_proxy.recording.query.kinds import parse_rule
from a2a_proxy.recording.query.tree import (
    And,
    Anything,
    Match,
    Node,
    Not,
    Number,
    Op,
    Or,
    Range,
    TimeValue,
    WordValue,
)
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, SessionRow, make_key


class OneFrame:
    """A frame with its exchange, connection and session."""

    def __init__(self, row: FrameRow, world: World) -> None:
        self.id, self.session, self.frame = row.id, world.sessions[row.session], row.frame
        self.exchange = world.exchanges.get(row.exchange_key)
        self.connection = world.connections[make_key(row.session, row.frame.connection)]
        self.findings = [each for each in world.findings[row.session] if _concerns(each, row.frame)]
        notes = world.notes[row.session] if row.frame.exchange else []
        self.notes = [
            n for n in notes if n.exchange == row.frame.exchange and n.seq in (-1, row.frame.seq)
        ]

    @cached_property
    def value(self) -> Any:
        """Return the payload as JSON."""
        return decode_payload(self.frame.payload, self.frame.schema) if self.frame.payload else None


class OneExchange:
    """An exchange with its frames and findings."""

    def __init__(self, row: ExchangeRow, world: World) -> None:
        self.id, self.session, self.exchange = row.key, world.sessions[row.session], row.exchange
        self.connection = world.connections[make_key(row.session, row.exchange.connection)]
        self.findings = [
            each for each in world.findings[row.session] if each.exchange == row.exchange.id
        ]
        self.notes = [each for each in world.notes[row.session] if each.exchange == row.exchange.id]
        self.cause = world.causes.get(row.key, "")
        self.frames: list[OneFrame] = []


class World:
    """A whole recording in memory."""

    def __init__(self, recording: Recording) -> None:
        self.sessions: dict[int, SessionRow] = {each.id: each for each in recording.read_sessions()}
        self.findings = {
            each: [row.finding for row in recording.read_findings(each)] for each in self.sessions
        }
        self.notes = {
            each: [row.note for row in recording.read_notes(each)] for each in self.sessions
        }
        self.connections: dict[int, Connection] = {
            row.key: row.connection for row in recording.read_connections()
        }
        self.causes = {
            key: each.cause
            for key, each in EndingReader(recording).read_all(recording.read_exchanges()).items()
        }
        self.exchanges = {row.key: OneExchange(row, self) for row in recording.read_exchanges()}
        self.frames = [OneFrame(row, self) for row in recording.frames_after(0)]
        for each in self.frames:
            if each.exchange is not None:
                each.exchange.frames.append(each)

    def frames_with(self, node: Node) -> list[int]:
        """Return the ids of the frames that match."""
        return [each.id for each in self.frames if holds(node, partial(frame_has, each))]

    def exchanges_with(self, node: Node) -> list[int]:
        """Return the keys of the exchanges that match."""
        return [
            each.id for each in self.exchanges.values() if holds(node, partial(exchange_has, each))
        ]


def _concerns(finding: Finding, frame: Frame) -> bool:
    if finding.exchange != frame.exchange or (
        not frame.exchange and finding.connection != frame.connection
    ):
        return False
    return finding.seq in (-1, frame.seq)


def holds(node: Node, has: Callable[[Match], bool]) -> bool:
    """Evaluate the logical operators."""
    if isinstance(node, And):
        return all(holds(item, has) for item in node.items)
    if isinstance(node, Or):
        return any(holds(item, has) for item in node.items)
    return not holds(node.item, has) if isinstance(node, Not) else has(node)


def frame_has(one: OneFrame, match: Match) -> bool:
    """Return whether a condition about frames is true."""
    if (
        match.side
        and match.field != "header"
        and (match.side == "resp") != (one.frame.direction is Direction.TO_CLIENT)
    ):
        return False
    if match.field in _OF_FRAME or match.field.startswith("$"):
        if _frame(match, one):
            return True
        return (
            match.field == "ext"
            and not match.side
            and one.exchange is not None
            and _own(match, one.exchange)
        )
    if match.field in _OF_BOTH:
        return _shared(match, one, one.frame.at)
    return one.exchange is not None and _own(match, one.exchange)


def exchange_has(one: OneExchange, match: Match) -> bool:
    """Return whether a condition about exchanges is true."""
    if match.field in _OF_BOTH:
        return _shared(match, one, one.exchange.started)
    if match.field not in _OF_FRAME and not match.field.startswith("$"):
        return _own(match, one)
    if (
        not match.side
        and match.field in ("task", "ctx", "code", "ext", "src", "err")
        and _own(match, one)
    ):
        return True
    return any(frame_has(each, match) for each in one.frames)


_OF_BOTH = ("gap", "finding", "sev", "rule", "agent", "peer", "t", "rec", "bookmark")
_OF_FRAME = {
    "dir",
    "kind",
    "task",
    "ctx",
    "msg",
    "state",
    "part",
    "mime",
    "ext",
    "code",
    "gen",
    "err",
    "meta",
}
_OF_FRAME |= {"size", "src", "note", "text"}


def _names_rule(match: Match, rule: str) -> bool:
    """Whether a condition on the words of a finding names its rule."""
    if not isinstance(match.value, str) or match.op is Op.MATCHES:
        return False
    ident = parse_rule(match.value)
    if match.op is Op.IS:
        return rule == ident
    return rule.startswith(f"{ident}-" if re.fullmatch("A2A-[A-Z]+", ident) else ident)


def _shared(match: Match, one: OneFrame | OneExchange, at: int) -> bool:
    found, facts = one.findings, one.session.facts
    if match.field == "gap":
        return any(each.rule == "A2A-GEN-001" for each in found)
    if match.field == "finding":
        return any(_text(match, each.summary) or _names_rule(match, each.rule) for each in found)
    if match.field == "rule":
        return any(_begins(match, each.rule) for each in found)
    if match.field == "sev":
        return any(_number(match, int(each.severity)) for each in found)
    if match.field == "bookmark":
        return any(each.bookmark for each in one.notes)
    if match.field == "t":
        return _time(match, at, facts.started)
    if match.field == "rec":
        number = (
            isinstance(match.value, str) and match.value.isdecimal() and match.op is not Op.MATCHES
        )
        return match.value == str(one.session.id) if number else _begins(match, facts.uuid)
    connection, call = one.connection, one if isinstance(one, OneExchange) else one.exchange
    if match.field == "peer":
        return _text(match, connection.client) or _text(match, connection.peer)
    named = call is not None and _text(match, call.exchange.agent)
    return named or _text(match, connection.upstream) or _text(match, connection.peer)


def _frame(match: Match, one: OneFrame) -> bool:
    frame, value = one.frame, match.value
    if match.field == "err":
        return (
            frame.kind in (FrameKind.ERROR, FrameKind.CUT, FrameKind.UNDECODABLE)
            or frame.error_code != 0
        )
    if match.field == "src":
        return isinstance(value, Anything) or value == WordValue(
            "proxy" if frame.ours else "peer", (int(frame.ours),)
        )
    if match.field == "kind":
        assert isinstance(value, Anything | WordValue)
        return isinstance(value, Anything) or value.keys[0] in (int(frame.kind), 100 + frame.event)
    if match.field == "dir":
        return isinstance(value, Anything) or _number(match, int(frame.direction))
    numbers = {"state": frame.state, "gen": frame.generation, "code": frame.error_code}
    if match.field in numbers:
        return numbers[match.field] != 0 and _number(match, numbers[match.field])
    if match.field == "size":
        return _number(match, frame.size)
    begun = {"task": frame.task_id, "ctx": frame.context_id, "msg": frame.message_id}
    if match.field in begun:
        return _begins(match, begun[match.field])
    if match.field == "note":
        return any(_text(match, each) for each in (frame.note, *(note.text for note in one.notes)))
    return _payload(match, one)


def _payload(match: Match, one: OneFrame) -> bool:
    if match.field == "text":
        text = one.frame.payload.decode("utf-8", "replace")
        return _text(match, text) or (
            match.op is Op.HAS and "\\" in text and _text(match, _unescaped(text))
        )
    if match.field == "part":
        kinds = {_part(part) for part in _parts(one.value)} - {None}
        assert isinstance(match.value, Anything | WordValue)
        return bool(kinds if isinstance(match.value, Anything) else kinds & set(match.value.keys))
    if match.field == "mime":
        return any(
            _begins(match, each.lower() if match.op is Op.HAS else each)
            for each in _types(one.value)
        )
    if match.field == "meta":
        lines = (
            f"{k}: {v if isinstance(v, str) else json.dumps(v)}"
            for m in _named(one.value, "metadata")
            for k, v in m
        )
        return any(_text(match, line) for line in lines)
    if match.field == "ext":
        lists = _named(one.value, "extensions")
        uris = (
            each.get("uri") if isinstance(each, dict) else each for found in lists for each in found
        )
        return any(_text(match, each) for each in uris if isinstance(each, str))
    if one.value is None:
        return False
    steps = re.findall(r'\.([\w*-]+)|\[("[^"]*"|\d+|\*)\]', match.field)
    places = [one.value]
    for name, index in steps:
        places = [inner for each in places for inner in _step(each, name or index.strip('"'))]
    return any(_leaf(match, each) for each in places)


def _step(value: Any, step: str) -> list[Any]:
    if step == "*":
        return (
            list(value.values())
            if isinstance(value, dict)
            else value
            if isinstance(value, list)
            else []
        )
    if isinstance(value, list):
        return [value[int(step)]] if step.isdecimal() and int(step) < len(value) else []
    return [value[step]] if isinstance(value, dict) and step in value else []


def _leaf(match: Match, value: Any) -> bool:
    if isinstance(match.value, Anything):
        return True
    if isinstance(value, dict | list):
        return False
    said = str(match.value)
    if match.op in _SIGNS:
        try:
            return not isinstance(value, bool | None) and _SIGNS[match.op](
                float(value), float(said)
            )
        except ValueError:
            return False
    if isinstance(value, str):
        return _text(match, value)
    if match.op is Op.MATCHES:
        return re.search(said, json.dumps(value)) is not None
    if isinstance(value, bool | None):
        return said == json.dumps(value)
    return re.fullmatch(r"-?\d+(\.\d+)?", said) is not None and float(said) == value


def _own(match: Match, one: OneExchange) -> bool:
    exchange, value = one.exchange, match.value
    zero = latency_origin(exchange)
    last = exchange.closed or exchange.last_event
    if match.field == "err":
        return bool(exchange.error or exchange.ours or exchange.how not in ("", "complete"))
    if match.field == "src":
        return isinstance(value, Anything) or value == WordValue(
            "proxy" if exchange.ours else "peer", (int(exchange.ours),)
        )
    if match.field == "outcome":
        return isinstance(value, Anything) or value == WordValue(
            outcome_of(exchange), (outcome_of(exchange),)
        )
    if match.field == "ending":
        return _label(match, one.cause)
    if match.field in ("op", "binding"):
        word = exchange.operation if match.field == "op" else str(exchange.binding)
        return value.text == word if isinstance(value, WordValue) else _text(match, word)
    if match.field == "ver":
        return any(_label(match, each) for each in (str(exchange.dialect), exchange.version_header))
    if match.field in ("code", "status"):
        number = exchange.error_code if match.field == "code" else exchange.status
        return number != 0 and _number(match, number)
    if match.field == "dur":
        return last != 0 and _number(match, max(last - zero, 0))
    if match.field == "ttfe":
        return exchange.first_event != 0 and _number(match, max(exchange.first_event - zero, 0))
    if match.field in ("task", "ctx"):
        return _begins(match, exchange.task_id if match.field == "task" else exchange.context_id)
    if match.field == "trace":
        return _begins(match, exchange.trace_context[3:35])
    if match.field == "ext":
        return _text(match, exchange.extensions)
    return _header(match, exchange)


def _header(match: Match, exchange: Exchange) -> bool:
    sides = {"req": exchange.request_headers, "resp": exchange.response_headers + exchange.trailers}
    fields = sides[match.side] if match.side else sides["req"] + sides["resp"]
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]
    if match.op is Op.IS and isinstance(match.value, str):
        return any(name.lower() == match.value.lower() for name, _ in pairs)
    return any(_text(match, f"{name}: {value}") for name, value in pairs)


def _text(match: Match, text: str) -> bool:
    if isinstance(match.value, Anything) or not text:
        return bool(text)
    said = str(match.value)
    if match.op is Op.MATCHES:
        return re.search(said, text) is not None
    return said == text if match.op is Op.IS else said.casefold() in text.casefold()


def _begins(match: Match, text: str) -> bool:
    if match.op is not Op.HAS or isinstance(match.value, Anything):
        return _text(match, text)
    return text.startswith(str(match.value))


def _label(match: Match, text: str) -> bool:
    if match.op is not Op.HAS or isinstance(match.value, Anything):
        return _text(match, text)
    return text.casefold() == str(match.value).casefold()


_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _number(match: Match, number: int) -> bool:
    value = match.value
    if isinstance(value, Anything):
        return True
    if isinstance(value, Range):
        assert isinstance(value.low, Number)
        assert isinstance(value.high, Number)
        return value.low.value <= number <= value.high.value
    if isinstance(value, WordValue):
        keys = [each for each in value.keys if isinstance(each, int)]
        return (
            any(_SIGNS[match.op](number, each) for each in keys)
            if match.op in _SIGNS
            else number in keys
        )
    assert isinstance(value, Number)
    return _SIGNS[match.op](number, value.value) if match.op in _SIGNS else number == value.value


def _time(match: Match, at: int, started: int) -> bool:
    value = match.value
    if isinstance(value, Anything):
        return True
    if isinstance(value, Range):
        assert isinstance(value.low, TimeValue)
        assert isinstance(value.high, TimeValue)
        return _when(value.low, started) <= at < _when(value.high, started) + value.high.span
    assert isinstance(value, TimeValue)
    when = _when(value, started)
    return _SIGNS[match.op](at, when) if match.op in _SIGNS else when <= at < when + value.span


def _when(moment: TimeValue, started: int) -> int:
    day = datetime.fromtimestamp(started // 10**9).replace(hour=0, minute=0, second=0)
    return (
        moment.ns
        + {"epoch": 0, "session": started, "day": int(day.timestamp()) * 10**9}[moment.base]
    )


def _unescaped(text: str) -> str:
    letters = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
    pattern = r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))'
    return re.sub(pattern, lambda m: chr(int(m[1], 16)) if m[1] else letters.get(m[2], m[2]), text)


def _walk(value: Any, closed: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield every member of a value with its name, except inside closed members."""
    for name, member in (
        value.items() if isinstance(value, dict) else [("", each) for each in value]
    ):
        yield name, member
        if isinstance(member, dict | list) and name not in closed:
            yield from _walk(member, closed)


def _named(value: Any, name: str) -> list[Iterable[Any]]:
    if not isinstance(value, dict | list):
        return []
    kind: type = dict if name == "metadata" else list
    found: list[Any] = [
        member
        for each, member in _walk(value, ("data", "metadata"))
        if each == name and isinstance(member, kind)
    ]
    return [list(each.items()) if isinstance(each, dict) else each for each in found]


def _parts(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, dict | list):
        return []
    lists = [
        m
        for n, m in _walk(value, ("data", "metadata", "parts", "content"))
        if n in ("parts", "content")
    ]
    return [
        part
        for found in lists
        if isinstance(found, list)
        for part in found
        if isinstance(part, dict)
    ]


def _part(part: dict[str, Any]) -> str | None:
    file = part.get("file") or part
    names = {
        "text": part,
        "data": part,
        "raw": file,
        "bytes": file,
        "fileWithBytes": file,
        "url": file,
        "uri": file,
    }
    names["fileWithUri"] = file
    words = {"bytes": "raw", "fileWithBytes": "raw", "uri": "url", "fileWithUri": "url"}
    return next((words.get(name, name) for name, holder in names.items() if name in holder), None)


def _types(value: Any) -> Iterator[str]:
    for part in _parts(value):
        for holder in (part, part.get("file") or {}):
            yield from (
                holder[name]
                for name in ("mediaType", "mimeType")
                if isinstance(holder.get(name), str)
            )
