"""Rules about the generations of the events on a stream (A2A 1.1 draft section 3.2.7)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, EventKind, Severity
from a2a_proxy.protocol.generation import GenerationFault, Verdict
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import rpc_stream
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status
from a2a_proxy.rules.families.gen.tracker import generation_verdicts
from a2a_proxy.rules.families.gen.words import (
    EVERYWHERE,
    TRACKED,
    format_generations,
    format_range,
    generation_path,
    generation_rule,
)

_MAX_NAME = 60
"""Characters of an artifact id in a summary."""
_SEND_METHOD = "SendStreamingMessage"
_FIRST_EVENTS = (snapshot(generation="1"), status("WORKING", generation="2"))
_COMPLETED_EVENT = status("COMPLETED", second=1, generation="5")
_COMPLETE_STREAM = rpc_stream(
    _SEND_METHOD,
    send(),
    *_FIRST_EVENTS,
    chunk("a", generation="3"),
    chunk("b", id="a2", generation="4"),
    _COMPLETED_EVENT,
    version="1.1",
)


@generation_rule(
    "A2A-GEN-001",
    "Generation gap",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED | FrameFlag.ERROR,
    flagged=rpc_stream(
        _SEND_METHOD,
        send(),
        *_FIRST_EVENTS,
        chunk("b", generation="4"),
        _COMPLETED_EVENT,
        version="1.1",
    ),
    clean=_COMPLETE_STREAM,
)
def gap(context: RuleContext) -> Iterator[RuleFinding]:
    """`generation` counts the changes of a task: status updates, artifact updates, and client
    messages that the agent adds to the task; messages need not be sent to subscribers. An event's
    generation is more than one above that of the previous event on the same stream, or a Task sent
    mid-stream is ahead of the event before it, and no client message can have the generations in
    between. The finding says where else the missing event was seen. Reported as a warning if a
    message that did not pass this proxy may have the generation, or if that Task includes the one
    missing change; as information if the task changed before the first event of a stream.

    The client missed at least one change of the task, so its view is stale; it should call GetTask.
    If no stream carried the missing event, the agent (or a proxy in front of it) must send every
    event. If another stream carried it, it was lost between the agent and this stream: look at the
    agent's code for several subscribers, and at proxies.
    """
    for each in generation_verdicts(context):
        missing = format_range(each.first, each.final)
        if each.fault is GenerationFault.GAP and (each.lost or each.unknown):
            is_included = each.snapshot and each.first == each.final
            yield RuleFinding(
                summary=_describe_gap(context, each),
                path=generation_path(context),
                value=str(context.frame.generation),
                expected=str(each.first),
                actor=Actor.BETWEEN if _arrived_elsewhere(each) else None,
                severity=None if each.is_sure and not is_included else Severity.WARNING,
                is_sure=each.is_sure,
                evidence={"missing": missing},
            )
        elif each.fault is GenerationFault.FIRST_GAP:
            summary = (
                f"{format_generations(each.first, each.final)} passed before the first event of "
                f"this stream"
            )
            if each.explained:
                summary += f"; {_name_messages(each)}"
            yield RuleFinding(
                summary=summary,
                path=generation_path(context),
                severity=Severity.INFO,
                evidence={"missing": missing},
            )
        elif each.fault is GenerationFault.LOST:
            yield RuleFinding(
                summary=_describe_loss(context, each),
                severity=None if each.is_sure else Severity.WARNING,
                is_sure=each.is_sure,
                evidence={"missing": missing},
            )


def _describe_gap(context: RuleContext, each: Verdict) -> str:
    """Return what is missing, between which generations, and where it arrived or who must act, as
    far as known."""
    one = each.first == each.final
    named = format_generations(each.first, each.final)
    named += _describe_event(context, each.first) if one and each.lost else ""
    missing = (
        f"no event with {named}" if each.snapshot else f"{named} {'is' if one else 'are'} missing"
    )
    follower = (
        f"a Task with {context.frame.generation}"
        if each.snapshot
        else str(context.frame.generation)
    )
    between = f"{each.last} is followed by {follower}"
    if _arrived_elsewhere(each):
        return f"{missing} on this stream: {between}; {'it' if one else 'they'} arrived elsewhere"
    if each.lost:
        return (
            f"{missing} on this stream: {between}; {', '.join(map(str, each.lost))} arrived "
            f"elsewhere"
        )
    if each.explained:
        between += f"; {_name_messages(each)}"
    if not each.is_sure:
        message = (
            "the message that created the task"
            if each.first == 2
            else "a client message that did not pass here"
        )
        return (
            f"{missing}: {between}; either the agent did not send an event, or it counts {message}"
        )
    if context.task is not None and len(context.task.streams) > 1:
        return f"{missing}: {between}, and so far no other stream had {'it' if one else 'them'}"
    return f"{missing}: {between}"


def _describe_event(context: RuleContext, number: int) -> str:
    """Return the event with a generation as another stream showed it: ` (artifact update "plan")`;
    empty if unknown."""
    numbers = context.task.numbers if context.task is not None else None
    event = numbers.events.get(number) if numbers is not None else None
    if event is None:
        return ""
    if event.event == EventKind.ARTIFACT:
        return f' (artifact update "{event.artifact_id[:_MAX_NAME]}")'
    return (
        f" (status update {TaskState(event.state).label})"
        if event.event == EventKind.STATUS
        else ""
    )


def _arrived_elsewhere(each: Verdict) -> bool:
    """Whether other streams had all of the missing events."""
    return len(each.lost) == each.final - each.first + 1


def _name_messages(each: Verdict) -> str:
    """Return which of the generations are client messages."""
    numbers = ", ".join(map(str, each.explained))
    calls = ", ".join(f"#{number}" for number in each.messages if number)
    are = (
        "is probably the client's message"
        if len(each.explained) == 1
        else "are probably client messages"
    )
    return f"{numbers} {are}{f' in {calls}' if calls else ''}"


def _describe_loss(context: RuleContext, each: Verdict) -> str:
    """Return why a generation that a client message seemed to explain is missing after all."""
    where = "" if each.other == context.record.id else f" on #{each.other}"
    if each.lost:
        return f"generation {each.first} is missing{where}: it was an event, not a client's message"
    told = f"generation {each.first} is missing{where}: the message that could explain it "
    told += "was refused" if context.has_flag(FrameFlag.ERROR) else "has another generation"
    return told if each.is_sure else f"{told}; a message that did not pass here may have it"


@generation_rule(
    "A2A-GEN-002",
    "Two events with the same generation",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
    flagged=rpc_stream(
        _SEND_METHOD,
        send(),
        *_FIRST_EVENTS,
        chunk("a", generation="2"),
        status("COMPLETED", second=1, generation="3"),
        version="1.1",
    ),
    clean=_COMPLETE_STREAM,
)
def same_number(context: RuleContext) -> Iterator[RuleFinding]:
    """Two events of a task have the same generation on one stream. Reported as a warning if the
    second is the same event sent again, and as information, once per stream, if it is a status
    update that leaves the state unchanged and the agent has shown no `timeline`: an older text of
    the draft gave such an update no generation of its own.

    A client that sees a generation twice must assume that the agent does not support generations,
    and can no longer detect lost events. The agent must give each change of a task its own
    generation.
    """
    number = context.frame.generation
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.REPEAT:
            yield RuleFinding(
                summary=f"the agent sends two different events with generation {number}",
                path=generation_path(context),
            )
        elif each.fault is GenerationFault.AGAIN:
            told = f"the agent sends the event with generation {number} again"
            yield RuleFinding(
                summary=told, path=generation_path(context), severity=Severity.WARNING
            )
        elif (
            each.fault is GenerationFault.PROGRESS
            and not context.record.writable_notes().setdefault("gen.progress", 0)
        ):
            context.record.writable_notes()["gen.progress"] = 1
            told = (
                f"generation {number} is repeated by a status update that leaves the task "
                f"{TaskState(context.frame.state).label}"
            )
            yield RuleFinding(summary=told, path=generation_path(context), severity=Severity.INFO)


@generation_rule(
    "A2A-GEN-003",
    "Generation decreases",
    Severity.ERROR,
    section="1.1 draft 3.2.7, 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
    flagged=rpc_stream(
        "SubscribeToTask",
        {"id": "t1"},
        snapshot("WORKING", generation="5"),
        chunk("a", generation="6"),
        chunk("b", id="a2", generation="4"),
        finish="open",
        version="1.1",
    ),
    clean=_COMPLETE_STREAM,
)
def lower(context: RuleContext) -> Iterator[RuleFinding]:
    """An event has a lower generation than an earlier event on the same stream: either the events
    are out of order (the finding says that this one fills a gap), or the agent has started to count
    again from a lower value.

    Events must be sent in the order of their generations: a client that applies them as received
    ends with an old state. The agent, or a proxy that reorders events, must keep the order and
    never lower the generation of a task.
    """
    number = context.frame.generation
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.LATE:
            yield RuleFinding(
                summary=f"generation {number} follows {each.last}: the event "
                f"is late and fills a gap",
                path=generation_path(context),
                value=str(number),
            )
        elif each.fault is GenerationFault.REGRESS:
            told = (
                f"generation {number} follows {each.last}: the generation of a task must not "
                f"decrease"
            )
            yield RuleFinding(summary=told, path=generation_path(context), value=str(number))


@generation_rule(
    "A2A-GEN-004",
    "Generation is missing although the task had one",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
    flagged=rpc_stream(
        _SEND_METHOD,
        send(),
        *_FIRST_EVENTS,
        chunk("a"),
        status("COMPLETED", second=1),
        version="1.1",
    ),
    clean=_COMPLETE_STREAM,
)
def dropped(context: RuleContext) -> Iterator[RuleFinding]:
    """An event or Task has no generation, or 0, although the agent has sent generations of this
    task to clients of the same A2A version. Reported as a warning for a status update that leaves
    the state unchanged, which the draft does not count as a change.

    0 means that the agent does not support generations: clients turn off the detection of lost
    events. The agent must send the generation with every event and every Task.
    """
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.ZERO:
            before = f"the last one was {each.last}" if each.last else "the task had one before"
            severity = (
                Severity.WARNING
                if context.frame.event is EventKind.STATUS and context.has_flag(FrameFlag.SAME)
                else None
            )
            yield RuleFinding(
                summary=f"the agent sends no generation, {before}",
                path=generation_path(context),
                severity=severity,
            )
