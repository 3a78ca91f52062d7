"""Rules about the start of a live stream and about reconnecting to one (manual/protocol.md "Live
rules")."""

from collections.abc import Iterator

from a2a_proto import detect_live
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, EventKind, Frame, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import EventPause, grpc
from a2a_proxy.rules.examples.objects import send, snapshot, status
from a2a_proxy.rules.examples.script import MS, Script, run_together
from a2a_proxy.rules.families.live.words import (
    EXCUSED_STATUSES,
    FAILED_PRECONDITION,
    LIVE_OPERATIONS,
    NOT_FOUND,
    RECONNECT_MESSAGE,
    UNIMPLEMENTED,
    is_ended_empty,
    is_plain_live,
    is_reconnection,
    is_refused,
    live_rule,
)
from a2a_proxy.rules.families.stream.words import event_and_state
from a2a_proxy.rules.state.state_sequence import TERMINAL

_INVALID_ARGUMENT, _ALREADY_EXISTS, _ABORTED = 3, 6, 10
_TASK_ERRORS = frozenset({2, _INVALID_ARGUMENT, 13})
"""UNKNOWN, INVALID_ARGUMENT, INTERNAL: statuses that agents send instead of a specific one."""
_COMPLETED_EVENT = status("COMPLETED", second=1)
_FIRST_EVENTS = grpc(
    "SendLiveMessage", send(), snapshot(), status("WORKING"), finish="leave", half_close=False
)
_FINISHED_STREAM = grpc("SendLiveMessage", send(), snapshot(), _COMPLETED_EVENT, half_close=False)
_RECONNECTED_STREAM = grpc(
    "SendLiveMessage", RECONNECT_MESSAGE, snapshot("WORKING"), _COMPLETED_EVENT, half_close=False
)


def _second_stream(status: int) -> Script:
    """Return a script in which a second live stream is refused while the first one is open."""
    first = (snapshot(), EventPause(3), _COMPLETED_EVENT)
    second = grpc(
        "SendLiveMessage",
        RECONNECT_MESSAGE,
        status=status,
        text="there is a live stream",
        half_close=False,
    )
    return run_together(
        grpc("SendLiveMessage", send(), *first, half_close=False), second, after=1000 * MS
    )


@live_rule(
    "A2A-LIVE-010",
    "Live stream begins with an update",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.FIRST,
    operations=LIVE_OPERATIONS,
    flagged=grpc("SendLiveMessage", send(), status("WORKING"), _COMPLETED_EVENT, half_close=False),
    clean=_FINISHED_STREAM,
)
def begins_with_update(context: RuleContext) -> Iterator[RuleFinding]:
    """The first answer on a live stream is a status update or an artifact update instead of a Task
    or a Message. If the client reconnects, this is A2A-LIVE-014.

    The client does not have the task yet that the update is about. The agent must send the Task
    first.
    """
    frame = context.frame
    if (
        frame.event in (EventKind.STATUS, EventKind.ARTIFACT)
        and is_plain_live(context)
        and not is_reconnection(context.record)
    ):
        yield RuleFinding(
            summary=f"the live stream begins with {event_and_state(frame)} instead of a Task or a "
            f"Message"
        )


@live_rule(
    "A2A-LIVE-012",
    "Reconnecting to a finished task does not return it",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.FIRST | FrameFlag.END,
    operations=LIVE_OPERATIONS,
    flagged=_FINISHED_STREAM
    + grpc(
        "SendLiveMessage",
        RECONNECT_MESSAGE,
        status=FAILED_PRECONDITION,
        text="the task is over",
        half_close=False,
    ),
    clean=_FINISHED_STREAM
    + grpc("SendLiveMessage", RECONNECT_MESSAGE, snapshot("COMPLETED", second=1), half_close=False),
)
def finished(context: RuleContext) -> Iterator[RuleFinding]:
    """A client reconnects to a task that had reached a terminal state before, and the agent does
    not answer with that Task: it refuses the call, ends the stream without an answer, or sends
    something else. NOT_FOUND (the agent has forgotten the task) and UNIMPLEMENTED are accepted.
    Events after the Task are judged by A2A-LIVE-005 and A2A-LIVE-006.

    This is how a client that lost its stream shortly before the end gets the result;
    SubscribeToTask refuses finished tasks. The agent must answer with the Task and end the stream;
    the client can call GetTask.
    """
    record, request_snapshot = context.record, context.record.request_snapshot
    if (
        request_snapshot is None
        or not request_snapshot.terminal
        or not is_plain_live(context)
        or not is_reconnection(record)
    ):
        return
    was = f"task {request_snapshot.task_id} was {TaskState(request_snapshot.state).label}"
    wanted = "it must answer with the Task, then end"
    if is_ended_empty(context):
        yield RuleFinding(
            summary=f"{was}, but the agent ends the reconnected stream without an answer: {wanted}"
        )
    elif is_refused(context):
        if context.frame.error_code not in EXCUSED_STATUSES | {NOT_FOUND, UNIMPLEMENTED}:
            yield RuleFinding(
                summary=f"{was}, but the agent refuses to reconnect with "
                f"{context.failure.status_name}: {wanted}"
            )
    elif (
        context.has_flag(FrameFlag.FIRST)
        and context.is_success
        and context.frame.event
        and not _is_terminal_task(context.frame)
    ):
        yield RuleFinding(
            summary=f"{was}, but the agent answers the reconnect with "
            f"{event_and_state(context.frame)}: {wanted}"
        )


def _is_terminal_task(frame: Frame) -> bool:
    return frame.event is EventKind.TASK and frame.state in TERMINAL


@live_rule(
    "A2A-LIVE-013",
    "Reconnecting to an unknown task is not NOT_FOUND",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.ERROR,
    operations=LIVE_OPERATIONS,
    flagged=grpc(
        "SendLiveMessage",
        RECONNECT_MESSAGE,
        status=_INVALID_ARGUMENT,
        text="no such task",
        half_close=False,
    ),
    clean=grpc(
        "SendLiveMessage",
        RECONNECT_MESSAGE,
        status=NOT_FOUND,
        text="no such task",
        half_close=False,
    ),
)
def unknown(context: RuleContext) -> Iterator[RuleFinding]:
    """A client reconnects to a task that does not occur in the recording before, and the call fails
    with INVALID_ARGUMENT, UNKNOWN or INTERNAL. Low confidence: the agent may know the task and have
    another reason.

    NOT_FOUND tells the client that there is no task to reconnect to; after another status it tries
    again. The agent must answer NOT_FOUND.
    """
    request_snapshot = context.record.request_snapshot
    if (
        request_snapshot is None
        or request_snapshot.is_task_known
        or not context.session.is_complete
        or not is_refused(context)
        or not is_reconnection(context.record)
    ):
        return
    if context.frame.error_code in _TASK_ERRORS and is_plain_live(context):
        told = (
            f"task {request_snapshot.task_id} is unknown, reconnecting to it fails with "
            f"{context.failure.status_name}"
        )
        yield RuleFinding(
            summary=f"{told}, expected NOT_FOUND", value=context.failure.status_name, is_sure=False
        )


@live_rule(
    "A2A-LIVE-014",
    "Reconnecting does not begin with the Task",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.FIRST,
    operations=LIVE_OPERATIONS,
    flagged=_FIRST_EVENTS
    + grpc(
        "SendLiveMessage", RECONNECT_MESSAGE, status("WORKING"), _COMPLETED_EVENT, half_close=False
    ),
    clean=_FIRST_EVENTS + _RECONNECTED_STREAM,
)
def no_snapshot(context: RuleContext) -> Iterator[RuleFinding]:
    """A client reconnects to a task that is not known to be finished, and the first answer is not
    the Task.

    The client does not learn what it has missed and applies the updates to an outdated task. The
    agent must send the current Task first.
    """
    request_snapshot, frame = context.record.request_snapshot, context.frame
    if (
        request_snapshot is None
        or request_snapshot.terminal
        or not is_plain_live(context)
        or not is_reconnection(context.record)
    ):
        return
    if frame.event in (EventKind.STATUS, EventKind.ARTIFACT, EventKind.MESSAGE):
        yield RuleFinding(
            summary=f"reconnecting to task {request_snapshot.task_id} begins with "
            f"{event_and_state(frame)}, it must "
            "begin with the Task"
        )


@live_rule(
    "A2A-LIVE-015",
    "Second live stream refused with the wrong status",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.ERROR,
    operations=LIVE_OPERATIONS,
    flagged=_second_stream(_ALREADY_EXISTS),
    clean=_second_stream(FAILED_PRECONDITION),
)
def wrong_refusal(context: RuleContext) -> Iterator[RuleFinding]:
    """A live stream for a task that already has an open one is refused with ALREADY_EXISTS or
    ABORTED; or (low confidence) with INVALID_ARGUMENT, UNKNOWN or INTERNAL, which may have another
    reason.

    FAILED_PRECONDITION tells the client that another stream uses this task; after ABORTED it tries
    again at once. The agent must answer FAILED_PRECONDITION, or accept the second stream.
    """
    request_snapshot, code = context.record.request_snapshot, context.frame.error_code
    if (
        request_snapshot is None
        or not request_snapshot.task_id
        or not is_refused(context)
        or not is_plain_live(context)
    ):
        return
    task = context.session.task_record(context.record.agent, request_snapshot.task_id)
    told = frozenset({_ALREADY_EXISTS, _ABORTED})
    if task is None or code not in told | _TASK_ERRORS:
        return
    for number in task.streams:
        other = context.session.exchange_records.get(number)
        if (
            other is not None
            and other.operation in LIVE_OPERATIONS
            and other.started < context.record.started
        ):
            summary = (
                f"task {request_snapshot.task_id} has a live stream (#{number}), the agent refuses "
                f"another one with"
            )
            named = context.failure.status_name
            yield RuleFinding(
                summary=f"{summary} {named}, it must be FAILED_PRECONDITION",
                value=named,
                is_sure=code in told,
            )
            return


@live_rule(
    "A2A-LIVE-022",
    "Client and agent use different live proposals",
    Severity.WARNING,
    actor=Actor.EITHER,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.FIRST,
    operations=("SendLiveMessage",),
    flagged=grpc(
        "SendLiveMessage",
        send(),
        {"event": snapshot()},
        {"event": _COMPLETED_EVENT},
        answer_type="LiveResponse",
        half_close=False,
    ),
    clean=grpc(
        "SendLiveMessage",
        {"message": send()},
        {"event": snapshot()},
        {"event": _COMPLETED_EVENT},
        request_type="LiveRequest",
        answer_type="LiveResponse",
        half_close=False,
    ),
)
def two_proposals(context: RuleContext) -> Iterator[RuleFinding]:
    """The first message of one side of SendLiveMessage is of the proposal `1975` (`LiveRequest`,
    `LiveResponse`), and the first message of the other side is of another proposal. Or a message
    does not belong to the proposal that the user has chosen for decoding (`--live`).

    Three proposals use this method name with incompatible messages, so each side misreads the
    other. Client and agent must implement the same proposal; if `--live` is wrong, the user of the
    proxy must correct it. The names of the proposals are those of `--live`; `a2a-inspect help live`
    describes them.
    """
    first, frame = context.request, context.frame
    if first is None or not frame.payload or context.has_flag(FrameFlag.END):
        return
    one, two = detect_live(first.payload, None), detect_live(None, frame.payload)
    if one and two and one != two and "1975" in (one, two):
        yield RuleFinding(
            summary=f"the client sends messages of the proposal `{one}`, the "
            f"agent sends messages of "
            f"the proposal "
            f"`{two}`"
        )
        return
    for who, told, here in (("client", one, first), ("agent", two, frame)):
        read = _proposal_of(here)
        if told and told != read and not (told == "bidi" and read == "2153"):
            told_of = (
                f"the stream is decoded as the proposal `{read}`, but the {who} sends messages of "
                f"the proposal `{told}`"
            )
            yield RuleFinding(summary=told_of, seq=here.seq)


def _proposal_of(frame: Frame) -> str:
    line = frame.schema.partition("@live-")[2]
    return line or "bidi"
