"""Spans out of the rows of a recording, one session at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from a2a_proxy.model.exchange import Binding, Connection, Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.model.segment import Handoff
from a2a_proxy.model.task import Task
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.protocol.operations import CARD_OPERATIONS
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, make_key
from a2a_proxy.telemetry.call_facts import CallFacts, RequestFacts, asked, of_headers, state_label
from a2a_proxy.telemetry.cards import CardHistory
from a2a_proxy.telemetry.client_span import beside, client_span, parent_of, sent_on
from a2a_proxy.telemetry.earlier_calls import EarlierCalls
from a2a_proxy.telemetry.events import CallEvents
from a2a_proxy.telemetry.ids import span_id, trace_id
from a2a_proxy.telemetry.links import handed_from, handoff_link, task_link
from a2a_proxy.telemetry.message_content import NOTHING
from a2a_proxy.telemetry.payload_texts import PayloadTexts, spoken
from a2a_proxy.telemetry.segments import PartialCall, Window, passed, segment, windows
from a2a_proxy.telemetry.span import span_of
from a2a_proxy.telemetry.span_options import PLAIN, SpanOptions
from a2a_proxy.telemetry.steps import step_spans
from a2a_proxy.telemetry.values import SpanContextIds, SpanLink, SpanValue

_KEPT = 4096
"""Rows of each kind that are remembered."""
_EXCHANGES_KEPT = 256
"""Exchanges that a task's row names at most: the last ones."""

Beyond = Callable[[int], Iterable[SpanLink]]
"""Links of an exchange of one session to spans of other recordings."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class CallSpans(msgspec.Struct, frozen=True):
    """The spans of one call, and what its frames said."""

    exchange: int
    """Its number."""
    context: SpanContextIds
    """Of the call: that of its span, or of its first segment."""
    spans: tuple[SpanValue, ...]
    passage: CallEvents
    task: Task | None
    """Of the call, as the session knows it."""


class SpanReader:
    """Makes the spans of one session. Reads only."""

    def __init__(
        self,
        recording: Recording,
        session: SessionRow,
        shape: SpanOptions = PLAIN,
        *,
        late_apart: bool = False,
        beyond: Beyond = lambda _: (),
    ) -> None:
        """`late_apart`: what was found after a call was over is told apart from its span."""
        self._late_apart = late_apart
        self._beyond = beyond
        self._recording = recording
        self._session = session
        self._uuid = session.facts.uuid
        self._shape = shape
        self._connections: dict[int, Connection | None] = {}
        self._contexts: dict[int, SpanContextIds | None] = {}
        self._firsts: dict[tuple[str, str], int] = {}
        self._cards = CardHistory(recording)
        self._earlier = EarlierCalls(recording, session)
        self._handoffs: dict[int, dict[int, Handoff]] = {}
        """Those that led to an exchange, by their number."""
        for row in self._cards.rows(session):
            self._cards.learn(row, self._connection(row.exchange.connection))
        for handoff in recording.handoffs(session.id):
            self.learn(handoff.handoff)

    def learn(self, handoff: Handoff) -> None:
        """A hand-off that came after this was made, or that is known and told again."""
        self._handoffs.setdefault(handoff.to_exchange, {})[handoff.id] = handoff

    def made(self, exchange: Exchange, sent: int = 0) -> CallSpans | None:
        """The spans of an exchange, after so many segments that were sent; None where it is not over."""
        if not exchange.closed:
            return None
        row = ExchangeRow(make_key(self._session.id, exchange.id), self._session.id, exchange)
        if exchange.operation in CARD_OPERATIONS:
            self._cards.learn(row, self._connection(exchange.connection))
        return self._made(row, sent)

    def passed(self, row: ExchangeRow, now: int, sent: int) -> list[SpanValue]:
        """The segments of a call that goes on which are over at `now` (ns), after so many that were sent."""
        cuts = list(passed(row.exchange, self._shape.segment, now, sent))
        if not cuts:
            return []
        task = self._task(row.exchange)
        return self._segments(row, self._facts(row, PayloadTexts(), task), cuts, task)

    def context(self, exchange: Exchange) -> SpanContextIds:
        """The ids of its span, also while it goes on."""
        return self._ids(exchange, self._asked(exchange))[0]

    def _task(self, exchange: Exchange) -> Task | None:
        """Its task as this session knows it."""
        connection = self._connection(exchange.connection)
        if not exchange.task_id or connection is None:
            return None
        if exchange.binding is Binding.WEBHOOK:
            return self._pushed(exchange.task_id, connection.upstream)
        rows = self._recording.task(exchange.task_id, connection.upstream, session=self._session.id)
        return rows[0].task if rows else None

    def _pushed(self, task_id: str, receiver: str) -> Task | None:
        """The task of a push notification: its id tells the agent, as the receiver is none. A notification that came
        before the agent's own answer counts as one of the receiver's."""
        tasks = [row.task for row in self._recording.task(task_id, session=self._session.id)]
        tasks.sort(key=lambda task: task.agent == receiver)
        if not tasks:
            return None
        exchanges = sorted({each for task in tasks for each in task.exchanges})
        return msgspec.structs.replace(tasks[0], exchanges=tuple(exchanges))

    def upstream(self, exchange: Exchange) -> str:
        """Address of its agent; empty where the connection is not known."""
        connection = self._connection(exchange.connection)
        return connection.upstream if connection is not None else ""

    def _made(self, row: ExchangeRow, sent: int) -> CallSpans:
        said = spoken(self._recording, row, content=self._shape.content)
        task = self._task(row.exchange)
        facts, whole = self._facts(row, said, task), self._passage(row, task)
        cuts = list(windows(row.exchange, self._shape.segment, sent))
        span = span_of(facts, whole, self._shape)
        went = sent_on(row.exchange)
        onward = [client_span(span, went)] if went is not None else []
        steps, left = step_spans(onward[0] if onward else span, said.reports, row.exchange.id, self._uuid)
        if left:
            told = {**span.attributes, "a2a_proxy.self_reported.left_out": left}
            span = msgspec.structs.replace(span, attributes=told)
        spans = [span] if cuts[0].whole else [*self._segments(row, facts, cuts, task, whole_span=span)]
        return CallSpans(row.exchange.id, facts.context, (*spans, *onward, *steps), whole, task)

    def _passage(self, row: ExchangeRow, task: Task | None) -> CallEvents:
        """All that happened in it."""
        passage = CallEvents(_state_before(task, row.exchange.started))
        for frame in self._recording.frames(row.key, payloads=False):
            passage.take(frame.frame)
        for finding in self._findings(row):
            passage.found(finding)
        return passage

    def _findings(self, row: ExchangeRow) -> list[Finding]:
        found = (each.finding for each in self._recording.findings(exchange=row.key))
        return [each for each in found if not (self._late_apart and late(each, row.exchange))]

    def _segments(
        self,
        row: ExchangeRow,
        facts: CallFacts,
        cuts: list[Window],
        task: Task | None,
        whole_span: SpanValue | None = None,
    ) -> list[SpanValue]:
        """One span for each; `whole_span` is that of the call, where it is over."""
        made: list[SpanValue] = []
        progress = PartialCall(row.exchange)
        passage = CallEvents(_state_before(task, row.exchange.started))
        frames = (frame.frame for frame in self._recording.frames(row.key, payloads=False))
        findings = self._findings(row)
        frame = next(frames, None)
        card = self._cards.last(facts.connection, row.exchange.started)
        then = msgspec.structs.replace(facts, card=card, content=NOTHING)
        for cut in (Window(0, 0, cuts[0].begin), *cuts):
            passage = CallEvents(progress.state or passage.state, passage.last)
            while frame is not None and (frame.at < cut.end or cut.last):
                progress.take(frame)
                passage.take(frame)
                frame = next(frames, None)
            for finding in findings:
                if cut.begin <= finding.at and (finding.at < cut.end or cut.last):
                    passage.found(finding)
            if cut.number:
                known = msgspec.structs.replace(then, exchange=progress.at(cut.end))
                span = whole_span if cut.last and whole_span else span_of(known, passage, self._shape)
                made.append(segment(span, cut, self._uuid, row.exchange.id, passage))
        return made

    def _facts(self, row: ExchangeRow, said: PayloadTexts, task: Task | None) -> CallFacts:
        exchange = row.exchange
        asks = self._asked(exchange)
        context, parent = self._ids(exchange, asks)
        connection = self._connection(exchange.connection)
        return CallFacts(
            exchange=exchange,
            connection=connection,
            asked=asks,
            context=context,
            parent=parent,
            card=self._cards.last(connection, exchange.closed or exchange.started),
            fetch=self._cards.fetch(row, connection),
            delivery=self._earlier.delivery(exchange, task),
            resumed_from=self._earlier.resumed_from(exchange, task),
            content=said.content,
            links=self._links(exchange) + beside(context, asks.parent),
        )

    def _ids(self, exchange: Exchange, said: RequestFacts) -> tuple[SpanContextIds, SpanContextIds | None]:
        went, named = sent_on(exchange), of_headers(exchange)
        parent = named or said.parent if went is None else parent_of(went, named)
        known = parent or went
        trace = known.trace if known else trace_id(self._uuid, self._first(exchange))
        return SpanContextIds(trace, span_id(self._uuid, exchange.id), parent.state if parent else ""), parent

    def _links(self, exchange: Exchange) -> tuple[SpanLink, ...]:
        found: list[SpanLink] = []
        first = self._first(exchange)
        context = self._context_of(first) if first != exchange.id else None
        if context is not None:
            found.append(task_link(context, exchange.task_id))
        for handoff in self._handoffs.get(exchange.id, {}).values():
            before = handed_from(self._recording, self._session.id, handoff)
            context = self._context_of(before) if before else None
            if context is not None:
                found.append(handoff_link(context, handoff))
        known = {link.context for link in found}
        return (*found, *(link for link in self._beyond(exchange.id) if link.context not in known))

    def _context_of(self, number: int) -> SpanContextIds | None:
        def find() -> SpanContextIds | None:
            row = self._recording.exchange(make_key(self._session.id, number))
            return self.context(row.exchange) if row is not None else None

        return _kept(self._contexts, number, find)

    def _first(self, exchange: Exchange) -> int:
        """The number of the exchange that was the first to touch its task; its own where it has none."""
        if not exchange.task_id:
            return exchange.id
        known = (self.upstream(exchange), exchange.task_id)
        if known in self._firsts:
            return self._firsts[known]
        task = self._task(exchange)
        if task is None or not task.exchanges:
            return exchange.id
        return _kept(self._firsts, known, lambda: self._first_of(task))

    def _first_of(self, task: Task) -> int:
        if len(task.exchanges) < _EXCHANGES_KEPT:
            return task.exchanges[0]
        return self._recording.first_exchange(task.task_id, self._session.id) or task.exchanges[0]

    def _connection(self, number: int) -> Connection | None:
        def find() -> Connection | None:
            row = self._recording.connection(make_key(self._session.id, number))
            return row.connection if row is not None else None

        return _kept(self._connections, number, find)

    def _asked(self, exchange: Exchange) -> RequestFacts:
        """What its first message says; the payload is read for that."""
        row = next(iter(self._recording.frames(make_key(self._session.id, exchange.id), limit=1)), None)
        if row is None or row.frame.kind is not FrameKind.REQUEST:
            return RequestFacts()
        return asked(readable_payload(row.frame, exchange), row.frame.message_id)


def late(finding: Finding, exchange: Exchange) -> bool:
    """It was made when the call was over. Time tells it, so that a process begun anew tells the same."""
    return bool(exchange.closed) and finding.at > exchange.closed


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
