"""Rules about long polling: GetTask with `currentGeneration` (A2A 1.1 draft section 3.2.7).

Answers are compared only with generations relayed before the request: the agent may not have known
a change that was relayed later when it read the task.
"""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.families.gen.words import current_generation, generation_path

_SECOND_NS = 1_000_000_000
LONG_POLL = 2
"""Seconds after which an answer that is due at once counts as held."""
_GET_OPERATIONS = ("GetTask",)
_TASK_PARAMS = {"id": "t1"}
_FIRST_READ = rpc("GetTask", _TASK_PARAMS, task("WORKING", generation="7"), version="1.1")


def _poll_call(current: str, generation: str, seconds: float, state: str = "WORKING") -> Script:
    answer = task(state, generation=generation)
    return rpc(
        "GetTask",
        _TASK_PARAMS | {"currentGeneration": current},
        answer,
        id=2,
        seconds=seconds,
        version="1.1",
    )


@rule(
    "A2A-GEN-009",
    "Long poll held although a newer generation existed",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.1 draft 3.2.7",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    trigger_flags=FrameFlag.TASK,
    operations=_GET_OPERATIONS,
    flagged=_FIRST_READ + _poll_call("5", "7", 3),
    clean=_FIRST_READ + _poll_call("5", "7", 0),
)
def held(context: RuleContext) -> Iterator[RuleFinding]:
    """A GetTask with `currentGeneration` is answered only after more than 2 s, or the client gives
    up without an answer, although a higher generation of the task had been relayed before the
    request.

    The agent must answer at once if the task is newer than `currentGeneration`; the client waits
    for a change that it could have had.
    """
    request_snapshot = context.record.request_snapshot
    if request_snapshot is None or (
        context.frame_or_none is None
        and (context.record.answers or context.exchange.how == "complete")
    ):
        return
    wanted = current_generation(context)
    if wanted is None or request_snapshot.known_generation <= wanted:
        return
    waited = (
        (context.at if context.frame_or_none is not None else context.exchange.closed)
        - request_snapshot.at
    ) / _SECOND_NS
    if waited > LONG_POLL:
        how = "the answer took" if context.frame_or_none is not None else "there was no answer for"
        told = (
            f"generation {request_snapshot.known_generation} existed, the client waits for one "
            f"above {wanted}; {how} "
            f"{waited:.1f} s"
        )
        yield RuleFinding(summary=told)


@rule(
    "A2A-GEN-011",
    "GetTask returns an older generation than the client has",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    trigger_flags=FrameFlag.TASK,
    operations=_GET_OPERATIONS,
    flagged=_FIRST_READ + _poll_call("7", "6", 0),
    clean=_FIRST_READ + _poll_call("7", "8", 0),
)
def older(context: RuleContext) -> Iterator[RuleFinding]:
    """The answer to a GetTask with `currentGeneration` has a lower generation than the request. Not
    reported if the proxy has seen the task from its beginning but never that generation: then the
    client made it up.

    The client has seen changes that the agent does not know: a replica that lags behind answered,
    or the agent lost changes. The agent must answer with the latest state of the task.
    """
    request_snapshot, number = context.record.request_snapshot, context.frame.generation
    if request_snapshot is None or number <= 0:
        return
    wanted = current_generation(context)
    if wanted is None or number >= wanted:
        return
    seen = request_snapshot.known_generation >= wanted
    if seen or (context.task is not None and not context.task.created_by):
        told = f"the client has generation {wanted}, the agent answers with the older {number}"
        yield RuleFinding(
            summary=told, path=generation_path(context), value=str(number), is_sure=seen
        )
