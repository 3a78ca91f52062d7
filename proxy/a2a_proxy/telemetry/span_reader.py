"""Build spans from the rows of a recording, one session at a time.

Texts and reported steps in the payloads of a call, read only if enabled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from a2a_proxy.model.event import Event, Message, state_label
from a2a_proxy.model.values import (
    Binding,
    Connection,
    Exchange,
    Finding,
    Frame,
    FrameKind,
    Handoff,
    Task,
)
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.protocol.event import event_from_json, normalise_event, to_event
from a2a_proxy.protocol.operations import CARD_OPERATIONS
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, make_key
from a2a_proxy.telemetry.attributes import error_type
from a2a_proxy.telemetry.call_facts import (
    CallFacts,
    RequestFacts,
    context_of_headers,
    parse_request,
)
from a2a_proxy.telemetry.cards import CardHistory
from a2a_proxy.telemetry.earlier_calls import EarlierCalls
from a2a_proxy.telemetry.events import CallEvents
from a2a_proxy.telemetry.ids import span_id, trace_id
from a2a_proxy.telemetry.links import handoff_link, handoff_source, task_link
from a2a_proxy.telemetry.message_content import (
    MAX_FRAMES,
    NO_CONTENT,
    MessageContent,
    finish_reason,
    message_content,
)
from a2a_proxy.telemetry.segments import (
    PartialCall,
    SegmentWindow,
    finished_call_windows,
    open_call_windows,
    segment_span,
)
from a2a_proxy.telemetry.services import ServiceNames
from a2a_proxy.telemetry.span import (
    call_span,
    caller_context,
    client_span,
    forwarded_context,
    message_link,
)
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, SpanOptions
from a2a_proxy.telemetry.steps import EXTENSION, StepReport, step_reports, step_spans
from a2a_proxy.telemetry.values import SpanContextIds, SpanLink, SpanValue

if TYPE_CHECKING:
    from a2a_proxy.recording.read.endings import EndingReader
    from a2a_proxy.rules.endings.ending import Ending

_MAX_CACHED = 4096
"""Limit of each cache."""
_MAX_TASK_EXCHANGES = 256
"""Maximum number of exchanges in a task's row: the most recent ones."""

OtherRecordingLinks = Callable[[int], Iterable[SpanLink]]
"""Function that returns the links of an exchange of one session to spans of other recordings."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


_AGENT_MESSAGE_KINDS = (FrameKind.EVENT, FrameKind.RESPONSE)


class PayloadTexts(msgspec.Struct, frozen=True):
    """Message content of a call, and the agent's reports of its steps."""

    content: MessageContent = NO_CONTENT
    reports: tuple[StepReport, ...] = ()


def read_payload_texts(recording: Recording, row: ExchangeRow, *, content: bool) -> PayloadTexts:
    """Read a finished call. Steps are read if the client requested the extension by its URI."""
    exchange = row.exchange
    asks = EXTENSION in exchange.extensions
    if not (content or asks) or not (exchange.operation or exchange.binding is Binding.WEBHOOK):
        return PayloadTexts()
    asked: list[Message] = []
    events: list[Event] = []
    found: list[StepReport] = []
    unread = 0
    for number, each in enumerate(recording.read_frames(row.key, payloads=False)):
        frame = each.frame
        if frame.kind is not FrameKind.REQUEST and frame.kind not in _AGENT_MESSAGE_KINDS:
            continue
        if frame.truncated or number >= MAX_FRAMES:
            unread += 1
            continue
        frame = msgspec.structs.replace(frame, payload=recording.read_payload(each))
        if frame.kind is FrameKind.REQUEST:
            asked += _request_messages(frame, exchange)
        else:
            event = to_event(
                frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
            )
            events.append(event)
            found += step_reports(frame.at, event) if asks else ()
    if not content:
        return PayloadTexts(reports=tuple(found))
    finish = finish_reason(bool(error_type(exchange)), exchange.states)
    return PayloadTexts(message_content(asked, events, finish=finish, unread=unread), tuple(found))


def _request_messages(frame: Frame, exchange: Exchange) -> list[Message]:
    """Return the message of a request in a list, which is empty if it has none."""
    value: Any = normalise_event(
        frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
    ).get("message")
    message = event_from_json({"message": value}).message if isinstance(value, dict) else None
    return [message] if message is not None else []


class CallSpans(msgspec.Struct, frozen=True):
    """The spans of one call, and the events from its frames."""

    exchange: int
    """Number of the exchange."""
    context: SpanContextIds
    """Context of the call's span, or of its first segment."""
    service: str
    """Name of the service of the spans; empty for that of the resource."""
    spans: tuple[SpanValue, ...]
    events: CallEvents
    task: Task | None
    """The task of the call, as the session has it."""


class SpanReader:
    """Builds the spans of one session. Only reads the recording."""

    def __init__(
        self,
        recording: Recording,
        session: SessionRow,
        shape: SpanOptions = DEFAULT_SPAN_OPTIONS,
        *,
        late_apart: bool = False,
        fixed_service: bool = False,
        other_links: OtherRecordingLinks = lambda _: (),
    ) -> None:
        """`late_apart` excludes findings made after the end of a call from its span.
        `fixed_service` leaves the service of the spans to the resource."""
        self._late_apart = late_apart
        self._fixed_service = fixed_service
        self._services = ServiceNames(session.facts)
        self._other_links = other_links
        self._recording = recording
        self._session = session
        self._uuid = session.facts.uuid
        self._shape = shape
        self._connections: dict[int, Connection | None] = {}
        self._contexts: dict[int, SpanContextIds | None] = {}
        self._first_exchanges: dict[tuple[str, str], int] = {}
        self._cards = CardHistory(recording)
        self._earlier_calls = EarlierCalls(recording, session)
        self._endings: EndingReader | None = None
        """None while the session is recorded: the end of a call can be explained by later calls."""
        self._handoffs: dict[int, dict[int, Handoff]] = {}
        """Exchange number -> the hand-offs that led to it, by id."""
        for row in self._cards.card_calls(session):
            self._cards.add_call(row, self._find_connection(row.exchange.connection))
        for handoff in recording.read_handoffs(session.id):
            self.add_handoff(handoff.handoff)

    def add_handoff(self, handoff: Handoff) -> None:
        """Add a hand-off that was recorded later, or replace an older version of it."""
        self._handoffs.setdefault(handoff.to_exchange, {})[handoff.id] = handoff

    def call_spans(self, exchange: Exchange, sent_count: int = 0) -> CallSpans | None:
        """Return the spans of an exchange after `sent_count` sent segments; None if it is open."""
        if not exchange.closed:
            return None
        row = ExchangeRow(make_key(self._session.id, exchange.id), self._session.id, exchange)
        if exchange.operation in CARD_OPERATIONS:
            self._cards.add_call(row, self._find_connection(exchange.connection))
        return self._make_call_spans(row, sent_count)

    def open_call_segments(self, row: ExchangeRow, now: int, sent_count: int) -> list[SpanValue]:
        """Return the segments of an open call that have ended at `now` (ns), after `sent_count`
        sent ones."""
        cuts = list(open_call_windows(row.exchange, self._shape.segment, now, sent_count))
        if not cuts:
            return []
        task = self._task_of_exchange(row.exchange)
        return self._segment_spans(row, self._call_facts(row, PayloadTexts(), task), cuts, task)

    def span_context(self, exchange: Exchange) -> SpanContextIds:
        """Return the ids of the call's span, also while the call is open."""
        return self._span_contexts(exchange, self._request_facts(exchange))[0]

    def _task_of_exchange(self, exchange: Exchange) -> Task | None:
        """Return the task of the call, as this session has it."""
        connection = self._find_connection(exchange.connection)
        if not exchange.task_id or connection is None:
            return None
        rows = self._recording.read_task(exchange.task_id, exchange.agent, session=self._session.id)
        is_receiver = not rows or exchange.agent == connection.upstream
        if exchange.binding is Binding.WEBHOOK and is_receiver:
            return self._task_of_push(exchange.task_id, connection.upstream)
        return rows[0].task if rows else None

    def _task_of_push(self, task_id: str, receiver: str) -> Task | None:
        """Return the task of a push notification whose agent is not known. Its id determines the
        agent, because the receiver is not the agent. A notification that preceded the agent's own
        answer was recorded as the receiver's task."""
        tasks = [row.task for row in self._recording.read_task(task_id, session=self._session.id)]
        tasks.sort(key=lambda task: task.agent == receiver)
        if not tasks:
            return None
        exchanges = sorted({each for task in tasks for each in task.exchanges})
        return msgspec.structs.replace(tasks[0], exchanges=tuple(exchanges))

    def upstream_address(self, exchange: Exchange) -> str:
        """Return the address of the call's agent; empty if the connection is unknown."""
        connection = self._find_connection(exchange.connection)
        return connection.upstream if connection is not None else ""

    def service_name(self, exchange: Exchange) -> str:
        """Return the name of the service of the call's span; empty for that of the resource."""
        return "" if self._fixed_service else self._agent_name(exchange)

    def _agent_name(self, exchange: Exchange) -> str:
        """Return the name of the call's agent, as known when the call began; a call for a card may
        return it."""
        connection = self._find_connection(exchange.connection)
        ended = exchange.operation in CARD_OPERATIONS and exchange.closed
        server = self._server_of(exchange)
        return self._services.find_name(
            connection, self._cards.latest_card(server, ended or exchange.started), server
        )

    def _server_of(self, exchange: Exchange) -> str:
        """Return the agent that is called, or the address of the receiver of a push
        notification."""
        return (
            self.upstream_address(exchange)
            if exchange.binding is Binding.WEBHOOK
            else exchange.agent
        )

    def _make_call_spans(self, row: ExchangeRow, sent_count: int) -> CallSpans:
        texts = read_payload_texts(self._recording, row, content=self._shape.content)
        task = self._task_of_exchange(row.exchange)
        facts, whole = self._call_facts(row, texts, task), self._call_events(row, task)
        ending = self._read_ending(row)
        if ending is not None:
            facts = msgspec.structs.replace(facts, ending=ending)
            whole.add_ending(ending)
        cuts = list(finished_call_windows(row.exchange, self._shape.segment, sent_count))
        span = self._call_span(facts, whole)
        went = forwarded_context(row.exchange)
        onward = [client_span(span, went, facts.service)] if went is not None else []
        steps, left = step_spans(
            onward[0] if onward else span, texts.reports, row.exchange.id, self._uuid
        )
        if left:
            attributes = {**span.attributes, "a2a_proxy.self_reported.left_out": left}
            span = msgspec.structs.replace(span, attributes=attributes)
        spans = (
            [span]
            if cuts[0].is_whole_call
            else [*self._segment_spans(row, facts, cuts, task, whole_span=span)]
        )
        return CallSpans(
            row.exchange.id, facts.context, span.service, (*spans, *onward, *steps), whole, task
        )

    def _read_ending(self, row: ExchangeRow) -> Ending | None:
        """Return why a call of a session that has ended did not end well."""
        if self._endings is None:
            now = self._recording.read_session(self._session.id)
            if now is None or not now.how:
                return None
            from a2a_proxy.recording.read.endings import EndingReader

            self._endings = EndingReader(self._recording)
        return self._endings.read(row)

    def _call_events(self, row: ExchangeRow, task: Task | None) -> CallEvents:
        """Return the events of the whole call."""
        events = CallEvents(_state_before(task, row.exchange.started))
        for frame in self._recording.read_frames(row.key, payloads=False):
            events.add_frame(frame.frame)
        for finding in self._findings_of_call(row):
            events.add_finding(finding)
        return events

    def _findings_of_call(self, row: ExchangeRow) -> list[Finding]:
        found = (each.finding for each in self._recording.read_findings(exchange=row.key))
        return [
            each for each in found if not (self._late_apart and is_late_finding(each, row.exchange))
        ]

    def _segment_spans(
        self,
        row: ExchangeRow,
        facts: CallFacts,
        windows: list[SegmentWindow],
        task: Task | None,
        whole_span: SpanValue | None = None,
    ) -> list[SpanValue]:
        """Return one span per window; `whole_span` is the span of a finished call."""
        made: list[SpanValue] = []
        progress = PartialCall(row.exchange)
        events = CallEvents(_state_before(task, row.exchange.started))
        frames = (frame.frame for frame in self._recording.read_frames(row.key, payloads=False))
        findings = self._findings_of_call(row)
        frame = next(frames, None)
        card = self._cards.latest_card(self._server_of(row.exchange), row.exchange.started)
        card_url = self._cards.latest_card_url(self._server_of(row.exchange), row.exchange.started)
        then = msgspec.structs.replace(facts, card=card, card_url=card_url, content=NO_CONTENT)
        for cut in (SegmentWindow(0, 0, windows[0].begin), *windows):
            events = CallEvents(progress.state or events.state, events.last)
            while frame is not None and (frame.at < cut.end or cut.last):
                progress.add_frame(frame)
                events.add_frame(frame)
                frame = next(frames, None)
            for finding in findings:
                if cut.begin <= finding.at and (finding.at < cut.end or cut.last):
                    events.add_finding(finding)
            if cut.last and facts.ending is not None:
                events.add_ending(facts.ending)
            if cut.number:
                known = msgspec.structs.replace(then, exchange=progress.exchange_at(cut.end))
                span = whole_span if cut.last and whole_span else self._call_span(known, events)
                made.append(segment_span(span, cut, self._uuid, row.exchange.id, events))
        return made

    def _call_span(self, facts: CallFacts, events: CallEvents) -> SpanValue:
        service = "" if self._fixed_service else facts.service
        return msgspec.structs.replace(call_span(facts, events, self._shape), service=service)

    def _call_facts(self, row: ExchangeRow, texts: PayloadTexts, task: Task | None) -> CallFacts:
        exchange = row.exchange
        asks = self._request_facts(exchange)
        context, parent = self._span_contexts(exchange, asks)
        connection = self._find_connection(exchange.connection)
        return CallFacts(
            exchange=exchange,
            connection=connection,
            request=asks,
            context=context,
            parent=parent,
            card=self._cards.latest_card(
                self._server_of(exchange), exchange.closed or exchange.started
            ),
            service=self._agent_name(exchange),
            card_url=self._cards.latest_card_url(
                self._server_of(exchange), exchange.closed or exchange.started
            ),
            fetch=self._cards.card_fetch(row),
            delivery=self._earlier_calls.push_delivery(exchange, task),
            resumed_from=self._earlier_calls.interrupted_stream(exchange, task),
            content=texts.content,
            links=self._span_links(exchange) + message_link(context, asks.parent),
        )

    def _span_contexts(
        self, exchange: Exchange, request: RequestFacts
    ) -> tuple[SpanContextIds, SpanContextIds | None]:
        went, named = forwarded_context(exchange), context_of_headers(exchange)
        parent = named or request.parent if went is None else caller_context(went, named)
        known = parent or went
        trace = known.trace if known else trace_id(self._uuid, self._first_exchange(exchange))
        return SpanContextIds(
            trace, span_id(self._uuid, exchange.id), parent.state if parent else ""
        ), parent

    def _span_links(self, exchange: Exchange) -> tuple[SpanLink, ...]:
        found: list[SpanLink] = []
        first = self._first_exchange(exchange)
        context = self._context_of_exchange(first) if first != exchange.id else None
        if context is not None:
            found.append(task_link(context, exchange.task_id))
        for handoff in self._handoffs.get(exchange.id, {}).values():
            before = handoff_source(self._recording, self._session.id, handoff)
            context = self._context_of_exchange(before) if before else None
            if context is not None:
                found.append(handoff_link(context, handoff))
        known = {link.context for link in found}
        return (
            *found,
            *(link for link in self._other_links(exchange.id) if link.context not in known),
        )

    def _context_of_exchange(self, number: int) -> SpanContextIds | None:
        def find() -> SpanContextIds | None:
            row = self._recording.read_exchange(make_key(self._session.id, number))
            return self.span_context(row.exchange) if row is not None else None

        return _cached_value(self._contexts, number, find)

    def _first_exchange(self, exchange: Exchange) -> int:
        """Return the number of the first exchange that touched the call's task; its own number
        without a task."""
        if not exchange.task_id:
            return exchange.id
        known = (exchange.agent, exchange.task_id)
        if known in self._first_exchanges:
            return self._first_exchanges[known]
        task = self._task_of_exchange(exchange)
        if task is None or not task.exchanges:
            return exchange.id
        return _cached_value(
            self._first_exchanges, known, lambda: self._first_exchange_of_task(task)
        )

    def _first_exchange_of_task(self, task: Task) -> int:
        if len(task.exchanges) < _MAX_TASK_EXCHANGES:
            return task.exchanges[0]
        return self._recording.first_exchange(task.task_id, self._session.id) or task.exchanges[0]

    def _find_connection(self, number: int) -> Connection | None:
        def find() -> Connection | None:
            row = self._recording.read_connection(make_key(self._session.id, number))
            return row.connection if row is not None else None

        return _cached_value(self._connections, number, find)

    def _request_facts(self, exchange: Exchange) -> RequestFacts:
        """Return the facts of the call's first message, whose payload is decoded for this."""
        row = next(
            iter(self._recording.read_frames(make_key(self._session.id, exchange.id), limit=1)),
            None,
        )
        if row is None or row.frame.kind is not FrameKind.REQUEST:
            return RequestFacts()
        return parse_request(readable_payload(row.frame, exchange), row.frame.message_id)


def is_late_finding(finding: Finding, exchange: Exchange) -> bool:
    """Whether the finding was made after the end of the call. Decided by times, so a restarted
    process decides alike."""
    return bool(exchange.closed) and finding.at > exchange.closed


def _state_before(task: Task | None, at: int) -> str:
    before = [state for when, state in task.states if when < at] if task is not None else []
    return state_label(before[-1]) if before else ""


def _cached_value(cache: dict[_Key, _Value], name: _Key, find: Callable[[], _Value]) -> _Value:
    """Return a cached value, computed by `find` if it is missing."""
    if name not in cache:
        if len(cache) >= _MAX_CACHED:
            cache.clear()
        cache[name] = find()
    return cache[name]
