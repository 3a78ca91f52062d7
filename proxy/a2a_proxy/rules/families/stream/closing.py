"""How a stream ends (A2A 1.0 sections 3.1.2, 3.1.6, 3.5.2)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import NETWORK, Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import EventPause, fetch_card, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import chunk, reply, send, snapshot, status
from a2a_proxy.rules.families.stream.words import LEFT, STREAMS, WITH_LIVE, label
from a2a_proxy.rules.state.records import ACTIVE, ExchangeRecord
from a2a_proxy.rules.state.state_sequence import INTERRUPTED, TERMINAL

_SECOND = 1_000_000_000
LATE, TOO_LATE = 2, 10
"""Seconds after the terminal event: from when the end is late, and from when it counts as missing."""
RETURN = 30
"""Seconds in which a client that left is expected to look at its task again."""
_GRPC_CLIENT = frozenset({1, 4})
"""CANCELLED and DEADLINE_EXCEEDED: the client's doing."""

_WORKING = (snapshot(), status("WORKING"))
_ASKED = status("INPUT_REQUIRED", second=1, said=reply("which one?"))
_WHOLE = rpc_stream("SendStreamingMessage", send(), *_WORKING, chunk(), status("COMPLETED", second=1))
_SAID = {
    "message": {"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hello"}]}
}
_MADE = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "submitted"}}
_OVER = {"state": "completed"}
_DONE = {"kind": "status-update", "taskId": "t1", "contextId": "c1", "status": _OVER, "final": True}


@rule(
    "A2A-STREAM-006",
    "Stream not closed after the terminal event",
    Severity.ERROR,
    section="1.0 3.1.2, 3.1.6",
    moment=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.TERMINAL,
    operations=STREAMS,
    due=lambda see: open_still(see),
    flagged=rpc_stream(
        "SendStreamingMessage", send(), *_WORKING, status("COMPLETED", second=1), EventPause(60), finish="end"
    ),
    clean=_WHOLE,
)
def not_closed(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent keeps a stream open after it has told a terminal state: an error when it is open still after 10 s, a
    warning where it ended after more than 2 s.

    A client waits for the end of the stream: its call hangs, and so does whoever called it.
    """
    track = see.track
    if see.shown is not None:
        if not track.remember().setdefault("stream.closing", 0):
            track.remember()["stream.closing"] = 1
            see.later(TOO_LATE)
        return
    if not track.terminal:
        return
    after = (see.exchange.closed - track.terminal) / _SECOND
    if LATE < after < TOO_LATE:
        what = "ended" if see.exchange.how == "complete" else "was open still when it broke off,"
        told = f"the stream {what} {after:.1f} s after {label(track.state)} was told, it must end at once"
        yield RuleFinding(summary=told, severity=Severity.WARNING)


def open_still(see: RuleContext) -> Iterator[RuleFinding]:
    """Due `TOO_LATE` seconds after the terminal event."""
    track = see.track
    if track.started and track.final is None:
        told = f"the stream is open still {TOO_LATE} s after {label(track.state)} was told, it must end at once"
        yield RuleFinding(summary=told, seq=see.due_seq)


@rule(
    "A2A-STREAM-007",
    "Stream ended while the task was active",
    Severity.ERROR,
    section="1.0 3.1.2",
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    operations=STREAMS,
    flagged=rpc_stream("SendStreamingMessage", send(), *_WORKING),
    clean=_WHOLE,
)
def ended_early(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends a stream cleanly, without an error, while the task is SUBMITTED or WORKING as far as this stream
    has told; in 0.x without `final: true`. Not judged where something came after that which cannot be read, nor where
    a terminal state was told before: going on after that is A2A-STREAM-005.

    The client takes the end for the end of the work and never learns the result, or has to ask over and over.
    """
    track = see.track
    if track.terminal or (track.unread and track.unread >= track.state_at):
        return
    if _clean(see) and not track.final_at and track.state in ACTIVE:
        yield RuleFinding(
            summary=f"the stream ended in {label(track.state)}, without an error and with the client still there"
        )


@rule(
    "A2A-STREAM-008",
    "Stream ended at an interrupted state",
    Severity.INFO,
    section="1.0 3.1.2, 11.7, 7.6.1",
    bindings=NETWORK,
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.V1,
    operations=STREAMS,
    flagged=rpc_stream("SendStreamingMessage", send(), *_WORKING, _ASKED),
    clean=rpc_stream("SendStreamingMessage", send(), *_WORKING, _ASKED, finish="leave"),
)
def ended_interrupted(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends a stream at INPUT_REQUIRED or AUTH_REQUIRED. The specification contradicts itself: 3.1.2 names
    terminal states only, 11.7 allows this. At AUTH_REQUIRED it is a warning: credentials may come by another way, and
    the stream should stay open for that.

    A client has to open another stream to see how its task goes on.
    """
    track = see.track
    if not _clean(see) or track.final_at or track.state not in INTERRUPTED:
        return
    auth = track.state == int(TaskState.AUTH_REQUIRED)
    yield RuleFinding(
        summary=f"the stream ended at {label(track.state)}; what follows needs another stream",
        severity=Severity.WARNING if auth else None,
        sure=not auth,
    )


@rule(
    "A2A-STREAM-009",
    "Empty stream",
    Severity.ERROR,
    section="1.0 3.1.2",
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    operations=STREAMS,
    flagged=rpc_stream("SendStreamingMessage", send()),
    clean=_WHOLE,
)
def empty(see: RuleContext) -> Iterator[RuleFinding]:
    """A stream that was opened with success ends without any event and without an error.

    A client cannot tell whether its message was taken: it has no task to ask about.
    """
    track, exchange = see.track, see.exchange
    if track.answers or exchange.how != "complete":
        return
    grpc = exchange.binding is Binding.GRPC and exchange.grpc_status == 0
    if grpc or (exchange.status == 200 and see.media_type == "text/event-stream"):
        yield RuleFinding(summary="the stream ended without a single event and without an error")


@rule(
    "A2A-STREAM-017",
    "`final` does not fit",
    Severity.WARNING,
    section="0.3 7.2.2, 9.3",
    bindings=NETWORK,
    moment=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.V0_2_0_3,
    when=FrameFlag.STATUS,
    operations=STREAMS,
    flagged=rpc_stream("message/stream", _SAID, _MADE, _DONE | {"final": False}, version=""),
    clean=rpc_stream("message/stream", _SAID, _MADE, _DONE, version=""),
)
def final_wrong(see: RuleContext) -> Iterator[RuleFinding]:
    """In 0.2 and 0.3: the last status update of a stream does not say `final: true` (information where the task waits
    for input), or a status update says it in an active state, or, on JSON-RPC, has no `final` at all: in ProtoJSON, as
    REST has it, that is how false is written.

    `final` is how clients of these versions know that a stream is over: they hang, or stop too early.
    """
    track = see.track
    if see.shown is None:
        state = (track.notes or {}).get("stream.last", 0)
        if _clean(see) and state and not track.final_at and state not in ACTIVE:
            severity = Severity.INFO if state in INTERRUPTED else None
            yield RuleFinding(
                summary=f"the last status update ({label(state)}) has no `final: true`", severity=severity
            )
        return
    frame = see.frame
    track.remember()["stream.last"] = 0 if frame.final else frame.state
    if frame.final and frame.state in ACTIVE:
        yield RuleFinding(summary=f"`final: true` in {label(frame.state)}", path=f"{see.root}final", value="true")
    elif see.enveloped and b'"final"' not in frame.payload and not frame.truncated:
        yield RuleFinding(summary="a status update without `final`", path=see.root.rstrip("."))


@rule(
    "A2A-STREAM-022",
    "Stream failed while the task was active",
    Severity.WARNING,
    section="1.0 3.1.2",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.ERROR,
    operations=WITH_LIVE,
    flagged=rpc_stream("SendStreamingMessage", send(), *_WORKING, {"error": rpc_error(-32603, "INTERNAL_ERROR")}),
    clean=rpc_stream("SendStreamingMessage", send(), *_WORKING, status("FAILED", second=1)),
)
def failed(see: RuleContext) -> Iterator[RuleFinding]:
    """An error ends a stream whose task is SUBMITTED or WORKING, and nothing has told a terminal state.

    The client does not know whether the task failed, or goes on: it has to ask by GetTask.
    """
    track, task = see.track, see.task
    if not track.events or track.state not in ACTIVE or (task is not None and task.terminal):
        return
    if track.errors > 1:  # the first one was told, that more follow is A2A-SSE-008's
        return
    if see.binding is Binding.GRPC and see.frame.error_code in _GRPC_CLIENT:
        return
    failure = see.failure
    named = failure.name or (failure.status_name if see.binding is Binding.GRPC else "an error")
    yield RuleFinding(summary=f"{named} {failure.code} ends the stream of a task that is {label(track.state)}")


@rule(
    "A2A-STREAM-023",
    "Client left before the end",
    Severity.INFO,
    section="1.0 3.1.2, 3.1.6",
    bindings=NETWORK,
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.LIVE,
    operations=STREAMS,
    due=lambda see: _never_back(see),
    needs=FrameFlag.ODD_END,
    flagged=rpc_stream("SendStreamingMessage", send(), *_WORKING, finish="leave").then(fetch_card(), 60 * _SECOND),
    clean=rpc_stream("SendStreamingMessage", send(), *_WORKING, finish="leave")
    + rpc_stream("SubscribeToTask", {"id": "t1"}, snapshot("WORKING"), status("COMPLETED", second=1)),
)
def left(see: RuleContext) -> Iterator[RuleFinding]:
    """A client leaves the stream of an active task, and for 30 s nobody asks about that task or is told about it.

    Leaving is no cancellation: the task goes on, may cost money, and its result waits for somebody.
    """
    track = see.track
    if see.exchange.how in LEFT and track.state in ACTIVE and see.task is not None and not see.task.terminal:
        see.later(RETURN, str(see.exchange.closed))
    yield from ()


def _never_back(see: RuleContext) -> Iterator[RuleFinding]:
    task = see.task
    if task is not None and task.last <= int(see.due_note) and task.state not in TERMINAL:
        yield RuleFinding(summary=f"the client left in {label(task.state)} and did not come back within {RETURN} s")


def _clean(see: RuleContext) -> bool:
    """The agent ended the stream of a task by itself, without an error; one answer in place of a stream is none."""
    track: ExchangeRecord = see.track
    told = see.exchange.streaming and track.events and not track.errors and track.first is not EventKind.MESSAGE
    return bool(told) and see.exchange.how == "complete"
