"""The numbers of events on a stream (A2A 1.1 draft section 3.2.7)."""

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
from a2a_proxy.rules.families.gen.words import EVERYWHERE, TRACKED, format_range, generation_path

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
    """On one stream the generation goes up by more than one, or a snapshot in mid-stream is ahead of the last event: a
    change of the task was not told there. The finding says whether another stream or a push has told it, so that it was
    lost on this stream only. A warning where a snapshot itself brings the one change that was not told, and where the
    first event of the stream leaves numbers out without a snapshot to count from; information where a new subscription
    shows that changes passed while nobody listened.

    The client has missed an event: what it shows or has stored is not what the agent did. It should ask by GetTask.
    """
    if context.has_flag(FrameFlag.ASKS):
        note_client_message(context)
        return
    for each in generation_verdicts(context):
        missing = format_range(each.first, each.final)
        if each.fault is GenerationFault.GAP:
            if is_profile_2153(context) and is_gap_explained(context, each):
                continue
            brought = each.snapshot and each.first == each.final
            told = f"{context.frame.generation} after {each.last}: {missing} {_loss_place(context, each)}"
            severity = Severity.WARNING if brought else None
            yield RuleFinding(
                summary=told, path=generation_path(context), value=str(context.frame.generation), severity=severity
            )
        elif each.fault is GenerationFault.FIRST_GAP:
            told = f"the stream begins with {context.frame.generation}, and no snapshot; {missing} did not come"
            yield RuleFinding(summary=told, path=generation_path(context), severity=Severity.WARNING, is_sure=False)
        elif each.fault is GenerationFault.AWAY:
            count = each.final - each.first + 1
            told = f"{count} changes ({missing}) passed while no stream of the task was open"
            yield RuleFinding(summary=told, path=generation_path(context), severity=Severity.INFO)


def _loss_place(context: RuleContext, each: Verdict) -> str:
    """Where the event was lost, as far as it can be known."""
    count = each.final - each.first + 1
    if len(each.elsewhere) == count:
        return "came elsewhere, lost on this stream"
    if each.elsewhere:
        shown = ", ".join(map(str, each.elsewhere))
        return f"did not come on this stream; elsewhere {shown} came"
    others = context.task is not None and len(context.task.streams) > 1
    return "did not come here, nor so far elsewhere" if others else "did not come"


@rule(
    "A2A-GEN-002",
    "Same generation on two events",
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
    """Two events of a task have the same generation on one stream. A warning where it is the same event once more;
    information for a status update that changes no state: the draft gives it no number of its own, so that agents
    either repeat the last one or count on, and both are accepted here; it is told once a stream.

    A client that sees a number twice must take generations for not implemented, and loses gap detection altogether.
    """
    number = context.frame.generation
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.REPEAT:
            yield RuleFinding(
                summary=f"another event with {number}, the number of the one before", path=generation_path(context)
            )
        elif each.fault is GenerationFault.AGAIN:
            told = f"the event with {number} once more"
            yield RuleFinding(summary=told, path=generation_path(context), severity=Severity.WARNING)
        elif each.fault is GenerationFault.PROGRESS and not context.record.writable_notes().setdefault(
            "gen.progress", 0
        ):
            context.record.writable_notes()["gen.progress"] = 1
            told = f"{number} again, for a status update that leaves the task {TaskState(context.frame.state).label}"
            yield RuleFinding(summary=told, path=generation_path(context), severity=Severity.INFO)


@rule(
    "A2A-GEN-003",
    "Generation goes down",
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
    """On one stream an event has a lower generation than one before it: events are told out of order (where it fills a
    gap), or the agent has begun to count anew.

    Events must come in the order of their numbers; a client that applies them as they come ends in an old state.
    """
    number = context.frame.generation
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.LATE:
            yield RuleFinding(
                summary=f"{number} after {each.last}: late, it fills a gap",
                path=generation_path(context),
                value=str(number),
            )
        elif each.fault is GenerationFault.REGRESS:
            told = f"{number} after {each.last}: the numbers go down"
            yield RuleFinding(summary=told, path=generation_path(context), value=str(number))


@rule(
    "A2A-GEN-004",
    "Generation missing after it was there",
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
    """An event or snapshot has no generation, or 0, although this task had one for clients of the same version. A
    warning for a status update that changes no state, which the draft does not count as a change.

    0 means that the agent does not implement generations: clients switch off what they have built on them.
    """
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.ZERO:
            before = f"after {each.last}" if each.last else "for a task that had one"
            severity = (
                Severity.WARNING
                if context.frame.event is EventKind.STATUS and context.has_flag(FrameFlag.SAME)
                else None
            )
            yield RuleFinding(summary=f"no generation {before}", path=generation_path(context), severity=severity)


@rule(
    "A2A-GEN-023",
    "Gap explained by messages of the client",
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
    """A gap has exactly as many numbers as the client has sent messages to the task in that time, and the client speaks
    a version before 1.1. One proposal counts messages of the client as changes and does not tell such clients. On its
    own streams this stands in the place of the gap, elsewhere beside it.

    Nothing was lost then: the agent counts what the client has said itself.
    """
    if context.has_flag(FrameFlag.ASKS):
        note_client_message(context)
        return
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.GAP and is_gap_explained(context, each):
            missing = format_range(each.first, each.final)
            yield RuleFinding(summary=f"{missing} left out: as many as messages of the client came in between")
