"""Rules about the kinds of events on a stream and their order (A2A 1.0 sections 3.1.2, 3.1.6,
11.7)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, EventKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    ANY_EVENT,
    NETWORK,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc_stream
from a2a_proxy.rules.examples.objects import agent_reply, chunk, send, snapshot, status
from a2a_proxy.rules.facts.naming import state_label
from a2a_proxy.rules.families.stream.course import COURSE, Course, CourseMeaning, course_event_of
from a2a_proxy.rules.families.stream.words import STREAMS, WITH_LIVE, event_and_state
from a2a_proxy.rules.state.state_sequence import TERMINAL

_SUBMITTED_EVENT = int(TaskState.SUBMITTED)
_TASK_OPERATIONS = frozenset({EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT})
_COMPLETE_STREAM = rpc_stream(
    "SendStreamingMessage",
    send(),
    snapshot(),
    status("WORKING"),
    chunk(),
    status("COMPLETED", second=1),
)
_REPEATED_EVENT = rpc_stream(
    "SendStreamingMessage",
    send(),
    snapshot(),
    chunk("x"),
    chunk("x"),
    status("COMPLETED", second=1),
)
_TEXT_PART_0_3 = {"kind": "text", "text": "hello"}
_T1_IDS = {"taskId": "t1", "contextId": "c1"}
_SEND_PARAMS_0_3 = {
    "message": {"kind": "message", "messageId": "m1", "role": "user", "parts": [_TEXT_PART_0_3]}
}
_TASK_0_3 = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "submitted"}}
_QUESTION_STATUS = {
    "kind": "message",
    "messageId": "r1",
    "role": "agent",
    "parts": [_TEXT_PART_0_3],
    **_T1_IDS,
}
_QUESTION_UPDATE = {"state": "input-required", "message": _QUESTION_STATUS}
_FINAL_UPDATE = {"kind": "status-update", **_T1_IDS, "status": _QUESTION_UPDATE, "final": True}
_CHUNK_UPDATE = {
    "kind": "artifact-update",
    **_T1_IDS,
    "artifact": {"artifactId": "a1", "parts": [_TEXT_PART_0_3]},
}


@rule(
    "A2A-STREAM-003",
    "Message on the stream of a task",
    Severity.ERROR,
    section="1.0 3.1.2; 0.3 7.2",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.MESSAGE,
    operations=WITH_LIVE,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        agent_reply("half way"),
        status("COMPLETED", second=1),
    ),
    clean=_COMPLETE_STREAM,
)
def message_in_task(context: RuleContext) -> Iterator[RuleFinding]:
    """A separate Message is sent on a stream that has already sent events of a task.

    An agent answers either with a task or with one Message. Clients take a separate Message for the
    whole answer and stop reading. The agent must send remarks during the work in `status.message`
    of a status update.
    """
    if context.record.first in _TASK_OPERATIONS and "message" in context.event:
        yield RuleFinding(
            summary="a Message among the events of a task; the agent must send "
            "it in `status.message` "
            "of an update"
        )


@rule(
    "A2A-STREAM-004",
    "Task in the middle of a stream",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 11.7",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    trigger_flags=FrameFlag.TASK,
    operations=STREAMS,
    required_flags=FrameFlag.LATER,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING"),
        snapshot("WORKING"),
        status("COMPLETED", second=1),
    ),
    clean=_COMPLETE_STREAM,
)
def task_in_the_middle(context: RuleContext) -> Iterator[RuleFinding]:
    """A whole Task is sent on a stream, neither as its first nor as its last event. It is
    information in 0.2 and 0.3, which do not mention the case. Reported when the stream is over.

    Clients replace everything collected so far with the Task: chunks of an artifact that is not yet
    complete are lost. The agent should send updates after the first event.
    """
    if context.frame_or_none is None:
        found = (context.record.notes or {}).get("stream.tasks", [])
        for seq in found:
            if seq != context.record.last_seq:
                severity = None if context.is_v1 else Severity.INFO
                yield RuleFinding(
                    summary="a Task in the middle of the stream; clients replace "
                    "all collected updates "
                    "with it",
                    seq=seq,
                    severity=severity,
                )
    elif context.has_flag(FrameFlag.LATER) and context.record.first is not EventKind.MESSAGE:
        tasks = context.record.writable_notes().setdefault("stream.tasks", [])
        if len(tasks) < 8:
            tasks.append(context.frame.seq)


@rule(
    "A2A-STREAM-005",
    "Event after the terminal state on the same stream",
    Severity.ERROR,
    section="1.0 3.1.2, 3.1.6; 0.3 7.2, 7.9",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.TERMINAL | FrameFlag.AFTER_TERMINAL,
    operations=STREAMS,
    also_broken=("A2A-STATE-013",),
    flagged=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1), chunk("late")
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("COMPLETED", second=1),
        snapshot("COMPLETED", second=1),
    ),
)
def after_terminal(context: RuleContext) -> Iterator[RuleFinding]:
    """An event follows the one with a terminal state on the same stream. One Task in the same state
    is allowed, because agents send the finished task once more. Events after `final: true` (0.2,
    0.3) are reported by A2A-STREAM-018.

    Clients stop reading at the terminal state and never see later events. The agent must send
    everything before the terminal state, and then end the stream.
    """
    record, frame = context.record, context.frame
    notes = record.writable_notes()
    course, end_state = notes.get("stream.course", (Course.RUNNING, 0))
    is_terminal = context.has_flag(FrameFlag.TERMINAL)
    if end_state and not context.has_flag(ANY_EVENT):
        return
    event = course_event_of(frame, end_state, is_terminal=is_terminal, is_final=record.final_at > 0)
    after, meaning = COURSE[Course(course), event]
    if after != course:
        notes["stream.course"] = [str(after), end_state or frame.state]
    if meaning is CourseMeaning.AFTER_END:
        told = (
            f"{event_and_state(frame)} after state {state_label(end_state)}; no event may follow a "
            f"terminal state"
        )
        yield RuleFinding(summary=told)


@rule(
    "A2A-STREAM-016",
    "Events out of order",
    Severity.ERROR,
    section="1.0 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.BACKWARDS,
    operations=WITH_LIVE,
    also_broken=("A2A-STREAM-005", "A2A-STATE-001", "A2A-STATE-008"),
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("COMPLETED", second=5),
        status("WORKING", second=1),
        finish="open",
    ),
    clean=_COMPLETE_STREAM,
)
def out_of_order(context: RuleContext) -> Iterator[RuleFinding]:
    """On a stream without generations, the timestamp of an event's status is more than one second
    earlier than that of the previous event, and the order of their states is impossible: out of a
    terminal state, or back to SUBMITTED. With generations, A2A-GEN-003 reports it.

    The client's view of the task ends in a state that the task had already left. The agent (or a
    proxy in front of it) must deliver events in the order in which they happened.
    """
    frame, record = context.frame, context.record
    if frame.generation > 0 or context.has_flag(FrameFlag.SAME):
        return
    over = record.terminal and frame.state not in TERMINAL
    if over or (frame.state == _SUBMITTED_EVENT and record.events > 1):
        yield RuleFinding(
            summary=f"state {state_label(frame.state)} follows a status with a later timestamp "
            f"({record.stamp})"
        )


@rule(
    "A2A-STREAM-018",
    "Event after `final: true`",
    Severity.ERROR,
    section="0.3 9.3",
    bindings=NETWORK,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V0_2_0_3,
    trigger_flags=ANY_EVENT,
    operations=STREAMS,
    flagged=rpc_stream(
        "message/stream", _SEND_PARAMS_0_3, _TASK_0_3, _FINAL_UPDATE, _CHUNK_UPDATE, version=""
    ),
    clean=rpc_stream(
        "message/stream", _SEND_PARAMS_0_3, _TASK_0_3, _CHUNK_UPDATE, _FINAL_UPDATE, version=""
    ),
)
def after_final(context: RuleContext) -> Iterator[RuleFinding]:
    """Another event follows a status update with `final: true` on the same stream.

    `final` means that no more events follow: the client stops reading and loses the rest. The agent
    must send `final: true` with its last event only.
    """
    record, frame = context.record, context.frame
    if not record.final_at:
        return
    notes = record.writable_notes()
    seq = notes.setdefault("stream.final", frame.seq)
    if seq != frame.seq:
        yield RuleFinding(
            summary=f"{event_and_state(frame)} after `final: true`; no event "
            f"may follow on this stream"
        )


@rule(
    "A2A-STREAM-020",
    "Event repeated with the same bytes",
    Severity.INFO,
    section="1.0 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.REPEAT,
    operations=STREAMS,
    flagged=_REPEATED_EVENT,
    clean=_COMPLETE_STREAM,
)
def repeated(context: RuleContext) -> Iterator[RuleFinding]:
    """An event without a generation has exactly the same bytes as an earlier one on the same
    stream. Appended chunks are not judged, because a text may repeat a word.

    The event was either delivered twice or sent twice: a client cannot know which, and may act
    twice. The agent (or a proxy in front of it) should send each event once.
    """
    if (
        context.has_flag(ANY_EVENT)
        and not context.has_flag(FrameFlag.APPEND)
        and context.frame.generation <= 0
    ):
        yield RuleFinding(
            summary=f"{event_and_state(context.frame)} repeats the bytes of "
            f"an earlier event on this "
            f"stream"
        )
