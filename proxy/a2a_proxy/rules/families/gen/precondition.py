"""`ifGenerationMatch`: a message only for the task as the client knows it (1.1 draft 3.2.2).

An acceptance is compared with what had passed before the request; a newer number that passes while the agent works may
be of this very message.
"""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.protocol.summary import generation_number
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import EVENTS, Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_error
from a2a_proxy.rules.examples.objects import Json, reply, send, snapshot, state, task
from a2a_proxy.rules.examples.script import MS, Script
from a2a_proxy.rules.families.gen.words import MISMATCH, OF_TASK, SENDS, if_match

RACE = 2
"""Seconds in which a newer generation may show up that the agent had already when it refused."""
_ID = {"id": "t1"}


def _read(generation: str | None, id: int = 1) -> Script:
    """The client reads the task: it waits for an answer."""
    read = task("INPUT_REQUIRED") | {"status": state("INPUT_REQUIRED", message=reply("which one?"))}
    numbered = {"generation": generation} if generation is not None else {}
    return rpc("GetTask", _ID, read | numbered, id=id, version="1.1")


_KNOWN = _read("5")


def _refusal(current: str) -> Json:
    return rpc_error(-32010, MISMATCH, "changed", taskId="t1", expectedGeneration="5", currentGeneration=current)


def _send(match: str | None, result: Json | None, error: Json | None = None, task_id: str = "t1") -> Script:
    configuration = {"ifGenerationMatch": match} if match is not None else None
    about = {"taskId": task_id} if task_id else {}
    params = send("go on", id="m2", configuration=configuration, **about)
    return rpc("SendMessage", params, result, error=error, id=2, version="1.1")


_NEW = {"task": task("COMPLETED", id="t2", generation="3")}


@rule(
    "A2A-GEN-012",
    "Stale precondition accepted",
    Severity.ERROR,
    section="1.1 draft 3.2.2",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    when=FrameFlag.FIRST,
    operations=SENDS,
    draft=True,
    needs=FrameFlag.NAMES,
    flagged=_KNOWN + _send("3", snapshot("COMPLETED", second=1, generation="7")),
    clean=_KNOWN + _send("3", None, _refusal("5")),
)
def stale(see: RuleContext) -> Iterator[RuleFinding]:
    """A message with `ifGenerationMatch` is accepted although a later generation of its task had passed before it was
    sent.

    The precondition is there so that a client does not act on a state that is gone; here it did.
    """
    asked = see.track.asked
    if asked is None or not asked.known_generation or not see.is_(EVENTS):
        return
    wanted = if_match(see)
    if wanted is not None and wanted < asked.known_generation:
        told = f"accepted with `ifGenerationMatch` {wanted}, but {asked.known_generation} had passed before"
        yield RuleFinding(summary=told, value=str(wanted))


@rule(
    "A2A-GEN-013",
    "Matching precondition refused",
    Severity.WARNING,
    section="1.1 draft 3.2.2",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    when=FrameFlag.ERROR,
    operations=SENDS,
    draft=True,
    due=lambda see: _still(see),
    flagged=(_KNOWN + _send("5", None, _refusal("5"))).then(_read("5", id=3), 3000 * MS),
    clean=_KNOWN + _send("5", None, _refusal("6")) + _read("6", id=3),
)
def refused(see: RuleContext) -> Iterator[RuleFinding]:
    """TaskGenerationMismatchError answers a message with the latest generation that has passed, and no later one shows
    up within 2 s, or the error itself names that generation as the current one.

    The client reads the task again, finds what it knew, and is refused for ever.
    """
    asked = see.track.asked
    wanted = if_match(see)
    if asked is None or wanted is None or wanted != asked.known_generation or see.failure.name != MISMATCH:
        return
    metadata = (see.failure.info or {}).get("metadata")
    current = generation_number(metadata.get("currentGeneration")) if isinstance(metadata, dict) else 0
    see.later(RACE, f"{wanted} {int(current == wanted)} {asked.task_id}")
    yield from ()


def _still(see: RuleContext) -> Iterator[RuleFinding]:
    wanted, named, task_id = see.due_note.split(" ", 2)
    task = see.world.task(see.track.agent, task_id)
    if task is not None and task.generation <= int(wanted):
        told = f"refused with `ifGenerationMatch` {wanted}, and the generation is {wanted} still"
        yield RuleFinding(summary=told, seq=see.due_seq, sure=named == "1")


@rule(
    "A2A-GEN-014",
    "Precondition applied to a new task",
    Severity.ERROR,
    section="1.1 draft 3.2.2",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    when=FrameFlag.ERROR,
    operations=SENDS,
    draft=True,
    flagged=_send("1", None, _refusal("0"), task_id=""),
    clean=_send("1", _NEW, task_id=""),
)
def for_new_task(see: RuleContext) -> Iterator[RuleFinding]:
    """TaskGenerationMismatchError answers a message with `ifGenerationMatch` that names no task.

    The precondition is to be ignored where the message makes the task: there is nothing it could match.
    """
    asked = see.track.asked
    if asked is not None and not asked.task_id and see.failure.name == MISMATCH and if_match(see) is not None:
        yield RuleFinding(summary=f"{MISMATCH} for a message that names no task")


@rule(
    "A2A-GEN-015",
    "Mismatch error without a precondition",
    Severity.ERROR,
    section="1.1 draft 3.2.2",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    when=FrameFlag.ERROR,
    draft=True,
    flagged=_send(None, None, _refusal("5")),
    clean=_send("3", None, _refusal("5")),
)
def unasked(see: RuleContext) -> Iterator[RuleFinding]:
    """TaskGenerationMismatchError answers a request that has no `ifGenerationMatch`. An error without the reason, by
    its code alone, counts only from an agent that numbers its tasks.

    The client has set no condition and cannot do better next time.
    """
    failure = see.failure
    if failure.name != MISMATCH or not (failure.reason or see.agent.numbers):
        return
    if if_match(see) is None:
        yield RuleFinding(summary=f"{MISMATCH}, but the request has no `ifGenerationMatch`")


@rule(
    "A2A-GEN-019",
    "Precondition ignored",
    Severity.WARNING,
    section="1.1 draft 3.2.2",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    when=FrameFlag.FIRST,
    operations=SENDS,
    draft=True,
    also=("A2A-GEN-005", "A2A-GEN-017"),
    needs=FrameFlag.NAMES,
    flagged=_read(None) + _send("3", snapshot("COMPLETED", second=1)),
    clean=_KNOWN + _send("5", snapshot("COMPLETED", second=1, generation="7")),
)
def ignored(see: RuleContext) -> Iterator[RuleFinding]:
    """A message to a task has `ifGenerationMatch`, and is accepted by an answer without a generation.

    Such an agent does not know the precondition: the client believes itself protected against changes in between.
    """
    asked, task = see.track.asked, see.task
    if asked is None or not asked.task_id or task is None or see.frame.generation or task.generation:
        return
    if see.is_(OF_TASK) and (wanted := if_match(see)) is not None:
        yield RuleFinding(summary=f"accepted with `ifGenerationMatch` {wanted}, but the agent numbers nothing")
