"""Rules about the end of a stream (A2A 1.0 sections 3.1.2, 3.1.6, 3.5.2)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, Binding, EventKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import NETWORK, Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import EventPause, rpc_stream
from a2a_proxy.rules.examples.objects import chunk, reply, send, snapshot, status
from a2a_proxy.rules.facts.naming import state_label
from a2a_proxy.rules.families.stream.words import STREAMS
from a2a_proxy.rules.state.records import ACTIVE, ExchangeRecord
from a2a_proxy.rules.state.state_sequence import INTERRUPTED

_SECOND_NS = 1_000_000_000
LATE_CLOSE, MAX_CLOSE_DELAY = 2, 10
"""Seconds after the terminal event: after the first the end is late, after the second it counts as
missing."""

_WORKING_EVENTS = (snapshot(), status("WORKING"))
_QUESTION_EVENT = status("INPUT_REQUIRED", second=1, message=reply("which one?"))
_COMPLETE_STREAM = rpc_stream(
    "SendStreamingMessage", send(), *_WORKING_EVENTS, chunk(), status("COMPLETED", second=1)
)
_SEND_PARAMS_0_3 = {
    "message": {
        "kind": "message",
        "messageId": "m1",
        "role": "user",
        "parts": [{"kind": "text", "text": "hello"}],
    }
}
_TASK_0_3 = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "submitted"}}
_STATUS_0_3 = {"state": "completed"}
_FINAL_UPDATE_0_3 = {
    "kind": "status-update",
    "taskId": "t1",
    "contextId": "c1",
    "status": _STATUS_0_3,
    "final": True,
}


@rule(
    "A2A-STREAM-006",
    "Stream not closed after the terminal event",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 3.1.2, 3.1.6; 0.3 7.2, 7.9",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.TERMINAL,
    operations=STREAMS,
    due=lambda see: check_still_open(see),
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        *_WORKING_EVENTS,
        status("COMPLETED", second=1),
        EventPause(60),
        finish="end",
    ),
    clean=_COMPLETE_STREAM,
)
def not_closed(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent keeps a stream open after it has sent a terminal state: an error if the stream is
    still open after 10 s, a warning if it ended after more than 2 s.

    A client waits for the end of the stream: its call hangs, and so does the program that made it.
    The agent must close the stream right after the terminal state; if it does, look for a proxy in
    front of it that keeps the stream open.
    """
    record = context.record
    if context.frame_or_none is not None:
        if not record.writable_notes().setdefault("stream.closing", 0):
            record.writable_notes()["stream.closing"] = 1
            context.schedule_due(MAX_CLOSE_DELAY)
        return
    if not record.terminal:
        return
    after = (context.exchange.closed - record.terminal) / _SECOND_NS
    if LATE_CLOSE < after < MAX_CLOSE_DELAY:
        what = (
            "ended" if context.exchange.how == "complete" else "was still open when it broke off,"
        )
        told = (
            f"the stream {what} {after:.1f} s after state {state_label(record.state)}; the agent "
            f"must end it at once"
        )
        yield RuleFinding(summary=told, severity=Severity.WARNING)


def check_still_open(context: RuleContext) -> Iterator[RuleFinding]:
    """Report a stream that is still open `MAX_CLOSE_DELAY` seconds after its terminal event."""
    record = context.record
    if record.started and record.closed_exchange is None:
        told = (
            f"the stream is still open {MAX_CLOSE_DELAY} s after state "
            f"{state_label(record.state)}; the agent must "
            "end it at once"
        )
        yield RuleFinding(summary=told, seq=context.due_seq)


@rule(
    "A2A-STREAM-007",
    "Agent ended the stream while the task was active",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 3.1.2; 0.3 7.2",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    operations=STREAMS,
    flagged=rpc_stream("SendStreamingMessage", send(), *_WORKING_EVENTS),
    clean=_COMPLETE_STREAM,
)
def ended_early(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends a stream cleanly, without an error, while the last state on this stream is
    SUBMITTED or WORKING; in 0.x also without `final: true`. Not judged if a frame after that
    state could not be decoded, or if the stream has shown a terminal state before: A2A-STREAM-005
    reports events after that.

    The client takes the end of the stream for the end of the work and never learns the result, or
    has to poll. The agent must keep the stream open until the task ends or needs input.
    """
    record = context.record
    if record.terminal or (record.unreadable_at and record.unreadable_at >= record.state_at):
        return
    if _is_clean_end(context) and not record.final_at and record.state in ACTIVE:
        told = (
            f"the agent ended the stream without an error while the task was "
            f"{state_label(record.state)}"
        )
        yield RuleFinding(summary=told)


@rule(
    "A2A-STREAM-008",
    "Agent ended the stream at an interrupted state",
    Severity.INFO,
    actor=Actor.AGENT,
    section="1.0 3.1.2, 11.7, 7.6.1",
    bindings=NETWORK,
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    operations=STREAMS,
    flagged=rpc_stream("SendStreamingMessage", send(), *_WORKING_EVENTS, _QUESTION_EVENT),
    clean=rpc_stream(
        "SendStreamingMessage", send(), *_WORKING_EVENTS, _QUESTION_EVENT, finish="leave"
    ),
)
def ended_interrupted(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends a stream at INPUT_REQUIRED or AUTH_REQUIRED. The specification contradicts
    itself: section 3.1.2 names terminal states only, section 11.7 allows this. At AUTH_REQUIRED it
    is a warning, because the credentials may arrive in another way and the stream should stay open
    for that.

    A client must open another stream to see how its task continues. The agent should keep the
    stream open; a client must be prepared for either.
    """
    record = context.record
    if not _is_clean_end(context) or record.final_at or record.state not in INTERRUPTED:
        return
    auth = record.state == int(TaskState.AUTH_REQUIRED)
    yield RuleFinding(
        summary=f"the agent ended the stream at {state_label(record.state)}; the client must open "
        f"another one",
        severity=Severity.WARNING if auth else None,
        is_sure=not auth,
    )


@rule(
    "A2A-STREAM-009",
    "Stream without any event",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 3.1.2; 0.3 7.2",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    operations=STREAMS,
    flagged=rpc_stream("SendStreamingMessage", send()),
    clean=_COMPLETE_STREAM,
)
def empty(context: RuleContext) -> Iterator[RuleFinding]:
    """A stream that the agent opened with success ends without any event and without an error.

    The client does not know whether its message was accepted, and has no task to query. The agent
    must send at least the Task, a Message or an error.
    """
    record, exchange = context.record, context.exchange
    if record.answers or exchange.how != "complete":
        return
    is_opened = exchange.binding is Binding.WEBSOCKET or (
        exchange.binding is Binding.GRPC and exchange.grpc_status == 0
    )
    if is_opened or (exchange.status == 200 and context.media_type == "text/event-stream"):
        yield RuleFinding(
            summary="the agent ended the stream without any event and without an error"
        )


@rule(
    "A2A-STREAM-017",
    "`final` is missing or wrong on a 0.x stream",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="0.3 7.2.2, 9.3",
    bindings=NETWORK,
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V0_2_0_3,
    trigger_flags=FrameFlag.STATUS,
    operations=STREAMS,
    flagged=rpc_stream(
        "message/stream",
        _SEND_PARAMS_0_3,
        _TASK_0_3,
        _FINAL_UPDATE_0_3 | {"final": False},
        version="",
    ),
    clean=rpc_stream("message/stream", _SEND_PARAMS_0_3, _TASK_0_3, _FINAL_UPDATE_0_3, version=""),
)
def final_wrong(context: RuleContext) -> Iterator[RuleFinding]:
    """In 0.2 and 0.3: the last status update of a stream does not have `final: true` (information
    if the task waits for input), or a status update has it in an active state, or, on JSON-RPC, a
    status update has no `final`. On REST a missing `final` is allowed, because ProtoJSON omits
    false.

    Clients of these versions recognise the end of a stream by `final`: without it they hang, and if
    it is sent too early they miss the rest. The agent must send `final: true` with the last status
    update only.
    """
    record = context.record
    if context.frame_or_none is None:
        state = (record.notes or {}).get("stream.last", 0)
        if _is_clean_end(context) and state and not record.final_at and state not in ACTIVE:
            severity = Severity.INFO if state in INTERRUPTED else None
            yield RuleFinding(
                summary=f"the last status update ({state_label(state)}) has no `final: true`",
                severity=severity,
            )
        return
    frame = context.frame
    record.writable_notes()["stream.last"] = 0 if frame.final else frame.state
    if frame.final and frame.state in ACTIVE:
        yield RuleFinding(
            summary=f"`final: true` although the task is {state_label(frame.state)}",
            path=f"{context.root}final",
            value="true",
        )
    elif context.is_enveloped and b'"final"' not in frame.payload and not frame.truncated:
        yield RuleFinding(
            summary="a status update has no member `final`", path=context.root.rstrip(".")
        )


def _is_clean_end(context: RuleContext) -> bool:
    """Whether the agent ended the stream of a task by itself, without an error. A single answer in
    place of a stream does not count."""
    record: ExchangeRecord = context.record
    told = (
        context.exchange.streaming
        and record.events
        and not record.errors
        and record.first is not EventKind.MESSAGE
    )
    return bool(told) and context.exchange.how == "complete"
