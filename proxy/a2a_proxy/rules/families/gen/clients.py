"""What clients make of generations (1.1 draft 3.2.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.exchange import Dialect
from a2a_proxy.model.finding import Severity
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import EventPause, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status, task
from a2a_proxy.rules.families.gen.tracker import GenerationFault, known_gaps, verdicts
from a2a_proxy.rules.families.gen.words import OF_TASK, TRACKED, current_generation, if_match, numbers

RECONCILE = 10
"""Seconds in which a client is expected to read a task again after a gap."""
_MAX_CLIENTS = 8
_ID = {"id": "t1"}
_POLL = _ID | {"currentGeneration": "0"}
_PLAIN = rpc("GetTask", _ID, task("WORKING"), version="1.1")
_SEND = "SendStreamingMessage"
_GAP = rpc_stream(
    _SEND,
    send(),
    snapshot(generation="1"),
    status("WORKING", generation="2"),
    chunk("b", generation="4"),
    EventPause(12),
    status("COMPLETED", second=12, generation="5"),
    version="1.1",
)
_READ = rpc("GetTask", _ID, task("WORKING", generation="4"), id=2, version="1.1")


@rule(
    "A2A-GEN-017",
    "Client uses generations that the agent does not have",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    moment=(HookPoint.REQUEST, HookPoint.ANSWER),
    when=FrameFlag.TASK | FrameFlag.NEW_TASK | TRACKED | FrameFlag.ASKS,
    draft=True,
    also=("A2A-GEN-005",),
    needs=FrameFlag.COUNTS | FrameFlag.NUMBERED | FrameFlag.OTHER | FrameFlag.NAMES,
    flagged=_PLAIN + rpc("GetTask", _POLL, task("WORKING"), id=2, version="1.1"),
    clean=_READ + rpc("GetTask", _ID | {"currentGeneration": "4"}, task("WORKING", generation="5"), version="1.1"),
)
def goes_on(see: RuleContext) -> Iterator[RuleFinding]:
    """A client that speaks 1.1 or has used generations was told of a task without one, or got two events with one
    number, and still sends `currentGeneration` or `ifGenerationMatch` for that task.

    It must take the feature for not there: its condition protects nothing and its long poll returns at once.
    """
    if not see.is_(FrameFlag.ASKS):
        _note_told(see)
        return
    if see.task is None or see.track.client not in _told(see):
        return
    wanted = current_generation(see) if see.operation == "GetTask" else if_match(see)
    if wanted is not None:
        yield RuleFinding(summary=f"the client asks by generation {wanted}, but was told that the task has none")


def _told(see: RuleContext) -> list[Any]:
    """Clients that know that the task has no generation."""
    assert see.task is not None
    found: list[Any] = (see.task.notes or {}).get("gen.without", [])
    return found


def _note_told(see: RuleContext) -> None:
    task, client = see.task, see.track.client
    if task is None or client in _told(see):
        return
    without = any(each.fault is GenerationFault.REPEAT for each in verdicts(see)) or (
        see.frame.generation == 0
        and not task.generation
        and see.is_(OF_TASK)
        and (dialect_of_version(see.exchange.version_header) is Dialect.V1_1 or current_generation(see) is not None)
    )
    if without and len(_told(see)) < _MAX_CLIENTS:
        task.remember().setdefault("gen.without", []).append(client)


@rule(
    "A2A-GEN-018",
    "Client does not read the task again after a gap",
    Severity.INFO,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    when=TRACKED,
    draft=True,
    due=lambda see: _not_reconciled(see),
    also=("A2A-GEN-001",),
    flagged=_GAP,
    clean=rpc_stream(
        _SEND,
        send(),
        snapshot(generation="1"),
        status("WORKING", generation="2"),
        chunk("a", generation="3"),
        EventPause(12),
        status("COMPLETED", second=12, generation="4"),
        version="1.1",
    ),
)
def reconciles(see: RuleContext) -> Iterator[RuleFinding]:
    """A stream has left a number out, it goes on, and for 10 s its client neither reads the task nor subscribes to it.

    It has missed a change and does not know which: what it shows stays wrong.
    """
    for each in verdicts(see):
        if each.fault is GenerationFault.GAP and not each.snapshot:
            see.later(RECONCILE, f"{each.first} {each.final}")
    yield from ()


def _not_reconciled(see: RuleContext) -> Iterator[RuleFinding]:
    track, task = see.track, see.task
    if task is None or not track.started or track.final is not None:
        return
    first, final = map(int, see.due_note.split())
    if not any(gap[0] == first and gap[1] == final and gap[3] == track.id for gap in known_gaps(task)):
        return
    asking = ("GetTask", "SubscribeToTask")
    for other in see.world.tracks.values():  # a long poll is under way
        named = other.asked.task_id if other.asked is not None else ""
        if named == task.task_id and other.client == track.client and other.operation in asking:
            return
    yield RuleFinding(
        summary=f"{numbers(first, final)} left out {RECONCILE} s ago, the client has not read the task since"
    )
