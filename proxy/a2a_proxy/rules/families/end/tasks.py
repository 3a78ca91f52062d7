"""Causes in a task: questions without an answer, abandoned tasks, lost events (A2A 1.0
sections 3.4.3, 4.1.3)."""

from typing import Any

from a2a_proxy.model.values import Actor, Binding, Exchange, FrameKind, Severity
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.rules.endings.call_facts import ACTIVE, MAX_WAIT, SECOND_NS, CallFacts, format_ns
from a2a_proxy.rules.endings.call_index import SENDS, is_waiting
from a2a_proxy.rules.endings.ending import LOW, Ending, cause
from a2a_proxy.rules.examples.conversation import (
    QUESTION_CALL,
    STARTED_CALL,
    rpc,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import TASK_PARAMS, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script

_MIN_POLLS = 3
_MIN_STUCK = 60 * SECOND_NS


def _numbered_stream(*generations: str) -> Script:
    """Return a stream whose events have these generations."""
    first, *between, last = generations
    return rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(generation=first),
        *(status("WORKING", generation=each) for each in between),
        status("COMPLETED", second=1, generation=last),
        version="1.1",
    )


def _is_last(call: CallFacts) -> bool:
    """Whether no later call names the task."""
    return all(each.started < call.exchange.started for each in call.other_calls)


@cause(
    "A2A-END-026",
    "answered-elsewhere",
    "Question answered without its task id",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 3.4.3; 0.3 6.4",
    flagged=QUESTION_CALL
    + rpc(
        "SendMessage",
        send("for four", id="m2", contextId="c1", referenceTaskIds=["t1"]),
        {"task": task("COMPLETED", id="t2")},
        id=2,
    ),
    clean=QUESTION_CALL
    + rpc("SendMessage", send("for four", id="m2", taskId="t1"), snapshot("COMPLETED"), id=2),
)
def answered_elsewhere(call: CallFacts) -> Ending | None:
    """A task waits for input, and a later message of its context names it in `referenceTaskIds`
    only, so that the agent begins another task.

    The question stays unanswered, and the client usually gets the same question again. The client
    must repeat the id of the waiting task as `taskId` of its message.
    """
    exchange = call.exchange
    if not is_waiting(call.state) or exchange.error:
        return None
    if not _asked_here(call) or _was_answered(call):
        return None
    for number in call.session.index.sends_after(exchange):
        each = call.session.call(number).exchange
        if each.started >= exchange.closed > 0 and each.task_id != exchange.task_id:
            request = next(
                (
                    frame
                    for frame in call.session.call(each.id).frames_with_ids
                    if frame.kind is FrameKind.REQUEST and not frame.task_id
                ),
                None,
            )
            if request is None:
                continue
            payload = call.session.source.read_payload(each.id, request.seq)
            if exchange.task_id in _named_tasks(decode_payload(payload, request.schema)):
                return Ending(
                    summary=f"the answer in #{each.id} names the task in referenceTaskIds only: "
                    f"{_new_task(each)}, and the question is unanswered",
                    next_step=f"set taskId to {exchange.task_id[:36]} in the message that answers",
                    evidence=(call.place(call.last_event), (each.id, request.seq)),
                )
    return None


def _named_tasks(request: Any) -> list[Any]:
    """Return the `referenceTaskIds` of a request that sends a message."""
    value = request.get("params", request) if isinstance(request, dict) else None
    message = value.get("message") if isinstance(value, dict) else None
    named = message.get("referenceTaskIds") if isinstance(message, dict) else None
    return named if isinstance(named, list) else []


def _was_answered(call: CallFacts) -> bool:
    """Whether a later message names the task."""
    return any(
        each.operation in SENDS and each.started > call.exchange.started
        for each in call.other_calls
    )


def _asked_here(call: CallFacts) -> bool:
    """Whether no earlier call of the task has shown that it waits."""
    return not any(
        each.started < call.exchange.started and any(map(is_waiting, each.states[-1:]))
        for each in call.other_calls
    )


def _new_task(exchange: Exchange) -> str:
    return f"task {exchange.task_id[:8]} began" if exchange.task_id else "another task began"


@cause(
    "A2A-END-027",
    "question-unanswered",
    "Question not answered",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.0 3.4.3",
    also_broken=("A2A-LAT-005",),
    flagged=QUESTION_CALL.then(
        rpc(
            "ListTasks",
            {"contextId": "c9"},
            {"tasks": [], "nextPageToken": "", "pageSize": 50},
            id=2,
        ),
        700_000 * MS,
    ),
    clean=QUESTION_CALL
    + rpc("SendMessage", send("this one", id="m2", taskId="t1"), snapshot("COMPLETED"), id=2),
    explains=("A2A-LAT-005",),
)
def question_unanswered(call: CallFacts) -> Ending | None:
    """A task waits for input or authentication for 10 minutes, and no message answers it.

    The task does not go on without the client. The client must answer with the `taskId`, or cancel
    the task.
    """
    exchange = call.exchange
    if not is_waiting(call.state) or not _is_last(call) or exchange.error:
        return None
    waited = call.session.ended - exchange.closed
    if waited < MAX_WAIT:
        return None
    return Ending(
        summary=f"the task is {call.state} for {format_ns(waited)}, the client has not answered",
        next_step=f"send the answer with taskId {exchange.task_id[:36]}, or call CancelTask",
        evidence=(call.place(call.last_event),),
    )


@cause(
    "A2A-END-028",
    "task-stuck",
    "Task does not change",
    Severity.INFO,
    actor=Actor.AGENT,
    section="1.0 4.1.3",
    flagged=STARTED_CALL.then(rpc("GetTask", TASK_PARAMS, task("WORKING"), id=2), 30_000 * MS)
    .then(rpc("GetTask", TASK_PARAMS, task("WORKING"), id=3), 30_000 * MS)
    .then(rpc("GetTask", TASK_PARAMS, task("WORKING"), id=4), 30_000 * MS),
    clean=STARTED_CALL.then(
        rpc("GetTask", TASK_PARAMS, task("COMPLETED", second=9), id=2), 30_000 * MS
    ),
)
def task_stuck(call: CallFacts) -> Ending | None:
    """The last three or more answers to GetTask, over a minute, show the same active task without a
    change, and the recording ends.

    The agent may have lost the task, which then never finishes; a slow agent looks the same. The
    agent must move a task that it cannot finish to a terminal state.
    """
    exchange = call.exchange
    if call.state not in ACTIVE or exchange.operation != "GetTask" or not _is_last(call):
        return None
    polls: list[Exchange] = [exchange]
    for each in reversed(call.other_calls):
        if each.operation != "GetTask" or call.session.call(each.id).size != call.size:
            break
        polls.append(each)
    lasted = exchange.closed - polls[-1].closed
    if len(polls) < _MIN_POLLS or lasted < _MIN_STUCK:
        return None
    if call.task is not None and any(at > polls[-1].closed for at, _ in call.task.states):
        return None
    return Ending(
        summary=f"{len(polls)} calls of GetTask in {format_ns(lasted)} show the task {call.state} "
        "without a change",
        next_step="look into the agent's log for this task; a client can cancel it",
        confidence=LOW,
        remaining=("the agent is slow", "the agent has lost the task"),
        decides="the agent's log",
        evidence=tuple((each.id, -1) for each in reversed(polls[:6])),
    )


@cause(
    "A2A-END-029",
    "nobody-asked",
    "Unfinished task that nobody asked for again",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.0 3.1.3, 4.1.3",
    flagged=STARTED_CALL.then(
        rpc(
            "ListTasks",
            {"status": "TASK_STATE_FAILED"},
            {"tasks": [], "nextPageToken": "", "pageSize": 50},
            id=2,
        ),
        700_000 * MS,
    ),
    clean=STARTED_CALL.then(
        rpc("GetTask", TASK_PARAMS, task("COMPLETED", second=9), id=2), 20_000 * MS
    ),
)
def nobody_asked(call: CallFacts) -> Ending | None:
    """No request or event of a task that is submitted or working is seen for 10 minutes, on any
    connection.

    Its result is not fetched, or the agent has lost it. The client should call GetTask; the agent
    must move a task that it cannot finish to a terminal state.
    """
    exchange = call.exchange
    if call.task_state not in ACTIVE or not _is_last(call) or exchange.error:
        return None
    if exchange.binding is Binding.WEBHOOK or not exchange.closed:
        return None
    last = max(call.task.last if call.task is not None else 0, exchange.closed)
    if call.session.ended - last < MAX_WAIT:
        return None
    return Ending(
        summary=f"the task is {call.task_state}, and nobody asked for it in the "
        f"{format_ns(call.session.ended - last)} until the end of the recording",
        next_step=f"call GetTask for {exchange.task_id[:36]}",
        evidence=(call.place(call.last_event),),
    )


@cause(
    "A2A-END-031",
    "lost-event",
    "Lost event that nobody fetched",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.1 draft 3.2.7; 1.0 3.1.3",
    also_broken=("A2A-GEN-001",),
    flagged=_numbered_stream("1", "2", "4"),
    clean=_numbered_stream("1", "2", "3"),
    explains=("A2A-GEN-018",),
)
def lost_event(call: CallFacts) -> Ending | None:
    """A stream left out an event, as the generations of its task show, and until the end of the
    recording neither another stream nor an answer to GetTask brought the client what it missed.

    The client has an outdated view of the task. It must call GetTask when it sees a gap; that the
    event was lost is the fault of the agent or of something between (A2A-GEN-001).
    """
    lost = call.session.find_lost(call.exchange)
    if lost is None:
        return None
    one = lost.first == lost.last
    name = f"generation {lost.first}" if one else f"generations {lost.first} to {lost.last}"
    after = format_ns(max(lost.at - call.exchange.started, 0))
    return Ending(
        summary=f"{name} of the task did not arrive on this stream, as it showed after {after}, "
        f"and neither GetTask nor another stream brought {'it' if one else 'them'} afterwards",
        next_step=f"call GetTask for {call.exchange.task_id[:36]} when a generation is left out",
        evidence=(call.place(call.last_event),),
    )


@cause(
    "A2A-END-032",
    "question-open",
    "Question that waits for an answer",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.0 3.4.3",
    flagged=QUESTION_CALL,
    clean=QUESTION_CALL
    + rpc("SendMessage", send("this one", id="m2", taskId="t1"), snapshot("COMPLETED"), id=2),
    is_failure=False,
)
def question_open(call: CallFacts) -> Ending | None:
    """A task waits for input or authentication, and no message has answered it yet.

    The task does not go on without the client, which looks as if it hung. It is no failure for the
    first 10 minutes (A2A-END-027), so `check` does not report it.
    """
    exchange = call.exchange
    if not is_waiting(call.state) or not _is_last(call) or exchange.error:
        return None
    waited = format_ns(max(call.session.ended - call.ended, 0))
    return Ending(
        summary=f"the task waits for the client: it is {call.state}, and not answered for {waited}",
        next_step=f"send the answer with taskId {exchange.task_id[:36]}, or call CancelTask",
        evidence=(call.place(call.last_event),),
    )
