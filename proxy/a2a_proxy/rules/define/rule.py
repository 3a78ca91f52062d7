"""The definition of a rule and the registry of all rules.

A rule is one function with its documentation: the decorator `rule` sets its properties and one
flagged and one clean example; its docstring says what is flagged (first paragraph) and why that
matters (the rest). The catalogue, `a2a-inspect rules`, the text under a finding and the manual's
page are all derived from these.
"""

import inspect
from collections.abc import Callable, Iterable

import msgspec

from a2a_proxy.model.values import Actor, Binding, Dialect, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    CALLS,
    STDIO,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.state.records import ExchangeRecord

SENDERS = {"request": Actor.CLIENT, "response": Actor.AGENT}
"""Who must act on a fault in the head or body of a request or response."""


class RuleFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One violation found by a rule; the engine turns it into a finding."""

    summary: str
    """One line in lower case with the relevant values: `id "1" answers request id 1`."""
    path: str = ""
    """Place in the payload, dotted from its root: `result.status.state`. A finding at a redacted
    place is dropped."""
    value: str = ""
    """The value at `path`, shortened."""
    expected: str = ""
    """The value that was expected instead of `value`, if there is one."""
    follows: str = ""
    """The finding that this one follows from, as rule and exchange: `A2A-GEN-001 #8`."""
    actor: Actor | None = None
    """Who must act, if it is not the actor of the rule."""
    severity: Severity | None = None
    """Set if a variant of the rule has another severity than the rule."""
    is_sure: bool = True
    """False lowers the confidence."""
    is_final: bool = False
    """Whether later traffic could not change the verdict. Other findings have low confidence if the
    deadline is settled at the end of the session.
    """
    seq: int | None = None
    """The frame of the finding if it is not the current one; -1 for the exchange as a whole."""
    track: ExchangeRecord | None = None
    """The exchange of the finding if it is not the current one."""
    evidence: dict[str, str] = {}
    """Further values for programs, by name."""


Judge = Callable[[RuleContext], Iterable[RuleFinding]]
DueJudge = Callable[[RuleContext], Iterable[RuleFinding]]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of the catalogue."""

    id: str
    """For example `A2A-GEN-001`."""
    title: str
    severity: Severity
    hook_points: frozenset[HookPoint]
    scope: EvidenceScope
    section: str
    """Sections of the specifications that require it, separated by semicolons:
    `1.0 5.6.1; 0.3 6.2; RFC 3339`."""
    dialects: Dialects
    bindings: frozenset[Binding]
    description: str
    rationale: str
    flagged: Script
    clean: Script
    actor: Actor | None = None
    """Who must act; None: the sender of the frame."""
    also_broken: tuple[str, ...] = ()
    """Other rules that the flagged example also breaks."""
    trigger_flags: FrameFlag | None = None
    """The rule runs on frames with at least one of these flags; at `HEADS` and `CLOSED` it always
    runs."""
    required_flags: FrameFlag | None = None
    """The frame must also have one of these. Without them the rule would find nothing, so skipping
    it only saves time.
    """
    operations: frozenset[str] = frozenset()
    """Operations the rule applies to; empty for all."""
    judge: Judge
    due: DueJudge | None = None
    """Called at the time that `judge` requested with `RuleContext.schedule_due`."""
    settled_at_end: bool = False
    """Whether `due` is called at the end of the session for deadlines that it precedes; otherwise
    these are dropped."""
    module: str = ""

    @property
    def family(self) -> str:
        """The family: `GEN` for `A2A-GEN-001`."""
        return self.id.split("-")[1]

    @property
    def draft(self) -> bool:
        """Whether the feature is in no released version; judged only if the traffic uses it."""
        return self.bindings == STDIO or "draft" in self.section or "proposal" in self.section

    def actor_of(self, sender: Actor | None) -> Actor:
        """Return who must act on a finding about a frame of `sender`; None: the finding is about no
        frame."""
        if (known := self.actor or sender) is not None:
            return known
        if self.hook_points == {HookPoint.ANSWER}:
            return Actor.AGENT
        return Actor.CLIENT if self.hook_points == {HookPoint.REQUEST} else Actor.EITHER

    def section_for(self, dialect: Dialect) -> str:
        """Return the sections without those of other A2A versions than the dialect's; all of them
        if the dialect is unknown, or if the rule has no section for its version.
        """
        version = _SECTION_VERSIONS.get(dialect, "")
        sections = self.section.split("; ")
        if not any(each.startswith(version) for each in sections):
            return self.section
        others = tuple(name for name in _A2A_VERSIONS if name != version)
        return "; ".join(each for each in sections if not (version and each.startswith(others)))


_A2A_VERSIONS = ("0.1 ", "0.3 ", "1.0 ")
"""Beginnings of sections of the A2A specification; the sections of drafts have no counterpart."""
_SECTION_VERSIONS = {
    Dialect.V0_1: "0.1 ",
    Dialect.V0_2: "0.3 ",
    Dialect.V0_3: "0.3 ",
    Dialect.V1_0: "1.0 ",
    Dialect.V1_1: "1.0 ",
}
_CATALOGUE: dict[str, Rule] = {}


def rule(
    ident: str,
    title: str,
    severity: Severity,
    *,
    actor: Actor | None = None,
    section: str,
    flagged: Script,
    clean: Script,
    hook_points: HookPoint | tuple[HookPoint, ...] = HookPoint.ANSWER,
    scope: EvidenceScope = EvidenceScope.FRAME,
    dialects: Dialects = Dialects.ALL,
    bindings: frozenset[Binding] = CALLS,
    trigger_flags: FrameFlag | None = None,
    required_flags: FrameFlag | None = None,
    operations: Iterable[str] = (),
    also_broken: tuple[str, ...] = (),
    due: DueJudge | None = None,
    settled_at_end: bool = False,
) -> Callable[[Judge], Judge]:
    """Register the decorated function as a rule. `operations` are 1.0 names; see `Rule` for the
    other arguments.

    Raises ValueError if a rule with this id is already registered.
    """

    def add(judge: Judge) -> Judge:
        what, _, why = inspect.cleandoc(judge.__doc__ or "").partition("\n\n")
        if ident in _CATALOGUE:
            raise ValueError(f"{ident} is defined twice")
        _CATALOGUE[ident] = Rule(
            id=ident,
            title=title,
            severity=severity,
            hook_points=frozenset(
                {hook_points} if isinstance(hook_points, HookPoint) else hook_points
            ),
            scope=scope,
            section=section,
            dialects=dialects,
            bindings=bindings,
            description=" ".join(what.split()),
            rationale=" ".join(why.split()),
            flagged=flagged,
            clean=clean,
            actor=actor,
            also_broken=also_broken,
            trigger_flags=trigger_flags,
            required_flags=required_flags,
            operations=frozenset(operations),
            judge=judge,
            due=due,
            settled_at_end=settled_at_end,
            module=judge.__module__,
        )
        return judge

    return add


def registered_rules() -> dict[str, Rule]:
    """Return the rules registered so far in the order of their ids; `catalogue.all_rules` returns
    all."""
    return {ident: _CATALOGUE[ident] for ident in sorted(_CATALOGUE)}
