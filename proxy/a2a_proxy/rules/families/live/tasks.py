"""One task on a live stream, and several live streams on one task (manual/protocol.md "Live rules")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import GRPC, RPC, Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import ClientMessage, EventPause, HalfClosed, grpc
from a2a_proxy.rules.examples.objects import chunk, message, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script, both
from a2a_proxy.rules.families.id.events import foreign
from a2a_proxy.rules.families.live.words import LIVE, RECONNECT, question
from a2a_proxy.rules.families.stream.together import not_delivered, watch
from a2a_proxy.rules.families.stream.words import name_of

_BEGUN = (snapshot(), status("WORKING"))
_DONE = status("COMPLETED", second=9)
_SECOND = {"task": task("SUBMITTED", id="t2")}
_ANSWERED = (question(), ClientMessage(send("this one", id="m2")), status("WORKING", second=2))
_A, _B, _C = chunk("a"), chunk("b", id="a2"), chunk("c", id="a3")


def _two(second: tuple[object, ...]) -> Script:
    """A live stream, and another that reconnects to its task a second later."""
    events = (_A, _B, _C, EventPause(7), _DONE)
    one = grpc("SendLiveMessage", send(), *_BEGUN, EventPause(1), *events, half_close=False)
    other = (snapshot("WORKING"), EventPause(1), *second, EventPause(7), _DONE)
    return both(one, grpc("SendLiveMessage", RECONNECT, *other, half_close=False), after=45 * MS)  # type: ignore[arg-type]


@rule(
    "A2A-LIVE-007",
    "Second task on one live stream",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.FOREIGN,
    operations=LIVE,
    draft=True,
    flagged=grpc("SendLiveMessage", send(), *_BEGUN, *_ANSWERED, _SECOND, _DONE, half_close=False),
    clean=grpc("SendLiveMessage", send(), *_BEGUN, *_ANSWERED, _DONE, half_close=False),
)
def second_task(see: RuleContext) -> Iterator[RuleFinding]:
    """A Task, a status update or an artifact update on a live stream is of another task than its first event.

    A live stream is about one task; another one needs a stream of its own, or a SendMessage. Clients apply the event to
    the task they follow, or drop it.
    """
    yield from foreign(see)


@rule(
    "A2A-LIVE-016",
    "Event missing on one of several live streams",
    Severity.ERROR,
    section="1.1 draft 3.2.7; 1.0 3.5.2",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.SHARED,
    operations=LIVE,
    draft=True,
    due=lambda see: not_delivered(see),
    flagged=_two((_A, _C)),
    clean=_two((_A, _B, _C)),
)
def not_multiplexed(see: RuleContext) -> Iterator[RuleFinding]:
    """An agent has accepted two live streams of one task, and an event came on one of them and, within 5 s, not on the
    other. An error where the other has told events before and after it; a warning where the other is silent since,
    since its client may be slow.

    An agent that takes a second live stream tells both everything. One that cannot refuses it with FAILED_PRECONDITION.
    """
    watch(see, live=True)
    yield from ()


_PROPOSAL = {"asks": "StreamRequest@live-2153", "tells": "StreamResponse@live-2153"}
_ARTIFACT = {"artifactUpdate": chunk("half", id="a9")["artifactUpdate"]}


def _uplink(*answers: object) -> Script:
    """A stream on which the agent tells, and a short call with an artifact beside it."""
    first = grpc(
        "SendLiveMessage",
        {"message": message()},
        snapshot(),
        EventPause(3),
        _DONE,
        half_close=False,
        **_PROPOSAL,  # type: ignore[arg-type]
    )
    second = grpc("SendLiveMessage", _ARTIFACT, HalfClosed(), *answers, half_close=False, **_PROPOSAL)  # type: ignore[arg-type]
    return both(first, second, after=1000 * MS)


@rule(
    "A2A-LIVE-024",
    "Uplink call replays events",
    Severity.WARNING,
    section="proposal of uplinks, SendLiveMessage",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=RPC,
    when=FrameFlag.LATER,
    operations=("SendLiveMessage",),
    draft=True,
    flagged=_uplink(snapshot("WORKING"), status("WORKING", second=1)),
    clean=_uplink(snapshot("WORKING")),
)
def replays(see: RuleContext) -> Iterator[RuleFinding]:
    """In the proposal of uplinks: a task has a live stream, another SendLiveMessage call has told the agent all it had
    to say, and is answered with more than the Task. On gRPC only where the messages are known to be of that proposal.

    Such a call only takes a message or an artifact; what comes of it is told on the stream. The client sees it twice.
    """
    track, task = see.track, see.task
    grpc_call = see.binding is Binding.GRPC
    if task is None or (grpc_call and not (track.half_closed and see.frame.schema.endswith("@live-2153"))):
        return
    for number in task.streams:
        other = see.world.tracks.get(number)
        if other is not None and other.operation in LIVE and other.started < track.started:
            told = (
                f"task {task.task_id} has a live stream (exchange {number}), and this short call beside it is answered"
            )
            yield RuleFinding(summary=f"{told} with {name_of(see.frame)}, the Task was enough")
            return
