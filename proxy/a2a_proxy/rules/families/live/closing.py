"""How a live stream goes on and ends (manual/protocol.md "Live rules")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ANY_EVENT, GRPC, Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import ClientMessage, EventPause, HalfClosed, grpc
from a2a_proxy.rules.examples.objects import agent_reply, chunk, send, snapshot, status
from a2a_proxy.rules.families.live.words import (
    LIVE_OPERATIONS,
    can_client_send,
    is_plain_live,
    is_reconnection,
    question_update,
)
from a2a_proxy.rules.families.stream.closing import LATE_CLOSE, MAX_CLOSE_DELAY, check_still_open, not_closed
from a2a_proxy.rules.families.stream.middle import after_terminal
from a2a_proxy.rules.families.stream.words import event_phrase, state_label
from a2a_proxy.rules.state.records import ACTIVE
from a2a_proxy.rules.state.state_sequence import INTERRUPTED

_SECOND_NS = 1_000_000_000
MAX_OPEN_TIME = 60
"""Seconds that a client may take to answer, before that is worth telling."""
_FIRST_EVENTS = (snapshot(), status("WORKING"))
_CLIENT_ANSWER = ClientMessage(send("this one", id="m2"))
_REMAINING_EVENTS = (status("WORKING", second=2), status("COMPLETED", second=3))
_COMPLETE_STREAM = grpc(
    "SendLiveMessage", send(), *_FIRST_EVENTS, question_update(), _CLIENT_ANSWER, *_REMAINING_EVENTS, half_close=False
)


def _is_ended_ok(context: RuleContext) -> bool:
    """The agent has ended the stream with OK, while the client could have said more; all that came was read."""
    record, exchange = context.record, context.exchange
    if (
        not is_plain_live(context)
        or record.half_closed
        or (record.unreadable_at and record.unreadable_at >= record.state_at)
    ):
        return False
    return exchange.how == "complete" and exchange.grpc_status == 0 and not record.terminal


@rule(
    "A2A-LIVE-004",
    "Live stream closed while the task waits for its client",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE_OPERATIONS,
    draft=True,
    flagged=grpc("SendLiveMessage", send(), *_FIRST_EVENTS, question_update(), half_close=False),
    clean=_COMPLETE_STREAM,
)
def closed_interrupted(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends a live stream with status OK at INPUT_REQUIRED or AUTH_REQUIRED, and the client had neither left
    nor said that it has nothing more to say.

    A live stream stays open for the answer. The client is asked something and cannot reply where it was asked.
    """
    if context.record.state in INTERRUPTED and _is_ended_ok(context):
        yield RuleFinding(
            summary=f"the agent ended the live stream at {state_label(context.record.state)}, it must wait for the "
            "client"
        )


@rule(
    "A2A-LIVE-005",
    "Live stream not closed after the terminal event",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    trigger_flags=FrameFlag.TERMINAL,
    operations=LIVE_OPERATIONS,
    draft=True,
    due=lambda see: check_still_open(see),
    flagged=grpc(
        "SendLiveMessage", send(), *_FIRST_EVENTS, status("COMPLETED", second=1), EventPause(60), half_close=False
    ),
    clean=_COMPLETE_STREAM,
)
def open_after_terminal(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent keeps a live stream open after it has told a terminal state: an error when it is open still after 10 s,
    a warning where it ended after more than 2 s.

    The client holds a stream on which nothing can be said any more, and waits for its end.
    """
    if is_plain_live(context):
        yield from not_closed(context)


@rule(
    "A2A-LIVE-006",
    "Event after the terminal one on a live stream",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    trigger_flags=ANY_EVENT,
    operations=LIVE_OPERATIONS,
    draft=True,
    also_broken=("A2A-STATE-013",),
    flagged=grpc(
        "SendLiveMessage", send(), *_FIRST_EVENTS, status("COMPLETED", second=1), chunk("late"), half_close=False
    ),
    clean=_COMPLETE_STREAM,
)
def late_event(context: RuleContext) -> Iterator[RuleFinding]:
    """On one live stream, something follows the event that told a terminal state. One Task in the same state may.

    Clients take the terminal state for the end of the conversation and never see what comes after it.
    """
    if is_plain_live(context):
        yield from after_terminal(context)


@rule(
    "A2A-LIVE-011",
    "Live stream goes on after a Message",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    trigger_flags=ANY_EVENT,
    operations=LIVE_OPERATIONS,
    draft=True,
    due=lambda see: _check_message_open(see),
    flagged=grpc("SendLiveMessage", send(), agent_reply(), agent_reply("and this", id="r2"), half_close=False),
    clean=grpc("SendLiveMessage", send(), agent_reply(), half_close=False),
)
def after_message(context: RuleContext) -> Iterator[RuleFinding]:
    """A live stream begins with a Message, and another event follows, or the agent keeps it open: an error when it is
    open still after 10 s, a warning where it ended after more than 2 s.

    A Message is the whole answer, there is no task to go on with: the client waits for an end that does not come.
    """
    record = context.record
    if record.first is not EventKind.MESSAGE or not is_plain_live(context):
        return
    if context.frame_or_none is None:
        after = (context.exchange.closed - record.last_at) / _SECOND_NS
        if LATE_CLOSE < after < MAX_CLOSE_DELAY and context.exchange.how == "complete":
            told = f"the live stream ended {after:.1f} s after its Message, it must end at once"
            yield RuleFinding(summary=told, severity=Severity.WARNING)
    elif context.has_flag(FrameFlag.LATER):
        yield RuleFinding(summary=f"{event_phrase(context.frame)} after the Message that was the whole answer")
    else:
        context.schedule_due(MAX_CLOSE_DELAY)


def _check_message_open(context: RuleContext) -> Iterator[RuleFinding]:
    record = context.record
    if record.started and record.closed_exchange is None and record.events == 1:
        told = f"the live stream is open still {MAX_CLOSE_DELAY} s after its Message, it must end at once"
        yield RuleFinding(summary=told, seq=context.due_seq)


@rule(
    "A2A-LIVE-017",
    "Input demanded of a client that has said all",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    trigger_flags=FrameFlag.INTERRUPTED,
    operations=LIVE_OPERATIONS,
    draft=True,
    flagged=grpc(
        "SendLiveMessage", send(), *_FIRST_EVENTS, HalfClosed(), question_update(), finish="leave", half_close=False
    ),
    clean=_COMPLETE_STREAM,
)
def nobody_left(context: RuleContext) -> Iterator[RuleFinding]:
    """A live stream goes to INPUT_REQUIRED after its client has closed its side, and no other live stream of the task
    can answer. Information at AUTH_REQUIRED, credentials may come by another way. The Task that a reconnecting client
    is shown first is not judged: it tells how things are.

    Nobody can answer on this stream; unless the client sends its answer by another call, the task waits for ever.
    """
    record, task, state = context.record, context.task, context.frame.state
    if not record.half_closed or context.stream_state_before == state or not is_plain_live(context):
        return
    if context.has_flag(FrameFlag.FIRST) and is_reconnection(record):
        return
    tracks = [context.session.exchange_records.get(number) for number in (task.streams if task is not None else ())]
    if any(each is not None and can_client_send(each) for each in tracks):
        return
    told = f"{state_label(state)} on a live stream whose client had closed its side"
    auth = state == TaskState.AUTH_REQUIRED
    yield RuleFinding(summary=f"{told}: nobody can answer there", severity=Severity.INFO if auth else None)


@rule(
    "A2A-LIVE-020",
    "Live stream ended while the task was active",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE_OPERATIONS,
    draft=True,
    flagged=grpc("SendLiveMessage", send(), *_FIRST_EVENTS, half_close=False),
    clean=_COMPLETE_STREAM,
)
def ended_active(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends a live stream with status OK while the task is SUBMITTED or WORKING, as far as the stream has
    told, and the client had neither left nor closed its side.

    The client takes the end for the end of the work, and has to reconnect to learn the result.
    """
    if context.record.state in ACTIVE and _is_ended_ok(context):
        told = f"the agent ended the live stream in {state_label(context.record.state)}"
        yield RuleFinding(summary=f"{told}, and its client could still speak")


@rule(
    "A2A-LIVE-021",
    "Question on a live stream not answered",
    Severity.INFO,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    trigger_flags=FrameFlag.INTERRUPTED,
    operations=LIVE_OPERATIONS,
    draft=True,
    due=lambda see: _check_unanswered(see),
    flagged=grpc(
        "SendLiveMessage",
        send(),
        *_FIRST_EVENTS,
        question_update(),
        EventPause(300),
        _CLIENT_ANSWER,
        *_REMAINING_EVENTS,
        half_close=False,
    ),
    clean=_COMPLETE_STREAM,
)
def waits(context: RuleContext) -> Iterator[RuleFinding]:
    """For 60 s after INPUT_REQUIRED or AUTH_REQUIRED on a live stream no client has sent a message to the task, and the
    stream is open.

    How long an agent waits is its own affair: it may let the task fail, and a proxy in between may drop a silent
    stream.
    """
    if context.stream_state_before != context.frame.state and not context.record.half_closed and is_plain_live(context):
        context.schedule_due(MAX_OPEN_TIME, str(context.at))
    yield from ()


def _check_unanswered(context: RuleContext) -> Iterator[RuleFinding]:
    record, task, asked = context.record, context.task, int(context.due_note)
    if not record.started or record.closed_exchange is not None or task is None or record.state not in INTERRUPTED:
        return
    if task.client_message_at < asked and task.state in INTERRUPTED:
        told = f"task {task.task_id} is {state_label(record.state)} for {MAX_OPEN_TIME} s, and nobody has answered"
        yield RuleFinding(summary=told, seq=context.due_seq)
