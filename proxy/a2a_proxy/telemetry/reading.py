"""Spans out of the rows of a recording, one session at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from a2a_proxy.model.exchange import Connection, Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame, FrameKind
from a2a_proxy.model.segment import Handoff
from a2a_proxy.model.task import Task
from a2a_proxy.protocol.decoded import decoded
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import ExchangeRow, SessionRow, key
from a2a_proxy.telemetry.events import Passage
from a2a_proxy.telemetry.facts import Asked, Card, Facts, asked, state_label
from a2a_proxy.telemetry.ids import read_traceparent, span_id, trace_id
from a2a_proxy.telemetry.span import span_of
from a2a_proxy.telemetry.values import Context, Kind, Link, Span

_KEPT = 4096
"""Rows of each kind that are remembered."""
_EXCHANGES_KEPT = 256
"""Exchanges that a task's row names at most: the last ones."""
_CARDS = ("GetAgentCard", "GetExtendedAgentCard")

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Spans:
    """Makes the spans of one session. Reads only."""

    def __init__(
        self, recording: Recording, session: SessionRow, kind: Kind = Kind.INTERNAL, *, late_apart: bool = False
    ) -> None:
        """`late_apart`: what was found after a call was over is told apart from its span."""
        self._late_apart = late_apart
        self._recording = recording
        self._session = session
        self._uuid = session.facts.uuid
        self._kind = kind
        self._connections: dict[int, Connection | None] = {}
        self._contexts: dict[int, Context | None] = {}
        self._firsts: dict[tuple[str, str], int] = {}
        self._cards: dict[str, list[tuple[int, Card]]] = {}
        self._handoffs: dict[int, dict[int, Handoff]] = {}
        """Those that led to an exchange, by their number."""
        for row in self._card_rows():
            self._learn_card(row)
        for handoff in recording.handoffs(session.id):
            self.learn(handoff.handoff)

    def learn(self, handoff: Handoff) -> None:
        """A hand-off that came after this was made, or that is known and told again."""
        self._handoffs.setdefault(handoff.to_exchange, {})[handoff.id] = handoff

    def span(self, number: int) -> tuple[Span, Passage] | None:
        """The span of the exchange of this number, with what its frames said; None where it is gone, or not over."""
        row = self._recording.exchange(key(self._session.id, number))
        if row is None or not row.exchange.closed:
            return None
        if row.exchange.operation in _CARDS:
            self._learn_card(row)
        return self._made(row)

    def context(self, exchange: Exchange) -> Context:
        """The ids of its span, also while it goes on."""
        return self._ids(exchange, self._asked(exchange))[0]

    def task(self, exchange: Exchange) -> Task | None:
        """Its task as this session knows it."""
        connection = self._connection(exchange.connection)
        if not exchange.task_id or connection is None:
            return None
        rows = self._recording.task(exchange.task_id, connection.upstream, session=self._session.id)
        return rows[0].task if rows else None

    def upstream(self, exchange: Exchange) -> str:
        """Address of its agent; empty where the connection is not known."""
        connection = self._connection(exchange.connection)
        return connection.upstream if connection is not None else ""

    def _made(self, row: ExchangeRow) -> tuple[Span, Passage]:
        exchange = row.exchange
        said = self._asked(exchange)
        context, parent = self._ids(exchange, said)
        task = self.task(exchange)
        passage = Passage(_state_before(task, exchange.started))
        for frame in self._recording.frames(row.key, payloads=False):
            passage.take(frame.frame)
        for found in self._recording.findings(exchange=row.key):
            if not (self._late_apart and late(found.finding, exchange)):
                passage.found(found.finding)
        connection = self._connection(exchange.connection)
        facts = Facts(
            exchange=exchange,
            connection=connection,
            asked=said,
            context=context,
            parent=parent,
            card=self._card(connection, exchange.closed),
            links=self._links(exchange),
        )
        return span_of(facts, passage, self._kind), passage

    def _ids(self, exchange: Exchange, said: Asked) -> tuple[Context, Context | None]:
        parent = read_traceparent(exchange.traceparent) or said.parent
        trace = parent.trace if parent else trace_id(self._uuid, self._first(exchange))
        return Context(trace, span_id(self._uuid, exchange.id)), parent

    def _links(self, exchange: Exchange) -> tuple[Link, ...]:
        found: list[Link] = []
        first = self._first(exchange)
        context = self._context_of(first) if first != exchange.id else None
        if context is not None:
            found.append(Link(context, {"a2a_proxy.link": "task", "a2a.task.id": exchange.task_id}))
        for handoff in self._handoffs.get(exchange.id, {}).values():
            context = self._context_of(handoff.exchange) if handoff.exchange != exchange.id else None
            context = context or self._by_task(handoff)
            if context is not None:
                told = {"kind": handoff.kind, "evidence": handoff.evidence, "agent": handoff.agent}
                named = {f"a2a_proxy.handoff.{name}": value for name, value in told.items()}
                found.append(Link(context, {"a2a_proxy.link": "handoff", **named}))
        return tuple(found)

    def _by_task(self, handoff: Handoff) -> Context | None:
        """The span that began the task of the agent who hands off: the evidence may be in the new call itself."""
        rows = self._recording.task(handoff.task_id, handoff.agent, session=self._session.id)
        if not rows or not rows[0].task.exchanges:
            return None
        first = rows[0].task.exchanges[0]
        return self._context_of(first) if first != handoff.to_exchange else None

    def _context_of(self, number: int) -> Context | None:
        def find() -> Context | None:
            row = self._recording.exchange(key(self._session.id, number))
            return self.context(row.exchange) if row is not None else None

        return _kept(self._contexts, number, find)

    def _first(self, exchange: Exchange) -> int:
        """The number of the exchange that was the first to touch its task; its own where it has none."""
        if not exchange.task_id:
            return exchange.id
        known = (self.upstream(exchange), exchange.task_id)
        if known in self._firsts:
            return self._firsts[known]
        task = self.task(exchange)
        if task is None or not task.exchanges:
            return exchange.id
        return _kept(self._firsts, known, lambda: self._first_of(task))

    def _first_of(self, task: Task) -> int:
        if len(task.exchanges) < _EXCHANGES_KEPT:
            return task.exchanges[0]
        return self._recording.first_exchange(task.task_id, self._session.id) or task.exchanges[0]

    def _connection(self, number: int) -> Connection | None:
        def find() -> Connection | None:
            row = self._recording.connection(key(self._session.id, number))
            return row.connection if row is not None else None

        return _kept(self._connections, number, find)

    def _asked(self, exchange: Exchange) -> Asked:
        """What its first message says; the payload is read for that."""
        row = next(iter(self._recording.frames(key(self._session.id, exchange.id), limit=1)), None)
        if row is None or row.frame.kind is not FrameKind.REQUEST:
            return Asked()
        return asked(decoded(row.frame, exchange), row.frame.message_id)

    def _card(self, connection: Connection | None, until: int) -> Card | None:
        """The last card that was seen where this connection came in: gRPC may go to another port than the card did."""
        seen = self._cards.get(connection.listen, []) if connection is not None else []
        before = [card for at, card in seen if at <= until]
        return before[-1] if before else None

    def _card_rows(self) -> list[ExchangeRow]:
        names = "(SELECT id FROM text WHERE value IN (?, ?))"
        query = f"SELECT id FROM exchange WHERE id >= ? AND id < ? AND operation IN {names} ORDER BY id"
        span = key(self._session.id, 0), key(self._session.id + 1, 0)
        numbers = [row[0] for row in self._recording.db.execute(query, (*span, *_CARDS))]
        return [row for row in map(self._recording.exchange, numbers) if row is not None]

    def _learn_card(self, row: ExchangeRow) -> None:
        connection = self._connection(row.exchange.connection)
        if connection is None or not row.exchange.closed:
            return
        for frame in self._recording.frames(row.key):
            card = _card_of(frame.frame, row.exchange)
            known = self._cards.setdefault(connection.listen, [])
            if card is not None and (row.exchange.closed, card) not in known:
                known.append((row.exchange.closed, card))
                del known[:-_KEPT]


def late(finding: Finding, exchange: Exchange) -> bool:
    """It was made when the call was over. Time tells it, so that a process begun anew tells the same."""
    return bool(exchange.closed) and finding.at > exchange.closed


def _card_of(frame: Frame, exchange: Exchange) -> Card | None:
    value = decoded(frame, exchange) if frame.kind is FrameKind.RESPONSE else None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    version = value.get("version")
    return Card(value["name"], version if isinstance(version, str) else "")


def _state_before(task: Task | None, at: int) -> str:
    before = [state for when, state in task.states if when < at] if task is not None else []
    return state_label(before[-1]) if before else ""


def _kept(known: dict[_Key, _Value], name: _Key, find: Callable[[], _Value]) -> _Value:
    """What is remembered under a name, found where it is not."""
    if name not in known:
        if len(known) >= _KEPT:
            known.clear()
        known[name] = find()
    return known[name]
