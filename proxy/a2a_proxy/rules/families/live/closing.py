"""How a live stream goes on and ends (manual/protocol.md "Live rules")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import EVENTS, GRPC, Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import ClientMessage, EventPause, HalfClosed, grpc
from a2a_proxy.rules.examples.objects import chunk, said, send, snapshot, status
from a2a_proxy.rules.families.live.words import LIVE, can_speak, plain_live, question, reconnects
from a2a_proxy.rules.families.stream.closing import LATE, TOO_LATE, not_closed, open_still
from a2a_proxy.rules.families.stream.middle import after_terminal
from a2a_proxy.rules.families.stream.words import label, name_of
from a2a_proxy.rules.state.records import ACTIVE
from a2a_proxy.rules.state.state_sequence import INTERRUPTED

_SECOND = 1_000_000_000
PATIENCE = 60
"""Seconds that a client may take to answer, before that is worth telling."""
_BEGUN = (snapshot(), status("WORKING"))
_ANSWER = ClientMessage(send("this one", id="m2"))
_REST = (status("WORKING", second=2), status("COMPLETED", second=3))
_WHOLE = grpc("SendLiveMessage", send(), *_BEGUN, question(), _ANSWER, *_REST, half_close=False)


def _ended_ok(see: RuleContext) -> bool:
    """The agent has ended the stream with OK, while the client could have said more; all that came was read."""
    track, exchange = see.track, see.exchange
    if not plain_live(see) or track.half_closed or (track.unread and track.unread >= track.state_at):
        return False
    return exchange.how == "complete" and exchange.grpc_status == 0 and not track.terminal


@rule(
    "A2A-LIVE-004",
    "Live stream closed while the task waits for its client",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE,
    draft=True,
    flagged=grpc("SendLiveMessage", send(), *_BEGUN, question(), half_close=False),
    clean=_WHOLE,
)
def closed_interrupted(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends a live stream with status OK at INPUT_REQUIRED or AUTH_REQUIRED, and the client had neither left
    nor said that it has nothing more to say.

    A live stream stays open for the answer. The client is asked something and cannot reply where it was asked.
    """
    if see.track.state in INTERRUPTED and _ended_ok(see):
        yield RuleFinding(
            summary=f"the agent ended the live stream at {label(see.track.state)}, it must wait for the client"
        )


@rule(
    "A2A-LIVE-005",
    "Live stream not closed after the terminal event",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    moment=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.TERMINAL,
    operations=LIVE,
    draft=True,
    due=lambda see: open_still(see),
    flagged=grpc("SendLiveMessage", send(), *_BEGUN, status("COMPLETED", second=1), EventPause(60), half_close=False),
    clean=_WHOLE,
)
def open_after_terminal(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent keeps a live stream open after it has told a terminal state: an error when it is open still after 10 s,
    a warning where it ended after more than 2 s.

    The client holds a stream on which nothing can be said any more, and waits for its end.
    """
    if plain_live(see):
        yield from not_closed(see)


@rule(
    "A2A-LIVE-006",
    "Event after the terminal one on a live stream",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=EVENTS,
    operations=LIVE,
    draft=True,
    also=("A2A-STATE-013",),
    flagged=grpc("SendLiveMessage", send(), *_BEGUN, status("COMPLETED", second=1), chunk("late"), half_close=False),
    clean=_WHOLE,
)
def late_event(see: RuleContext) -> Iterator[RuleFinding]:
    """On one live stream, something follows the event that told a terminal state. One Task in the same state may.

    Clients take the terminal state for the end of the conversation and never see what comes after it.
    """
    if plain_live(see):
        yield from after_terminal(see)


@rule(
    "A2A-LIVE-011",
    "Live stream goes on after a Message",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    moment=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=EVENTS,
    operations=LIVE,
    draft=True,
    due=lambda see: _message_open(see),
    flagged=grpc("SendLiveMessage", send(), said(), said("and this", id="r2"), half_close=False),
    clean=grpc("SendLiveMessage", send(), said(), half_close=False),
)
def after_message(see: RuleContext) -> Iterator[RuleFinding]:
    """A live stream begins with a Message, and another event follows, or the agent keeps it open: an error when it is
    open still after 10 s, a warning where it ended after more than 2 s.

    A Message is the whole answer, there is no task to go on with: the client waits for an end that does not come.
    """
    track = see.track
    if track.first is not EventKind.MESSAGE or not plain_live(see):
        return
    if see.shown is None:
        after = (see.exchange.closed - track.last_at) / _SECOND
        if LATE < after < TOO_LATE and see.exchange.how == "complete":
            told = f"the live stream ended {after:.1f} s after its Message, it must end at once"
            yield RuleFinding(summary=told, severity=Severity.WARNING)
    elif see.is_(FrameFlag.LATER):
        yield RuleFinding(summary=f"{name_of(see.frame)} after the Message that was the whole answer")
    else:
        see.later(TOO_LATE)


def _message_open(see: RuleContext) -> Iterator[RuleFinding]:
    track = see.track
    if track.started and track.final is None and track.events == 1:
        told = f"the live stream is open still {TOO_LATE} s after its Message, it must end at once"
        yield RuleFinding(summary=told, seq=see.due_seq)


@rule(
    "A2A-LIVE-017",
    "Input demanded of a client that has said all",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.INTERRUPTED,
    operations=LIVE,
    draft=True,
    flagged=grpc("SendLiveMessage", send(), *_BEGUN, HalfClosed(), question(), finish="leave", half_close=False),
    clean=_WHOLE,
)
def nobody_left(see: RuleContext) -> Iterator[RuleFinding]:
    """A live stream goes to INPUT_REQUIRED after its client has closed its side, and no other live stream of the task
    can answer. Information at AUTH_REQUIRED, credentials may come by another way. The Task that a reconnecting client
    is shown first is not judged: it tells how things are.

    Nobody can answer on this stream; unless the client sends its answer by another call, the task waits for ever.
    """
    track, task, state = see.track, see.task, see.frame.state
    if not track.half_closed or see.shown_before == state or not plain_live(see):
        return
    if see.is_(FrameFlag.FIRST) and reconnects(track):
        return
    tracks = [see.world.tracks.get(number) for number in (task.streams if task is not None else ())]
    if any(each is not None and can_speak(each) for each in tracks):
        return
    told = f"{label(state)} on a live stream whose client had closed its side"
    auth = state == TaskState.AUTH_REQUIRED
    yield RuleFinding(summary=f"{told}: nobody can answer there", severity=Severity.INFO if auth else None)


@rule(
    "A2A-LIVE-020",
    "Live stream ended while the task was active",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE,
    draft=True,
    flagged=grpc("SendLiveMessage", send(), *_BEGUN, half_close=False),
    clean=_WHOLE,
)
def ended_active(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends a live stream with status OK while the task is SUBMITTED or WORKING, as far as the stream has
    told, and the client had neither left nor closed its side.

    The client takes the end for the end of the work, and has to reconnect to learn the result.
    """
    if see.track.state in ACTIVE and _ended_ok(see):
        told = f"the agent ended the live stream in {label(see.track.state)}"
        yield RuleFinding(summary=f"{told}, and its client could still speak")


@rule(
    "A2A-LIVE-021",
    "Question on a live stream not answered",
    Severity.INFO,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.INTERRUPTED,
    operations=LIVE,
    draft=True,
    due=lambda see: _unanswered(see),
    flagged=grpc("SendLiveMessage", send(), *_BEGUN, question(), EventPause(300), _ANSWER, *_REST, half_close=False),
    clean=_WHOLE,
)
def waits(see: RuleContext) -> Iterator[RuleFinding]:
    """For 60 s after INPUT_REQUIRED or AUTH_REQUIRED on a live stream no client has sent a message to the task, and the
    stream is open.

    How long an agent waits is its own affair: it may let the task fail, and a proxy in between may drop a silent
    stream.
    """
    if see.shown_before != see.frame.state and not see.track.half_closed and plain_live(see):
        see.later(PATIENCE, str(see.at))
    yield from ()


def _unanswered(see: RuleContext) -> Iterator[RuleFinding]:
    track, task, asked = see.track, see.task, int(see.due_note)
    if not track.started or track.final is not None or task is None or track.state not in INTERRUPTED:
        return
    if task.spoken < asked and task.state in INTERRUPTED:
        told = f"task {task.task_id} is {label(track.state)} for {PATIENCE} s, and nobody has answered"
        yield RuleFinding(summary=told, seq=see.due_seq)
