"""The numbers of events on a stream (A2A 1.1 draft section 3.2.7)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import EventPause, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status
from a2a_proxy.rules.examples.script import MS, both
from a2a_proxy.rules.families.gen.messages import explains, note_message, profile_2153
from a2a_proxy.rules.families.gen.tracker import GenerationFault, Verdict, verdicts
from a2a_proxy.rules.families.gen.words import EVERYWHERE, TRACKED, numbers, place

_SEND = "SendStreamingMessage"
_START = (snapshot(generation="1"), status("WORKING", generation="2"))
_END = status("COMPLETED", second=1, generation="5")
_MORE = send("more", id="m2", taskId="t1", configuration={"returnImmediately": True})
_WHOLE = rpc_stream(
    _SEND, send(), *_START, chunk("a", generation="3"), chunk("b", id="a2", generation="4"), _END, version="1.1"
)


@rule(
    "A2A-GEN-001",
    "Generation gap",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    moment=(HookPoint.ANSWER, HookPoint.REQUEST),
    when=TRACKED | FrameFlag.ASKS,
    draft=True,
    needs=FrameFlag.NAMES | FrameFlag.NUMBERED | FrameFlag.OTHER,
    flagged=rpc_stream(_SEND, send(), *_START, chunk("b", generation="4"), _END, version="1.1"),
    clean=_WHOLE,
)
def gap(see: RuleContext) -> Iterator[RuleFinding]:
    """On one stream the generation goes up by more than one, or a snapshot in mid-stream is ahead of the last event: a
    change of the task was not told there. The finding says whether another stream or a push has told it, so that it was
    lost on this stream only. A warning where a snapshot itself brings the one change that was not told, and where the
    first event of the stream leaves numbers out without a snapshot to count from; information where a new subscription
    shows that changes passed while nobody listened.

    The client has missed an event: what it shows or has stored is not what the agent did. It should ask by GetTask.
    """
    if see.is_(FrameFlag.ASKS):
        note_message(see)
        return
    for each in verdicts(see):
        missing = numbers(each.first, each.final)
        if each.fault is GenerationFault.GAP:
            if profile_2153(see) and explains(see, each):
                continue
            brought = each.snapshot and each.first == each.final
            told = f"{see.frame.generation} after {each.last}: {missing} {_where(see, each)}"
            severity = Severity.WARNING if brought else None
            yield RuleFinding(summary=told, path=place(see), value=str(see.frame.generation), severity=severity)
        elif each.fault is GenerationFault.FIRST_GAP:
            told = f"the stream begins with {see.frame.generation}, and no snapshot; {missing} did not come"
            yield RuleFinding(summary=told, path=place(see), severity=Severity.WARNING, sure=False)
        elif each.fault is GenerationFault.AWAY:
            count = each.final - each.first + 1
            told = f"{count} changes ({missing}) passed while no stream of the task was open"
            yield RuleFinding(summary=told, path=place(see), severity=Severity.INFO)


def _where(see: RuleContext, each: Verdict) -> str:
    """Where the event was lost, as far as it can be known."""
    count = each.final - each.first + 1
    if len(each.elsewhere) == count:
        return "came elsewhere, lost on this stream"
    if each.elsewhere:
        shown = ", ".join(map(str, each.elsewhere))
        return f"did not come on this stream; elsewhere {shown} came"
    others = see.task is not None and len(see.task.streams) > 1
    return "did not come here, nor so far elsewhere" if others else "did not come"


@rule(
    "A2A-GEN-002",
    "Same generation on two events",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    when=TRACKED,
    draft=True,
    flagged=rpc_stream(
        _SEND, send(), *_START, chunk("a", generation="2"), status("COMPLETED", second=1, generation="3"), version="1.1"
    ),
    clean=_WHOLE,
)
def same_number(see: RuleContext) -> Iterator[RuleFinding]:
    """Two events of a task have the same generation on one stream. A warning where it is the same event once more;
    information for a status update that changes no state: the draft gives it no number of its own, so that agents
    either repeat the last one or count on, and both are accepted here; it is told once a stream.

    A client that sees a number twice must take generations for not implemented, and loses gap detection altogether.
    """
    number = see.frame.generation
    for each in verdicts(see):
        if each.fault is GenerationFault.REPEAT:
            yield RuleFinding(summary=f"another event with {number}, the number of the one before", path=place(see))
        elif each.fault is GenerationFault.AGAIN:
            told = f"the event with {number} once more"
            yield RuleFinding(summary=told, path=place(see), severity=Severity.WARNING)
        elif each.fault is GenerationFault.PROGRESS and not see.track.remember().setdefault("gen.progress", 0):
            see.track.remember()["gen.progress"] = 1
            told = f"{number} again, for a status update that leaves the task {TaskState(see.frame.state).label}"
            yield RuleFinding(summary=told, path=place(see), severity=Severity.INFO)


@rule(
    "A2A-GEN-003",
    "Generation goes down",
    Severity.ERROR,
    section="1.1 draft 3.2.7, 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    when=TRACKED,
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
    clean=_WHOLE,
)
def lower(see: RuleContext) -> Iterator[RuleFinding]:
    """On one stream an event has a lower generation than one before it: events are told out of order (where it fills a
    gap), or the agent has begun to count anew.

    Events must come in the order of their numbers; a client that applies them as they come ends in an old state.
    """
    number = see.frame.generation
    for each in verdicts(see):
        if each.fault is GenerationFault.LATE:
            yield RuleFinding(
                summary=f"{number} after {each.last}: late, it fills a gap", path=place(see), value=str(number)
            )
        elif each.fault is GenerationFault.REGRESS:
            told = f"{number} after {each.last}: the numbers go down"
            yield RuleFinding(summary=told, path=place(see), value=str(number))


@rule(
    "A2A-GEN-004",
    "Generation missing after it was there",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    when=TRACKED,
    draft=True,
    flagged=rpc_stream(_SEND, send(), *_START, chunk("a"), status("COMPLETED", second=1), version="1.1"),
    clean=_WHOLE,
)
def dropped(see: RuleContext) -> Iterator[RuleFinding]:
    """An event or snapshot has no generation, or 0, although this task had one for clients of the same version. A
    warning for a status update that changes no state, which the draft does not count as a change.

    0 means that the agent does not implement generations: clients switch off what they have built on them.
    """
    for each in verdicts(see):
        if each.fault is GenerationFault.ZERO:
            before = f"after {each.last}" if each.last else "for a task that had one"
            severity = Severity.WARNING if see.frame.event is EventKind.STATUS and see.is_(FrameFlag.SAME) else None
            yield RuleFinding(summary=f"no generation {before}", path=place(see), severity=severity)


@rule(
    "A2A-GEN-023",
    "Gap explained by messages of the client",
    Severity.INFO,
    section="1.1 draft 3.2.7 (proposal 2153)",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=EVERYWHERE,
    moment=(HookPoint.ANSWER, HookPoint.REQUEST),
    when=TRACKED | FrameFlag.ASKS,
    draft=True,
    also=("A2A-GEN-001", "A2A-VER-011"),
    needs=FrameFlag.NAMES | FrameFlag.NUMBERED | FrameFlag.OTHER,
    flagged=both(
        rpc_stream(_SEND, send(), *_START, EventPause(1), chunk("a", generation="4"), _END),
        rpc("SendMessage", _MORE, snapshot("WORKING", generation="3"), id=2),
        after=500 * MS,
    ),
    clean=_WHOLE,
)
def explained(see: RuleContext) -> Iterator[RuleFinding]:
    """A gap has exactly as many numbers as the client has sent messages to the task in that time, and the client speaks
    a version before 1.1. One proposal counts messages of the client as changes and does not tell such clients. On its
    own streams this stands in the place of the gap, elsewhere beside it.

    Nothing was lost then: the agent counts what the client has said itself.
    """
    if see.is_(FrameFlag.ASKS):
        note_message(see)
        return
    for each in verdicts(see):
        if each.fault is GenerationFault.GAP and explains(see, each):
            missing = numbers(each.first, each.final)
            yield RuleFinding(summary=f"{missing} left out: as many as messages of the client came in between")
