"""An ending, and the registry of its causes.

A cause is a rule of the family END: its documentation, examples and severity are those of the rule.
Its function receives the facts of a call that may have ended badly, and returns an `Ending` or
None.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from a2a_proxy.model.values import Actor, Binding, Finding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import RPC, EvidenceScope, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.endings.call_facts import CallFacts

HIGH, LOW = "high", "low"
_PEERS = {Actor.AGENT, Actor.CLIENT}
_TASK_RULES = ("A2A-ART-", "A2A-LAT-", "A2A-STATE-", "A2A-STREAM-", "A2A-TASK-")
"""Rules about tasks: what they find in another call of the task may follow from an ending."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """Why one call, or the task of a call, did not end well."""

    summary: str
    """One line in lower case: `the agent closed the connection without an answer, after 51 ms`."""
    next_step: str
    """What to do, for the one who must act, or to find out who that is."""
    command: str = ""
    """A command to type for it; empty if there is none."""
    suspect: tuple[int, int] | None = None
    """The exchange and frame whose bytes may be the reason."""
    cause: str = ""
    """Stable name of the cause: `no-answer`."""
    rule: str = ""
    """Its id: `A2A-END-004`."""
    severity: Severity | None = None
    """None if it is no failure."""
    actor: Actor | None = None
    """Who must act; a cause's function sets it if it is not the actor of the cause."""
    confidence: str = HIGH
    remaining: tuple[str, ...] = ()
    """The causes that remain if the traffic cannot tell."""
    decides: str = ""
    """What would decide between them."""
    evidence: tuple[tuple[int, int], ...] = ()
    """Exchanges and frames that it rests on; -1 for the whole exchange."""
    at: int = 0
    """Time of the end, ns."""
    connection: int = 0
    exchange: int = 0
    agent: str = ""
    operation: str = ""
    task_id: str = ""
    received: str = ""
    """What the client last received, and when."""
    ended_by: str = ""
    """Who ended the call, and after how long."""
    agent_did: str = ""
    """What the agent was doing, and whether it continued."""

    @property
    def is_worth_reading(self) -> bool:
        """Whether it is a failure, or the answer to the question why a call failed."""
        return self.severity is not None or self.cause in ("agent-error", "client-left")

    @property
    def places(self) -> list[str]:
        """The evidence as places: `#2.4`."""
        return [f"#{number}" + (f".{seq}" * (seq >= 0)) for number, seq in self.evidence]

    def explains(self, finding: Finding) -> bool:
        """Whether a finding follows from this ending, and is not more severe. What one peer must
        mend does not follow from what the other must."""
        if self.severity is None or finding.severity > self.severity:
            return False
        if self.actor in _PEERS and finding.evidence.get("actor") in _PEERS - {self.actor}:
            return False
        is_of_connection = not finding.exchange and finding.at <= self.at
        about = (
            finding.exchange == self.exchange
            or (is_of_connection and finding.connection == self.connection)
            or (finding.task_id == self.task_id != "" and finding.rule.startswith(_TASK_RULES))
        )
        return about and finding.rule in CAUSES[self.cause].explains

    def to_finding(self) -> Finding:
        """Return the finding of an ending that is a failure."""
        assert self.severity is not None
        return Finding(
            self.rule,
            self.severity,
            self.at,
            self.summary,
            self.connection,
            self.exchange,
            task_id=self.task_id,
            confidence=self.confidence,
            evidence={"actor": self.actor.value} if self.actor is not None else {},
        )

    def to_object(self) -> dict[str, Any]:
        """Return it as JSON with stable names."""
        return {
            "cause": self.cause,
            "rule": self.rule,
            "severity": self.severity.name.lower() if self.severity is not None else None,
            "summary": self.summary,
            "actor": self.actor.value if self.actor is not None else None,
            "confidence": self.confidence,
            "received": self.received or None,
            "ended_by": self.ended_by or None,
            "agent_did": self.agent_did or None,
            "remaining": list(self.remaining),
            "decides": self.decides or None,
            "next_step": self.next_step,
            "command": self.command or None,
            "evidence": self.places,
        }


Judge = Callable[[CallFacts], Ending | None]


class Cause(msgspec.Struct, frozen=True):
    """One cause of the closed list."""

    name: str
    rule: str
    severity: Severity | None
    actor: Actor
    judge: Judge
    explains: tuple[str, ...]
    """Rules whose findings about the call or its task follow from the cause."""


CAUSES: dict[str, Cause] = {}
"""By name. They are tried in the order of their rules: the first one that fits is the ending."""


def cause(
    ident: str,
    name: str,
    title: str,
    severity: Severity,
    *,
    explains: Iterable[str] = (),
    is_failure: bool = True,
    bindings: frozenset[Binding] = RPC,
    **properties: Any,
) -> Callable[[Judge], Judge]:
    """Register the decorated function as a cause and as a rule, with further `properties` of the
    rule; see `Cause` and `Rule`.

    A cause that is no failure (`is_failure`) is shown, and `check` does not report it.
    """

    def add(judge: Judge) -> Judge:
        def yield_nothing(context: RuleContext) -> Iterator[RuleFinding]:  # noqa: ARG001
            yield from ()

        yield_nothing.__doc__, yield_nothing.__module__ = judge.__doc__, judge.__module__
        properties.update(hook_points=HookPoint.ENDING, scope=EvidenceScope.LIVE)
        rule(ident, title, severity, bindings=bindings, **properties)(yield_nothing)
        CAUSES[name] = Cause(
            name,
            ident,
            severity if is_failure else None,
            properties["actor"],
            judge,
            tuple(explains),
        )
        return judge

    return add
