"""Rules that compare the artifacts of a Task with the streamed updates (A2A 1.0 sections 4.1.7,
4.2.2)."""

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import EventKind, Frame, Severity
from a2a_proxy.protocol.artifact_chunks import chunks_of_frame
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ALL_BINDINGS, Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import (
    TASK_PARAMS,
    artifact,
    chunk,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.facts.compared_values import NO_PARTS, PartsSummary, add_parts
from a2a_proxy.rules.facts.naming import object_prefix, state_label
from a2a_proxy.rules.state.records import TaskRecord
from a2a_proxy.rules.state.state_sequence import MAX_ARTIFACTS, TERMINAL

_TWO_CHUNKS = 3
"""Occurrences of `"artifact` in a payload with the member `artifacts` and two `artifactId`."""
_STREAMED_CALL = rpc_stream(
    "SendStreamingMessage",
    send(),
    snapshot(),
    chunk("a"),
    chunk("b", append=True, lastChunk=True),
    status("COMPLETED", second=1),
)


@rule(
    "A2A-ART-005",
    "Two artifacts of a task have the same id",
    Severity.ERROR,
    section="1.0 4.1.7; 0.3 6.7",
    dialects=Dialects.SINCE_0_2,
    bindings=ALL_BINDINGS,
    trigger_flags=FrameFlag.TASK | FrameFlag.LIST,
    flagged=rpc("GetTask", TASK_PARAMS, task(artifacts=[artifact("x"), artifact("y")])),
    clean=rpc("GetTask", TASK_PARAMS, task(artifacts=[artifact("x"), artifact("y", id="a2")])),
)
def twice(context: RuleContext) -> Iterator[RuleFinding]:
    """`artifacts` of a Task contains the same `artifactId` more than once.

    Updates refer to an artifact by this id, so a client keeps only one of the two, and which one is
    undefined. The agent must give each artifact of a task its own id.
    """
    frame = context.frame
    if frame.schema == "json" and frame.payload.count(b'"artifact') < _TWO_CHUNKS:
        return
    if frame.event is EventKind.TASK:
        looks = chunks_of_frame(frame)
        readable = looks or frame.schema != "json"
        if readable and len({each.artifact_id for each in looks}) == len(looks):
            return
        yield from _find_duplicate_ids(
            context.object.get("artifacts"),
            f"{context.root}{object_prefix(frame, context.is_v1, context.operation)}",
        )
    elif frame.event is EventKind.TASKS:
        tasks = context.event.get("tasks")
        for index, each in enumerate(tasks if isinstance(tasks, list) else ()):
            if isinstance(each, dict):
                yield from _find_duplicate_ids(
                    each.get("artifacts"), f"{context.root}tasks[{index}]."
                )


def _find_duplicate_ids(artifacts: Any, place: str) -> Iterator[RuleFinding]:
    seen: dict[str, int] = {}
    for index, each in enumerate(artifacts if isinstance(artifacts, list) else ()):
        name = each.get("artifactId") if isinstance(each, dict) else None
        if isinstance(name, str) and name and "redacted-" not in name:
            first = seen.setdefault(name, index)
            if first != index:
                told = f"artifacts {first} and {index} both have the id {name}"
                yield RuleFinding(
                    summary=told, path=f"{place}artifacts[{index}].artifactId", value=name
                )


@rule(
    "A2A-ART-006",
    "The artifact of a task differs from the streamed one",
    Severity.WARNING,
    section="1.0 4.2.2; 0.3 7.2.3",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.TASK,
    required_flags=FrameFlag.TERMINAL | FrameFlag.AFTER_TERMINAL | FrameFlag.FOREIGN,
    flagged=_STREAMED_CALL + rpc("GetTask", TASK_PARAMS, task(artifacts=[artifact("a")])),
    clean=_STREAMED_CALL
    + rpc(
        "GetTask",
        TASK_PARAMS,
        task(artifacts=[artifact("a", parts=[{"text": "a"}, {"text": "b"}])]),
    ),
)
def not_streamed(context: RuleContext) -> Iterator[RuleFinding]:
    """A finished Task, at the end of its stream or returned by a later GetTask, lacks an artifact
    that was streamed, or has it with other content than the updates of one stream from its first
    update to the end of the task. Compared are all text joined, the size of raw content, and the
    number of other parts. Or GetTask returns an artifact that no event has carried, although the
    stream that created the task was recorded to its end.

    A chunk was lost, duplicated or reordered, so a client that followed the stream holds another
    result than one that calls GetTask. The agent must send every chunk once, in order and before
    the end of the task, and a proxy in front of it must forward them so. The client should call
    GetTask and use that artifact.
    """
    frame, known = context.frame, context.task
    if known is None or not known.terminal or frame.redacted or frame.truncated:
        return
    if not context.record.terminal or (
        context.record.is_streaming and not context.has_flag(FrameFlag.LATER)
    ):
        return
    request_snapshot = context.record.request_snapshot
    if not context.record.is_streaming and (
        context.operation != "GetTask" or request_snapshot is None or not request_snapshot.terminal
    ):
        return
    if not known.artifacts and not known.is_fully_streamed:
        return
    shown = {each.artifact_id: add_parts(NO_PARTS, each.pieces) for each in chunks_of_frame(frame)}
    place = f"{context.root}{object_prefix(frame, context.is_v1, context.operation)}artifacts"
    for name, each in list(known.artifacts.items())[:1000]:
        if not (each.is_fully_recorded and each.is_stream_over) or (
            context.record.is_streaming and each.stream != context.record.id
        ):
            continue
        now = shown.get(name)
        if now == each.content:
            continue
        lost, follows = _missed_event(known, each.stream)
        crc = now is not None and now.length == each.content.length
        streamed = (
            f"the stream #{each.stream} carried {_describe_content(each.content, crc=crc)} of "
            f"artifact {name}"
        )
        held = "lacks the artifact" if now is None else f"has {_describe_content(now, crc=crc)}"
        told = f"{streamed}, the Task in #{context.record.id} {held}{lost}"
        evidence = {"stream": str(each.stream)}
        yield RuleFinding(summary=told, path=place, value=name, follows=follows, evidence=evidence)
    if (
        known.is_fully_streamed
        and not context.record.is_streaming
        and len(known.artifacts) < MAX_ARTIFACTS
    ):
        for name in shown:
            if name and name not in known.artifacts:
                lost, follows = _missed_event(known, known.created_by)
                told = f"the stream #{known.created_by} carried no event of artifact {name} before "
                told += f"{_first_end(known)}, the Task in #{context.record.id} has it{lost}"
                evidence = {"stream": str(known.created_by)}
                yield RuleFinding(
                    summary=told, path=place, value=name, follows=follows, evidence=evidence
                )


def _first_end(task: TaskRecord) -> str:
    """Return the name of the state that ended the task. A client may leave at it, and later events
    are then unknown."""
    return next((state_label(state) for _, state in task.states if state in TERMINAL), "its end")


def _missed_event(task: TaskRecord, stream: int) -> tuple[str, str]:
    """Return the first gap of a stream in words and as a reference to its finding; empty texts if
    it has no gap."""
    runs = task.numbers.missed_runs() if task.numbers is not None else ()
    missed = next(
        (each for each in runs if each.exchange == stream and not each.is_explained), None
    )
    if missed is None:
        return "", ""
    events = "event" if missed.first == missed.last else "events"
    return f" (the missing {events} of A2A-GEN-001)", f"A2A-GEN-001 #{stream}"


def _describe_content(content: PartsSummary, *, crc: bool) -> str:
    """Return the length of the content; `crc` adds a checksum, which distinguishes contents of
    equal length."""
    told = f"{content.length} bytes of text"
    if crc:
        told += f" (CRC {content.digest:08x})"
    if content.other_parts:
        told += (
            f" and {content.other_parts} other parts with {content.byte_count} bytes of raw content"
        )
    return told


def _task_with_range(start: str, end: str) -> dict[str, Any]:
    return task(artifacts=[artifact(startGeneration=start, endGeneration=end)], generation="9")


@rule(
    "A2A-ART-008",
    "The generation range of an artifact is contradictory",
    Severity.WARNING,
    section="1.1 draft, PR #2129",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    trigger_flags=FrameFlag.NUMBERED,
    flagged=rpc("GetTask", TASK_PARAMS, _task_with_range("9", "4"), version="1.1"),
    clean=rpc("GetTask", TASK_PARAMS, _task_with_range("4", "9"), version="1.1"),
)
def contradicts(context: RuleContext) -> Iterator[RuleFinding]:
    """An artifact has a `startGeneration` greater than its `endGeneration`, or a range that does
    not contain the generation of an update that carried the artifact.

    The range states when the artifact was written, so a client that builds a timeline from it puts
    the artifact in the wrong place. The agent must correct the range.
    """
    frame = context.frame
    if not context.has_flag(FrameFlag.TASK | FrameFlag.ARTIFACT) or not _may_have_range(frame):
        return
    value = context.object
    held = value.get("artifacts") if frame.event is EventKind.TASK else [value.get("artifact")]
    place = f"{context.root}{object_prefix(frame, context.is_v1, context.operation)}"
    for index, each in enumerate(held if isinstance(held, list) else ()):
        if not isinstance(each, dict):
            continue
        path = f"{place}artifacts[{index}]" if frame.event is EventKind.TASK else f"{place}artifact"
        yield from _check_range(context, each, path)


def _may_have_range(frame: Frame) -> bool:
    """Whether the payload may contain a generation range; of the protobuf forms only one proposal
    has it."""
    if frame.schema == "json":
        return b"Generation" in frame.payload
    return frame.schema.endswith("@live-2153")


def _check_range(context: RuleContext, value: dict[str, Any], path: str) -> Iterator[RuleFinding]:
    start, end = (
        _parse_int64(value.get("startGeneration")),
        _parse_int64(value.get("endGeneration")),
    )
    if not start or not end:
        return
    name = str(value.get("artifactId"))[:60]
    if start > end:
        told = (
            f"artifact {name} has startGeneration {start}, which is greater than endGeneration "
            f"{end}"
        )
        yield RuleFinding(summary=told, path=f"{path}.startGeneration", value=str(start))
        return
    found = context.task.artifacts.get(name) if context.task is not None else None
    if (
        found is None
        or not found.is_stream_over
        or not found.is_fully_recorded
        or not found.first_generation
    ):
        return
    if start > found.first_generation or end < found.last_generation:
        updates = f"{found.first_generation} to {found.last_generation}"
        told = f"artifact {name} claims generations {start} to {end}, but its updates had {updates}"
        yield RuleFinding(summary=told, path=f"{path}.startGeneration", value=str(start))


def _parse_int64(value: Any) -> int:
    """Return an int64 in ProtoJSON, or 0 if the value is not one."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
