"""Several streams of one task (1.0 3.5.2)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import NETWORK, WEBHOOK, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import EventPause, Finish, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import Json, chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script, both
from a2a_proxy.rules.families.stream.delivery import (
    Missing,
    crossed,
    delivered,
    ends,
    in_order,
    is_progress,
    learn,
    live_beside,
    others,
    suspect,
)
from a2a_proxy.rules.families.stream.words import LEFT, STREAMS, label
from a2a_proxy.rules.state.records import ACTIVE, ExchangeRecord

_SECOND = 1_000_000_000
GRACE = 5
"""Seconds that an event may take to reach the other streams."""
SILENT = 10
"""Seconds after a terminal state, shown elsewhere, in which a stream must tell it or end."""
MAX_ENDS = 8
"""Ends of one task within `SILENT` seconds of which other streams are expected to tell: a task that goes on and ends
with each event must not make every event as expensive as it has streams."""
_TOGETHER = 1
"""Seconds after one stream was left in which the end of another is held to be its consequence."""

_A, _B, _C = chunk("a"), chunk("b", id="a2"), chunk("c", id="a3")
_END = status("COMPLETED", second=9)


def _two(one: tuple[Json | EventPause, ...], two: tuple[Json | EventPause, ...], finish: Finish = "end") -> Script:
    """A stream, and a subscription that begins after its second event and a pause of a second in both."""
    first = rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("WORKING"), EventPause(1), *one, finish=finish
    )
    other = rpc_stream("SubscribeToTask", {"id": "t1"}, snapshot("WORKING"), EventPause(1), *two, id=2)
    return both(first, other, after=45 * MS)


_ALIKE = _two((_A, _B, _C, EventPause(7), _END), (_A, _B, _C, EventPause(7), _END))


@rule(
    "A2A-STREAM-013",
    "Two streams tell events in different order",
    Severity.ERROR,
    section="1.0 3.5.2",
    bindings=NETWORK,
    scope=EvidenceScope.LIVE,
    when=FrameFlag.SHARED,
    due=lambda see: _crossed(see),
    flagged=_two((_A, _B, _C, EventPause(7), _END), (_A, _C, _B, EventPause(7), _END)),
    clean=_ALIKE,
)
def order(see: RuleContext) -> Iterator[RuleFinding]:
    """Two streams of a task that are open at the same time tell two events the one this way round, the other that way
    round. Where they have generations, only the stream on which these go down is named.

    All streams have the same order; two clients of one task end with different pictures of it.
    """
    key, task = learn(see), see.task
    if key and task is not None and suspect(task, see.track.id, key):
        see.later(GRACE, key)
    yield from ()


def _crossed(see: RuleContext) -> Iterator[RuleFinding]:
    key, task = see.due_note, see.task
    found = crossed(task, see.track.id, key) if task is not None else None
    if found is not None and not in_order(found[1], key):
        told = f"this event came after another one here, but before it in exchange {found[0]}"
        yield RuleFinding(summary=told, seq=see.due_seq)


@rule(
    "A2A-STREAM-014",
    "Event missing on one of several streams",
    Severity.ERROR,
    section="1.0 3.5.2",
    bindings=NETWORK,
    scope=EvidenceScope.LIVE,
    when=FrameFlag.SHARED,
    due=lambda see: not_delivered(see),
    flagged=_two((_A, _B, _C, EventPause(7), _END), (_A, _C, EventPause(7), _END)),
    clean=_ALIKE,
)
def missing(see: RuleContext) -> Iterator[RuleFinding]:
    """An event came on one stream of a task and, within 5 s, not on another that was open. An error where the other has
    told events before and after it; a warning where the other is silent since, since its client may be slow. Between
    two live streams it is A2A-LIVE-016.

    Every event goes to every stream; this client does not know what has happened.
    """
    watch(see, live=False)
    yield from ()


def watch(see: RuleContext, *, live: bool) -> None:
    """Look for this event on the other streams later: on live ones of a live stream, or on all others. All of them are
    looked at in one go, so that an event costs the same on a task with thousands of streams."""
    key, task = learn(see), see.task
    if not key or task is None:
        return
    beside = live_beside(task, see.track.id)
    if beside or not live:
        numbers = ",".join(map(str, beside))
        see.later(GRACE, f"{int(live)} {numbers} {int(is_progress(see))} {int(ends(see))} {task.joined} {key}")


def not_delivered(see: RuleContext) -> Iterator[RuleFinding]:
    """Due `GRACE` seconds after an event that `watch` looks for."""
    live, beside, progress, end, joined, key = see.due_note.split(" ", 5)
    task, exchange = see.task, see.track.id
    shown = delivered(task, exchange) if task is not None else None
    if task is None or shown is None:
        return
    told = f"event {exchange}.{see.due_seq} did not come on this stream"
    for number, lost in others(task, exchange):  # one that has ended may have told later events already
        if lost.joined > int(joined) or (str(number) in beside.split(",")) is not (live == "1"):
            continue
        found = Missing(shown, lost, key, progress=progress == "1")
        late = not found.numbered and see.at - GRACE * _SECOND - lost.first >= _SECOND
        if found.came or not (found.due or late):
            continue
        ended = ExchangeRecord(number, lost.connection, task.agent, Binding.OTHER, "", 0, task_id=task.task_id)
        track = see.world.tracks.get(number, ended)
        if found.passed:
            severity = None if found.due else Severity.WARNING
            yield RuleFinding(summary=f"{told}, later ones did", sure=found.due, severity=severity, track=track, seq=-1)
        elif track.started and track.final is None and end == "0":
            summary = f"{told} within {GRACE} s, nor anything after it"
            yield RuleFinding(summary=summary, sure=False, severity=Severity.WARNING, track=track, seq=-1)


@rule(
    "A2A-STREAM-015",
    "Leaving one stream ended another",
    Severity.WARNING,
    section="1.0 3.5.2",
    bindings=NETWORK,
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.LIVE,
    operations=STREAMS,
    also=("A2A-STREAM-007",),
    flagged=_two((_A,), (_A, EventPause(0.1)), "leave"),
    clean=_two((_A,), (_A, _END), "leave"),
)
def dragged_along(see: RuleContext) -> Iterator[RuleFinding]:
    """A client leaves one stream of an active task, and within a second the agent ends another stream of it.

    Streams of a task are independent: one client that goes away must not take the others' events with it.
    """
    track, task, exchange = see.track, see.task, see.exchange
    if task is None:
        return
    state = track.state or task.state  # a subscription of 0.x may have told chunks only
    if task.terminal or state not in ACTIVE:
        return
    notes = task.remember()
    if exchange.how in LEFT:
        notes["stream.left"] = [exchange.closed, exchange.id]
        return
    at, other = notes.get("stream.left", (0, 0))
    if other and not track.errors and 0 <= exchange.closed - at < _TOGETHER * _SECOND:
        waited = (exchange.closed - at) // 1_000_000
        told = f"the agent ended this stream {waited} ms after the client of exchange {other} had left"
        yield RuleFinding(summary=f"{told}; the task is {label(state)}")


@rule(
    "A2A-STREAM-021",
    "Stream not told of the end of its task",
    Severity.WARNING,
    section="1.0 3.5.2",
    scope=EvidenceScope.LIVE,
    bindings=NETWORK | WEBHOOK,
    when=FrameFlag.TERMINAL,
    due=lambda see: _not_told(see),
    flagged=both(
        rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING"), EventPause(15), finish="open"),
        rpc("GetTask", {"id": "t1"}, task("COMPLETED", second=1), id=2),
        after=1000 * MS,
    ),
    clean=both(
        rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING"), EventPause(3), status("COMPLETED")),
        rpc("GetTask", {"id": "t1"}, task("COMPLETED"), id=2),
        after=1000 * MS,
    ),
)
def untold(see: RuleContext) -> Iterator[RuleFinding]:
    """An answer, a push or another stream shows a task at its end, and for 10 s a stream of it neither tells that nor
    ends.

    Its client waits for a task that is over.
    """
    task = see.task
    if task is None or task.terminal_in != see.track.id or not see.is_(FrameFlag.CHANGED):
        return
    ends_shown = task.remember().setdefault("stream.ends", [])
    if len(ends_shown) == MAX_ENDS and see.at - ends_shown[0] < SILENT * _SECOND:
        return
    ends_shown[:] = [*ends_shown[1 - MAX_ENDS :], see.at]
    for number in task.streams:
        other = see.world.tracks.get(number)
        if other is not None and number != see.track.id and not other.terminal:
            see.later(SILENT, f"{see.track.id} {see.frame.state}", other)
    yield from ()


def _not_told(see: RuleContext) -> Iterator[RuleFinding]:
    track = see.track
    if track.started and track.final is None and not track.terminal:
        exchange, state = see.due_note.split()
        shown = TaskState(int(state)).label
        yield RuleFinding(
            summary=f"exchange {exchange} has shown {shown} {SILENT} s ago; this stream has not, and is open"
        )
