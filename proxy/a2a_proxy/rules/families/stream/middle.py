"""What may come on a stream, and in which order (A2A 1.0 sections 3.1.2, 3.1.6, 11.7)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import (
    EVENTS,
    NETWORK,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
    RuleFinding,
    rule,
)
from a2a_proxy.rules.examples.conversation import rpc_stream
from a2a_proxy.rules.examples.objects import chunk, said, send, snapshot, status
from a2a_proxy.rules.families.stream.words import STREAMS, WITH_LIVE, label, name_of
from a2a_proxy.rules.state.state_sequence import TERMINAL

_SUBMITTED = int(TaskState.SUBMITTED)
_TASKS = frozenset({EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT})
_WHOLE = rpc_stream(
    "SendStreamingMessage", send(), snapshot(), status("WORKING"), chunk(), status("COMPLETED", second=1)
)
_REPEATED = rpc_stream(
    "SendStreamingMessage",
    send(),
    snapshot(),
    chunk("x"),
    chunk("x"),
    status("COMPLETED", second=1),
)
_TEXT = {"kind": "text", "text": "hello"}
_OF_T1 = {"taskId": "t1", "contextId": "c1"}
_SAID = {"message": {"kind": "message", "messageId": "m1", "role": "user", "parts": [_TEXT]}}
_MADE = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "submitted"}}
_QUESTION = {"kind": "message", "messageId": "r1", "role": "agent", "parts": [_TEXT], **_OF_T1}
_ASKS = {"state": "input-required", "message": _QUESTION}
_FINAL = {"kind": "status-update", **_OF_T1, "status": _ASKS, "final": True}
_CHUNK = {"kind": "artifact-update", **_OF_T1, "artifact": {"artifactId": "a1", "parts": [_TEXT]}}


@rule(
    "A2A-STREAM-003",
    "Message on the stream of a task",
    Severity.ERROR,
    section="1.0 3.1.2",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.MESSAGE,
    operations=WITH_LIVE,
    flagged=rpc_stream("SendStreamingMessage", send(), snapshot(), said("half way"), status("COMPLETED", second=1)),
    clean=_WHOLE,
)
def message_in_task(see: RuleContext) -> Iterator[RuleFinding]:
    """A Message comes by itself on a stream that has told of a task.

    An agent answers with a task or with one Message. Clients take a lone Message for the whole answer and stop reading;
    what an agent says while it works belongs into the status update.
    """
    if see.track.first in _TASKS and "message" in see.event:
        yield RuleFinding(summary="a Message among the events of a task; it belongs into `status.message` of an update")


@rule(
    "A2A-STREAM-004",
    "Task in the middle of a stream",
    Severity.WARNING,
    section="1.0 11.7",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.SINCE_0_2,
    moment=(HookPoint.ANSWER, HookPoint.CLOSED),
    when=FrameFlag.TASK,
    operations=STREAMS,
    needs=FrameFlag.LATER,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING"),
        snapshot("WORKING"),
        status("COMPLETED", second=1),
    ),
    clean=_WHOLE,
)
def task_in_the_middle(see: RuleContext) -> Iterator[RuleFinding]:
    """A whole Task comes on a stream, neither as its first nor as its last event. Information in 0.2 and 0.3, which say
    nothing about it. It is told when the stream is over.

    Clients replace all that they have gathered by it: chunks of an artifact that has not come whole are lost.
    """
    if see.shown is None:
        found = (see.track.notes or {}).get("stream.tasks", [])
        for seq in found:
            if seq != see.track.last_seq:
                severity = None if see.v1 else Severity.INFO
                yield RuleFinding(
                    summary="a Task that is neither the first event nor the last one", seq=seq, severity=severity
                )
    elif see.is_(FrameFlag.LATER) and see.track.first is not EventKind.MESSAGE:
        tasks = see.track.remember().setdefault("stream.tasks", [])
        if len(tasks) < 8:
            tasks.append(see.frame.seq)


@rule(
    "A2A-STREAM-005",
    "Event after the terminal one",
    Severity.ERROR,
    section="1.0 3.1.2, 3.1.6",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.TERMINAL | FrameFlag.AFTER_TERMINAL,
    operations=STREAMS,
    also=("A2A-STATE-013",),
    flagged=rpc_stream("SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1), chunk("late")),
    clean=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1), snapshot("COMPLETED", second=1)
    ),
)
def after_terminal(see: RuleContext) -> Iterator[RuleFinding]:
    """On one stream, something follows the event that told a terminal state. One Task in the same state may: agents
    send the finished task once more. What follows `final: true` (0.2, 0.3) is A2A-STREAM-018.

    Clients stop at the terminal state and never see what comes after it.
    """
    track, frame = see.track, see.frame
    notes = track.remember()
    ended = notes.get("stream.ended")
    if ended is None:
        if see.is_(FrameFlag.TERMINAL):
            notes["stream.ended"] = [frame.state, frame.seq, 1, int(track.final_at > 0)]
        return
    state, _, left, final = ended
    if not see.is_(EVENTS) or final:
        return
    if frame.event is EventKind.TASK and frame.state == state and left:
        ended[2] = 0
        return
    yield RuleFinding(summary=f"{name_of(frame)} after the stream has told {label(state)}; nothing may follow")


@rule(
    "A2A-STREAM-016",
    "Events out of order",
    Severity.ERROR,
    section="1.0 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.BACKWARDS,
    operations=WITH_LIVE,
    also=("A2A-STREAM-005", "A2A-STATE-001", "A2A-STATE-008"),
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("COMPLETED", second=5),
        status("WORKING", second=1),
        finish="open",
    ),
    clean=_WHOLE,
)
def out_of_order(see: RuleContext) -> Iterator[RuleFinding]:
    """On a stream without generations, a status comes that was set more than a second before the one told last, and the
    task cannot go that way: out of a terminal state, or back to SUBMITTED.

    The client's picture of the task ends in a state that the task had left. With generations it is A2A-GEN-003.
    """
    frame, track = see.frame, see.track
    if frame.generation > 0 or see.is_(FrameFlag.SAME):
        return
    over = track.terminal and frame.state not in TERMINAL
    if over or (frame.state == _SUBMITTED and track.events > 1):
        yield RuleFinding(summary=f"{label(frame.state)} comes after a status that was set later ({track.stamp})")


@rule(
    "A2A-STREAM-018",
    "Event after `final: true`",
    Severity.ERROR,
    section="0.3 9.3",
    bindings=NETWORK,
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.V0_2_0_3,
    when=EVENTS,
    operations=STREAMS,
    flagged=rpc_stream("message/stream", _SAID, _MADE, _FINAL, _CHUNK, version=""),
    clean=rpc_stream("message/stream", _SAID, _MADE, _CHUNK, _FINAL, version=""),
)
def after_final(see: RuleContext) -> Iterator[RuleFinding]:
    """Another event follows a status update with `final: true` on the same stream.

    `final` tells the client that nothing more comes: it stops reading, and the rest is lost.
    """
    track, frame = see.track, see.frame
    if not track.final_at:
        return
    notes = track.remember()
    seq = notes.setdefault("stream.final", frame.seq)
    if seq != frame.seq:
        yield RuleFinding(summary=f"{name_of(frame)} after `final: true`; nothing may follow on this stream")


@rule(
    "A2A-STREAM-020",
    "The same octets twice",
    Severity.INFO,
    section="1.0 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.REPEAT,
    operations=STREAMS,
    flagged=_REPEATED,
    clean=_WHOLE,
)
def repeated(see: RuleContext) -> Iterator[RuleFinding]:
    """An event without a generation has the very octets of one before it on the same stream. Chunks that are appended
    are left out: a text may well say the same word twice.

    It was delivered twice, or sent twice: a client cannot know which, and may do twice what it should do once.
    """
    if see.is_(EVENTS) and not see.is_(FrameFlag.APPEND) and see.frame.generation <= 0:
        yield RuleFinding(summary=f"{name_of(see.frame)} with the same octets as one before it on this stream")
