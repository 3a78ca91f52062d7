"""Rules about the generations of the events on a stream (A2A 1.1 draft section 3.2.7)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import EventPause, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status
from a2a_proxy.rules.examples.script import MS, run_together
from a2a_proxy.rules.families.gen.messages import is_gap_explained, is_profile_2153, note_client_message
from a2a_proxy.rules.families.gen.tracker import GenerationFault, Verdict, generation_verdicts
from a2a_proxy.rules.families.gen.words import EVERYWHERE, TRACKED, format_generations, generation_path

_SEND_METHOD = "SendStreamingMessage"
_FIRST_EVENTS = (snapshot(generation="1"), status("WORKING", generation="2"))
_COMPLETED_EVENT = status("COMPLETED", second=1, generation="5")
_FURTHER_EVENTS = send("more", id="m2", taskId="t1", configuration={"returnImmediately": True})
_COMPLETE_STREAM = rpc_stream(
    _SEND_METHOD,
    send(),
    *_FIRST_EVENTS,
    chunk("a", generation="3"),
    chunk("b", id="a2", generation="4"),
    _COMPLETED_EVENT,
    version="1.1",
)


@rule(
    "A2A-GEN-001",
    "Generation gap",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    hook_points=(HookPoint.ANSWER, HookPoint.REQUEST),
    trigger_flags=TRACKED | FrameFlag.ASKS,
    draft=True,
    required_flags=FrameFlag.NAMES | FrameFlag.NUMBERED | FrameFlag.OTHER,
    flagged=rpc_stream(
        _SEND_METHOD, send(), *_FIRST_EVENTS, chunk("b", generation="4"), _COMPLETED_EVENT, version="1.1"
    ),
    clean=_COMPLETE_STREAM,
)
def gap(context: RuleContext) -> Iterator[RuleFinding]:
    """`generation` counts the changes of a task. An event's generation is more than one above that of the previous
    event on the same stream, or a Task sent mid-stream has a higher generation than the event before it: at least one
    change was not sent on this stream. The finding says whether another stream or a push notification carried it.
    Reported as a warning if that Task itself includes the one missing change, or if a stream begins with an event
    instead of a Task and leaves generations out; as information if a new subscription shows that the task changed while
    no stream was open.

    The client missed at least one change of the task, so its view is stale; it should call GetTask. If no stream
    carried the missing event, the agent (or a proxy in front of it) must send every change. If another stream carried
    it, the loss is between the agent and this stream: look at the agent's code for several subscribers, and at proxies
    in between.
    """
    if context.has_flag(FrameFlag.ASKS):
        note_client_message(context)
        return
    for each in generation_verdicts(context):
        path = generation_path(context)
        if each.fault is GenerationFault.GAP:
            if is_profile_2153(context) and is_gap_explained(context, each):
                continue
            brought = each.snapshot and each.first == each.final
            yield RuleFinding(
                summary=_describe_gap(context, each),
                path=path,
                value=str(context.frame.generation),
                severity=Severity.WARNING if brought else None,
            )
        elif each.fault is GenerationFault.FIRST_GAP:
            told = f"{_missing(each)}: the stream begins with {context.frame.generation} and without a Task"
            yield RuleFinding(summary=told, path=path, severity=Severity.WARNING, is_sure=False)
        elif each.fault is GenerationFault.AWAY:
            told = f"{format_generations(each.first, each.final)} passed while no stream of the task was open"
            yield RuleFinding(summary=told, path=path, severity=Severity.INFO)


def _missing(each: Verdict) -> str:
    return f"{format_generations(each.first, each.final)} {'is' if each.first == each.final else 'are'} missing"


def _describe_gap(context: RuleContext, each: Verdict) -> str:
    """Return what is missing, between which generations, and where it arrived or who must act, as far as known."""
    one = each.first == each.final
    missing = f"no event with {format_generations(each.first, each.final)}" if each.snapshot else _missing(each)
    follower = f"a Task with {context.frame.generation}" if each.snapshot else str(context.frame.generation)
    between = f"{each.last} is followed by {follower}"
    if len(each.elsewhere) == each.final - each.first + 1:
        return f"{missing} on this stream: {between}; {'it' if one else 'they'} arrived elsewhere"
    if each.elsewhere:
        return f"{missing} on this stream: {between}; {', '.join(map(str, each.elsewhere))} arrived elsewhere"
    if context.task is not None and len(context.task.streams) > 1:
        return f"{missing}: {between}, and so far no other stream had {'it' if one else 'them'} (agent)"
    return f"{missing}: {between} (agent)"


@rule(
    "A2A-GEN-002",
    "Two events with the same generation",
    Severity.ERROR,
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
        chunk("a", generation="2"),
        status("COMPLETED", second=1, generation="3"),
        version="1.1",
    ),
    clean=_COMPLETE_STREAM,
)
def same_number(context: RuleContext) -> Iterator[RuleFinding]:
    """Two events of a task have the same generation on one stream. Reported as a warning if the second is the same
    event sent again, and as information, once per stream, if it is a status update that leaves the state unchanged: the
    draft gives such an update no generation of its own, so an agent may repeat the last one or count on.

    A client that sees a generation twice must assume that the agent does not support generations, and can no longer
    detect lost events. The agent must give each change of a task its own generation.
    """
    number = context.frame.generation
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.REPEAT:
            yield RuleFinding(
                summary=f"the agent sends two different events with generation {number}", path=generation_path(context)
            )
        elif each.fault is GenerationFault.AGAIN:
            told = f"the agent sends the event with generation {number} again"
            yield RuleFinding(summary=told, path=generation_path(context), severity=Severity.WARNING)
        elif each.fault is GenerationFault.PROGRESS and not context.record.writable_notes().setdefault(
            "gen.progress", 0
        ):
            context.record.writable_notes()["gen.progress"] = 1
            told = (
                f"generation {number} is repeated by a status update that leaves the task "
                f"{TaskState(context.frame.state).label}"
            )
            yield RuleFinding(summary=told, path=generation_path(context), severity=Severity.INFO)


@rule(
    "A2A-GEN-003",
    "Generation decreases",
    Severity.ERROR,
    section="1.1 draft 3.2.7, 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
    draft=True,
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
    """An event has a lower generation than an earlier event on the same stream: either the events are out of order (the
    finding says that this one fills a gap), or the agent has started to count again from a lower value.

    Events must be sent in the order of their generations: a client that applies them as received ends with an old
    state. The agent, or a proxy that reorders events, must keep the order and never lower the generation of a task.
    """
    number = context.frame.generation
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.LATE:
            yield RuleFinding(
                summary=f"generation {number} follows {each.last}: the event is late and fills a gap",
                path=generation_path(context),
                value=str(number),
            )
        elif each.fault is GenerationFault.REGRESS:
            told = f"generation {number} follows {each.last}: the generation of a task must not decrease"
            yield RuleFinding(summary=told, path=generation_path(context), value=str(number))


@rule(
    "A2A-GEN-004",
    "Generation is missing although the task had one",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    trigger_flags=TRACKED,
    draft=True,
    flagged=rpc_stream(_SEND_METHOD, send(), *_FIRST_EVENTS, chunk("a"), status("COMPLETED", second=1), version="1.1"),
    clean=_COMPLETE_STREAM,
)
def dropped(context: RuleContext) -> Iterator[RuleFinding]:
    """An event or Task has no generation, or 0, although the agent has sent generations of this task to clients of the
    same A2A version. Reported as a warning for a status update that leaves the state unchanged, which the draft does
    not count as a change.

    0 means that the agent does not support generations: clients turn off the detection of lost events. The agent must
    send the generation with every event and every Task.
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
                summary=f"the agent sends no generation, {before}", path=generation_path(context), severity=severity
            )


@rule(
    "A2A-GEN-023",
    "Gap explained by client messages",
    Severity.INFO,
    section="1.1 draft 3.2.7 (proposal 2153)",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    hook_points=(HookPoint.ANSWER, HookPoint.REQUEST),
    trigger_flags=TRACKED | FrameFlag.ASKS,
    draft=True,
    also_broken=("A2A-GEN-001", "A2A-VER-011"),
    required_flags=FrameFlag.NAMES | FrameFlag.NUMBERED | FrameFlag.OTHER,
    flagged=run_together(
        rpc_stream(_SEND_METHOD, send(), *_FIRST_EVENTS, EventPause(1), chunk("a", generation="4"), _COMPLETED_EVENT),
        rpc("SendMessage", _FURTHER_EVENTS, snapshot("WORKING", generation="3"), id=2),
        after=500 * MS,
    ),
    clean=_COMPLETE_STREAM,
)
def explained(context: RuleContext) -> Iterator[RuleFinding]:
    """A stream leaves out exactly as many generations as the client sent messages to the task in that time, and the
    client speaks a version before 1.1. One proposal (2153) counts client messages as changes of the task and sends such
    clients no event for them. On streams of that proposal this finding replaces A2A-GEN-001, on other streams it is
    reported in addition.

    Nothing was lost: the agent counts the client's own messages. No action is needed.
    """
    if context.has_flag(FrameFlag.ASKS):
        note_client_message(context)
        return
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.GAP and is_gap_explained(context, each):
            named = format_generations(each.first, each.final)
            yield RuleFinding(summary=f"{named} left out: the client sent as many messages in between")
