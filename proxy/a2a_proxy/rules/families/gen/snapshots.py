"""The numbers of snapshots, and of the same event in two places (A2A 1.1 draft section 3.2.7)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Dialect
from a2a_proxy.model.finding import Severity
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import RPC, Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import artifact, chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import run_together
from a2a_proxy.rules.families.gen.tracker import GenerationFault, generation_verdicts
from a2a_proxy.rules.families.gen.words import (
    EVERYWHERE,
    SEND_OPERATIONS,
    TRACKED,
    current_generation,
    generation_path,
    if_match,
)

_SEND_METHOD = "SendStreamingMessage"
_TASK_PARAMS = {"id": "t1"}
_FIRST_EVENTS = (snapshot(generation="1"), status("WORKING", generation="2"))
_COMPLETED_EVENT = status("COMPLETED", second=1, generation="3")
_COMPLETE_STREAM = rpc_stream(_SEND_METHOD, send(), *_FIRST_EVENTS, _COMPLETED_EVENT, version="1.1")


@rule(
    "A2A-GEN-005",
    "Agent does not implement generations",
    Severity.INFO,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=RPC,
    trigger_flags=FrameFlag.TASK | FrameFlag.NEW_TASK,
    draft=True,
    required_flags=FrameFlag.COUNTS | FrameFlag.NUMBERED,
    flagged=rpc("GetTask", _TASK_PARAMS | {"currentGeneration": "3"}, task("WORKING"), version="1.1"),
    clean=rpc("GetTask", _TASK_PARAMS | {"currentGeneration": "3"}, task("WORKING", generation="4"), version="1.1"),
)
def not_implemented(context: RuleContext) -> Iterator[RuleFinding]:
    """A task has no generation, or 0, in an answer to a client that speaks 1.1 or uses the feature in its request, and
    no other task of this agent has had one. Told once for each agent.

    The client cannot find gaps, wait for changes, or protect a message against a change in between.
    """
    frame, task = context.frame, context.task
    if frame.generation or task is None or not frame.task_id:
        return
    if task.generation or context.agent.sends_generations or context.agent.notes.get("gen.none"):
        return
    asks = dialect_of_version(context.exchange.version_header) is Dialect.V1_1
    if not asks and current_generation(context) is None and if_match(context) is None:
        return
    if context.object.get("generation") not in (None, 0, "0"):
        return  # one that cannot be read: A2A-GEN-020
    context.agent.notes["gen.none"] = 1
    yield RuleFinding(
        summary="no generation, although the client speaks 1.1 or asked by one", path=generation_path(context)
    )


@rule(
    "A2A-GEN-006",
    "New task does not begin at 1",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=RPC,
    trigger_flags=FrameFlag.NEW_TASK,
    operations=SEND_OPERATIONS,
    draft=True,
    required_flags=FrameFlag.COUNTS | FrameFlag.NUMBERED,
    flagged=rpc_stream(
        _SEND_METHOD,
        send(),
        snapshot(generation="5"),
        status("WORKING", generation="6"),
        status("COMPLETED", second=1, generation="7"),
        version="1.1",
    ),
    clean=_COMPLETE_STREAM,
)
def begins(context: RuleContext) -> Iterator[RuleFinding]:
    """The first snapshot of a task that this message made is SUBMITTED and its generation is not 1; 0 counts where the
    client speaks 1.1 and the agent numbers its other tasks. Information where a stream begins with another state: the
    task may have changed before it.

    A client that counts from 1 takes the missing numbers for lost events.
    """
    frame, task = context.frame, context.task
    if (
        task is None
        or task.created_by != context.record.id
        or not context.has_flag(FrameFlag.TASK)
        or frame.generation == 1
    ):
        return
    number = frame.generation
    if number <= 0 and not (
        context.agent.sends_generations and dialect_of_version(context.exchange.version_header) is Dialect.V1_1
    ):
        return
    if frame.state == int(TaskState.SUBMITTED):
        yield RuleFinding(
            summary=f"the new task begins at {number}, it must begin at 1",
            path=generation_path(context),
            value=str(number),
        )
    elif number > 0 and context.record.is_streaming:
        told = f"the stream of the new task begins at {number}, {TaskState(frame.state).label}"
        yield RuleFinding(summary=told, path=generation_path(context), value=str(number), severity=Severity.INFO)


@rule(
    "A2A-GEN-007",
    "Snapshot behind the events",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
    draft=True,
    flagged=rpc_stream(
        _SEND_METHOD,
        send(),
        *_FIRST_EVENTS,
        _COMPLETED_EVENT,
        snapshot("COMPLETED", second=1, generation="2"),
        version="1.1",
    ),
    clean=rpc_stream(
        _SEND_METHOD,
        send(),
        *_FIRST_EVENTS,
        _COMPLETED_EVENT,
        snapshot("COMPLETED", second=1, generation="3"),
        version="1.1",
    ),
)
def behind(context: RuleContext) -> Iterator[RuleFinding]:
    """A Task in the course of a stream has a lower generation than the event before it.

    Snapshot and events contradict each other: a client that goes on from the snapshot sees changes twice.
    """
    number = context.frame.generation
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.BEHIND:
            yield RuleFinding(
                summary=f"the Task stands at {number}, but {each.last} was told", path=generation_path(context)
            )


@rule(
    "A2A-GEN-008",
    "Change without another generation",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
    draft=True,
    flagged=rpc("GetTask", _TASK_PARAMS, task("WORKING", generation="3", artifacts=[artifact("x")]), version="1.1")
    + rpc("GetTask", _TASK_PARAMS, task("WORKING", generation="3", artifacts=[artifact("y")]), id=2, version="1.1"),
    clean=rpc("GetTask", _TASK_PARAMS, task("WORKING", generation="3", artifacts=[artifact("x")]), version="1.1")
    + rpc("GetTask", _TASK_PARAMS, task("WORKING", generation="4", artifacts=[artifact("y")]), id=2, version="1.1"),
)
def unmoved(context: RuleContext) -> Iterator[RuleFinding]:
    """Two snapshots of a task have the same generation, but another state or other artifacts.

    Every such change must be counted: a client that compares numbers believes that nothing has happened.
    """
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.SAME:
            state = context.frame.state
            changed = each.other != state
            words = f"{TaskState(each.other).label}, now {TaskState(state).label}" if changed else "other artifacts"
            told = f"two snapshots with {each.last}: {words}"
            yield RuleFinding(summary=told, path=generation_path(context), value=str(each.last))


@rule(
    "A2A-GEN-021",
    "Same generation, another event",
    Severity.ERROR,
    section="1.0 3.5.2; 1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
    draft=True,
    flagged=run_together(
        rpc_stream(_SEND_METHOD, send(), *_FIRST_EVENTS, chunk("a", generation="3"), finish="open", version="1.1"),
        rpc_stream(
            "SubscribeToTask",
            _TASK_PARAMS,
            snapshot("WORKING", generation="2"),
            chunk("b", generation="3"),
            finish="open",
            version="1.1",
        ),
        after=25_000_000,
    ),
    clean=run_together(
        rpc_stream(_SEND_METHOD, send(), *_FIRST_EVENTS, chunk("a", generation="3"), finish="open", version="1.1"),
        rpc_stream(
            "SubscribeToTask",
            _TASK_PARAMS,
            snapshot("WORKING", generation="2"),
            chunk("a", generation="3"),
            finish="open",
            version="1.1",
        ),
        after=25_000_000,
    ),
)
def differs(context: RuleContext) -> Iterator[RuleFinding]:
    """Two streams of a task, or a stream and a push, have different events with one generation. They are compared by
    what they say, not by their bytes, so that bindings make no difference.

    Every event goes to every stream; here two clients of one task hold different pictures of it.
    """
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.DIFFERS:
            told = f"the event with {context.frame.generation} says something else than in exchange {each.other}"
            yield RuleFinding(summary=told, path=generation_path(context), value=str(context.frame.generation))
