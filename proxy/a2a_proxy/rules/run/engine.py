"""Runs the rules over redacted frames and exchanges and emits findings, live and for recordings.

Time advances with frames and with `tick`. Work that is due before a frame (an ended exchange, a
deadline) runs before that frame, so the order of findings depends only on the traffic, not on when
`tick` is called. `end_session` settles or drops the deadlines that are still to come
(`Rule.settled_at_end`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Protocol

import msgspec

from a2a_proxy.model.values import (
    FAULT_MARK,
    Actor,
    Binding,
    Dialect,
    EventKind,
    Exchange,
    Finding,
    Frame,
    FrameKind,
    Observation,
    Severity,
    Task,
)
from a2a_proxy.model.wire import ConnectionFacts, Direction
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk
from a2a_proxy.protocol.message import Checks, check_payload, checks_for
from a2a_proxy.protocol.status_summary import A2AMessage, Content
from a2a_proxy.redaction.labels import is_withheld
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.conditions import EXCHANGE_FLAGS, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import Judge, Rule, RuleFinding
from a2a_proxy.rules.facts.naming import frame_phrase, frame_sender
from a2a_proxy.rules.run.deadlines import Deadline, DeadlineQueue
from a2a_proxy.rules.run.missing_payload import MissingPayload
from a2a_proxy.rules.run.repeat_limit import RepeatLimit
from a2a_proxy.rules.run.request_flags import end_flags, exchange_flags
from a2a_proxy.rules.state import state_sequence
from a2a_proxy.rules.state.push_configs import DELETE_CONFIG, forget_after_delete
from a2a_proxy.rules.state.records import ExchangeRecord, KnownArtifact, TaskRecord
from a2a_proxy.rules.state.repeated_update import PLAIN_FRAMINGS, Update, find_repeated
from a2a_proxy.rules.state.session_state import SavedSession, SessionState, rule_dialect

MAX_PENDING_REQUESTS = 16
"""Maximum number of pending requests of one exchange before its first answer; later requests are
judged at once."""
_MAX_FAULTED = 10_000
"""Names that `Engine` keeps of exchanges with faults."""
BROKEN_RULE_ID = "RULES"
"""Rule id of the finding that reports a failure of a rule."""
_MAX_VALUE_LENGTH = 200
"""Maximum characters of a value in the evidence."""
_PEER_OUTCOMES = frozenset(
    {"complete", "client cancel", "client gone", "agent reset", "agent gone", "agent exited"}
)
"""Outcomes caused by a peer. Exchanges ended by the proxy or by a capture gap are not judged."""
_UNCLEAN_FLAG, _OTHER_FLAG = int(FrameFlag.UNCLEAN), int(FrameFlag.OTHER)
_ASKS_FLAG, _NAMES_FLAG, _FRAMED_FLAG = (
    int(FrameFlag.ASKS),
    int(FrameFlag.NAMES),
    int(FrameFlag.FRAMED),
)
_TO_AGENT, _WEBHOOK, _ERROR_FRAME = Direction.TO_AGENT, Binding.WEBHOOK, FrameKind.ERROR
_NO_EVENT, _TASK_EVENT, _ARTIFACT_EVENT, _CARD_EVENT = (
    EventKind.NONE,
    EventKind.TASK,
    EventKind.ARTIFACT,
    EventKind.CARD,
)
"""Module-level aliases, because accessing `EventKind.CARD` for each frame costs 0.1 us (CPython
3.11)."""
_ALL_FLAGS = -1
"""Flags used when there is no frame: `trigger_flags` does not apply, so all rules of the hook point
run."""
_NOT_EXCHANGE_FLAGS = ~int(EXCHANGE_FLAGS)
"""Flags at `HEADS` and `CLOSED`: all except the flags of the exchange itself."""
_ANSWER_KINDS = frozenset(
    {
        FrameKind.RESPONSE,
        FrameKind.EVENT,
        FrameKind.ERROR,
        FrameKind.OTHER,
        FrameKind.UNDECODABLE,
        FrameKind.COMMENT,
        FrameKind.END,
    }
)
_UNJUDGED_BINDINGS = frozenset({Binding.OTHER})


class RuleDataSource(Protocol):
    """Source of the facts that a frame does not contain."""

    def get_exchange(self, number: int) -> Exchange:
        """Return the current state of the exchange, redacted."""

    def call_of(self, number: int) -> tuple[Binding, str, int, str]:
        """Return the exchange's current binding and operation, its start in ns, and its agent;
        cheaper than `get_exchange`."""

    def closed_at(self, number: int) -> int:
        """Return the time at which the exchange ended, ns; 0 while it is open."""

    def get_facts(self, connection: int) -> ConnectionFacts:
        """Return the addresses of a connection."""


_RuleJudges = tuple[tuple[Rule, Judge], ...]


class _RuleTable(dict[int, _RuleJudges]):
    """The rules that apply to a group of exchanges, by the flags of a frame. Entries are computed
    on first use."""

    def __init__(self, judges: _RuleJudges) -> None:
        self.judges = judges

    def __missing__(self, flags: int) -> _RuleJudges:
        found = self[flags] = _select_judges(self.judges, flags)
        return found


_RuleTables = dict[tuple[HookPoint, Binding, Dialect, str], _RuleTable]
"""Rule tables by hook point, binding, dialect and operation."""


@cache
def _shared_tables() -> _RuleTables:
    """Return the tables of the whole catalogue, which all engines share and fill on demand."""
    return {}


_AnswerContext = tuple[ExchangeRecord, Exchange, _RuleTable, Checks]
"""An exchange's record, exchange, rule table for answers (`_rule_table`) and payload checks
(`checks_for`)."""
FrameOrEnd = tuple[Frame, RuleDataSource, A2AMessage | None] | Exchange
"""A frame with what was read of its payload, or an exchange that has ended."""


class EngineState(msgspec.Struct):
    """What an engine keeps across a restart."""

    session: SavedSession
    repeat_limit: RepeatLimit
    deadlines: DeadlineQueue
    closed_exchanges: dict[int, Exchange]
    now: int
    faulted: dict[str, None]


class Engine:
    """Runs the rules on one session."""

    def __init__(
        self, selected_rules: dict[str, Rule] | None = None, max_per_exchange: int | None = None
    ) -> None:
        self._rules = all_rules() if selected_rules is None else selected_rules
        self.session = SessionState()
        self._repeat_limit = (
            RepeatLimit() if max_per_exchange is None else RepeatLimit(max_per_exchange)
        )
        self._deadlines = DeadlineQueue()
        self._faulted: dict[str, None] = {}
        """Tasks, and ids of messages, of exchanges that a fault on purpose concerns, the oldest
        first."""
        self._closed_exchanges: dict[int, Exchange] = {}
        """Exchanges that have ended or will end, until their end is processed."""
        self._tables: _RuleTables = _shared_tables() if selected_rules is None else {}
        self._answer_contexts: dict[int, _AnswerContext] = {}
        """Context for further answers of open exchanges that have had their first answer."""
        self._current_rule: Rule | None = None
        self.skipped_rules: set[str] = set()
        """Rules skipped because they need a payload that was not recorded."""
        self._failed_rules: set[str] = set()
        """Rules that raised an exception; each is reported once."""
        self._now = 0

    # --- input

    def on_frame(self, frame: Frame, source: RuleDataSource, out: list[Observation]) -> None:
        """Process one frame that has already been emitted."""
        self.judge_block([(frame, source, None)], out)

    def judge_block(self, items: Sequence[FrameOrEnd], out: list[Observation]) -> None:
        """Process frames and ends of exchanges in turn."""
        answer_contexts, deadlines = self._answer_contexts, self._deadlines
        for each in items:
            if type(each) is not tuple:
                self.on_exchange_closed(each, out)  # type: ignore[arg-type]
                continue
            frame, source, message = each
            at = frame.at
            if at > self._now:
                if deadlines.next_at < at:
                    self._advance_time(at, out)
                self._now = at
            answering = answer_contexts.get(frame.exchange)
            # The first answer is checked later, because the heads are not known yet.
            if answering is None or (frame.direction is _TO_AGENT) is not (
                answering[0].binding is _WEBHOOK
            ):
                self._apply_frame(frame, source, None, out)
                continue
            found = (
                message.content
                if message is not None
                else check_payload(frame, answering[1], answering[3])
            )
            if type(found) is bool or not self._apply_repeated(answering, frame, found, out):
                self._apply_frame(frame, source, found, out)

    def _apply_frame(
        self,
        frame: Frame,
        source: RuleDataSource,
        gate_result: Content | None,
        out: list[Observation],
    ) -> None:
        """Process a frame that is no repeated update, after the time has advanced to it."""
        number = frame.exchange
        if not number:
            self._judge_connection_frame(frame, source, out)
            return
        record = self.session.exchange_records.get(number)
        if record is None:
            closed = source.closed_at(number)
            if closed and closed < frame.at:  # the rest of a request that was answered early
                return
            record = self._open_exchange(frame, source)
        if frame.note and FAULT_MARK in frame.note:
            self._note_fault(record, frame)
        if frame.ours:
            record.ours = True
        elif frame.direction is _TO_AGENT and record.binding is not _WEBHOOK:
            self._on_request(record, frame, out)
        elif frame.kind in _ANSWER_KINDS and (frame.direction is _TO_AGENT) is (
            record.binding is _WEBHOOK
        ):
            self._on_answer(
                record, frame, source, gate_result, out
            )  # the client of a webhook is the agent
        elif frame.kind is FrameKind.CUT:
            record.abort_cause = frame.note

    def _note_fault(self, record: ExchangeRecord, frame: Frame) -> None:
        """Blame the client no more in this exchange, for its task, and for the same message again:
        it did not get what the agent sent."""
        record.faulted = True
        request = record.request
        named = (
            record.task_id,
            frame.task_id,
            *((request.task_id, request.message_id) if request else ()),
        )
        self._faulted.update(dict.fromkeys(filter(None, named)))
        while len(self._faulted) > _MAX_FAULTED:
            del self._faulted[next(iter(self._faulted))]

    def _is_faulted(self, context: RuleContext) -> bool:
        """Whether a fault on purpose may be the cause of what the client does."""
        frame = context.frame_or_none
        named = (
            context.record.task_id,
            *((frame.task_id, frame.message_id) if frame is not None else ()),
        )
        return context.record.faulted or any(name in self._faulted for name in named if name)

    def _apply_repeated(
        self, answering: _AnswerContext, frame: Frame, update: Update, out: list[Observation]
    ) -> bool:
        """Judge the frame if `find_repeated` is true for it, as for most frames; return whether it
        was."""
        record, exchange, table, _ = answering
        task = self.session.tasks.get((record.agent, frame.task_id))
        if task is None or record.ours or frame.ours:
            return False
        artifact = find_repeated(record, frame, task, update)
        if not artifact:
            return False
        flags = self.session.on_repeated_response(record, frame, task, update, artifact)
        flags |= record.flags
        found = table[flags]
        if found:  # the values before this update equal its own
            before = (task.state, task.context_id, record.state)
            self._run_judges(
                found,
                self._answer_rule_context(record, exchange, frame, task, flags, update, before),
                out,
            )
        if isinstance(artifact, KnownArtifact) and isinstance(update, ArtifactChunk):
            state_sequence.extend_artifact(artifact, frame, update)
        return True

    def on_exchange_closed(self, exchange: Exchange, out: list[Observation]) -> None:
        """Process the end of an exchange. It is judged once time has passed it, after all frames
        with the same time."""
        record = self.session.exchange_records.get(exchange.id)
        if record is None:  # the exchange had no frames
            return
        if exchange.id not in self._closed_exchanges:
            self._deadlines.add_exchange_end(exchange)
        if exchange.how != "complete":
            # The agent's output after the client has left is not judged, and arrives too late to be
            # recorded reliably.
            exchange = msgspec.structs.replace(
                exchange, trailers=(), grpc_status=-1, error="", error_code=0
            )
        self._closed_exchanges[exchange.id] = exchange
        if exchange.closed < self._now:
            self._advance_time(self._now, out)

    def tick(self, at: int, out: list[Observation]) -> None:
        """Advance the time to `at` (ns); all earlier frames must have been processed."""
        self._advance_time(at, out)

    def end_session(self, at: int, out: list[Observation]) -> None:
        """End the session at `at` (ns), settle the deadlines after it and report the findings that
        were suppressed."""
        self._advance_time(at + 1, out)
        for due in self._deadlines.take_all():
            rule = self._rules.get(due.rule)
            if rule is not None and rule.settled_at_end:
                self._run_deadline(due, at, out)
        out.extend(self._repeat_limit.make_totals(at))

    def load(self, tasks: list[Task]) -> None:
        """Load the tasks of a recording after a restart."""
        self.session.load(tasks)

    # --- exchanges

    def _open_exchange(self, frame: Frame, source: RuleDataSource) -> ExchangeRecord:
        (binding, operation, started, agent), facts = (
            source.call_of(frame.exchange),
            source.get_facts(frame.connection),
        )
        if binding is Binding.WEBHOOK:
            known = "" if agent == facts.upstream else agent  # the receiver is not the agent
            agent = self.session.agent_of_delivery(known, frame.task_id) or agent
        record = ExchangeRecord(
            id=frame.exchange,
            connection=frame.connection,
            agent=agent,
            binding=binding,
            operation=operation,
            started=started,
            client=facts.client.rpartition(":")[0],
            upstream=facts.upstream,
        )
        self.session.exchange_records[record.id] = record
        return record

    def _on_request(self, record: ExchangeRecord, frame: Frame, out: list[Observation]) -> None:
        kind = frame.kind
        if kind is FrameKind.REQUEST:
            self.session.on_request(record, frame)
        elif kind is FrameKind.END:
            record.half_closed = frame.at
            return
        elif kind is not FrameKind.UNDECODABLE and kind is not FrameKind.OTHER:
            return
        if record.is_judged:
            assert record.exchange is not None
            self._judge_request(
                RuleContext(self.session, record, record.exchange, frame.at, self._schedule_due),
                frame,
                out,
            )
        elif len(record.pending) < MAX_PENDING_REQUESTS:
            record.pending.append(frame)

    def _judge_opening(
        self, record: ExchangeRecord, exchange: Exchange, at: int, out: list[Observation]
    ) -> None:
        """Judge the requests and heads of an exchange once dialect and binding are known."""
        record.is_judged, record.exchange = True, exchange
        record.binding, record.operation = exchange.binding, exchange.operation
        if exchange.binding is not Binding.WEBHOOK:
            record.agent = (
                exchange.agent
            )  # the card that answers may show another one than its place
        self.session.facts.learn_dialect(record.agent, exchange.dialect)
        record.flags = exchange_flags(self.session.agent_record(record.agent), record, exchange)
        context = RuleContext(self.session, record, exchange, at, self._schedule_due)
        pending, record.pending = record.pending, []
        # In traffic that is not A2A only the heads are judged, which may show a call that missed
        # its path.
        for frame in () if exchange.binding is Binding.OTHER else pending:
            self._judge_request(context, frame, out)
        context.set_frame(None)
        self._judge_flagged(
            self._rule_table(HookPoint.HEADS, exchange),
            _NOT_EXCHANGE_FLAGS | record.flags,
            context,
            out,
        )

    def _judge_request(self, context: RuleContext, frame: Frame, out: list[Observation]) -> None:
        request_snapshot = context.record.request_snapshot
        task = (
            self.session.task_record(context.record.agent, frame.task_id) if frame.task_id else None
        )
        flags = (
            _ASKS_FLAG
            if check_payload(frame, context.exchange, checks_for(context.exchange))
            else _ASKS_FLAG | _UNCLEAN_FLAG
        )
        if frame.kind is not FrameKind.REQUEST:
            flags |= _UNCLEAN_FLAG | _OTHER_FLAG
        flags |= context.record.flags
        if frame.task_id or context.record.task_id:
            flags |= _NAMES_FLAG
        if frame.framing not in PLAIN_FRAMINGS:
            flags |= _FRAMED_FLAG
        context.set_frame(frame, task, flags)
        context.state_before = request_snapshot.state if request_snapshot else 0
        self._judge_flagged(
            self._rule_table(HookPoint.REQUEST, context.exchange), context.flags, context, out
        )

    def _on_answer(
        self,
        record: ExchangeRecord,
        frame: Frame,
        source: RuleDataSource,
        gate_result: Content | None,
        out: list[Observation],
    ) -> None:
        answer_context = self._answer_contexts.get(record.id)
        if answer_context is None:
            if not record.is_judged:
                if frame.kind is FrameKind.COMMENT:
                    return
                self._judge_opening(record, source.get_exchange(record.id), frame.at, out)
            exchange = record.exchange
            assert exchange is not None
            if exchange.binding in _UNJUDGED_BINDINGS:
                return
            answer_context = (
                record,
                exchange,
                self._rule_table(HookPoint.ANSWER, exchange),
                checks_for(exchange),
            )
            self._answer_contexts[record.id] = answer_context
        if record.ours:
            return
        _, exchange, table, checks = answer_context
        session = self.session
        task = session.tasks.get((record.agent, frame.task_id)) if frame.task_id else None
        if gate_result is None:
            gate_result = check_payload(frame, exchange, checks)
        before, context, shown = 0, "", record.state
        if task is not None:
            before, context = task.state, task.context_id
        flags, task = session.on_response(record, frame, task, gate_result)
        flags |= record.flags
        event = frame.event
        if event is _CARD_EVENT and not is_withheld(frame):
            self._learn_card(record, frame, exchange)
        if not gate_result:
            flags |= _UNCLEAN_FLAG
        found = table[flags]
        if found:
            self._run_judges(
                found,
                self._answer_rule_context(
                    record, exchange, frame, task, flags, gate_result, (before, context, shown)
                ),
                out,
            )
        if task is not None and frame.task_id:
            if (
                (frame.generation or not task.numbered)
                and event is not _NO_EVENT
                and frame.kind is not _ERROR_FRAME
            ):
                session.on_generation(record, frame, task)
            if event is _ARTIFACT_EVENT or event is _TASK_EVENT:
                session.on_artifacts(record, frame, task)

    def _answer_rule_context(
        self,
        record: ExchangeRecord,
        exchange: Exchange,
        frame: Frame,
        task: TaskRecord | None,
        flags: int,
        gate_result: Content,
        before: tuple[int, str, int],
    ) -> RuleContext:
        """Return the context for an answer. `before`: the task's state and context id, and the last
        state of its stream.
        """
        context = RuleContext(self.session, record, exchange, frame.at, self._schedule_due)
        context.set_frame(frame, task, flags)
        context.gate_result = gate_result
        context.state_before, context.context_before, context.stream_state_before = before
        context.generation_before = record.generation
        return context

    def _learn_card(self, record: ExchangeRecord, frame: Frame, exchange: Exchange) -> None:
        context = RuleContext(self.session, record, exchange, frame.at, self._schedule_due)
        context.set_frame(frame)
        card = context.body
        if isinstance(card, dict):
            extended = exchange.operation == "GetExtendedAgentCard"
            self.session.learn_card(record.agent, card, frame.at, extended=extended)

    def _close_exchange(self, record: ExchangeRecord, out: list[Observation]) -> None:
        exchange = record.closed_exchange = self._closed_exchanges.pop(record.id)
        ours = record.ours or exchange.ours
        if not ours and not record.is_judged:
            self._judge_opening(record, exchange, exchange.closed, out)
        if (
            not ours
            and exchange.how in _PEER_OUTCOMES
            and exchange.binding not in _UNJUDGED_BINDINGS
        ):
            context = RuleContext(
                self.session, record, exchange, exchange.closed, self._schedule_due
            )
            context.task = (
                self.session.task_record(record.agent, record.task_id) if record.task_id else None
            )
            self._judge_flagged(
                self._rule_table(HookPoint.CLOSED, exchange),
                _NOT_EXCHANGE_FLAGS | end_flags(exchange),
                context,
                out,
            )
        self._answer_contexts.pop(record.id, None)
        if record.operation == DELETE_CONFIG:
            forget_after_delete(self.session, record)
        self.session.on_exchange_end(record)

    def _judge_connection_frame(
        self, frame: Frame, source: RuleDataSource, out: list[Observation]
    ) -> None:
        table = self._rule_table(HookPoint.CONNECTION, None)
        if not table.judges or frame.kind is FrameKind.LOG:
            return
        facts = source.get_facts(frame.connection)
        record = ExchangeRecord(
            0,
            frame.connection,
            facts.upstream,
            Binding.OTHER,
            "",
            frame.at,
            upstream=facts.upstream,
        )
        exchange = Exchange(0, frame.connection, 0, Binding.OTHER, frame.at)
        context = RuleContext(self.session, record, exchange, frame.at, self._schedule_due)
        context.set_frame(frame)
        self._judge_flagged(table, _ALL_FLAGS, context, out)

    # --- time

    def _advance_time(self, at: int, out: list[Observation]) -> None:
        """Run everything due before `at`."""
        deadlines = self._deadlines
        while deadlines.next_at < at:
            due = deadlines.take_next()
            self._now = max(self._now, due.at)
            if due.rule:
                self._run_deadline(due, due.at, out)
                continue
            record = self.session.exchange_records.get(due.exchange)
            if record is not None:
                self._close_exchange(record, out)
        self._now = max(self._now, at)

    def _schedule_due(
        self, context: RuleContext, at: int, note: str, record: ExchangeRecord
    ) -> None:
        assert self._current_rule is not None
        self._deadlines.add_deadline(self._current_rule.id, context, at, note, record)

    def _run_deadline(self, due: Deadline, at: int, out: list[Observation]) -> None:
        """Run the `due` function of a rule at `at`. If the exchange has ended, only its number is
        available."""
        rule = self._rules.get(due.rule)
        if rule is None or rule.due is None:
            return
        record = self.session.exchange_records.get(due.exchange)
        exchange = record.exchange if record is not None else None
        if record is None:
            record = due.closed_record()
        exchange = exchange or due.closed_exchange()
        context = RuleContext(self.session, record, exchange, at, self._schedule_due)
        context.task = self.session.task_record(due.agent, due.task_id) if due.task_id else None
        context.due_seq, context.due_note, context.due_at = due.seq, due.note, due.at
        self._run_judges(((rule, rule.due),), context, out)

    # --- rules

    def _rule_table(self, moment: HookPoint, exchange: Exchange | None) -> _RuleTable:
        """Return the rules for this hook point and exchange, by frame flags."""
        if exchange is None:
            key = (moment, Binding.OTHER, Dialect.UNKNOWN, "")
        else:
            key = (moment, exchange.binding, rule_dialect(exchange.dialect), exchange.operation)
        table = self._tables.get(key)
        if table is None:
            concerned = tuple(
                (each, each.judge) for each in self._rules.values() if _applies_to(each, key)
            )
            table = self._tables[key] = _RuleTable(concerned)
        return table

    def _judge_flagged(
        self, table: _RuleTable, flags: int, context: RuleContext, out: list[Observation]
    ) -> None:
        self._run_judges(table[flags], context, out)

    def _run_judges(
        self, judges: _RuleJudges, context: RuleContext, out: list[Observation]
    ) -> None:
        for rule, judge in judges:
            self._current_rule = rule
            try:
                for hit in judge(context):
                    self._report_finding(rule, hit, context, out)
            except MissingPayload:
                self.skipped_rules.add(rule.id)
            except Exception as error:  # a fault of the rule, most likely caused by hostile values
                self._report_broken_rule(rule, error, context, out)

    def _report_broken_rule(
        self, rule: Rule, error: Exception, context: RuleContext, out: list[Observation]
    ) -> None:
        if rule.id not in self._failed_rules:
            self._failed_rules.add(rule.id)
            summary = (
                f"{rule.id} failed on this frame or exchange: {type(error).__name__}: {error}"[:300]
            )
            out.append(
                Finding(
                    BROKEN_RULE_ID,
                    Severity.WARNING,
                    context.at,
                    summary,
                    context.record.connection,
                    context.record.id,
                )
            )

    def _report_finding(
        self, rule: Rule, finding: RuleFinding, context: RuleContext, out: list[Observation]
    ) -> None:
        frame = context.frame_or_none
        if (
            finding.path
            and frame is not None
            and frame.redacted
            and finding.seq is None
            and _is_redacted(finding.path, frame.redacted)
        ):
            return
        record = finding.track or context.record
        sender = (
            frame_sender(frame, record.binding)
            if frame is not None and record is context.record
            else None
        )
        actor = finding.actor or rule.actor_of(sender)
        if self._faulted and actor is not Actor.AGENT and self._is_faulted(context):
            return
        severity = finding.severity or rule.severity
        side = int(frame.direction) if frame is not None else -1
        seq = finding.seq if finding.seq is not None else frame.seq if frame is not None else -1
        count = self._repeat_limit.count_finding(
            (rule.id, int(severity), record.agent, side, record.operation),
            record.finding_counts,
            (record.id, seq),
        )
        if not count:
            return
        evidence = {
            name: value
            for name, value in (
                ("path", finding.path),
                ("value", finding.value[:_MAX_VALUE_LENGTH]),
                ("expected", finding.expected),
                ("follows", finding.follows),
            )
            if value
        } | finding.evidence
        evidence["actor"] = actor.value
        if place := _phrase_of_frame(seq, record, frame):
            evidence["frame"] = place
        if count > 1:
            evidence["count"] = str(count)
        if (section := rule.section_for(context.exchange.dialect)) != rule.section:
            evidence["section"] = section
        sure = finding.is_sure and (finding.is_final or not context.is_early)
        sure = sure and not (
            rule.scope is EvidenceScope.LIVE
            and context.task is not None
            and not context.task.created_by
        )
        out.append(
            Finding(
                rule=rule.id,
                severity=severity,
                at=context.at,
                summary=finding.summary,
                connection=record.connection,
                exchange=record.id,
                seq=seq,
                task_id=context.task.task_id if context.task is not None else record.task_id,
                confidence="high" if sure else "low",
                evidence=evidence,
            )
        )

    # --- across a restart

    def save(self) -> EngineState:
        """Return the state for `restore`. It shares objects with this engine."""
        return EngineState(
            self.session.save(),
            self._repeat_limit,
            self._deadlines,
            self._closed_exchanges,
            self._now,
            self._faulted,
        )

    @classmethod
    def restore(cls, state: EngineState) -> Engine:
        """Return the engine whose state was saved."""
        engine = cls()
        engine.session = SessionState.restore(state.session)
        engine._repeat_limit, engine._deadlines = state.repeat_limit, state.deadlines
        engine._closed_exchanges = state.closed_exchanges
        engine._now, engine._faulted = state.now, state.faulted
        return engine


def _phrase_of_frame(seq: int, record: ExchangeRecord, *frames: Frame | None) -> str:
    """Return the frame of a finding in words, if it is one of `frames` or the request."""
    known = (*frames, record.request)
    found = (
        each for each in known if each is not None and (each.exchange, each.seq) == (record.id, seq)
    )
    return next((frame_phrase(each, record.binding) for each in found), "")


def _applies_to(rule: Rule, key: tuple[HookPoint, Binding, Dialect, str]) -> bool:
    moment, binding, dialect, operation = key
    if moment not in rule.hook_points:
        return False
    if moment is HookPoint.CONNECTION:
        return True
    known = dialect in rule.dialects.value or rule_dialect(dialect) in {
        rule_dialect(each) for each in rule.dialects.value
    }
    return (
        binding in rule.bindings and known and (not rule.operations or operation in rule.operations)
    )


def _select_judges(judges: _RuleJudges, flags: int) -> _RuleJudges:
    return tuple(
        (rule, judge)
        for rule, judge in judges
        if (rule.trigger_flags is None or flags & int(rule.trigger_flags))
        and (rule.required_flags is None or flags & int(rule.required_flags))
    )


_PATH_PUNCTUATION = re.compile(r"\[\d+\]|[._$]")


def _is_redacted(path: str, redacted: tuple[str, ...]) -> bool:
    """Whether this path, or a path inside or around it, was redacted; such a place cannot be
    judged."""
    here = _normalise_path(path)
    return any(
        here.startswith(there) or there.startswith(here) for there in map(_normalise_path, redacted)
    )


def _normalise_path(path: str) -> str:
    return _PATH_PUNCTUATION.sub("", path).lower()
