"""Rules about `ifGenerationMatch`: the agent accepts the message only if the task has that
generation (1.1 draft 3.2.2).

An accepted message is compared only with generations relayed before it: a higher generation relayed
while the agent works may result from this very message.
"""

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.protocol.summary import generation_number
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ANY_EVENT, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import rpc, rpc_error
from a2a_proxy.rules.examples.objects import TASK_PARAMS, Json, reply, send, snapshot, state, task
from a2a_proxy.rules.examples.script import MS, Script
from a2a_proxy.rules.families.gen.words import (
    MISMATCH_REASON,
    SEND_OPERATIONS,
    TASK_NUMBER_OPERATIONS,
    generation_rule,
    if_match,
)

RACE_TIME = 2
"""Seconds within which a higher generation, which the agent already had when it refused, may still
be relayed."""


def _read_task(generation: str | None, id: int = 1) -> Script:
    """Return a script in which the client reads a task that waits for input."""
    read = task("INPUT_REQUIRED") | {"status": state("INPUT_REQUIRED", message=reply("which one?"))}
    numbered = {"generation": generation} if generation is not None else {}
    return rpc("GetTask", TASK_PARAMS, read | numbered, id=id, version="1.1")


_FIRST_READ = _read_task("5")


def _mismatch_error(current: str) -> Json:
    return rpc_error(
        -32010,
        MISMATCH_REASON,
        "changed",
        taskId="t1",
        expectedGeneration="5",
        currentGeneration=current,
    )


def _conditional_send(
    match: str | None, result: Json | None, error: Json | None = None, task_id: str = "t1"
) -> Script:
    configuration = {"ifGenerationMatch": match} if match is not None else None
    about = {"taskId": task_id} if task_id else {}
    params = send("go on", id="m2", configuration=configuration, **about)
    return rpc("SendMessage", params, result, error=error, id=2, version="1.1")


_NEW_TASK_RESULT = {"task": task("COMPLETED", id="t2", generation="3")}


@generation_rule(
    "A2A-GEN-012",
    "Outdated ifGenerationMatch accepted",
    Severity.ERROR,
    section="1.1 draft 3.2.2",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.FIRST,
    operations=SEND_OPERATIONS,
    required_flags=FrameFlag.NAMES,
    flagged=_FIRST_READ + _conditional_send("3", snapshot("COMPLETED", second=1, generation="7")),
    clean=_FIRST_READ + _conditional_send("3", None, _mismatch_error("5")),
)
def stale(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent accepts a message with `ifGenerationMatch` although a higher generation of the task
    had been relayed before the message.

    The condition exists so that a client does not act on an outdated state of the task; here it
    did. The agent must compare `ifGenerationMatch` with the current generation and answer
    TaskGenerationMismatchError.
    """
    request_snapshot = context.record.request_snapshot
    if (
        request_snapshot is None
        or not request_snapshot.known_generation
        or not context.has_flag(ANY_EVENT)
    ):
        return
    wanted = if_match(context)
    if wanted is not None and wanted < request_snapshot.known_generation:
        told = (
            f"the agent accepts `ifGenerationMatch` {wanted}, but it sent "
            f"{request_snapshot.known_generation} before"
        )
        yield RuleFinding(summary=told, value=str(wanted))


@generation_rule(
    "A2A-GEN-013",
    "Matching ifGenerationMatch refused",
    Severity.WARNING,
    section="1.1 draft 3.2.2",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.ERROR,
    operations=SEND_OPERATIONS,
    due=lambda see: _check_mismatch_later(see),
    settled_at_end=True,
    flagged=(_FIRST_READ + _conditional_send("5", None, _mismatch_error("5"))).then(
        _read_task("5", id=3), 3000 * MS
    ),
    clean=_FIRST_READ + _conditional_send("5", None, _mismatch_error("6")) + _read_task("6", id=3),
)
def refused(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent answers TaskGenerationMismatchError although `ifGenerationMatch` of the message is
    the latest generation relayed, and no higher one is relayed within 2 s. Low confidence unless
    the error itself gives that generation as the current one.

    The client reads the task again, finds the generation that it already had, and is refused again,
    without end. The agent must accept a message whose `ifGenerationMatch` is the current
    generation.
    """
    request_snapshot = context.record.request_snapshot
    wanted = if_match(context)
    if (
        request_snapshot is None
        or wanted is None
        or wanted != request_snapshot.known_generation
        or context.failure.name != MISMATCH_REASON
    ):
        return
    metadata = (context.failure.info or {}).get("metadata")
    current = (
        generation_number(metadata.get("currentGeneration")) if isinstance(metadata, dict) else 0
    )
    context.schedule_due(RACE_TIME, f"{wanted} {int(current == wanted)} {request_snapshot.task_id}")
    yield from ()


def _check_mismatch_later(context: RuleContext) -> Iterator[RuleFinding]:
    wanted, named, task_id = context.due_note.split(" ", 2)
    task = context.session.task_record(context.record.agent, task_id)
    if task is not None and task.generation <= int(wanted):
        told = (
            f"the agent refuses `ifGenerationMatch` {wanted} although the generation is still "
            f"{wanted}"
        )
        yield RuleFinding(summary=told, seq=context.due_seq, is_sure=named == "1")


@generation_rule(
    "A2A-GEN-014",
    "ifGenerationMatch applied to a new task",
    Severity.ERROR,
    section="1.1 draft 3.2.2",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.ERROR,
    operations=SEND_OPERATIONS,
    flagged=_conditional_send("1", None, _mismatch_error("0"), task_id=""),
    clean=_conditional_send("1", _NEW_TASK_RESULT, task_id=""),
)
def for_new_task(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent answers TaskGenerationMismatchError to a message that has `ifGenerationMatch` but
    names no task.

    Such a message creates a task, so there is no generation to compare. The agent must ignore
    `ifGenerationMatch` in it.
    """
    request_snapshot = context.record.request_snapshot
    if (
        request_snapshot is not None
        and not request_snapshot.task_id
        and context.failure.name == MISMATCH_REASON
        and if_match(context) is not None
    ):
        yield RuleFinding(
            summary=f"the agent answers {MISMATCH_REASON} to a message that names no task"
        )


@generation_rule(
    "A2A-GEN-015",
    "Generation mismatch error without ifGenerationMatch",
    Severity.ERROR,
    section="1.1 draft 3.2.2",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.ERROR,
    flagged=_conditional_send(None, None, _mismatch_error("5")),
    clean=_conditional_send("3", None, _mismatch_error("5")),
)
def unasked(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent answers TaskGenerationMismatchError to a request that has no `ifGenerationMatch`.
    An error that has the code but not the reason is reported only for an agent that sends
    generations.

    The client has set no condition, so it cannot correct its request. The agent must not send this
    error for it.
    """
    failure = context.failure
    if failure.name != MISMATCH_REASON or not (failure.reason or context.agent.sends_generations):
        return
    if if_match(context) is None:
        yield RuleFinding(
            summary=f"the agent answers {MISMATCH_REASON}, but the request has "
            f"no `ifGenerationMatch`"
        )


@generation_rule(
    "A2A-GEN-019",
    "ifGenerationMatch ignored",
    Severity.WARNING,
    actor=Actor.EITHER,
    section="1.1 draft 3.2.2",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.FIRST,
    operations=SEND_OPERATIONS,
    also_broken=("A2A-GEN-017",),
    required_flags=FrameFlag.NAMES,
    flagged=_read_task(None) + _conditional_send("3", snapshot("COMPLETED", second=1)),
    clean=_FIRST_READ + _conditional_send("5", snapshot("COMPLETED", second=1, generation="7")),
)
def ignored(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent accepts a message to an existing task with `ifGenerationMatch`, and its answer has
    no generation.

    The agent does not support the condition, so the client wrongly believes that its message is
    protected against concurrent changes of the task. The client must not rely on it with this
    agent; the agent should implement it.
    """
    request_snapshot, task = context.record.request_snapshot, context.task
    if (
        request_snapshot is None
        or not request_snapshot.task_id
        or task is None
        or context.frame.generation
        or task.generation
    ):
        return
    if context.has_flag(TASK_NUMBER_OPERATIONS) and (wanted := if_match(context)) is not None:
        yield RuleFinding(
            summary=f"the agent accepts `ifGenerationMatch` {wanted} but sends no generations"
        )
