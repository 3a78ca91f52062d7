"""Rules that compare several streams of one task (A2A 1.0 section 3.5.2)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import NETWORK, WEBHOOK, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.endings.call_index import CLIENT_LEFT
from a2a_proxy.rules.examples.conversation import EventPause, Finish, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import Json, chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script, run_together
from a2a_proxy.rules.facts.naming import state_label
from a2a_proxy.rules.families.stream.delivery import (
    MissingEvent,
    find_crossing,
    is_in_order,
    is_progress,
    is_task_end,
    learn_end,
    learn_event,
    live_beside,
    may_be_crossed,
    other_streams,
    stream_delivery,
)
from a2a_proxy.rules.families.stream.words import STREAMS
from a2a_proxy.rules.state.records import ACTIVE, ExchangeRecord

_SECOND_NS = 1_000_000_000
DELIVERY_GRACE = 5
"""Seconds within which an event must reach the other streams."""
MAX_SILENCE = 10
"""Seconds after a terminal state, shown elsewhere, within which a stream must show it or end."""
MAX_ENDS = 8
"""Ends of one task within `MAX_SILENCE` seconds that other streams are expected to show. The limit
keeps a task that continues and ends with each event from costing time for each of its streams at
each event."""
_TOGETHER_TIME = 1
"""Seconds after a client left one stream within which the end of another counts as its
consequence."""

_EVENT_A, _EVENT_B, _EVENT_C = chunk("a"), chunk("b", id="a2"), chunk("c", id="a3")
_COMPLETED_EVENT = status("COMPLETED", second=9)


def _two_streams(
    one: tuple[Json | EventPause, ...], two: tuple[Json | EventPause, ...], finish: Finish = "end"
) -> Script:
    """Return a stream, and a subscription that begins after its second event and a pause of one
    second in both."""
    first = rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING"),
        EventPause(1),
        *one,
        finish=finish,
    )
    other = rpc_stream(
        "SubscribeToTask", {"id": "t1"}, snapshot("WORKING"), EventPause(1), *two, id=2
    )
    return run_together(first, other, after=45 * MS)


_EQUAL_STREAMS = _two_streams(
    (_EVENT_A, _EVENT_B, _EVENT_C, EventPause(7), _COMPLETED_EVENT),
    (_EVENT_A, _EVENT_B, _EVENT_C, EventPause(7), _COMPLETED_EVENT),
)


@rule(
    "A2A-STREAM-013",
    "Two streams deliver events in different order",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 3.5.2",
    bindings=NETWORK,
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.SHARED,
    due=lambda see: _check_crossing(see),
    settled_at_end=True,
    flagged=_two_streams(
        (_EVENT_A, _EVENT_B, _EVENT_C, EventPause(7), _COMPLETED_EVENT),
        (_EVENT_A, _EVENT_C, _EVENT_B, EventPause(7), _COMPLETED_EVENT),
    ),
    clean=_EQUAL_STREAMS,
)
def order(context: RuleContext) -> Iterator[RuleFinding]:
    """Two streams of one task, open at the same time, deliver two events in opposite order. If the
    events have generations, only the stream on which these decrease is reported. The rule waits 5 s
    after the later event, because an event that is delivered twice proves no order.

    All streams of a task must have the same order; otherwise two of its clients end with different
    views of it. The agent (or a proxy in front of it) must deliver events in one order.
    """
    if context.frame_or_none is None:
        learn_end(context)
        return
    key, task = learn_event(context), context.task
    if key and task is not None and may_be_crossed(task, context.record.id, key):
        context.schedule_due(DELIVERY_GRACE, key)
    yield from ()


def _check_crossing(context: RuleContext) -> Iterator[RuleFinding]:
    key, task, exchange = context.due_note, context.task, context.record.id
    found = find_crossing(task, exchange, key) if task is not None else None
    if task is not None and found is not None and not is_in_order(found[1], key):
        told = (
            f"on this stream the event comes after another one, on #{found[0]} it comes before "
            f"that one"
        )
        crossed = (stream_delivery(task, number) for number in (exchange, found[0]))
        is_final = all(each is not None and each.is_over for each in crossed)
        yield RuleFinding(summary=told, seq=context.due_seq, is_final=is_final)


@rule(
    "A2A-STREAM-014",
    "Event missing on one of several streams of a task",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 3.5.2",
    bindings=NETWORK,
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.SHARED,
    due=lambda see: check_delivered(see),
    settled_at_end=True,
    flagged=_two_streams(
        (_EVENT_A, _EVENT_B, _EVENT_C, EventPause(7), _COMPLETED_EVENT),
        (_EVENT_A, _EVENT_C, EventPause(7), _COMPLETED_EVENT),
    ),
    clean=_EQUAL_STREAMS,
)
def missing(context: RuleContext) -> Iterator[RuleFinding]:
    """An event was delivered on one stream of a task but, within 5 s, not on another that was open.
    It is an error if the other stream has delivered events before and after it, and a warning if
    the other stream has been silent since, because its client may be slow. Between two live
    streams, A2A-LIVE-016 reports it.

    Every event goes to every stream of its task; the client of this stream has an outdated view.
    The agent (or a proxy in front of it) must deliver the event; the client can call GetTask.
    """
    watch_other_streams(context, live=False)
    yield from ()


def watch_other_streams(context: RuleContext, *, live: bool) -> None:
    """Schedule a check for this event on the other streams: on the live ones for a live stream, or
    on all others. At the end of a stream, record that.

    All streams are checked at once, so that the cost of an event does not grow with the streams of
    its task.
    """
    if context.frame_or_none is None:
        learn_end(context)
        return
    key, task = learn_event(context), context.task
    if not key or task is None:
        return
    beside = live_beside(task, context.record.id)
    if beside or not live:
        numbers = ",".join(map(str, beside))
        context.schedule_due(
            DELIVERY_GRACE,
            f"{int(live)} {numbers} {int(is_progress(context))} {int(is_task_end(context))} "
            f"{task.joined} {key}",
        )


def check_delivered(context: RuleContext) -> Iterator[RuleFinding]:
    """Report streams without the event that `watch_other_streams` scheduled `DELIVERY_GRACE`
    seconds ago.

    If the session ends earlier, silence proves nothing: only streams with later events are
    reported.
    """
    live, beside, progress, end, joined, key = context.due_note.split(" ", 5)
    task, exchange = context.task, context.record.id
    shown = stream_delivery(task, exchange) if task is not None else None
    if task is None or shown is None:
        return
    told = f"event #{exchange}.{context.due_seq} is missing on this stream"
    for number, lost in other_streams(
        task, exchange
    ):  # an ended stream may have delivered later events already
        if lost.joined > int(joined) or (str(number) in beside.split(",")) is not (live == "1"):
            continue
        found = MissingEvent(shown, lost, key, progress=progress == "1")
        late = (
            not found.has_number
            and context.due_at - DELIVERY_GRACE * _SECOND_NS - lost.first_at >= _SECOND_NS
        )
        if found.has_come or not (found.is_due or late):
            continue
        ended = ExchangeRecord(
            number, lost.connection, task.agent, Binding.OTHER, "", 0, task_id=task.task_id
        )
        track = context.session.exchange_records.get(number, ended)
        if found.is_passed_over:
            severity = None if found.is_due else Severity.WARNING
            yield RuleFinding(
                summary=f"{told}, but later ones were delivered",
                is_sure=found.is_due,
                is_final=lost.is_over,
                severity=severity,
                track=track,
                seq=-1,
            )
        elif (
            not context.is_early and track.started and track.closed_exchange is None and end == "0"
        ):
            summary = f"{told} after {DELIVERY_GRACE} s, and no later event was delivered"
            yield RuleFinding(
                summary=summary, is_sure=False, severity=Severity.WARNING, track=track, seq=-1
            )


@rule(
    "A2A-STREAM-015",
    "Client's departure from one stream ended another",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 3.5.2",
    bindings=NETWORK,
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.LIVE,
    operations=STREAMS,
    also_broken=("A2A-STREAM-007",),
    flagged=_two_streams((_EVENT_A,), (_EVENT_A, EventPause(0.1)), "leave"),
    clean=_two_streams((_EVENT_A,), (_EVENT_A, _COMPLETED_EVENT), "leave"),
)
def dragged_along(context: RuleContext) -> Iterator[RuleFinding]:
    """A client leaves one stream of an active task, and within a second the agent ends another
    stream of the same task.

    The streams of a task are independent: a client that leaves must not end those of other clients.
    The agent must keep the other streams open.
    """
    record, task, exchange = context.record, context.task, context.exchange
    if task is None:
        return
    state = record.state or task.state  # a subscription of 0.x may have delivered chunks only
    if task.terminal or state not in ACTIVE:
        return
    notes = task.writable_notes()
    if exchange.how in CLIENT_LEFT:
        notes["stream.left"] = [exchange.closed, exchange.id]
        return
    at, other = notes.get("stream.left", (0, 0))
    if other and not record.errors and 0 <= exchange.closed - at < _TOGETHER_TIME * _SECOND_NS:
        waited = (exchange.closed - at) // 1_000_000
        told = f"the agent ended this stream {waited} ms after the client of #{other} left"
        yield RuleFinding(summary=f"{told}; the task is {state_label(state)}")


@rule(
    "A2A-STREAM-021",
    "Open stream does not show the end of its task",
    Severity.WARNING,
    section="1.0 3.5.2",
    scope=EvidenceScope.LIVE,
    bindings=NETWORK | WEBHOOK,
    trigger_flags=FrameFlag.TERMINAL,
    due=lambda see: _check_end_shown(see),
    flagged=run_together(
        rpc_stream(
            "SendStreamingMessage",
            send(),
            snapshot(),
            status("WORKING"),
            EventPause(15),
            finish="open",
        ),
        rpc("GetTask", {"id": "t1"}, task("COMPLETED", second=1), id=2),
        after=1000 * MS,
    ),
    clean=run_together(
        rpc_stream(
            "SendStreamingMessage",
            send(),
            snapshot(),
            status("WORKING"),
            EventPause(3),
            status("COMPLETED"),
        ),
        rpc("GetTask", {"id": "t1"}, task("COMPLETED"), id=2),
        after=1000 * MS,
    ),
)
def untold(context: RuleContext) -> Iterator[RuleFinding]:
    """An answer, a push notification or another stream shows a task in a terminal state, and 10 s
    later an open stream of the task has neither shown that state nor ended.

    The client of that stream waits for a task that has ended. The agent must send the terminal
    state on every stream of the task, and then close it.
    """
    task = context.task
    if (
        task is None
        or task.terminal_in != context.record.id
        or not context.has_flag(FrameFlag.CHANGED)
    ):
        return
    ends_shown = task.writable_notes().setdefault("stream.ends", [])
    if len(ends_shown) == MAX_ENDS and context.at - ends_shown[0] < MAX_SILENCE * _SECOND_NS:
        return
    ends_shown[:] = [*ends_shown[1 - MAX_ENDS :], context.at]
    for number in task.streams:
        other = context.session.exchange_records.get(number)
        if other is not None and number != context.record.id and not other.terminal:
            context.schedule_due(MAX_SILENCE, f"{context.record.id} {context.frame.state}", other)
    yield from ()


def _check_end_shown(context: RuleContext) -> Iterator[RuleFinding]:
    record = context.record
    if record.started and record.closed_exchange is None and not record.terminal:
        exchange, state = context.due_note.split()
        shown = TaskState(int(state)).label
        yield RuleFinding(
            summary=f"#{exchange} showed {shown} {MAX_SILENCE} s ago; this stream "
            f"has not and is still "
            f"open"
        )
