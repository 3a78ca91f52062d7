"""Recorded conversations of real peers with one thing changed, converted to bytes again, and the
findings about them.

A mutation is a function that changes a `Talk` in one place and returns the expected findings and
their places. Every other finding that the unchanged conversation does not have is a false alarm.
"""

from __future__ import annotations

import copy
import importlib
import itertools
import json
import pickle
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import hpack
import msgspec
import pytest
from _pytest.mark import ParameterSet

from a2a_proto import from_dict, parse, to_dict
from a2a_proxy.cards.keys import parse_keys
from a2a_proxy.cards.verify import CardVerifier
from a2a_proxy.model.values import Binding, Exchange, Finding, Frame, FrameKind, Observation
from a2a_proxy.model.wire import Chunk, ChunkKind, ConnectionFacts, DialFacts, Direction, ExitFacts
from a2a_proxy.observer import Observer
from a2a_proxy.protocol.schema import is_protobuf, split_schema
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.endings.ending import CAUSES
from a2a_proxy.rules.examples.objects import CARD_KEYS
from a2a_proxy.rules.run import repeat_limit
from support_rules import endings

SAMPLES = Path(__file__).parent.parent / "recordings"
UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT
MS = 1_000_000

_SAID = frozenset(
    {FrameKind.REQUEST, FrameKind.RESPONSE, FrameKind.EVENT, FrameKind.ERROR, FrameKind.OTHER}
)
_DROPPED = frozenset({b"content-length", b"transfer-encoding", b"content-encoding"})
"""Header fields that are computed again, because the body may change."""
_number = itertools.count(1)


class Msg:
    """One message of a peer: a body, an event of a stream, or a gRPC message."""

    def __init__(self, data: bytes, at: int, schema: str, framing: str = "") -> None:
        self.uid = next(_number)
        self.data = data
        self.at = at
        """ns after the session's beginning."""
        self.schema = schema
        self.framing = framing
        self.wire: bytes | None = None
        """Bytes to send in place of the framed message: a whole SSE block, or gRPC DATA with its
        prefix."""

    @property
    def value(self) -> Any:
        """Return a copy of the payload as plain JSON (protobuf as ProtoJSON); pass it to `put`
        after changing it."""
        if is_protobuf(self.schema):
            line, name = split_schema(self.schema)
            return to_dict(parse(line, name, self.data))  # type: ignore[arg-type]
        return json.loads(self.data)

    def put(self, value: Any) -> None:
        """Set the payload."""
        if is_protobuf(self.schema):
            line, name = split_schema(self.schema)
            self.data = from_dict(line, name, value).SerializeToString()  # type: ignore[arg-type]
        else:
            self.data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def edit(self, change: Callable[[Any], None]) -> None:
        """Change the payload with a function that modifies what `body` returns: params, result,
        event or message."""
        value = self.value
        inner = value
        if isinstance(value, dict) and "jsonrpc" in value:
            inner = value["params"] if "params" in value else value.get("result", value)
        change(inner)
        self.put(value)

    def again(self, later: int = 1 * MS) -> Msg:
        """Return a copy of the message that is sent a little later."""
        return Msg(self.data, self.at + later, self.schema, self.framing)


class Ex:
    """One exchange."""

    def __init__(self, facts: Exchange, upstream: str, zero: int) -> None:
        self.uid = next(_number)
        self.facts = facts
        """As it was recorded; changing it changes nothing."""
        self.upstream = upstream
        self.client = "127.0.0.1"
        self.method, self.target, self.authority = facts.method, facts.target, facts.authority
        self.headers = [list(pair) for pair in facts.request_headers]
        self.status = facts.status
        self.reply_headers = [list(pair) for pair in facts.response_headers]
        self.trailers = [list(pair) for pair in facts.trailers]
        self.started = facts.started - zero
        self.answered = (facts.response_started or facts.closed) - zero
        self.ended = (facts.closed or facts.response_started) - zero
        self.requests: list[Msg] = []
        self.answers: list[Msg] = []
        self.finish = "end"
        """`end`, `cut` (the agent resets), `leave` (the client does), `stall` (bytes of the end are
        missing)."""
        self.half_closed = 0
        """When the client's side of a live stream ended; 0 where it did not. Other calls have it
        with their request."""
        self.coding = ""
        """A content coding to announce: then `wire` of the messages is bytes of it."""
        self.tail = b""
        """Bytes of the agent before the end of the stream."""

    @property
    def operation(self) -> str:
        """Return the 1.0 name of the operation."""
        return self.facts.operation

    @property
    def grpc(self) -> bool:
        """Return whether it uses gRPC."""
        return self.facts.binding is Binding.GRPC

    @property
    def live(self) -> bool:
        """Return whether both peers may send at any time."""
        return self.grpc and self.operation in ("SendLiveMessage", "ReconnectToTask")

    @property
    def streams(self) -> bool:
        """Return whether the response is a stream of events."""
        return self.facts.streaming and self.field("content-type", reply=True).startswith(
            ("text/event-stream", "application/grpc")
        )

    def field(self, name: str, *, reply: bool = False) -> str:
        """Return the first header field with this name; empty if there is none."""
        fields = self.reply_headers if reply else self.headers
        return next((value.decode() for key, value in fields if key.lower() == name.encode()), "")

    def set(
        self, name: str, value: str | None, *, reply: bool = False, trailer: bool = False
    ) -> None:
        """Set a header field, or remove it."""
        fields = self.trailers if trailer else self.reply_headers if reply else self.headers
        fields[:] = [pair for pair in fields if pair[0].lower() != name.lower().encode()]
        if value is not None:
            fields.append([name.encode(), value.encode()])

    def shift(self, first: int, ns: int) -> None:
        """Delay all messages from this answer on."""
        for each in self.answers[first:]:
            each.at += ns
        self.ended += ns


class Loose(msgspec.Struct):
    """Data of a stdio agent outside its calls: bytes between messages, its log, its end."""

    at: int
    """ns since the beginning of the session."""
    direction: Direction
    data: bytes
    kind: ChunkKind = ChunkKind.DATA


class Talk:
    """A recorded conversation."""

    def __init__(self, exchanges: list[Ex], length: int, start: int, loose: list[Loose]) -> None:
        self.exchanges = exchanges
        self.loose = loose
        """Of the one stdio agent, where there is one."""
        self.length = length
        self.start = start
        """When it was recorded, ns: its timestamps are of that time."""

    def all(self, operation: str, **having: Any) -> list[Ex]:
        """Return the exchanges of an operation; `streams=True` and similar arguments compare
        attributes."""
        return [
            each
            for each in self.exchanges
            if each.operation == operation
            and all(getattr(each, name) == value for name, value in having.items())
        ]

    def first(self, operation: str, number: int = 0, **having: Any) -> Ex:
        """Return the n-th of these exchanges."""
        return self.all(operation, **having)[number]

    def add(self, exchange: Ex, *, after: Ex, pause: int = 5 * MS) -> Ex:
        """Add a copy of an exchange after the end of another one; the distances between its
        messages do not change."""
        made = copy.deepcopy(exchange)
        made.uid = next(_number)
        shift = after.ended + pause - made.started
        for each in (*made.requests, *made.answers):
            each.uid = next(_number)
            each.at += shift
        made.started, made.answered, made.ended = (
            made.started + shift,
            made.answered + shift,
            made.ended + shift,
        )
        made.half_closed += shift if made.half_closed else 0
        self.exchanges.append(made)
        self.length = max(self.length, made.ended)
        return made


Place = tuple[str, int, int]
"""Rule, uid of the exchange, uid of the message (0: the exchange as a whole, its heads or its
end)."""


class Want(msgspec.Struct, frozen=True):
    """A finding that a mutation must cause."""

    rule: str
    exchange: Ex | None = None
    """None: the finding is about the connection."""
    message: Msg | None = None
    times: int = 1

    def places(self) -> list[Place]:
        """Return the places in the form in which they are compared."""
        exchange = self.exchange.uid if self.exchange else 0
        return [(self.rule, exchange, self.message.uid if self.message else 0)] * self.times


# --- recordings


@cache
def _loaded(name: str) -> bytes:
    """Return the conversation pickled: unpickling is seven times as fast as `deepcopy`."""
    with open_recording_or_cassette(SAMPLES / f"{name}.a2a.jsonl") as recording:
        (session,) = recording.read_sessions()
        zero = session.facts.started
        upstreams = {
            row.connection.id: row.connection.upstream
            for row in recording.read_connections(session.id)
        }
        found = []
        for row in recording.read_exchanges(session.id):
            made = Ex(row.exchange, upstreams[row.exchange.connection], zero)
            for each in recording.read_frames(row.key):
                _take(made, each.frame, zero)
            found.append(made)
        loose = [
            beside
            for row in recording.read_connections(session.id)
            if row.connection.kind == "stdio"
            for each in recording.connection_frames(row.key)
            if (beside := _loose(each.frame, zero)) is not None
        ]
        return pickle.dumps(Talk(found, session.ended - zero, zero, loose))


def _loose(frame: Frame, zero: int) -> Loose | None:
    at, side = frame.at - zero, frame.direction
    if frame.kind is FrameKind.LOG:
        return Loose(at, side, frame.framing.encode().replace(b"\0", frame.payload), ChunkKind.LOG)
    if frame.note == "eof":
        return Loose(at, side, b"", ChunkKind.EOF)
    if frame.note == "exit":
        detail = json.loads(frame.payload)
        facts = ExitFacts(detail.get("code"), detail.get("signal"))
        return Loose(at, side, msgspec.json.encode(facts), ChunkKind.EXITED)
    return None


def _take(made: Ex, frame: Frame, zero: int) -> None:
    if frame.kind is FrameKind.COMMENT or frame.kind in _SAID:
        if not frame.payload and not frame.framing and not made.grpc:
            return  # a head without a body
        message = Msg(frame.payload, frame.at - zero, frame.schema, frame.framing)
        (made.requests if frame.direction is UP else made.answers).append(message)
    elif frame.kind is FrameKind.END and frame.direction is UP and made.live:
        made.half_closed = frame.at - zero
    elif frame.kind is FrameKind.CUT:
        made.finish = "leave" if frame.direction is UP else "cut"


def loaded(name: str) -> Talk:
    """Return a new copy of the sample with this name, to be changed."""
    return _unpickled(_loaded(name))


def _unpickled(talk: bytes) -> Talk:
    made = pickle.loads(talk)
    assert isinstance(made, Talk)
    return made


# --- bytes


def chunks(talk: Talk) -> list[Chunk]:
    """Return the session: one connection for each exchange, in the order of their beginnings; one
    for all exchanges of a stdio agent."""
    start = talk.start
    found: list[Chunk] = []
    if any(_piped(each) for each in talk.exchanges):
        return _pipe(talk)
    for number, exchange in enumerate(ordered(talk), 1):
        build = _grpc if exchange.grpc else _http
        pieces = build(exchange)
        if exchange.live:
            pieces.sort(key=lambda piece: piece[0])
        at = start + exchange.started
        facts = ConnectionFacts(
            f"{exchange.client}:{10000 + number}", "127.0.0.1:9000", exchange.upstream
        )
        found += [
            Chunk(number, ChunkKind.OPEN, UP, at, msgspec.json.encode(facts)),
            Chunk(
                number,
                ChunkKind.DIALED,
                UP,
                at,
                msgspec.json.encode(DialFacts(exchange.upstream, peer="::1")),
            ),
        ]
        last = at
        for when, direction, kind, data in pieces:
            last = max(last, start + when)
            found.append(Chunk(number, kind, direction, last, data))
        found.append(Chunk(number, ChunkKind.CLOSED, UP, last + 1))
    found.sort(key=lambda chunk: chunk.at)
    end = max(found[-1].at, start + talk.length)
    return [*found, Chunk(0, ChunkKind.END, UP, end + 1)]


def _piped(exchange: Ex) -> bool:
    return exchange.facts.binding is Binding.STDIO


def _pipe(talk: Talk) -> list[Chunk]:
    """Return the session of a stdio agent, which has no other connections."""
    start, command = talk.start, talk.exchanges[0].upstream
    said = [
        (each.at, direction, ChunkKind.DATA, piped(each))
        for exchange in ordered(talk)
        for direction, messages in ((UP, exchange.requests), (DOWN, exchange.answers))
        for each in messages
    ]
    said += [(each.at, each.direction, each.kind, each.data) for each in talk.loose]
    said.sort(key=lambda piece: piece[0])
    facts = ConnectionFacts("pid 1", "stdio", command, "stdio")
    found = [
        Chunk(1, ChunkKind.OPEN, UP, start, msgspec.json.encode(facts)),
        Chunk(
            1, ChunkKind.DIALED, UP, start, msgspec.json.encode(DialFacts(command, peer="pid 2"))
        ),
        *(Chunk(1, kind, direction, start + at, data) for at, direction, kind, data in said),
    ]
    end = max(found[-1].at, start + talk.length)
    return [*found, Chunk(1, ChunkKind.CLOSED, UP, end), Chunk(0, ChunkKind.END, UP, end + 1)]


def piped(message: Msg) -> bytes:
    """Return the message with its recorded framing and its current payload."""
    if message.wire is not None:
        return message.wire
    head = message.framing.encode("latin-1").replace(b"\1", str(len(message.data)).encode())
    return head.replace(b"\0", message.data, 1)


def ordered(talk: Talk) -> list[Ex]:
    """Return the exchanges in the order of their connection numbers."""
    return sorted(talk.exchanges, key=lambda each: each.started)


_Piece = tuple[int, Direction, ChunkKind, bytes]


def _http(exchange: Ex) -> list[_Piece]:
    body = b"".join(each.data for each in exchange.requests)
    fields = [pair for pair in exchange.headers if pair[0].lower() not in _DROPPED]
    if body or exchange.field("content-length"):
        fields.append([b"Content-Length", str(len(body)).encode()])
    line = f"{_verb(exchange)} {exchange.target} HTTP/1.1".encode()
    pieces: list[_Piece] = [(exchange.started, UP, ChunkKind.DATA, _head(line, fields) + body)]
    if not exchange.status:
        return [*pieces, *_finished(exchange)]
    line = f"HTTP/1.1 {exchange.status} Status".encode()
    fields = [pair for pair in exchange.reply_headers if pair[0].lower() not in _DROPPED]
    if not exchange.streams:
        body = b"".join(each.data for each in exchange.answers)
        head = _head(line, [*fields, [b"Content-Length", str(len(body)).encode()]])
        return [*pieces, (exchange.ended, DOWN, ChunkKind.DATA, head + body)]
    fields.append([b"Transfer-Encoding", b"chunked"])
    if exchange.coding:
        fields.append([b"Content-Encoding", exchange.coding.encode()])
    pieces.append((exchange.answered, DOWN, ChunkKind.DATA, _head(line, fields)))
    for each in exchange.answers:
        said = each.wire if each.wire is not None else block(each)
        pieces.append(
            (
                max(each.at, exchange.answered),
                DOWN,
                ChunkKind.DATA,
                b"%x\r\n%s\r\n" % (len(said), said),
            )
        )
    if exchange.tail:
        pieces.append(
            (
                exchange.ended,
                DOWN,
                ChunkKind.DATA,
                b"%x\r\n%s\r\n" % (len(exchange.tail), exchange.tail),
            )
        )
    return [*pieces, *_finished(exchange, b"0\r\n\r\n")]


def _verb(exchange: Ex) -> str:
    """Return the HTTP method. The method of a JSON-RPC exchange is its operation; on the wire it is
    POST."""
    return "POST" if exchange.facts.binding is Binding.JSONRPC else exchange.method


def _head(line: bytes, fields: Iterable[list[bytes]]) -> bytes:
    return b"\r\n".join([line, *(name + b": " + value for name, value in fields)]) + b"\r\n\r\n"


def block(message: Msg) -> bytes:
    """Return the event with its recorded framing and its current payload."""
    framing = (message.framing or "data: \0\n\n").encode()
    lines = message.data.split(b"\n") if framing.count(b"\0") > 1 else [message.data]
    for line in lines:
        framing = framing.replace(b"\0", line, 1)
    return framing


def _finished(exchange: Ex, last: bytes = b"") -> list[_Piece]:
    if exchange.finish == "cut":
        return [(exchange.ended, DOWN, ChunkKind.RESET, b"")]
    if exchange.finish == "leave":
        return [(exchange.ended, UP, ChunkKind.RESET, b"")]
    if exchange.finish == "stall":
        return [(exchange.ended, DOWN, ChunkKind.EOF, b"")]
    return [(exchange.ended, DOWN, ChunkKind.DATA, last)] if last else []


def _frame(kind: int, flags: int, data: bytes, stream: int = 1) -> bytes:
    return (
        struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data
    )


def _prefixed(message: Msg) -> bytes:
    if message.wire is not None:
        return message.wire
    return b"\0" + struct.pack(">I", len(message.data)) + message.data


def _data(data: bytes, flags: int = 0) -> bytes:
    """Return DATA frames of at most 16 KiB."""
    parts = [data[at : at + 16384] for at in range(0, len(data), 16384)] or [b""]
    return b"".join(_frame(0, flags if part is parts[-1] else 0, part) for part in parts)


def _pairs(fields: list[list[bytes]]) -> list[tuple[bytes | str, bytes | str]]:
    return [(name, value) for name, value in fields]


def _grpc(exchange: Ex) -> list[_Piece]:
    encode, back = hpack.Encoder(), hpack.Encoder()
    pseudo: list[tuple[bytes | str, bytes | str]] = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", exchange.target.encode()),
    ]
    pseudo.append((b":authority", exchange.authority.encode()))
    fields = [*pseudo, *_pairs(exchange.headers)]
    opening = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(4, 0, b"", 0)
        + _frame(1, 4, encode.encode(fields))
    )
    pieces: list[_Piece] = [(exchange.started, UP, ChunkKind.DATA, opening)]
    for number, each in enumerate(exchange.requests, 1):
        flags = 1 if number == len(exchange.requests) and not exchange.live else 0
        pieces.append(
            (max(each.at, exchange.started), UP, ChunkKind.DATA, _data(_prefixed(each), flags))
        )
    if exchange.half_closed:
        pieces.append((exchange.half_closed, UP, ChunkKind.DATA, _frame(0, 1, b"")))
    if not exchange.status:
        return [*pieces, *_broken(exchange)]
    settings = _frame(4, 0, b"", 0)
    heads = [(b":status", str(exchange.status).encode()), *_pairs(exchange.reply_headers)]
    if not exchange.trailers and exchange.finish == "end":  # trailers only
        return [
            *pieces,
            (exchange.ended, DOWN, ChunkKind.DATA, settings + _frame(1, 5, back.encode(heads))),
        ]
    pieces.append(
        (exchange.answered, DOWN, ChunkKind.DATA, settings + _frame(1, 4, back.encode(heads)))
    )
    for each in exchange.answers:
        pieces.append(
            (max(each.at, exchange.answered), DOWN, ChunkKind.DATA, _data(_prefixed(each)))
        )
    if exchange.tail:
        pieces.append((exchange.ended, DOWN, ChunkKind.DATA, _data(exchange.tail)))
    if exchange.finish != "end":
        return [*pieces, *_broken(exchange)]
    block = back.encode(_pairs(exchange.trailers))
    return [*pieces, (exchange.ended, DOWN, ChunkKind.DATA, _frame(1, 5, block))]


def _broken(exchange: Ex) -> list[_Piece]:
    if exchange.finish == "leave":
        return [(exchange.ended, UP, ChunkKind.DATA, _frame(3, 0, struct.pack(">I", 8)))]
    if exchange.finish == "cut":
        return [(exchange.ended, DOWN, ChunkKind.DATA, _frame(3, 0, struct.pack(">I", 2)))]
    return [(exchange.ended, DOWN, ChunkKind.DATA, _frame(0, 1, b""))]


# --- findings


def places(talk: Talk, causes: frozenset[str] = frozenset()) -> Counter[Place]:
    """Return the findings about a conversation, with their places; of the endings, which follow
    from most breaks of a stream, only those by these causes."""
    observer = Observer(Redactor(b"k" * 32), cards=CardVerifier(parse_keys(CARD_KEYS).keys))
    out: list[Observation] = []
    for chunk in chunks(talk):
        observer.feed(chunk, out)
    owner = _owners(talk, out)
    uids = _uids(out, owner)
    found: Counter[Place] = Counter()
    for each in out:
        if isinstance(each, Finding):
            exchange = owner.get(each.exchange)
            found[
                each.rule, exchange.uid if exchange else 0, uids.get((each.exchange, each.seq), 0)
            ] += 1
    if causes:
        found.update(
            (each.rule, owner[number].uid, 0)
            for number, each in endings(chunks(talk)).items()
            if each.rule in causes and number in owner
        )
    return found


def _owners(talk: Talk, out: list[Observation]) -> dict[int, Ex]:
    """Return the exchange from which each exchange number comes: by its connection, or on a pipe by
    its place among the calls."""
    exchanges = ordered(talk)
    numbers = dict.fromkeys(
        each.exchange for each in out if isinstance(each, Frame) and each.exchange
    )
    if any(_piped(each) for each in exchanges):
        return dict(zip(numbers, exchanges, strict=False))
    return {
        each.exchange: exchanges[each.connection - 1]
        for each in out
        if isinstance(each, Frame) and each.exchange
    }


def _uids(out: list[Observation], owner: dict[int, Ex]) -> dict[tuple[int, int], int]:
    """Return the message from which each (exchange, seq) comes."""
    found: dict[tuple[int, int], int] = {}
    left = {number: (list(each.requests), list(each.answers)) for number, each in owner.items()}
    skipped = (FrameKind.END, FrameKind.CUT, FrameKind.CONTROL)
    half = 0
    for frame in out:
        if isinstance(frame, Frame) and frame.exchange and frame.kind not in skipped:
            queue = left[frame.exchange][frame.direction]
            if frame.kind is FrameKind.UNDECODABLE and half:
                found[frame.exchange, frame.seq] = (
                    half  # it explains why the previous message could not be read
                )
            elif queue:
                found[frame.exchange, frame.seq] = queue.pop(0).uid
            half = found.get((frame.exchange, frame.seq), 0) if frame.truncated else 0
    return found


class Outcome(msgspec.Struct):
    """A mutation with its findings."""

    found: list[Place] = []
    """Findings that were expected and reported."""
    misplaced: list[Place] = []
    """Findings that were expected, but reported in another place."""
    missed: list[Place] = []
    unexpected: list[Place] = []


Prepare = Callable[[Talk], None]


@cache
def _prepared(name: str, prepare: Prepare | None) -> bytes:
    if prepare is None:
        return _loaded(name)
    talk = loaded(name)
    prepare(talk)
    return pickle.dumps(talk)


def prepared(name: str, prepare: Prepare | None) -> Talk:
    """Return a new copy of a sample, prepared for a change."""
    return _unpickled(_prepared(name, prepare))


@cache
def unchanged(
    name: str, prepare: Prepare | None, causes: frozenset[str] = frozenset()
) -> Counter[Place]:
    """Return the findings about a prepared sample before the change."""
    return places(prepared(name, prepare), causes)


def judge(
    name: str, change: Callable[[Talk], Iterable[Want]], prepare: Prepare | None = None
) -> Outcome:
    """Apply a mutation to a sample, prepared if necessary, and compare the findings with the
    expected ones."""
    talk = prepared(name, prepare)
    wanted = Counter(place for want in change(talk) for place in want.places())
    causes = causes_of(wanted)
    return compare(wanted, places(talk, causes) - unchanged(name, prepare, causes))


def causes_of(wanted: Iterable[Place]) -> frozenset[str]:
    """Return the rules of causes among the expected findings."""
    return frozenset(rule for rule, _, _ in wanted) & {each.rule for each in CAUSES.values()}


def compare(wanted: Counter[Place], new: Counter[Place]) -> Outcome:
    """Compare the expected findings with those that a change has caused."""
    outcome = Outcome(found=list((new & wanted).elements()))
    missed, unexpected = wanted - new, new - wanted
    for place in list(missed.elements()):
        elsewhere = next((each for each in unexpected if each[0] == place[0]), None)
        if elsewhere is None:
            outcome.missed.append(place)
        else:
            outcome.misplaced.append(place)
            unexpected -= Counter([elsewhere])
    outcome.unexpected = list(unexpected.elements())
    return outcome


def wanted(
    name: str, change: Callable[[Talk], Iterable[Want]], prepare: Prepare | None = None
) -> set[str]:
    """Return the rules that a mutation is expected to break."""
    return {want.rule for want in change(prepared(name, prepare))}


# --- the mutations


class Mutation(msgspec.Struct, frozen=True):
    """One change to one sample."""

    name: str
    sample: str
    change: Callable[[Talk], Iterable[Want]]
    prepare: Prepare | None = None
    """Prepares the sample; the findings after this are the base of the comparison."""

    def __str__(self) -> str:
        return self.name


MUTATIONS: list[Mutation] = []


def must_be_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check one mutation; a finding is expected even if there are many of its kind."""
    monkeypatch.setattr(repeat_limit, "MAX_PER_EXCHANGE", 10**9)
    monkeypatch.setattr(repeat_limit, "MAX_PER_KIND", 10**9)
    outcome = judge(mutation.sample, mutation.change, mutation.prepare)
    assert outcome.found
    assert (outcome.misplaced, outcome.missed, outcome.unexpected) == ([], [], [])


def parameters(concerned: Callable[[str], bool]) -> list[ParameterSet]:
    """Return the mutations of the samples that are `concerned`, for pytest. CI applies each change
    to one of its samples, not always the first; `tests/run -m "soak or not soak" tests/mutations`
    applies it to all."""
    load_mutations()
    by_change: dict[Callable[[Talk], Iterable[Want]], list[Mutation]] = {}
    for each in MUTATIONS:
        by_change.setdefault(each.change, []).append(each)
    quick: set[str] = set()
    for number, several in enumerate(by_change.values()):
        quick.add(several[number % len(several)].name)
    return [
        pytest.param(each, id=each.name, marks=() if each.name in quick else pytest.mark.soak)
        for each in MUTATIONS
        if concerned(each.sample)
    ]


def load_mutations() -> None:
    """Import every module with mutations."""
    for path in sorted((Path(__file__).parent / "mutations").glob("breaks_*.py")):
        importlib.import_module(f"mutations.{path.stem}")


def mutation(
    *samples: str, prepare: Prepare | None = None
) -> Callable[[Callable[[Talk], Iterable[Want]]], Callable[[Talk], Iterable[Want]]]:
    """Register a function that changes each of these samples in one place."""

    def add(change: Callable[[Talk], Iterable[Want]]) -> Callable[[Talk], Iterable[Want]]:
        for sample in samples:
            family = change.__module__.rpartition("_")[2]
            MUTATIONS.append(
                Mutation(f"{family}-{change.__name__}-{sample}", sample, change, prepare)
            )
        return change

    return add
