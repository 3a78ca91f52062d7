"""Long polling: GetTask with `currentGeneration` (A2A 1.1 draft section 3.2.7).

Answers are compared with what had passed before the request alone: what was told meanwhile the agent may not have known
when it looked.
"""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.families.gen.words import current_generation, place
from a2a_proxy.rules.state.state_sequence import TERMINAL

_SECOND = 1_000_000_000
HELD = 2
"""Seconds that an answer may take that should come at once."""
AT_ONCE = 1
"""Seconds within which an answer was not held."""
_GET = ("GetTask",)
_ID = {"id": "t1"}
_KNOWN = rpc("GetTask", _ID, task("WORKING", generation="7"), version="1.1")


def _poll(current: str, generation: str, seconds: float, state: str = "WORKING") -> Script:
    answer = task(state, generation=generation)
    return rpc("GetTask", _ID | {"currentGeneration": current}, answer, id=2, seconds=seconds, version="1.1")


@rule(
    "A2A-GEN-009",
    "Long poll held although there was news",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    moment=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    when=FrameFlag.TASK,
    operations=_GET,
    draft=True,
    flagged=_KNOWN + _poll("5", "7", 3),
    clean=_KNOWN + _poll("5", "7", 0),
)
def held(see: RuleContext) -> Iterator[RuleFinding]:
    """A client asks for changes after a generation, a later one had passed before it asked, and the answer takes more
    than 2 s or the client gives up without one.

    The agent must answer at once then: the client waits for news that it could have had.
    """
    asked = see.track.asked
    if asked is None or (see.shown is None and (see.track.answers or see.exchange.how == "complete")):
        return
    wanted = current_generation(see)
    if wanted is None or asked.known_generation <= wanted:
        return
    waited = ((see.at if see.shown is not None else see.exchange.closed) - asked.at) / _SECOND
    if waited > HELD:
        how = "the answer took" if see.shown is not None else "no answer came in"
        told = f"{asked.known_generation} had passed, the client asked for changes after {wanted}; {how} {waited:.1f} s"
        yield RuleFinding(summary=told)


@rule(
    "A2A-GEN-010",
    "Long poll answered without news",
    Severity.INFO,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    when=FrameFlag.TASK,
    operations=_GET,
    draft=True,
    flagged=_poll("5", "5", 0),
    clean=_poll("5", "6", 0),
)
def not_held(see: RuleContext) -> Iterator[RuleFinding]:
    """A client asks for changes after a generation, and within 1 s the answer has that generation still, with the task
    not at its end.

    An agent may answer early, but then waiting for changes is polling: the client asks again and again.
    """
    asked, number = see.track.asked, see.frame.generation
    if asked is None or number <= 0 or see.frame.state in TERMINAL:
        return
    wanted = current_generation(see)
    if wanted is not None and number == wanted and see.at - asked.at < AT_ONCE * _SECOND:
        waited = (see.at - asked.at) // 1_000_000
        yield RuleFinding(
            summary=f"asked for changes after {wanted}, the answer has {number} after {waited} ms", path=place(see)
        )


@rule(
    "A2A-GEN-011",
    "Answer older than what the client knows",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    when=FrameFlag.TASK,
    operations=_GET,
    draft=True,
    flagged=_KNOWN + _poll("7", "6", 0),
    clean=_KNOWN + _poll("7", "8", 0),
)
def older(see: RuleContext) -> Iterator[RuleFinding]:
    """The answer to a GetTask with `currentGeneration` has a lower generation than that. Not where the proxy has seen
    the whole task and never that number: then the client made it up.

    The client has seen more than the agent admits: it asked a replica that lags, or the agent lost changes.
    """
    asked, number = see.track.asked, see.frame.generation
    if asked is None or number <= 0:
        return
    wanted = current_generation(see)
    if wanted is None or number >= wanted:
        return
    seen = asked.known_generation >= wanted
    if seen or (see.task is not None and not see.task.born):
        told = f"asked for changes after {wanted}, the answer has {number}"
        yield RuleFinding(summary=told, path=place(see), value=str(number), sure=seen)
