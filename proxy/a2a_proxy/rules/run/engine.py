"""Asks the rules about what passes: redacted frames and exchanges in, findings out. Live and over recordings alike.

Time goes on by frames and by `tick`. What is due before a frame (an exchange that ended, a deadline) comes before it,
so that the order of findings depends on the traffic alone, not on when somebody looked.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import msgspec

from a2a_proxy.model.chunk import ConnectionFacts, Direction
from a2a_proxy.model.exchange import Binding, Dialect, Exchange
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.model.observation import Observation
from a2a_proxy.model.task import Task
from a2a_proxy.redaction.labels import withheld
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.catalogue import rules
from a2a_proxy.rules.define.rule import GIVEN, EvidenceScope, FrameFlag, HookPoint, Judge, Rule, RuleFinding
from a2a_proxy.rules.facts.partial_decode import Seen, StatusLook
from a2a_proxy.rules.run.gate import Checks, checks_of, clean
from a2a_proxy.rules.run.missing_payload import MissingPayload
from a2a_proxy.rules.run.repeat_limit import RepeatLimit
from a2a_proxy.rules.run.request_flags import ended, given
from a2a_proxy.rules.run.status_fast_path import PLAIN_FRAMINGS, goes_on
from a2a_proxy.rules.state.records import ExchangeRecord, TaskRecord
from a2a_proxy.rules.state.session_state import LARGE, SessionState, lines_of

MAX_PENDING = 16
"""Requests of one exchange that wait to be judged; bidirectional streams have more after their first answer."""
BROKEN = "RULES"
"""The rule of the finding that says that a rule broke down."""
_VALUE = 200
"""Characters of a value in the evidence."""
_BY_PEERS = frozenset({"complete", "client cancel", "client gone", "agent reset", "agent gone", "agent exited"})
"""How an exchange ends by the doing of a peer; what the proxy or a hole in the capture ended is not judged."""
_UNCLEAN, _OTHER = int(FrameFlag.UNCLEAN), int(FrameFlag.OTHER)
_LARGE, _ASKS, _NAMES, _FRAMED = int(FrameFlag.LARGE), int(FrameFlag.ASKS), int(FrameFlag.NAMES), int(FrameFlag.FRAMED)
_TO_AGENT, _WEBHOOK, _ERROR_KIND = Direction.TO_AGENT, Binding.WEBHOOK, FrameKind.ERROR
_NONE, _TASK, _ARTIFACT, _CARD_EVENT = EventKind.NONE, EventKind.TASK, EventKind.ARTIFACT, EventKind.CARD
"""Bound here: where it is asked for each frame, `EventKind.CARD` costs 0.1 us (CPython 3.11)."""
_ALL = -1
"""Where there is no frame, `when` says nothing: all rules of the moment are asked."""
_UNGIVEN = ~int(GIVEN)
"""At `HEADS` and `CLOSED`: all flags but those that are the exchange's own."""
_ANSWERS = frozenset(
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
_UNJUDGED = frozenset({Binding.OTHER})


class RuleDataSource(Protocol):
    """Where the engine gets what a frame does not tell."""

    def exchange(self, number: int) -> Exchange:
        """The exchange as it stands, redacted."""

    def began(self, number: int) -> tuple[Binding, str, int]:
        """Binding and operation of the exchange as it stands, and when it began, ns: less work than all of it."""

    def closed_at(self, number: int) -> int:
        """When the exchange was over, ns; 0 while it is open."""

    def facts(self, connection: int) -> ConnectionFacts:
        """The addresses of a connection."""


class _Due(msgspec.Struct, order=True):
    """One thing to do when its time has come."""

    at: int
    number: int
    """Order of those at the same time: exchanges by their number, deadlines after them in the order of asking."""
    rule: str = ""
    """Whose deadline it is; empty: the exchange is over."""
    exchange: int = 0
    agent: str = ""
    task_id: str = ""
    seq: int = -1
    note: str = ""
    connection: int = 0


MAX_DEADLINES = 100_000
"""Deadlines that are kept; further ones are not asked for: silence is then not judged."""
_DEADLINE = 1 << 60
"""Deadlines come after exchanges of the same time."""


_Asked = tuple[tuple[Rule, Judge], ...]


class _RuleTable(dict[int, _Asked]):
    """The rules that concern some exchanges, by the flags of a frame; worked out when such a frame first comes."""

    def __init__(self, all_of_them: _Asked) -> None:
        self.all = all_of_them

    def __missing__(self, flags: int) -> _Asked:
        found = self[flags] = _select(self.all, flags)
        return found


_Tables = dict[tuple[HookPoint, Binding, Dialect, str], _RuleTable]
"""For such exchanges."""


@cache
def _shared_tables() -> _Tables:
    """Those of the whole catalogue: they are filled in as traffic asks for them, and serve every engine."""
    return {}


_Answering = tuple[ExchangeRecord, Exchange, _RuleTable, Checks]
"""Of an exchange its track and facts, and what `_table` and `checks_of` would give for its answers."""
Held = tuple[Frame, RuleDataSource] | Exchange
"""A frame, or an exchange that is over."""
BLOCK = 128
"""Frames whose payloads are looked at before the first of them is judged."""


class Engine:
    """The rules at work on one session."""

    def __init__(self, wanted: dict[str, Rule] | None = None) -> None:
        self._rules = rules() if wanted is None else wanted
        self.world = SessionState()
        self._ledger = RepeatLimit()
        self._agenda: list[_Due] = []
        self._ends: dict[int, Exchange] = {}
        """Exchanges that are over, or will be, until their time has come."""
        self._asked = 0
        """Deadlines so far."""
        self._tables: _Tables = _shared_tables() if wanted is None else {}
        self._answering: dict[int, _Answering] = {}
        """Of open exchanges whose first answer was there, what each further one asks for."""
        self._asking: Rule | None = None
        self.quiet: set[str] = set()
        """Rules that would have needed a payload which was not recorded."""
        self._failed: set[str] = set()
        """Rules that broke down: told once each."""
        self._now = 0

    # --- what comes in ------------------------------------------------------------------------------------------

    def frame(self, frame: Frame, source: RuleDataSource, out: list[Observation]) -> None:
        """One frame, after it was put out."""
        self._frame(frame, source, self._look(frame), out)

    def judge(self, held: Sequence[Held], out: list[Observation]) -> None:
        """What `frame` and `closed` would do with these, one after the other, in less time.

        Of a block all payloads are looked at first: that code, and that which comes after, stays in the processor's
        caches then, and the payloads do too. What is seen of a payload depends on its exchange's heads only.
        """
        look = self._look
        for start in range(0, len(held), BLOCK):
            block = held[start : start + BLOCK]
            seen = [look(each[0]) if type(each) is tuple else None for each in block]
            for each, found in zip(block, seen, strict=True):
                if type(each) is tuple:
                    self._frame(each[0], each[1], found, out)
                else:
                    self.closed(each, out)  # type: ignore[arg-type]

    def _look(self, frame: Frame) -> Seen | None:
        """What the gate sees of an answer; None where it is none, or the first one: its heads are not known yet."""
        answering = self._answering.get(frame.exchange)
        if answering is None or (frame.direction is _TO_AGENT) is not (answering[0].binding is _WEBHOOK):
            return None
        return clean(frame, answering[1], answering[3])

    def _frame(self, frame: Frame, source: RuleDataSource, seen: Seen | None, out: list[Observation]) -> None:
        at, number = frame.at, frame.exchange
        if at > self._now:
            if self._agenda and self._agenda[0].at < at:
                self._advance(at, out)
            self._now = at
        if type(seen) is StatusLook and self._went_on(frame, seen, out):
            return
        if not number:
            self._connection_frame(frame, source, out)
            return
        track = self.world.tracks.get(number)
        if track is None:
            closed = source.closed_at(number)
            if closed and closed < at:  # the rest of a request that was answered early
                return
            track = self._open(frame, source)
        if frame.ours:
            track.ours = True
        elif frame.direction is _TO_AGENT and track.binding is not _WEBHOOK:
            self._asks(track, frame, out)
        elif frame.kind in _ANSWERS and (frame.direction is _TO_AGENT) is (track.binding is _WEBHOOK):
            self._answers(track, frame, source, seen, out)  # a webhook's client is the agent
        elif frame.kind is FrameKind.CUT:
            track.cut = frame.note

    def _went_on(self, frame: Frame, seen: StatusLook, out: list[Observation]) -> bool:
        """It is an update that `steady.goes_on`, as most frames are; then it is judged."""
        answering = self._answering.get(frame.exchange)
        if answering is None:
            return False
        track, exchange, table, _ = answering
        known = self.world.tasks.get((track.agent, frame.task_id))
        if known is None or not goes_on(track, frame, known) or track.ours or frame.ours:
            return False
        flags = self.world.goes_on(track, frame, known, seen) | track.given
        found = table[flags]
        if found:  # what it would be compared with is what it says
            before = (known.state, known.context_id, track.state)
            self._each(found, self._seen(track, exchange, frame, known, flags, seen, before), out)
        return True

    def closed(self, exchange: Exchange, out: list[Observation]) -> None:
        """An exchange is over; it is judged when the time has gone on, after all frames of its last moment."""
        track = self.world.tracks.get(exchange.id)
        if track is None:  # nothing was ever said in it
            return
        if exchange.id not in self._ends:
            heapq.heappush(self._agenda, _Due(exchange.closed, exchange.id, exchange=exchange.id))
        if exchange.how != "complete":
            # What the agent says after its client has gone belongs to nobody, and comes too late to be known here.
            exchange = msgspec.structs.replace(exchange, trailers=(), grpc_status=-1, error="", error_code=0)
        self._ends[exchange.id] = exchange
        if exchange.closed < self._now:
            self._advance(self._now, out)

    def tick(self, at: int, out: list[Observation]) -> None:
        """It is `at` (ns), and nothing came before that is not told."""
        if at > self._now:
            self._advance(at, out)

    def end(self, at: int, out: list[Observation]) -> None:
        """The session ends at `at` (ns)."""
        self._advance(at + 1, out)
        for (ident, severity, agent, _, operation), count, told in self._ledger.untold():
            where = f" in {operation}" if operation else ""
            summary = f"{count} times in all{where}, of which {told} are told one by one"
            evidence = {"count": str(count), "agent": agent}
            out.append(Finding(ident, Severity(severity), at, summary, evidence=evidence))

    def load(self, tasks: list[Task]) -> None:
        """Take up what a recording knows of tasks, after a restart."""
        self.world.load(tasks)

    # --- exchanges ----------------------------------------------------------------------------------------------

    def _open(self, frame: Frame, source: RuleDataSource) -> ExchangeRecord:
        (binding, operation, started), facts = source.began(frame.exchange), source.facts(frame.connection)
        name = self.world.agent(facts.upstream).name
        if binding is Binding.WEBHOOK:  # the receiver is not the agent: the task tells whose it is
            name = self.world.owners.get(frame.task_id, name)
        track = ExchangeRecord(
            id=frame.exchange,
            connection=frame.connection,
            agent=name,
            binding=binding,
            operation=operation,
            started=started,
            client=facts.client.rpartition(":")[0],
            upstream=facts.upstream,
        )
        self.world.tracks[track.id] = track
        return track

    def _asks(self, track: ExchangeRecord, frame: Frame, out: list[Observation]) -> None:
        kind = frame.kind
        if kind is FrameKind.REQUEST:
            self.world.asked(track, frame)
        elif kind is FrameKind.END:
            track.half_closed = frame.at
            return
        elif kind is not FrameKind.UNDECODABLE and kind is not FrameKind.OTHER:
            return
        if track.settled:
            assert track.facts is not None
            self._judge_request(RuleContext(self.world, track, track.facts, frame.at, self._later), frame, out)
        elif len(track.pending) < MAX_PENDING:
            track.pending.append(frame)

    def _settle(self, track: ExchangeRecord, exchange: Exchange, at: int, out: list[Observation]) -> None:
        """Dialect and binding are clear now: judge what the client said, and the heads."""
        track.settled, track.facts = True, exchange
        track.binding, track.operation = exchange.binding, exchange.operation
        self.world.shared.learn_dialect(track.agent, exchange.dialect)
        track.given = given(self.world.agent(track.upstream), track, exchange)
        see = RuleContext(self.world, track, exchange, at, self._later)
        pending, track.pending = track.pending, []
        # Of what is no A2A rules see the heads at most: a call that missed its path.
        for frame in () if exchange.binding is Binding.OTHER else pending:
            self._judge_request(see, frame, out)
        see.look(None)
        self._ask(self._table(HookPoint.HEADS, exchange), _UNGIVEN | track.given, see, out)

    def _judge_request(self, see: RuleContext, frame: Frame, out: list[Observation]) -> None:
        asked = see.track.asked
        known = self.world.task(see.track.agent, frame.task_id) if frame.task_id else None
        flags = _ASKS if clean(frame, see.exchange, checks_of(see.exchange)) else _ASKS | _UNCLEAN
        if frame.kind is not FrameKind.REQUEST:
            flags |= _UNCLEAN | _OTHER
        if frame.size > LARGE:
            flags |= _LARGE
        flags |= see.track.given
        if frame.task_id or see.track.task_id:
            flags |= _NAMES
        if frame.framing not in PLAIN_FRAMINGS:
            flags |= _FRAMED
        see.look(frame, known, flags)
        see.before = asked.state if asked else 0
        self._ask(self._table(HookPoint.REQUEST, see.exchange), see.flags, see, out)

    def _answers(
        self, track: ExchangeRecord, frame: Frame, source: RuleDataSource, seen: Seen | None, out: list[Observation]
    ) -> None:
        answering = self._answering.get(track.id)
        if answering is None:
            if not track.settled:
                if frame.kind is FrameKind.COMMENT:
                    return
                self._settle(track, source.exchange(track.id), frame.at, out)
            exchange = track.facts
            assert exchange is not None
            if exchange.binding in _UNJUDGED:
                return
            answering = track, exchange, self._table(HookPoint.ANSWER, exchange), checks_of(exchange)
            self._answering[track.id] = answering
        if track.ours:
            return
        _, exchange, table, checks = answering
        world = self.world
        known = world.tasks.get((track.agent, frame.task_id)) if frame.task_id else None
        if seen is None:
            seen = clean(frame, exchange, checks)
        before, context, shown = 0, "", track.state
        if known is not None:
            before, context = known.state, known.context_id
        flags, known = world.told(track, frame, known, seen)
        flags |= track.given
        event = frame.event
        if event is _CARD_EVENT and not withheld(frame):
            self._card(track, frame, exchange)
        if not seen:
            flags |= _UNCLEAN
        found = table[flags]
        if found:
            self._each(found, self._seen(track, exchange, frame, known, flags, seen, (before, context, shown)), out)
        if known is not None and frame.task_id:
            if (frame.generation or not known.numbered) and event is not _NONE and frame.kind is not _ERROR_KIND:
                world.numbered(track, frame, known)
            if event is _ARTIFACT or event is _TASK:
                world.artifacts_told(track, frame, known)

    def _seen(
        self,
        track: ExchangeRecord,
        exchange: Exchange,
        frame: Frame,
        known: TaskRecord | None,
        flags: int,
        seen: Seen,
        before: tuple[int, str, int],
    ) -> RuleContext:
        """For rules about an answer. `before`: the task's state and context, and the state that its stream showed."""
        see = RuleContext(self.world, track, exchange, frame.at, self._later)
        see.look(frame, known, flags)
        see.seen = seen
        see.before, see.context_before, see.shown_before = before
        see.generation_before = track.generation
        return see

    def _card(self, track: ExchangeRecord, frame: Frame, exchange: Exchange) -> None:
        see = RuleContext(self.world, track, exchange, frame.at, self._later)
        see.look(frame)
        card = see.body
        if isinstance(card, dict):
            extended = exchange.operation == "GetExtendedAgentCard"
            self.world.learn_card(track.upstream, card, frame.at, extended=extended)

    def _over(self, track: ExchangeRecord, out: list[Observation]) -> None:
        exchange = track.final = self._ends.pop(track.id)
        ours = track.ours or exchange.ours
        if not ours and not track.settled:
            self._settle(track, exchange, exchange.closed, out)
        if not ours and exchange.how in _BY_PEERS and exchange.binding not in _UNJUDGED:
            see = RuleContext(self.world, track, exchange, exchange.closed, self._later)
            see.task = self.world.task(track.agent, track.task_id) if track.task_id else None
            self._ask(self._table(HookPoint.CLOSED, exchange), _UNGIVEN | ended(exchange), see, out)
        self._answering.pop(track.id, None)
        self.world.over(track)

    def _connection_frame(self, frame: Frame, source: RuleDataSource, out: list[Observation]) -> None:
        table = self._table(HookPoint.CONNECTION, None)
        if not table.all or frame.kind is FrameKind.LOG:
            return
        facts = source.facts(frame.connection)
        track = ExchangeRecord(
            0, frame.connection, facts.upstream, Binding.OTHER, "", frame.at, upstream=facts.upstream
        )
        exchange = Exchange(0, frame.connection, 0, Binding.OTHER, frame.at)
        see = RuleContext(self.world, track, exchange, frame.at, self._later)
        see.look(frame)
        self._ask(table, _ALL, see, out)

    # --- time ---------------------------------------------------------------------------------------------------

    def _advance(self, at: int, out: list[Observation]) -> None:
        """Do what is due before `at`."""
        agenda = self._agenda
        while agenda and agenda[0].at < at:
            due = heapq.heappop(agenda)
            self._now = max(self._now, due.at)
            if due.rule:
                self._deadline(due, out)
                continue
            track = self.world.tracks.get(due.exchange)
            if track is not None:
                self._over(track, out)
        self._now = max(self._now, at)

    def _later(self, see: RuleContext, at: int, note: str, track: ExchangeRecord) -> None:
        assert self._asking is not None
        if len(self._agenda) >= MAX_DEADLINES:
            return
        self._asked += 1
        frame, task = see.shown, see.task
        due = _Due(
            at,
            _DEADLINE + self._asked,
            self._asking.id,
            track.id,
            track.agent,
            task.task_id if task is not None else track.task_id,
            frame.seq if frame is not None else -1,
            note,
            track.connection,
        )
        heapq.heappush(self._agenda, due)

    def _deadline(self, due: _Due, out: list[Observation]) -> None:
        """Ask a rule what it says now. The exchange may be over: then only its number is left."""
        rule = self._rules.get(due.rule)
        if rule is None or rule.due is None:
            return
        track = self.world.tracks.get(due.exchange)
        exchange = track.facts if track is not None else None
        if track is None:
            where = (due.exchange, due.connection, due.agent)
            track = ExchangeRecord(*where, Binding.OTHER, "", 0, upstream=due.agent, task_id=due.task_id)
        see = RuleContext(self.world, track, exchange or _gone(due), due.at, self._later)
        see.task = self.world.task(due.agent, due.task_id) if due.task_id else None
        see.due_seq, see.due_note = due.seq, due.note
        self._each(((rule, rule.due),), see, out)

    # --- rules --------------------------------------------------------------------------------------------------

    def _table(self, moment: HookPoint, exchange: Exchange | None) -> _RuleTable:
        """The rules that concern such an exchange, by the flags of a frame."""
        if exchange is None:
            key = (moment, Binding.OTHER, Dialect.UNKNOWN, "")
        else:
            key = (moment, exchange.binding, lines_of(exchange.dialect), exchange.operation)
        table = self._tables.get(key)
        if table is None:
            concerned = tuple((each, each.judge) for each in self._rules.values() if _concerns(each, key))
            table = self._tables[key] = _RuleTable(concerned)
        return table

    def _ask(self, table: _RuleTable, flags: int, see: RuleContext, out: list[Observation]) -> None:
        self._each(table[flags], see, out)

    def _each(self, asked: _Asked, see: RuleContext, out: list[Observation]) -> None:
        for rule, judge in asked:
            self._asking = rule
            try:
                for hit in judge(see):
                    self._tell(rule, hit, see, out)
            except MissingPayload:
                self.quiet.add(rule.id)
            except Exception as error:  # a fault of ours, most likely brought about by hostile values
                self._broke(rule, error, see, out)

    def _broke(self, rule: Rule, error: Exception, see: RuleContext, out: list[Observation]) -> None:
        if rule.id not in self._failed:
            self._failed.add(rule.id)
            summary = f"{rule.id} cannot judge this: {type(error).__name__}: {error}"[:300]
            out.append(Finding(BROKEN, Severity.WARNING, see.at, summary, see.track.connection, see.track.id))

    def _tell(self, rule: Rule, hit: RuleFinding, see: RuleContext, out: list[Observation]) -> None:
        frame = see.shown
        if hit.path and frame is not None and frame.redacted and hit.seq is None and _hidden(hit.path, frame.redacted):
            return
        track = hit.track or see.track
        severity = hit.severity or rule.severity
        side = int(frame.direction) if frame is not None else -1
        count = self._ledger.worth((rule.id, int(severity), track.agent, side, track.operation), track.told)
        if not count:
            return
        evidence = {name: value for name, value in (("path", hit.path), ("value", hit.value[:_VALUE])) if value}
        if count > 1:
            evidence["count"] = str(count)
        seq = hit.seq if hit.seq is not None else frame.seq if frame is not None else -1
        sure = hit.sure and not (rule.scope is EvidenceScope.LIVE and see.task is not None and not see.task.born)
        out.append(
            Finding(
                rule=rule.id,
                severity=severity,
                at=see.at,
                summary=hit.summary,
                connection=track.connection,
                exchange=track.id,
                seq=seq,
                task_id=see.task.task_id if see.task is not None else track.task_id,
                confidence="high" if sure else "low",
                evidence=evidence,
            )
        )

    # --- across a restart ---------------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Plain values from which `restore` goes on."""
        return {
            "world": self.world.save(),
            "ledger": self._ledger.save(),
            "agenda": [msgspec.to_builtins(each) for each in self._agenda],
            "ends": [msgspec.to_builtins(each, builtin_types=(bytes,)) for each in self._ends.values()],
            "asked": self._asked,
            "now": self._now,
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Engine:
        """The engine that gave `state`."""
        engine = cls()
        engine.world = SessionState.restore(state["world"])
        engine._ledger = RepeatLimit.restore(state["ledger"])
        engine._agenda = [msgspec.convert(each, _Due) for each in state["agenda"]]
        ends = [msgspec.convert(each, Exchange, builtin_types=(bytes,)) for each in state["ends"]]
        engine._ends = {each.id: each for each in ends}
        engine._asked, engine._now = state["asked"], state["now"]
        return engine


def _gone(due: _Due) -> Exchange:
    return Exchange(due.exchange, 0, 0, Binding.OTHER, 0)


def _concerns(rule: Rule, key: tuple[HookPoint, Binding, Dialect, str]) -> bool:
    moment, binding, dialect, operation = key
    if moment not in rule.moments:
        return False
    if moment is HookPoint.CONNECTION:
        return True
    known = dialect in rule.lines.value or lines_of(dialect) in {lines_of(each) for each in rule.lines.value}
    return binding in rule.bindings and known and (not rule.operations or operation in rule.operations)


def _select(asked: _Asked, flags: int) -> _Asked:
    return tuple(
        (rule, judge)
        for rule, judge in asked
        if (rule.when is None or flags & int(rule.when)) and (rule.needs is None or flags & int(rule.needs))
    )


_INDEX = re.compile(r"\[\d+\]|[._$]")


def _hidden(path: str, redacted: tuple[str, ...]) -> bool:
    """The place, or something in it or around it, was replaced by a label: nobody can judge it."""
    here = _fold(path)
    return any(here.startswith(there) or there.startswith(here) for there in map(_fold, redacted))


def _fold(path: str) -> str:
    return _INDEX.sub("", path).lower()
