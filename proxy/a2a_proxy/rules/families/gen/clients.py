"""Rules about long polling (GetTask with `currentGeneration`) and other uses of generations by
clients (A2A 1.1 draft section 3.2.7).

Answers to long polls are compared only with generations relayed before the request: the agent may
not have known a change that was relayed later when it read the task.
"""

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Actor, Dialect, Severity
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.protocol.generation import GenerationFault
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import EventPause, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import TASK_PARAMS, chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.families.gen.tracker import generation_verdicts
from a2a_proxy.rules.families.gen.words import (
    TASK_NUMBER_OPERATIONS,
    TRACKED,
    current_generation,
    format_generations,
    generation_path,
    generation_rule,
    if_match,
)

RECONCILE = 10
"""Seconds within which a client is expected to read a task again after a gap."""
_MAX_CLIENTS = 8
_NUMBERED_POLL = TASK_PARAMS | {"currentGeneration": "0"}
_PLAIN_POLL = rpc("GetTask", TASK_PARAMS, task("WORKING"), version="1.1")
_SEND_METHOD = "SendStreamingMessage"
_GAP_STREAM = rpc_stream(
    _SEND_METHOD,
    send(),
    snapshot(generation="1"),
    status("WORKING", generation="2"),
    chunk("b", generation="4"),
    EventPause(12),
    status("COMPLETED", second=12, generation="5"),
    version="1.1",
)
_TASK_READ = rpc("GetTask", TASK_PARAMS, task("WORKING", generation="4"), id=2, version="1.1")
_SECOND_NS = 1_000_000_000
LONG_POLL = 2
"""Seconds after which an answer that is due at once counts as held."""
_GET_OPERATIONS = ("GetTask",)
_FIRST_READ = rpc("GetTask", TASK_PARAMS, task("WORKING", generation="7"), version="1.1")


@generation_rule(
    "A2A-GEN-017",
    "Client uses generations that the agent does not support",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    hook_points=(HookPoint.REQUEST, HookPoint.ANSWER),
    trigger_flags=FrameFlag.TASK | FrameFlag.NEW_TASK | TRACKED | FrameFlag.ASKS,
    required_flags=FrameFlag.COUNTS | FrameFlag.NUMBERED | FrameFlag.OTHER | FrameFlag.NAMES,
    flagged=_PLAIN_POLL + rpc("GetTask", _NUMBERED_POLL, task("WORKING"), id=2, version="1.1"),
    clean=_TASK_READ
    + rpc(
        "GetTask",
        TASK_PARAMS | {"currentGeneration": "4"},
        task("WORKING", generation="5"),
        version="1.1",
    ),
)
def goes_on(context: RuleContext) -> Iterator[RuleFinding]:
    """A client sends `currentGeneration` or `ifGenerationMatch` for a task although the agent has
    shown this client that it does not support generations for the task: it sent the task without
    one to a client that speaks 1.1 or had used them, or sent two different events with the same
    one.

    The agent ignores such values: the condition protects nothing and the long poll returns at once.
    The client must stop using generations for this task; the agent should implement them.

    Low confidence if the recording does not contain the creation of the task: the agent may have
    sent a generation before.
    """
    if not context.has_flag(FrameFlag.ASKS):
        _note_informed_client(context)
        return
    if context.task is None or context.record.client not in _informed_clients(context):
        return
    wanted = current_generation(context) if context.operation == "GetTask" else if_match(context)
    if wanted is not None:
        yield RuleFinding(
            summary=f"the client uses generation {wanted} although the agent does not support "
            f"generations"
        )


def _informed_clients(context: RuleContext) -> list[Any]:
    """Return the clients that have seen that the task has no usable generation."""
    assert context.task is not None
    found: list[Any] = (context.task.notes or {}).get("gen.without", [])
    return found


def _note_informed_client(context: RuleContext) -> None:
    task, client = context.task, context.record.client
    if task is None or client in _informed_clients(context):
        return
    without = any(
        each.fault is GenerationFault.REPEAT for each in generation_verdicts(context)
    ) or (
        context.frame.generation == 0
        and not task.generation
        and context.has_flag(TASK_NUMBER_OPERATIONS)
        and (
            dialect_of_version(context.exchange.version_header) is Dialect.V1_1
            or current_generation(context) is not None
        )
    )
    if without and len(_informed_clients(context)) < _MAX_CLIENTS:
        task.writable_notes().setdefault("gen.without", []).append(client)


@generation_rule(
    "A2A-GEN-018",
    "Client does not read the task again after a gap",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    trigger_flags=TRACKED,
    due=lambda see: _check_reconciled(see),
    also_broken=("A2A-GEN-001",),
    flagged=_GAP_STREAM,
    clean=rpc_stream(
        _SEND_METHOD,
        send(),
        snapshot(generation="1"),
        status("WORKING", generation="2"),
        chunk("a", generation="3"),
        EventPause(12),
        status("COMPLETED", second=12, generation="4"),
        version="1.1",
    ),
)
def reconciles(context: RuleContext) -> Iterator[RuleFinding]:
    """A stream has left out a generation and stays open, and for 10 s the client neither receives
    the missing event nor calls GetTask or SubscribeToTask for the task.

    The client missed a change and does not know which one, so its view of the task stays wrong. The
    client must read the task again when it sees a gap (A2A-GEN-001).
    """
    for each in generation_verdicts(context):
        if each.fault is GenerationFault.GAP and not each.snapshot and (each.lost or each.unknown):
            context.schedule_due(RECONCILE, f"{each.first} {each.final}")
    yield from ()


def _check_reconciled(context: RuleContext) -> Iterator[RuleFinding]:
    record, task = context.record, context.task
    if task is None or not record.started or record.closed_exchange is not None:
        return
    first, final = map(int, context.due_note.split())
    if task.numbers is None or (first, final) not in task.numbers.open_gaps(record.id):
        return
    asking = ("GetTask", "SubscribeToTask")
    for other in context.session.exchange_records.values():  # a long poll that is still open counts
        named = other.request_snapshot.task_id if other.request_snapshot is not None else ""
        if named == task.task_id and other.client == record.client and other.operation in asking:
            return
    yield RuleFinding(
        summary=f"{format_generations(first, final)} missing for {RECONCILE} s, the client has not "
        f"read the task again",
        follows=f"A2A-GEN-001 #{record.id}",
    )


def _poll_call(current: str, generation: str, seconds: float, state: str = "WORKING") -> Script:
    answer = task(state, generation=generation)
    return rpc(
        "GetTask",
        TASK_PARAMS | {"currentGeneration": current},
        answer,
        id=2,
        seconds=seconds,
        version="1.1",
    )


@generation_rule(
    "A2A-GEN-009",
    "Long poll held although a newer generation existed",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.1 draft 3.2.7",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.TASK,
    operations=_GET_OPERATIONS,
    flagged=_FIRST_READ + _poll_call("5", "7", 3),
    clean=_FIRST_READ + _poll_call("5", "7", 0),
)
def held(context: RuleContext) -> Iterator[RuleFinding]:
    """A GetTask with `currentGeneration` is answered only after more than 2 s, or the client gives
    up without an answer, although a higher generation of the task had been relayed before the
    request.

    The agent must answer at once if the task is newer than `currentGeneration`; the client waits
    for a change that it could have had.
    """
    request_snapshot = context.record.request_snapshot
    if request_snapshot is None or (
        context.frame_or_none is None
        and (context.record.answers or context.exchange.how == "complete")
    ):
        return
    wanted = current_generation(context)
    if wanted is None or request_snapshot.known_generation <= wanted:
        return
    waited = (
        (context.at if context.frame_or_none is not None else context.exchange.closed)
        - request_snapshot.at
    ) / _SECOND_NS
    if waited > LONG_POLL:
        how = "the answer took" if context.frame_or_none is not None else "there was no answer for"
        told = (
            f"generation {request_snapshot.known_generation} existed, the client waits for one "
            f"above {wanted}; {how} "
            f"{waited:.1f} s"
        )
        yield RuleFinding(summary=told)


@generation_rule(
    "A2A-GEN-011",
    "GetTask returns an older generation than the client has",
    Severity.WARNING,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.TASK,
    operations=_GET_OPERATIONS,
    flagged=_FIRST_READ + _poll_call("7", "6", 0),
    clean=_FIRST_READ + _poll_call("7", "8", 0),
)
def older(context: RuleContext) -> Iterator[RuleFinding]:
    """The answer to a GetTask with `currentGeneration` has a lower generation than the request. Not
    reported if the proxy has seen the task from its beginning but never that generation: then the
    client made it up.

    The client has seen changes that the agent does not know: a replica that lags behind answered,
    or the agent lost changes. The agent must answer with the latest state of the task.
    """
    request_snapshot, number = context.record.request_snapshot, context.frame.generation
    if request_snapshot is None or number <= 0:
        return
    wanted = current_generation(context)
    if wanted is None or number >= wanted:
        return
    seen = request_snapshot.known_generation >= wanted
    if seen or (context.task is not None and not context.task.created_by):
        told = f"the client has generation {wanted}, the agent answers with the older {number}"
        yield RuleFinding(
            summary=told, path=generation_path(context), value=str(number), is_sure=seen
        )
