"""How a live stream begins, and how one is taken up again (manual/protocol.md "Live rules")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proto import detect_live
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import GRPC, Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import EventPause, grpc
from a2a_proxy.rules.examples.objects import send, snapshot, status
from a2a_proxy.rules.examples.script import MS, Script, both
from a2a_proxy.rules.families.live.words import (
    EXCUSED,
    FAILED_PRECONDITION,
    LIVE,
    NOT_FOUND,
    RECONNECT,
    UNIMPLEMENTED,
    ended_empty,
    plain_live,
    reconnects,
    refused,
)
from a2a_proxy.rules.families.stream.words import name_of
from a2a_proxy.rules.state.state_sequence import TERMINAL

_INVALID_ARGUMENT, _ALREADY_EXISTS, _ABORTED = 3, 6, 10
_OF_THE_TASK = frozenset({2, _INVALID_ARGUMENT, 13})
"""UNKNOWN, INVALID_ARGUMENT, INTERNAL: what agents say in place of a status that tells."""
_DONE = status("COMPLETED", second=1)
_BEGUN = grpc("SendLiveMessage", send(), snapshot(), status("WORKING"), finish="leave", half_close=False)
_FINISHED = grpc("SendLiveMessage", send(), snapshot(), _DONE, half_close=False)
_RETURNED = grpc("SendLiveMessage", RECONNECT, snapshot("WORKING"), _DONE, half_close=False)


def _again(status: int) -> Script:
    """A second live stream is refused, while the first is open."""
    first = (snapshot(), EventPause(3), _DONE)
    second = grpc("SendLiveMessage", RECONNECT, status=status, text="there is a live stream", half_close=False)
    return both(grpc("SendLiveMessage", send(), *first, half_close=False), second, after=1000 * MS)


@rule(
    "A2A-LIVE-010",
    "Live stream begins with an update",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.FIRST,
    operations=LIVE,
    draft=True,
    flagged=grpc("SendLiveMessage", send(), status("WORKING"), _DONE, half_close=False),
    clean=_FINISHED,
)
def begins_with_update(see: RuleContext) -> Iterator[RuleFinding]:
    """The first answer on a live stream is a status update or an artifact update, not a Task or a Message. Where the
    client reconnects it is A2A-LIVE-014.

    The client has no task yet that the update could be about.
    """
    frame = see.frame
    if frame.event in (EventKind.STATUS, EventKind.ARTIFACT) and plain_live(see) and not reconnects(see.track):
        yield RuleFinding(summary=f"the live stream begins with {name_of(frame)}, it must be a Task or a Message")


@rule(
    "A2A-LIVE-012",
    "Reconnecting to a finished task went wrong",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.FIRST | FrameFlag.END,
    operations=LIVE,
    draft=True,
    flagged=_FINISHED
    + grpc("SendLiveMessage", RECONNECT, status=FAILED_PRECONDITION, text="the task is over", half_close=False),
    clean=_FINISHED + grpc("SendLiveMessage", RECONNECT, snapshot("COMPLETED", second=1), half_close=False),
)
def finished(see: RuleContext) -> Iterator[RuleFinding]:
    """A client reconnects to a task that was terminal before, and the agent does not answer with that Task: it refuses,
    ends the stream without a word, or shows something else. It may say NOT_FOUND, having forgotten the task, or
    UNIMPLEMENTED. What follows the Task is A2A-LIVE-005 and A2A-LIVE-006.

    A client that lost its stream shortly before the end gets the result in this way, which SubscribeToTask refuses.
    """
    track, asked = see.track, see.track.asked
    if asked is None or not asked.terminal or not plain_live(see) or not reconnects(track):
        return
    was = f"task {asked.task_id} was {TaskState(asked.state).label}"
    wanted = "it must answer with the Task, then end"
    if ended_empty(see):
        yield RuleFinding(summary=f"{was}, reconnecting to it ends without an answer: {wanted}")
    elif refused(see):
        if see.frame.error_code not in EXCUSED | {NOT_FOUND, UNIMPLEMENTED}:
            yield RuleFinding(summary=f"{was}, reconnecting to it is refused with {see.failure.status_name}: {wanted}")
    elif see.is_(FrameFlag.FIRST) and see.succeeded and see.frame.event and not _is_end(see.frame):
        yield RuleFinding(summary=f"{was}, reconnecting to it is answered with {name_of(see.frame)}: {wanted}")


def _is_end(frame: Frame) -> bool:
    return frame.event is EventKind.TASK and frame.state in TERMINAL


@rule(
    "A2A-LIVE-013",
    "Reconnecting to an unknown task is not NOT_FOUND",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.ERROR,
    operations=LIVE,
    draft=True,
    flagged=grpc("SendLiveMessage", RECONNECT, status=_INVALID_ARGUMENT, text="no such task", half_close=False),
    clean=grpc("SendLiveMessage", RECONNECT, status=NOT_FOUND, text="no such task", half_close=False),
)
def unknown(see: RuleContext) -> Iterator[RuleFinding]:
    """A client reconnects to a task that was never seen here, and the call fails with INVALID_ARGUMENT, UNKNOWN or
    INTERNAL; less sure, the agent may know the task and have another reason.

    By NOT_FOUND clients know that there is nothing left to reconnect to; otherwise they try again.
    """
    asked = see.track.asked
    if asked is None or asked.known or not see.world.whole or not refused(see) or not reconnects(see.track):
        return
    if see.frame.error_code in _OF_THE_TASK and plain_live(see):
        told = f"task {asked.task_id} was never seen, reconnecting to it fails with {see.failure.status_name}"
        yield RuleFinding(summary=f"{told}: NOT_FOUND was expected", value=see.failure.status_name, sure=False)


@rule(
    "A2A-LIVE-014",
    "Reconnecting does not show the task",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.FIRST,
    operations=LIVE,
    draft=True,
    flagged=_BEGUN + grpc("SendLiveMessage", RECONNECT, status("WORKING"), _DONE, half_close=False),
    clean=_BEGUN + _RETURNED,
)
def no_snapshot(see: RuleContext) -> Iterator[RuleFinding]:
    """A client reconnects to a task that is not known to be over, and the first answer is not the Task.

    The client does not learn what it has missed, and builds the updates upon what it remembers.
    """
    asked, frame = see.track.asked, see.frame
    if asked is None or asked.terminal or not plain_live(see) or not reconnects(see.track):
        return
    if frame.event in (EventKind.STATUS, EventKind.ARTIFACT, EventKind.MESSAGE):
        yield RuleFinding(
            summary=f"reconnecting to task {asked.task_id} begins with {name_of(frame)}, it must be the Task"
        )


@rule(
    "A2A-LIVE-015",
    "Second live stream refused with the wrong status",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.ERROR,
    operations=LIVE,
    draft=True,
    flagged=_again(_ALREADY_EXISTS),
    clean=_again(FAILED_PRECONDITION),
)
def wrong_refusal(see: RuleContext) -> Iterator[RuleFinding]:
    """A live stream for a task that has one open already is refused with ALREADY_EXISTS or ABORTED; less sure with
    INVALID_ARGUMENT, UNKNOWN or INTERNAL, for which there may be another reason.

    FAILED_PRECONDITION tells the client that another one speaks with this task; ABORTED makes it try at once again.
    """
    asked, code = see.track.asked, see.frame.error_code
    if asked is None or not asked.task_id or not refused(see) or not plain_live(see):
        return
    task = see.world.task(see.track.agent, asked.task_id)
    told = frozenset({_ALREADY_EXISTS, _ABORTED})
    if task is None or code not in told | _OF_THE_TASK:
        return
    for number in task.streams:
        other = see.world.tracks.get(number)
        if other is not None and other.operation in LIVE and other.started < see.track.started:
            summary = f"task {asked.task_id} has a live stream (exchange {number}), another one is refused with"
            named = see.failure.status_name
            yield RuleFinding(
                summary=f"{summary} {named}, it must be FAILED_PRECONDITION", value=named, sure=code in told
            )
            return


@rule(
    "A2A-LIVE-022",
    "The two sides speak different live proposals",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.FIRST,
    operations=("SendLiveMessage",),
    draft=True,
    flagged=grpc(
        "SendLiveMessage", send(), {"event": snapshot()}, {"event": _DONE}, tells="LiveResponse", half_close=False
    ),
    clean=grpc(
        "SendLiveMessage",
        {"message": send()},
        {"event": snapshot()},
        {"event": _DONE},
        asks="LiveRequest",
        tells="LiveResponse",
        half_close=False,
    ),
)
def two_proposals(see: RuleContext) -> Iterator[RuleFinding]:
    """One side of SendLiveMessage writes the messages of the proposal with media (`LiveRequest`, `LiveResponse`), the
    other side those of another one, by the first message of each. Or a message is none of the proposal as which the
    stream is read, because the user has said so (`--live`).

    Several proposals use this method name with messages that do not fit: each side reads nonsense.
    """
    first, frame = see.request, see.frame
    if first is None or not frame.payload or see.is_(FrameFlag.END):
        return
    one, two = detect_live(first.payload, None), detect_live(None, frame.payload)
    if one and two and one != two and "1975" in (one, two):
        yield RuleFinding(summary=f"the client speaks the messages of {_NAMES[one]}, the agent those of {_NAMES[two]}")
        return
    for who, told, here in (("client", one, first), ("agent", two, frame)):
        read = _read_as(here)
        if told and told != read and not (told == "bidi" and read == "2153"):
            told_of = f"the stream is read as that of {_NAMES[read]}, the {who} speaks the messages of {_NAMES[told]}"
            yield RuleFinding(summary=told_of, seq=here.seq)


_NAMES = {"1975": "the proposal with media", "2153": "the proposal of uplinks", "bidi": "the draft"}


def _read_as(frame: Frame) -> str:
    line = frame.schema.partition("@live-")[2]
    return line or "bidi"
