"""The endings of a session."""

from collections.abc import Iterable
from functools import cache, cached_property

import msgspec

from a2a_proxy.model.values import Binding, Exchange, Finding
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.endings.call_facts import ACTIVE, MAX_WAIT, CallFacts, SessionCalls
from a2a_proxy.rules.endings.call_index import is_waiting
from a2a_proxy.rules.endings.ending import CAUSES, Cause, Ending

_RETRIED = frozenset(
    {"no-connection", "tls-failed", "no-answer", "answered-between", "agent-error", "client-left"}
    | {"client-timeout", "no-credentials", "credentials-refused", "version-refused"}
)
"""Causes that are no failure if the same call succeeded later."""
_REDIRECTED = 300
"""The statuses from here on are no results, also where the answer has no body."""


def find_ending(session: SessionCalls, exchange: Exchange) -> Ending | None:
    """Return the ending of a call of the session, or of the task that it left; None if nothing
    shows that it did not end well. `exchange` needs no headers."""
    if not _may_have_ended_badly(exchange, session):
        return None
    call = session.call(exchange.id)
    session.forget(call)  # its frames may be many
    return _judge_call(session, call)


class FollowingFindings:
    """The findings that follow from endings. Each follows from the first ending that explains
    it."""

    def __init__(self, findings: Iterable[tuple[int, Finding]]) -> None:
        """`findings` have keys of any kind; they are read when the first call has failed."""
        self._findings = findings
        self.marked: dict[int, Finding] = {}
        """Those that follow from an ending, which their evidence names, by key."""

    @cached_property
    def _by_subject(self) -> dict[tuple[str, int | str], list[tuple[int, Finding]]]:
        explained = {rule for each in CAUSES.values() for rule in each.explains}
        found: dict[tuple[str, int | str], list[tuple[int, Finding]]] = {}
        for key, finding in self._findings:
            if finding.rule in explained:
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


def _subjects(about: Finding | Ending) -> list[tuple[str, int | str]]:
    """Return what an ending is about, or what a finding is about that may follow from one."""
    is_about_call = isinstance(about, Finding) and about.exchange
    subjects: list[tuple[str, int | str]] = [
        ("exchange", about.exchange),
        ("connection", 0 if is_about_call else about.connection),
        ("task", about.task_id),
    ]
    return [each for each in subjects if each[1]]


def _may_have_ended_badly(exchange: Exchange, session: SessionCalls) -> bool:
    """Whether the columns of the exchange leave that possible: most calls end here."""
    if exchange.error or exchange.ours or exchange.how not in ("complete", ""):
        return True
    if exchange.status >= _REDIRECTED or session.find_lost(exchange) is not None:
        return True
    if not exchange.events:
        return exchange.binding is not Binding.WEBHOOK
    state = exchange.states[-1] if exchange.states else ""
    if exchange.binding is Binding.WEBHOOK:
        return False
    if exchange.streaming and not state:
        return bool(exchange.task_id)
    if not (state in ACTIVE or is_waiting(state)):
        return False
    if exchange.streaming or is_waiting(state):
        return True
    is_judged = exchange.operation == "GetTask" or session.ended - exchange.closed >= MAX_WAIT
    return is_judged and session.index.is_last_of_task(exchange)


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
            task_id=exchange.task_id,
            received=call.describe_received(),
            ended_by=call.describe_end(),
            agent_did=call.describe_agent(),
            evidence=ending.evidence or (call.place(call.last),),
        )
    return None
