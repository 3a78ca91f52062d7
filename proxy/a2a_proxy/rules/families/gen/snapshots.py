"""Rules about the generations of Tasks (snapshots) and of one event on several streams (A2A 1.1
draft section 3.2.7)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Dialect, Severity
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.protocol.generation import GenerationFault
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import RPC, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import (
    TASK_PARAMS,
    artifact,
    chunk,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.script import run_together
from a2a_proxy.rules.families.gen.tracker import generation_verdicts
from a2a_proxy.rules.families.gen.words import (
    EVERYWHERE,
    SEND_OPERATIONS,
    TRACKED,
    generation_path,
    generation_rule,
)

_SEND_METHOD = "SendStreamingMessage"
_FIRST_EVENTS = (snapshot(generation="1"), status("WORKING", generation="2"))
_COMPLETED_EVENT = status("COMPLETED", second=1, generation="3")
_COMPLETE_STREAM = rpc_stream(_SEND_METHOD, send(), *_FIRST_EVENTS, _COMPLETED_EVENT, version="1.1")


@generation_rule(
    "A2A-GEN-006",
    "Generation of a new task does not begin at 1",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    bindings=RPC,
    trigger_flags=FrameFlag.NEW_TASK,
    operations=SEND_OPERATIONS,
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
    """The first Task that the agent sends for a new task is SUBMITTED, but its generation is not 1.
    A generation of 0 is reported only if the client speaks 1.1 and the agent sends generations of
    its other tasks. Reported as information if a stream begins with another state: the task may
    have changed before.

    A client that counts from 1 takes the generations in between for lost events. The agent must
    begin at 1.
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
        context.agent.sends_generations
        and dialect_of_version(context.exchange.version_header) is Dialect.V1_1
    ):
        return
    if frame.state == int(TaskState.SUBMITTED):
        yield RuleFinding(
            summary=f"the agent starts a new task with generation {number}, it must be 1",
            path=generation_path(context),
            value=str(number),
        )
    elif number > 0 and context.record.is_streaming:
        told = (
            f"the stream of the new task begins with generation {number} "
            f"({TaskState(frame.state).label})"
        )
        yield RuleFinding(
            summary=told, path=generation_path(context), value=str(number), severity=Severity.INFO
        )


@generation_rule(
    "A2A-GEN-007",
    "Task on a stream is older than the events before it",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
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
    """A Task sent in mid-stream has a lower generation than an event before it.

    The Task contradicts the events: a client that continues from it applies changes twice. The
    agent must send a Task that includes all events sent before it on the stream.
    """
    number = context.frame.generation
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.BEHIND:
            yield RuleFinding(
                summary=f"the Task has generation {number}, but {each.last} was sent before it",
                path=generation_path(context),
            )


@generation_rule(
    "A2A-GEN-008",
    "Task changed without a new generation",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
    flagged=rpc(
        "GetTask",
        TASK_PARAMS,
        task("WORKING", generation="3", artifacts=[artifact("x")]),
        version="1.1",
    )
    + rpc(
        "GetTask",
        TASK_PARAMS,
        task("WORKING", generation="3", artifacts=[artifact("y")]),
        id=2,
        version="1.1",
    ),
    clean=rpc(
        "GetTask",
        TASK_PARAMS,
        task("WORKING", generation="3", artifacts=[artifact("x")]),
        version="1.1",
    )
    + rpc(
        "GetTask",
        TASK_PARAMS,
        task("WORKING", generation="4", artifacts=[artifact("y")]),
        id=2,
        version="1.1",
    ),
)
def unmoved(context: RuleContext) -> Iterator[RuleFinding]:
    """Two Tasks (snapshots of one task) have the same generation, but different states or
    artifacts.

    A client that compares generations takes the task for unchanged. The agent must increase the
    generation with every such change.
    """
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.SAME:
            state = context.frame.state
            changed = each.other != state
            words = (
                f"{TaskState(each.other).label}, now {TaskState(state).label}"
                if changed
                else "different artifacts"
            )
            told = f"the task changed, but its generation is still {each.last}: {words}"
            yield RuleFinding(summary=told, path=generation_path(context), value=str(each.last))


@generation_rule(
    "A2A-GEN-021",
    "Different events with the same generation",
    Severity.ERROR,
    section="1.0 3.5.2; 1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
    flagged=run_together(
        rpc_stream(
            _SEND_METHOD,
            send(),
            *_FIRST_EVENTS,
            chunk("a", generation="3"),
            finish="open",
            version="1.1",
        ),
        rpc_stream(
            "SubscribeToTask",
            TASK_PARAMS,
            snapshot("WORKING", generation="2"),
            chunk("b", generation="3"),
            finish="open",
            version="1.1",
        ),
        after=25_000_000,
    ),
    clean=run_together(
        rpc_stream(
            _SEND_METHOD,
            send(),
            *_FIRST_EVENTS,
            chunk("a", generation="3"),
            finish="open",
            version="1.1",
        ),
        rpc_stream(
            "SubscribeToTask",
            TASK_PARAMS,
            snapshot("WORKING", generation="2"),
            chunk("a", generation="3"),
            finish="open",
            version="1.1",
        ),
        after=25_000_000,
    ),
)
def differs(context: RuleContext) -> Iterator[RuleFinding]:
    """Two streams of a task, or a stream and a push notification, carry different events with the
    same generation. Events are compared by content, not by bytes, so the binding makes no
    difference.

    Every event must be sent on every stream of the task; here two clients have different views of
    it. The agent must send the same event with the same generation to all of them.
    """
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.DIFFERS:
            told = (
                f"the event with generation {context.frame.generation} differs from the one on "
                f"#{each.other}"
            )
            yield RuleFinding(
                summary=told, path=generation_path(context), value=str(context.frame.generation)
            )
