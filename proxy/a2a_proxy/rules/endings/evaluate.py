"""The endings of a session."""

from collections.abc import Iterable
from functools import cache, cached_property

import msgspec

from a2a_proxy.model.values import Binding, Exchange, Finding, Severity, Task
from a2a_proxy.protocol.finding_totals import is_total
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.endings.call_facts import ACTIVE, MAX_WAIT, CallFacts, SessionCalls
from a2a_proxy.rules.endings.call_index import is_waiting
from a2a_proxy.rules.endings.ending import CAUSES, Cause, Ending

_RETRIED = frozenset(
    {"no-connection", "tls-failed", "no-answer", "answered-between", "agent-error", "client-left"}
    | {"client-timeout", "no-credentials", "credentials-refused", "version-refused"}
)
"""Causes that are no failure if the same call succeeded later."""
_MAX_NOTED = 100_000
"""Calls that are noted at most; with more, all calls are judged."""
_REDIRECTED = 300
"""The statuses from here on are no results, also where the answer has no body."""


def find_ending(session: SessionCalls, exchange: Exchange) -> Ending | None:
    """Return the ending of a call of the session, or of the task that it left; None if nothing
    shows that it did not end well. `exchange` needs no headers."""
    call = CallFacts(exchange, session)
    exchange = call.exchange
    doubt = _find_doubt(exchange)
    is_doubtful = doubt == 0 or (
        doubt is not None and session.ended >= doubt and session.index.is_last_of_task(exchange)
    )
    if not is_doubtful and session.find_lost(exchange) is None:
        return None
    return _judge_call(session, call)


class FollowingFindings:
    """The findings that follow from endings. Each follows from the first ending that explains
    it."""

    def __init__(self, findings: Iterable[tuple[int, Finding]]) -> None:
        """`findings` have keys of any kind; they are read when the first call has failed."""
        self._findings = findings
        self.marked: dict[int, Finding] = {}
        """Those that follow from an ending, which their evidence names, by key."""
        self._totals: list[tuple[int, Finding]] = []
        self._listed: dict[tuple[str, Severity], list[int]] = {}
        """Keys of the findings that are no totals."""

    @cached_property
    def _by_subject(self) -> dict[tuple[str, int | str], list[tuple[int, Finding]]]:
        explained = {rule for each in CAUSES.values() for rule in each.explains}
        found: dict[tuple[str, int | str], list[tuple[int, Finding]]] = {}
        for key, finding in self._findings:
            if finding.rule not in explained:
                continue
            if is_total(finding):
                self._totals.append((key, finding))
                continue
            self._listed.setdefault((finding.rule, finding.severity), []).append(key)
            for subject in _subjects(finding):
                found.setdefault(subject, []).append((key, finding))
        return found

    def mark(self, ending: Ending) -> None:
        """Mark the findings that follow from an ending."""
        if ending.severity is None:
            return
        for subject in _subjects(ending):
            for key, finding in self._by_subject.get(subject, ()):
                if key not in self.marked and ending.explains(finding):
                    follows = {"follows": f"{ending.rule} #{ending.exchange}"}
                    evidence = finding.evidence | follows
                    self.marked[key] = msgspec.structs.replace(finding, evidence=evidence)

    def mark_totals(self) -> None:
        """Mark the totals of findings that all follow from endings, as far as they are listed. The
        findings of all calls must have been marked."""
        causes = {
            kind: self.marked[listed[0]].evidence["follows"].partition(" ")[0]
            for kind, listed in self._listed.items()
            if all(key in self.marked for key in listed)
        }
        for key, total in self._totals:
            cause = causes.get((total.rule, total.severity))
            if cause is not None:
                evidence = total.evidence | {"follows": cause}
                self.marked[key] = msgspec.structs.replace(total, evidence=evidence)


def _subjects(about: Finding | Ending) -> list[tuple[str, int | str]]:
    """Return what an ending is about, or what a finding is about that may follow from one."""
    is_about_call = isinstance(about, Finding) and about.exchange
    subjects: list[tuple[str, int | str]] = [
        ("exchange", about.exchange),
        ("connection", 0 if is_about_call else about.connection),
        ("task", about.task_id),
    ]
    return [each for each in subjects if each[1]]


class DoubtfulCalls:
    """The calls that `find_ending` has to judge, noted while they are recorded: most end well, and
    need not be read again when the session ends."""

    def __init__(self, *, is_whole: bool) -> None:
        """`is_whole`: the calls of the session are noted from its first."""
        self._doubts: dict[int, int] | None = {} if is_whole else None
        self._incomplete: set[int] = set()
        """Streams that left out events."""

    def note(self, exchanges: Iterable[Exchange], tasks: Iterable[Task]) -> None:
        """Note the present state of calls and tasks."""
        if self._doubts is None:
            return
        for each in exchanges:
            doubt = _find_doubt(each)
            if doubt is None:
                self._doubts.pop(each.id, None)
            else:
                self._doubts[each.id] = doubt
        self._incomplete.update(gap.exchange for each in tasks for gap in each.gaps)
        if len(self._doubts) + len(self._incomplete) > _MAX_NOTED:
            self._doubts = None

    def numbers_at(self, ended: int) -> list[int] | None:
        """Return the calls to judge if the session ends then (ns), in order; None for all."""
        if self._doubts is None:
            return None
        due = {number for number, doubt in self._doubts.items() if doubt <= ended}
        return sorted(due | self._incomplete)


def may_have_failed(exchange: Exchange) -> bool:
    """Return whether a call that has ended may not have ended well, by itself."""
    return _find_doubt(exchange) == 0


def _find_doubt(exchange: Exchange) -> int | None:
    """Return 0 if the call may not have ended well by the columns of its exchange, and None if it
    ended well. If only its task may be forgotten, so that the last call of the task is judged,
    return the time at which the session must still last (ns)."""
    if exchange.error or exchange.ours or exchange.how not in ("complete", ""):
        return 0
    if exchange.status >= _REDIRECTED:
        return 0
    if exchange.binding is Binding.WEBHOOK:
        return None
    if not exchange.events:
        return 0
    state = exchange.states[-1] if exchange.states else ""
    if exchange.streaming and not state:
        return 0 if exchange.task_id else None
    if not (state in ACTIVE or is_waiting(state)):
        return None
    if exchange.streaming or is_waiting(state):
        return 0
    return exchange.closed + (MAX_WAIT if exchange.operation != "GetTask" else 0)


@cache
def _load_causes() -> list[Cause]:
    """Return the causes by the order of their rules, when the first call may have ended badly: most
    recordings have none, and need not load the rules."""
    all_rules()
    return sorted(CAUSES.values(), key=lambda each: each.rule)


def _judge_call(session: SessionCalls, call: CallFacts) -> Ending | None:
    exchange = call.exchange
    for cause in _load_causes():
        ending = cause.judge(call)
        if ending is None:
            continue
        severity = ending.severity or cause.severity
        if cause.severity is None or (cause.name in _RETRIED and session.succeeded_later(call)):
            severity = None
        return msgspec.structs.replace(
            ending,
            cause=cause.name,
            rule=cause.rule,
            severity=severity,
            actor=ending.actor or cause.actor,
            at=call.ended,
            connection=exchange.connection,
            exchange=exchange.id,
            agent=exchange.agent,
            operation=exchange.operation,
            task_id=exchange.task_id,
            received="" if session.is_brief else call.describe_received(),
            ended_by="" if session.is_brief else call.describe_end(),
            agent_did="" if session.is_brief else call.describe_agent(),
            evidence=ending.evidence or (call.place(call.last),),
        )
    return None
