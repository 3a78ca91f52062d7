"""Long polling: GetTask with `currentGeneration` (A2A 1.1 draft section 3.2.7).

Answers are compared with what had passed before the request alone: what was told meanwhile the agent may not have known
when it looked.
"""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.families.gen.words import current_generation, generation_path
from a2a_proxy.rules.state.state_sequence import TERMINAL

_SECOND_NS = 1_000_000_000
LONG_POLL = 2
"""Seconds that an answer may take that should come at once."""
IMMEDIATE = 1
"""Seconds within which an answer was not held."""
_GET_OPERATIONS = ("GetTask",)
_TASK_PARAMS = {"id": "t1"}
_FIRST_READ = rpc("GetTask", _TASK_PARAMS, task("WORKING", generation="7"), version="1.1")


def _poll_call(current: str, generation: str, seconds: float, state: str = "WORKING") -> Script:
    answer = task(state, generation=generation)
    return rpc("GetTask", _TASK_PARAMS | {"currentGeneration": current}, answer, id=2, seconds=seconds, version="1.1")


@rule(
    "A2A-GEN-009",
    "Long poll held although there was news",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    trigger_flags=FrameFlag.TASK,
    operations=_GET_OPERATIONS,
    draft=True,
    flagged=_FIRST_READ + _poll_call("5", "7", 3),
    clean=_FIRST_READ + _poll_call("5", "7", 0),
)
def held(context: RuleContext) -> Iterator[RuleFinding]:
    """A client asks for changes after a generation, a later one had passed before it asked, and the answer takes more
    than 2 s or the client gives up without one.

    The agent must answer at once then: the client waits for news that it could have had.
    """
    request_snapshot = context.record.request_snapshot
    if request_snapshot is None or (
        context.frame_or_none is None and (context.record.answers or context.exchange.how == "complete")
    ):
        return
    wanted = current_generation(context)
    if wanted is None or request_snapshot.known_generation <= wanted:
        return
    waited = (
        (context.at if context.frame_or_none is not None else context.exchange.closed) - request_snapshot.at
    ) / _SECOND_NS
    if waited > LONG_POLL:
        how = "the answer took" if context.frame_or_none is not None else "no answer came in"
        told = (
            f"{request_snapshot.known_generation} had passed, the client asked for changes after {wanted}; {how} "
            f"{waited:.1f} s"
        )
        yield RuleFinding(summary=told)


@rule(
    "A2A-GEN-010",
    "Long poll answered without news",
    Severity.INFO,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    trigger_flags=FrameFlag.TASK,
    operations=_GET_OPERATIONS,
    draft=True,
    flagged=_poll_call("5", "5", 0),
    clean=_poll_call("5", "6", 0),
)
def not_held(context: RuleContext) -> Iterator[RuleFinding]:
    """A client asks for changes after a generation, and within 1 s the answer has that generation still, with the task
    not at its end.

    An agent may answer early, but then waiting for changes is polling: the client asks again and again.
    """
    request_snapshot, number = context.record.request_snapshot, context.frame.generation
    if request_snapshot is None or number <= 0 or context.frame.state in TERMINAL:
        return
    wanted = current_generation(context)
    if wanted is not None and number == wanted and context.at - request_snapshot.at < IMMEDIATE * _SECOND_NS:
        waited = (context.at - request_snapshot.at) // 1_000_000
        yield RuleFinding(
            summary=f"asked for changes after {wanted}, the answer has {number} after {waited} ms",
            path=generation_path(context),
        )


@rule(
    "A2A-GEN-011",
    "Answer older than what the client knows",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    trigger_flags=FrameFlag.TASK,
    operations=_GET_OPERATIONS,
    draft=True,
    flagged=_FIRST_READ + _poll_call("7", "6", 0),
    clean=_FIRST_READ + _poll_call("7", "8", 0),
)
def older(context: RuleContext) -> Iterator[RuleFinding]:
    """The answer to a GetTask with `currentGeneration` has a lower generation than that. Not where the proxy has seen
    the whole task and never that number: then the client made it up.

    The client has seen more than the agent admits: it asked a replica that lags, or the agent lost changes.
    """
    request_snapshot, number = context.record.request_snapshot, context.frame.generation
    if request_snapshot is None or number <= 0:
        return
    wanted = current_generation(context)
    if wanted is None or number >= wanted:
        return
    seen = request_snapshot.known_generation >= wanted
    if seen or (context.task is not None and not context.task.created_by):
        told = f"asked for changes after {wanted}, the answer has {number}"
        yield RuleFinding(summary=told, path=generation_path(context), value=str(number), is_sure=seen)
