"""Objects for the rows of one recording file: its exchanges, their frames, and findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from a2a_proxy.model.event import Event, state_label
from a2a_proxy.model.values import Binding, Dialect, EventKind, FrameKind, Severity
from a2a_proxy.model.values import Exchange as ExchangeFacts
from a2a_proxy.model.values import Finding as FindingFacts
from a2a_proxy.model.values import Frame as FrameFacts
from a2a_proxy.model.wire import Direction, Headers
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.protocol.describe import describe_frame
from a2a_proxy.protocol.event import to_event
from a2a_proxy.protocol.outcome import latency_origin, outcome_of
from a2a_proxy.recording.read.multi_reader import MultiReaderFile
from a2a_proxy.recording.read.rows import (
    ExchangeRow,
    FindingRow,
    FrameRow,
    SessionRow,
    label_place,
    make_key,
)

_MAX_CACHED_EXCHANGES = 1024
"""Maximum number of exchanges, and of connections, cached for the frames that refer to them."""


class RecordingFile:
    """Creates objects from a file's rows."""

    def __init__(self, member: MultiReaderFile) -> None:
        self.member = member
        self.reader = member.recording
        self._exchanges: dict[int, Exchange | None] = {}
        self._clients: dict[int, str] = {}

    @property
    def path(self) -> str:
        """The path as given by the caller."""
        return self.reader.path

    def exchange(self, row: ExchangeRow) -> Exchange:
        """Return an exchange."""
        return Exchange(self, row)

    def frame(self, row: FrameRow, exchange: Exchange | None = None) -> Frame:
        """Return a frame of an exchange, which is read on first use if it is not known."""
        return Frame(self, row, exchange)

    def exchange_of(self, row: FrameRow) -> Exchange | None:
        """Return the exchange that a frame belongs to; None for a frame of the connection
        itself."""
        number = row.exchange_key
        if number not in self._exchanges:
            found = self.reader.read_exchange(number) if number else None
            if len(self._exchanges) >= _MAX_CACHED_EXCHANGES:
                self._exchanges.clear()
            self._exchanges[number] = self.exchange(found) if found is not None else None
        return self._exchanges[number]

    def client_address(self, row: ExchangeRow) -> str:
        """Return the address of the client; empty if the connection is unknown."""
        number = make_key(row.session, row.exchange.connection)
        if number not in self._clients:
            found = self.reader.read_connection(number)
            if found is None:
                return ""
            if len(self._clients) >= _MAX_CACHED_EXCHANGES:
                self._clients.clear()
            self._clients[number] = found.connection.client
        return self._clients[number]

    def exchanges_numbered(self, session: int, numbers: tuple[int, ...]) -> Iterator[Exchange]:
        """Yield the exchanges of a session with these numbers that the file contains."""
        rows = (self.reader.read_exchange(make_key(session, number)) for number in numbers)
        return (self.exchange(row) for row in rows if row is not None)


Row = TypeVar("Row", SessionRow, ExchangeRow, FrameRow, FindingRow)


class StoredRow(Generic[Row]):
    """A row and its file."""

    def __init__(self, file: RecordingFile, row: Row) -> None:
        self._file: RecordingFile = file
        self._row: Row = row

    @property
    def file(self) -> str:
        """Short name of the file that contains it."""
        return self._file.member.name


Part = TypeVar("Part", ExchangeRow, FrameRow, FindingRow)


class OfSession(StoredRow[Part]):
    """A row that belongs to a session."""

    @property
    def session(self) -> int:
        """Number of its session within the file."""
        return self._row.session


class Exchange(OfSession[ExchangeRow]):
    """One call: a request with its response or stream, as of the time it was read. A live one can
    be read again."""

    def __init__(self, file: RecordingFile, row: ExchangeRow) -> None:
        super().__init__(file, row)
        self.facts: ExchangeFacts = row.exchange
        """All recorded facts."""

    def __repr__(self) -> str:
        return (
            f"<Exchange {self.file} {label_place(self.session, self.number)} "
            f"{self.operation or self.facts.method}>"
        )

    @property
    def number(self) -> int:
        """Number within the session, from 1, in order of first byte, as printed by
        `a2a-inspect ls`."""
        return self.facts.id

    @property
    def operation(self) -> str:
        """The 1.0 name for every binding and dialect, `SendStreamingMessage`; empty if it is not an
        A2A operation."""
        return self.facts.operation

    @property
    def binding(self) -> Binding:
        """The binding that carries its messages."""
        return self.facts.binding

    @property
    def dialect(self) -> Dialect:
        """The dialect that the peers speak."""
        return self.facts.dialect

    @property
    def agent(self) -> str:
        """Address of the agent, as the proxy's command line names it, and its base path."""
        return self.facts.agent

    @property
    def client(self) -> str:
        """Address of the client."""
        return self._file.client_address(self._row)

    @property
    def outcome(self) -> str:
        """`live` while open, then `ok`, `error` (the agent returned an error), `cut` (a peer or the
        connection ended the exchange early) or `refused` (the proxy answered)."""
        return outcome_of(self.facts)

    @property
    def error(self) -> str:
        """One line for people, `TASK_NOT_FOUND -32001: no such task`; empty without an error."""
        return self.facts.error

    @property
    def task_id(self) -> str:
        """The first task named in it; empty if there is none."""
        return self.facts.task_id

    @property
    def context_id(self) -> str:
        """Its context; empty if unknown."""
        return self.facts.context_id

    @property
    def trace_id(self) -> str:
        """The 32 hexadecimal digits from the `traceparent` received by the agent; empty if it
        received none."""
        parts = self.facts.trace_context.split("-")
        return parts[1] if len(parts) > 2 else ""

    @property
    def states(self) -> tuple[str, ...]:
        """Task states in it, in order, without repeats: `("working", "completed")`."""
        return self.facts.states

    @property
    def started(self) -> int:
        """First byte of the request, ns since the Unix epoch."""
        return self.facts.started

    @property
    def closed(self) -> int:
        """Time it ended, ns since the Unix epoch; 0 while it is open."""
        return self.facts.closed

    @property
    def took(self) -> int | None:
        """Ns from the end of the request to the end of the exchange, or to its last event; None
        before the first event."""
        end = self.facts.closed or self.facts.last_event
        return max(end - latency_origin(self.facts), 0) if end else None

    @property
    def first_event_after(self) -> int | None:
        """Ns from the end of the request to the agent's first message; None if there was none."""
        return (
            max(self.facts.first_event - latency_origin(self.facts), 0)
            if self.facts.first_event
            else None
        )

    @property
    def request_headers(self) -> list[tuple[str, str]]:
        """Header fields in wire order, credentials replaced by labels."""
        return _decode_headers(self.facts.request_headers)

    @property
    def response_headers(self) -> list[tuple[str, str]]:
        """Header fields in wire order."""
        return _decode_headers(self.facts.response_headers)

    @property
    def trailers(self) -> list[tuple[str, str]]:
        """Trailer fields of gRPC or HTTP."""
        return _decode_headers(self.facts.trailers)

    def frames(self, *, payloads: bool = True) -> Iterator[Frame]:
        """Yield its frames, both directions in one order. Without `payloads` each payload is read
        on first use."""
        return (
            self._file.frame(row, self)
            for row in self._file.reader.read_frames(self._row.key, payloads=payloads)
        )

    def findings(self) -> list[Finding]:
        """Return the rules' findings about it."""
        return [
            Finding(self._file, row)
            for row in self._file.reader.read_findings(exchange=self._row.key)
        ]


class Frame(OfSession[FrameRow]):
    """One A2A message or wire event."""

    def __init__(self, file: RecordingFile, row: FrameRow, exchange: Exchange | None) -> None:
        super().__init__(file, row)
        self._exchange = exchange
        self.facts: FrameFacts = row.frame
        """All recorded facts. `payload` is empty if payloads were left out."""

    def __repr__(self) -> str:
        return (
            f"<Frame {self.file} {label_place(self.session, self.facts.exchange, self.seq)} "
            f"{self.kind.name.lower()}>"
        )

    @property
    def exchange(self) -> Exchange | None:
        """The call that it belongs to; None for a frame of the connection itself."""
        if self._exchange is None:
            self._exchange = self._file.exchange_of(self._row)
        return self._exchange

    @property
    def seq(self) -> int:
        """Position within the exchange, from 0; one count for both directions."""
        return self.facts.seq

    @property
    def direction(self) -> Direction:
        """The direction it was sent in."""
        return self.facts.direction

    @property
    def kind(self) -> FrameKind:
        """The kind of frame: a request, a response, an event, the end of a stream."""
        return self.facts.kind

    @property
    def event(self) -> EventKind:
        """The A2A object it carries."""
        return self.facts.event

    @property
    def at(self) -> int:
        """Time its last byte arrived, ns since the Unix epoch."""
        return self.facts.at

    @property
    def task_id(self) -> str:
        """The task that it names."""
        return self.facts.task_id

    @property
    def context_id(self) -> str:
        """The context that it names."""
        return self.facts.context_id

    @property
    def state(self) -> str:
        """Its task state, `input-required`; empty if it has none."""
        return state_label(self.facts.state)

    @property
    def generation(self) -> int:
        """Its generation; 0 if it has none."""
        return self.facts.generation

    @property
    def size(self) -> int:
        """Size of the payload in bytes, even if only part of it is stored."""
        return self.facts.size

    @property
    def payload(self) -> bytes:
        """The message as on the wire, without framing and content coding: JSON text or protobuf
        bytes."""
        return self.facts.payload or self._file.reader.read_payload(self._row)

    def decoded(self) -> Any:
        """Return the payload as JSON values, usually a dict, for every binding and dialect in the
        form of A2A 1.0.

        Returns text if it is not JSON, None if it is empty.
        """
        return readable_payload(
            self.facts if self.facts.payload else replace(self.facts, payload=self.payload),
            self.exchange.facts if self.exchange is not None else None,
        )

    def typed_event(self) -> Event:
        """Return the payload as a typed event; no member is set if it is not an event."""
        exchange = self.exchange
        if exchange is None or self.direction is Direction.TO_AGENT:
            return Event()
        return to_event(
            self.payload, self.facts.schema, exchange.dialect, exchange.operation, self.kind
        )

    def text(self) -> str:
        """Return one line for people, without control characters:
        `status working "Reading the map"`."""
        exchange = self.exchange
        if exchange is None:
            return describe_frame(self.facts, self.payload)
        about = exchange.facts
        return describe_frame(
            self.facts,
            self.payload,
            about.operation,
            about.dialect,
            about.extensions,
            about.binding,
        )

    def findings(self) -> list[Finding]:
        """Return the rules' findings about this frame."""
        mine = self.facts.exchange, self.facts.connection, self.seq
        rows = self._file.reader.read_findings(exchange=make_key(self.session, self.facts.exchange))
        pairs = ((row, row.finding) for row in rows)
        return [
            Finding(self._file, row)
            for row, each in pairs
            if (each.exchange, each.connection, each.seq) == mine
        ]


class Finding(OfSession[FindingRow]):
    """A finding of a rule or a decoder about a call, a frame of it, or a connection."""

    def __init__(self, file: RecordingFile, row: FindingRow) -> None:
        super().__init__(file, row)
        self.facts: FindingFacts = row.finding
        """All recorded facts."""

    def __repr__(self) -> str:
        return f"<Finding {self.file} {label_place(self.session, self.facts.exchange)} {self.rule}>"

    @property
    def exchange(self) -> Exchange | None:
        """The call that it is about; None if it is about a connection, or the call is not recorded
        yet."""
        number = self.facts.exchange
        row = self._file.reader.read_exchange(make_key(self.session, number)) if number else None
        return self._file.exchange(row) if row is not None else None

    @property
    def seq(self) -> int:
        """The frame of the call that it is about; -1 if it is about the whole call."""
        return self.facts.seq

    @property
    def rule(self) -> str:
        """`A2A-GEN-001`, or `UNDECODABLE` for a finding of the decoders."""
        return self.facts.rule

    @property
    def severity(self) -> Severity:
        """The severity."""
        return self.facts.severity

    @property
    def at(self) -> int:
        """Time of the finding on the clock of the traffic: ns since the Unix epoch."""
        return self.facts.at

    @property
    def summary(self) -> str:
        """The finding in one sentence."""
        return self.facts.summary

    @property
    def task_id(self) -> str:
        """The task that it is about; empty if there is none."""
        return self.facts.task_id

    @property
    def evidence(self) -> dict[str, str]:
        """The evidence: values by name."""
        return self.facts.evidence


def _decode_headers(headers: Headers) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
