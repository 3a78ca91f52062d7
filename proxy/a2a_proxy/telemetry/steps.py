"""Steps that an agent reports about itself (the traceability extension, v1), as spans below the
call's. No I/O.

The reports are claims of the agent, not observed on the wire: times may be of another clock or
invalid, parents may not exist or form cycles, and a report may be repeated. Every step gets exactly
one span, whatever is reported.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

import msgspec

from a2a_proxy.model.event import Artifact, Event, Message
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.telemetry.ids import step_id
from a2a_proxy.telemetry.values import SpanContextIds, SpanKind, SpanValue, Value

EXTENSION = "traceability"
"""Part of the extension's URI in every version."""
MAX_STEPS = 128
"""Maximum number of steps of one call; the omitted ones are counted."""
_MAX_DEPTH = 8
"""Maximum nesting of reports that are read: a nested report is of an agent that the agent
called."""
_MAX_NAME = 64
"""Maximum characters of a name."""
_MAX_CLOCK_DIFFERENCE = 86_400_000_000_000
"""Maximum distance in ns between a step and its call; a time farther away is invalid."""
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_INT64_LIMIT = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_StepKey = tuple[str, str]
"""The agent's ids of a trace and of a step in it."""


class StepReport(msgspec.Struct, frozen=True):
    """The report in one frame."""

    at: int
    """Time of the frame, ns."""
    trace: str
    """The agent's id of the trace."""
    steps: tuple[Any, ...]
    """The steps as the agent wrote them."""


class _Step(msgspec.Struct):
    """One step, and its reported parent."""

    fields: dict[str, Any]
    at: int
    place: _StepKey
    parent: _StepKey | None


def step_reports(at: int, event: Event) -> Iterator[StepReport]:
    """Yield the reports in an event of time `at` (ns): in metadata of messages and artifacts, or as
    artifact data."""
    for holder in _metadata_owners(event):
        for value in (holder.metadata or {}).values():
            yield from _parse_reports(at, value)
        for part in holder.parts if isinstance(holder, Artifact) else ():
            yield from _parse_reports(at, part.data)


def step_spans(
    call: SpanValue, reports: Iterable[StepReport], exchange: int, session: str
) -> tuple[list[SpanValue], int]:
    """Return the spans of the steps below the call's, and the number of omitted steps.

    A repeated step is ignored. A step whose parent is unknown, or that is its own ancestor, becomes
    a child of the call.
    """
    kept: list[_Step] = []
    seen: set[_StepKey] = set()
    left = 0
    for step in _flatten_steps(reports):
        if step.place[1] and step.place in seen:
            continue
        seen.add(step.place)
        if len(kept) < MAX_STEPS:
            kept.append(step)
        else:
            left += 1
    contexts = [
        SpanContextIds(call.context.trace, step_id(session, exchange, number), call.context.state)
        for number in range(len(kept))
    ]
    parents = _parent_indexes(kept)
    spans = [
        _step_span(step, call, own, call.context if above is None else contexts[above])
        for step, own, above in zip(kept, contexts, parents, strict=True)
    ]
    return spans, left


def _parent_indexes(steps: list[_Step]) -> list[int | None]:
    """Return the index of each step's parent; None is the call."""
    known: dict[_StepKey, int] = {}
    for number, step in enumerate(steps):
        if step.place[1]:
            known.setdefault(step.place, number)
    parents = [None if step.parent is None else known.get(step.parent) for step in steps]
    for number in range(len(steps)):
        above, hops = parents[number], 0
        while above is not None and above != number and hops < len(steps):
            above, hops = parents[above], hops + 1
        if above is not None:
            parents[number] = None
    return parents


def _metadata_owners(event: Event) -> Iterator[Message | Artifact]:
    status = (
        event.status_update.status
        if event.status_update
        else event.task.status
        if event.task
        else None
    )
    for message in (event.message, status.message if status else None):
        if message is not None:
            yield message
    if event.artifact_update is not None and event.artifact_update.artifact is not None:
        yield event.artifact_update.artifact
    yield from event.task.artifacts if event.task is not None else ()


def _parse_reports(at: int, value: Any) -> Iterator[StepReport]:
    steps = value.get("steps") if isinstance(value, dict) else None
    if isinstance(steps, list) and (trace := _text_field(value, "trace_id")):
        yield StepReport(at, trace, tuple(steps))


def _flatten_steps(reports: Iterable[StepReport]) -> Iterator[_Step]:
    """Yield all steps; those of nested reports follow those of the report itself."""
    for report in reports:
        waiting: list[tuple[StepReport, _StepKey | None, int]] = [(report, None, 0)]
        for one, root, depth in waiting:
            for fields in one.steps:
                if not isinstance(fields, dict):
                    continue
                place, parent = (
                    (one.trace, _text_field(fields, "step_id")),
                    _text_field(fields, "parent_step_id"),
                )
                yield _Step(fields, one.at, place, (one.trace, parent) if parent else root)
                inner = _nested_reports(fields) if depth < _MAX_DEPTH else None
                waiting += [(each, place, depth + 1) for each in _parse_reports(one.at, inner)]


def _step_span(
    step: _Step, call: SpanValue, context: SpanContextIds, parent: SpanContextIds
) -> SpanValue:
    kind, name = _kind_and_name(step.fields)
    started, ended = _step_times(step.fields, call)
    made: dict[str, Value | None] = {
        "a2a_proxy.self_reported": True,
        "a2a_proxy.step.id": _text_field(step.fields, "step_id"),
        "a2a_proxy.step.type": kind,
        "a2a_proxy.step.timed": bool(started),
        "gen_ai.tool.name": name if kind == "tool" else "",
        "gen_ai.agent.name": name if kind == "agent" else "",
        **{
            f"a2a_proxy.step.{each}": _number_field(step.fields, each)
            for each in ("cost", "total_tokens", "latency")
        },
    }
    return SpanValue(
        name=f"{kind} {name}" if name else kind,
        kind=SpanKind.INTERNAL,
        context=context,
        parent=parent,
        started=started or step.at,
        ended=ended or step.at,
        attributes={each: value for each, value in made.items() if value not in (None, "")},
        service=call.service,
        part=True,
    )


def _kind_and_name(fields: dict[str, Any]) -> tuple[str, str]:
    """Return `tool`, `agent` or `step`, and its name."""
    action = _object_field(fields, "step_action")
    tool, agent = (
        _object_field(action, "tool_invocation"),
        _object_field(action, "agent_invocation"),
    )
    kind = {"AGENT": "agent", "1": "agent", "TOOL": "tool", "2": "tool"}.get(
        _text_field(fields, "call_type"), ""
    )
    kind = kind or ("tool" if tool else "agent" if agent else "step")
    return kind, _text_field(tool, "tool_name") if kind == "tool" else _text_field(
        agent, "agent_name"
    )


def _step_times(fields: dict[str, Any], call: SpanValue) -> tuple[int, int]:
    """Return start and end in ns; 0 and 0 if they are missing or invalid."""
    start, end = (
        _parse_time(_find_field(fields, "start_time")),
        _parse_time(_find_field(fields, "end_time")),
    )
    start, end = start or end, end or start
    near = (
        call.started - _MAX_CLOCK_DIFFERENCE <= start <= end <= call.ended + _MAX_CLOCK_DIFFERENCE
    )
    return (start, end) if near else (0, 0)


def _parse_time(value: Any) -> int:
    if isinstance(value, dict):
        seconds, nanos = value.get("seconds"), value.get("nanos", 0)
        return _parse_integer(seconds) * 1_000_000_000 + _parse_integer(nanos)
    if not isinstance(value, str):
        return 0
    try:
        at = datetime.fromisoformat(value)
        return (at.replace(tzinfo=at.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1) * 1000
    except (ValueError, OverflowError):
        return 0


def _parse_integer(value: Any) -> int:
    """Return a 64-bit integer, also from a decimal string as in ProtoJSON; 0 if it is not one."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _INT64_LIMIT
        else 0
    )


def _number_field(fields: dict[str, Any], name: str) -> int | float | None:
    value = _find_field(fields, name)
    return value if isinstance(value, float) and isfinite(value) else _parse_integer(value) or None


def _text_field(fields: dict[str, Any], name: str) -> str:
    value = _find_field(fields, name)
    text = value if isinstance(value, str) else str(_parse_integer(value) or "")
    return make_visible(text[:_MAX_NAME])


def _object_field(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = _find_field(fields, name)
    return value if isinstance(value, dict) else {}


def _nested_reports(fields: dict[str, Any]) -> Any:
    return _find_field(
        _object_field(_object_field(fields, "step_action"), "agent_invocation"), "response_trace"
    )


def _find_field(fields: dict[str, Any], name: str) -> Any:
    """Return a field by its protobuf name or its JSON name."""
    head, *rest = name.split("_")
    return fields.get(name, fields.get(head + "".join(map(str.capitalize, rest))))
