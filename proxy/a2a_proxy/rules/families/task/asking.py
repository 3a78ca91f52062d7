"""Asking for tasks: those that are gone, and those that are asked for too often."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import NETWORK, Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, task
from a2a_proxy.rules.examples.script import MS, Script
from a2a_proxy.rules.facts.credentials import principal
from a2a_proxy.rules.state.records import ACTIVE
from a2a_proxy.rules.state.task_owners import note_owner, owner_of

_POLLS = 5
"""Fast polls in a row that are worth a word."""
_FAST = 500 * MS
_BY_ID = ("GetTask", "CancelTask", "SubscribeToTask")

_SENT = rpc("SendMessage", send(), {"task": task()})
_STARTED = rpc("SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING"))


def _polls(pause: int) -> Script:
    made = _STARTED
    for number in range(2, _POLLS + 3):
        made = made.then(rpc("GetTask", {"id": "t1"}, task("WORKING"), id=number), pause)
    return made


@rule(
    "A2A-TASK-009",
    "Known task is not found",
    Severity.WARNING,
    section="1.0 3.1.3",
    scope=EvidenceScope.LIVE,
    when=FrameFlag.NEW_TASK | FrameFlag.ERROR,
    flagged=_SENT + rpc("GetTask", {"id": "t1"}, error=rpc_error(-32001, "TASK_NOT_FOUND"), id=2),
    clean=_SENT + rpc("GetTask", {"id": "t2"}, error=rpc_error(-32001, "TASK_NOT_FOUND"), id=2),
)
def known_not_found(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent says TaskNotFound for a task that it has told of earlier in this session. A client with other
    credentials than those that the task was created with is rightly told so.

    Either it forgets tasks sooner than its clients expect, or several instances of it do not share them.
    """
    if see.is_(FrameFlag.NEW_TASK):
        note_owner(see)
        return
    asked = see.track.asked
    if asked is None or not asked.known or not see.is_(FrameFlag.FIRST) or see.operation not in _BY_ID:
        return
    failure, known = see.failure, see.world.task(see.track.agent, asked.task_id)
    born = known is not None and known.born != 0
    if known is not None and born and owner_of(known) != principal(see.exchange):
        return
    by_status = {Binding.GRPC: failure.code == 5, Binding.REST: see.exchange.status == 404 and _by_agent(see)}
    if failure.name == "TASK_NOT_FOUND" or (not failure.name and by_status.get(see.binding, False)):
        yield RuleFinding(summary=f"task {asked.task_id} is not found, it was told of before", sure=born)


def _by_agent(see: RuleContext) -> bool:
    """The 404 is no page of a server in front of the agent; and no task under a wrong status (A2A-HTTP-010)."""
    return isinstance(see.value, dict) and not isinstance(see.value.get("status"), dict)


@rule(
    "A2A-TASK-012",
    "Tight polling",
    Severity.INFO,
    section="1.0 3.5.1",
    bindings=NETWORK,
    lines=Dialects.ALL,
    moment=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    operations=("GetTask",),
    flagged=_polls(50 * MS),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot("SUBMITTED"), snapshot("COMPLETED")),
)
def tight_polling(see: RuleContext) -> Iterator[RuleFinding]:
    """One client gets the same active task five times in a row with less than 500 ms between the calls, without
    `currentGeneration`.

    Streams, long polls and push notifications tell of a change at once and cost next to nothing.
    """
    frame, asked = see.frame, see.track.asked
    if asked is None or asked.state not in ACTIVE or asked.generation or not asked.task_id:
        return
    polls: dict[str, list[int]] = see.world.client(see.track.client).setdefault("polls", {})
    key = f"{see.track.agent} {asked.task_id}"
    last, count = polls.pop(key, [0, 0])
    count = count + 1 if frame.at - last < _FAST else 0
    polls[key] = [frame.at, count]
    if len(polls) > 100:
        del polls[next(iter(polls))]
    if count == _POLLS:
        state = TaskState(asked.state).label
        yield RuleFinding(
            summary=f"{_POLLS + 1} GetTask calls for a task that is {state}, each less than 500 ms after the other"
        )
