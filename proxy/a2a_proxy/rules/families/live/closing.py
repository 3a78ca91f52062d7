"""Rules about the course and the end of a live stream (manual/protocol.md "Live rules")."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, EventKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    ANY_EVENT,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import ClientMessage, EventPause, HalfClosed, grpc
from a2a_proxy.rules.examples.objects import agent_reply, chunk, send, snapshot, status
from a2a_proxy.rules.facts.naming import state_label
from a2a_proxy.rules.families.live.words import (
    LIVE_OPERATIONS,
    can_client_send,
    is_plain_live,
    is_reconnection,
    live_rule,
    question_update,
)
from a2a_proxy.rules.families.stream.closing import (
    LATE_CLOSE,
    MAX_CLOSE_DELAY,
    check_still_open,
    not_closed,
)
from a2a_proxy.rules.families.stream.middle import after_terminal
from a2a_proxy.rules.families.stream.words import event_and_state
from a2a_proxy.rules.state.records import ACTIVE
from a2a_proxy.rules.state.state_sequence import INTERRUPTED

_SECOND_NS = 1_000_000_000
_FIRST_EVENTS = (snapshot(), status("WORKING"))
_CLIENT_ANSWER = ClientMessage(send("this one", id="m2"))
_REMAINING_EVENTS = (status("WORKING", second=2), status("COMPLETED", second=3))
_COMPLETE_STREAM = grpc(
    "SendLiveMessage",
    send(),
    *_FIRST_EVENTS,
    question_update(),
    _CLIENT_ANSWER,
    *_REMAINING_EVENTS,
    half_close=False,
)


def _is_ended_ok(context: RuleContext) -> bool:
    """Return whether the agent ended the stream with OK before a terminal state, while the client
    could still send messages. False if the last state may be in an event that could not be
    decoded."""
    record, exchange = context.record, context.exchange
    if (
        not is_plain_live(context)
        or record.half_closed
        or (record.unreadable_at and record.unreadable_at >= record.state_at)
    ):
        return False
    return exchange.how == "complete" and exchange.grpc_status == 0 and not record.terminal


@live_rule(
    "A2A-LIVE-004",
    "Live stream ended while the task waits for the client",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.1 draft 3.2.7",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    operations=LIVE_OPERATIONS,
    flagged=grpc("SendLiveMessage", send(), *_FIRST_EVENTS, question_update(), half_close=False),
    clean=_COMPLETE_STREAM,
)
def closed_interrupted(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends a live stream with status OK when the task is in INPUT_REQUIRED or
    AUTH_REQUIRED, although the client neither left nor ended its side of the stream.

    A live stream stays open for the client's answer: here the client is asked a question and cannot
    answer on the same stream. The agent must keep the stream open until the task is in a terminal
    state.
    """
    if context.record.state in INTERRUPTED and _is_ended_ok(context):
        yield RuleFinding(
            summary=f"the agent ended the live stream while the task is in "
            f"{state_label(context.record.state)}; it "
            "must wait for the client's answer"
        )


@live_rule(
    "A2A-LIVE-005",
    "Live stream not ended after the terminal event",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.1 draft 3.2.7",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.TERMINAL,
    operations=LIVE_OPERATIONS,
    due=lambda see: check_still_open(see),
    flagged=grpc(
        "SendLiveMessage",
        send(),
        *_FIRST_EVENTS,
        status("COMPLETED", second=1),
        EventPause(60),
        half_close=False,
    ),
    clean=_COMPLETE_STREAM,
)
def open_after_terminal(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent keeps a live stream open after an event with a terminal state: an error if the
    stream is still open after 10 s, a warning if it ended after more than 2 s.

    The client holds a stream on which nothing can follow, and waits for its end. The agent must end
    the stream with status OK directly after the terminal event.
    """
    if is_plain_live(context):
        yield from not_closed(context)


@live_rule(
    "A2A-LIVE-006",
    "Event after the terminal event on a live stream",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=ANY_EVENT,
    operations=LIVE_OPERATIONS,
    also_broken=("A2A-STATE-013",),
    flagged=grpc(
        "SendLiveMessage",
        send(),
        *_FIRST_EVENTS,
        status("COMPLETED", second=1),
        chunk("late"),
        half_close=False,
    ),
    clean=_COMPLETE_STREAM,
)
def late_event(context: RuleContext) -> Iterator[RuleFinding]:
    """An event follows the event with a terminal state on the same live stream. One Task in the
    same state may follow.

    Clients treat the terminal state as the end of the conversation and never read later events. The
    agent must send everything before the terminal event.
    """
    if is_plain_live(context):
        yield from after_terminal(context)


@live_rule(
    "A2A-LIVE-011",
    "Live stream continues after a Message",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.1 draft 3.2.7",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=ANY_EVENT,
    operations=LIVE_OPERATIONS,
    due=lambda see: _check_message_open(see),
    flagged=grpc(
        "SendLiveMessage", send(), agent_reply(), agent_reply("and this", id="r2"), half_close=False
    ),
    clean=grpc("SendLiveMessage", send(), agent_reply(), half_close=False),
)
def after_message(context: RuleContext) -> Iterator[RuleFinding]:
    """A live stream begins with a Message, but another event follows, or the agent keeps the stream
    open: an error if it is still open after 10 s, a warning if it ended after more than 2 s.

    A Message is the complete answer, without a task that could continue, so the client waits for
    the end of the stream. The agent must end the stream directly after the Message.
    """
    record = context.record
    if record.first is not EventKind.MESSAGE or not is_plain_live(context):
        return
    if context.frame_or_none is None:
        after = (context.exchange.closed - record.last_at) / _SECOND_NS
        if LATE_CLOSE < after < MAX_CLOSE_DELAY and context.exchange.how == "complete":
            told = (
                f"the agent ended the live stream {after:.1f} s after its Message, it must end at "
                f"once"
            )
            yield RuleFinding(summary=told, severity=Severity.WARNING)
    elif context.has_flag(FrameFlag.LATER):
        yield RuleFinding(
            summary=f"the agent sends {event_and_state(context.frame)} after "
            f"the Message that is the "
            f"complete answer"
        )
    else:
        context.schedule_due(MAX_CLOSE_DELAY)


def _check_message_open(context: RuleContext) -> Iterator[RuleFinding]:
    record = context.record
    if record.started and record.closed_exchange is None and record.events == 1:
        told = (
            f"the live stream is still open {MAX_CLOSE_DELAY} s after its Message, the agent must "
            f"end it"
        )
        yield RuleFinding(summary=told, seq=context.due_seq)


@live_rule(
    "A2A-LIVE-017",
    "Agent asks a client that has ended its side",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.INTERRUPTED,
    operations=LIVE_OPERATIONS,
    flagged=grpc(
        "SendLiveMessage",
        send(),
        *_FIRST_EVENTS,
        HalfClosed(),
        question_update(),
        finish="leave",
        half_close=False,
    ),
    clean=_COMPLETE_STREAM,
)
def nobody_left(context: RuleContext) -> Iterator[RuleFinding]:
    """The task on a live stream changes to INPUT_REQUIRED after the client has ended its side of
    the stream, and no other live stream of the task is open for an answer. Reported as information
    for AUTH_REQUIRED, because credentials may arrive in another way. The Task that a reconnecting
    client receives first is not judged: it only shows the current state.

    The client cannot answer on this stream, and the task waits until the client sends its answer by
    another call. The client must keep its side open as long as it can answer; the agent should not
    ask after that.
    """
    record, task, state = context.record, context.task, context.frame.state
    if not record.half_closed or context.stream_state_before == state or not is_plain_live(context):
        return
    if context.has_flag(FrameFlag.FIRST) and is_reconnection(record):
        return
    tracks = [
        context.session.exchange_records.get(number)
        for number in (task.streams if task is not None else ())
    ]
    if any(each is not None and can_client_send(each) for each in tracks):
        return
    told = f"the task is {state_label(state)}, but the client has ended its side of the live stream"
    auth = state == TaskState.AUTH_REQUIRED
    yield RuleFinding(
        summary=f"{told} and cannot answer on it", severity=Severity.INFO if auth else None
    )


@live_rule(
    "A2A-LIVE-020",
    "Live stream ended while the task is active",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.1 draft 3.2.7",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    operations=LIVE_OPERATIONS,
    flagged=grpc("SendLiveMessage", send(), *_FIRST_EVENTS, half_close=False),
    clean=_COMPLETE_STREAM,
)
def ended_active(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends a live stream with status OK while the last state on the stream is SUBMITTED
    or WORKING, although the client neither left nor ended its side.

    The client takes the end of the stream for the end of the work and has to reconnect to learn the
    result. The agent must keep the stream open until the task is in a terminal state.
    """
    if context.record.state in ACTIVE and _is_ended_ok(context):
        told = (
            f"the agent ended the live stream while the task is {state_label(context.record.state)}"
        )
        yield RuleFinding(summary=f"{told} and the client could still send messages")
