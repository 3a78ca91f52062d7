"""Track the generations of each task on each of its streams (A2A 1.1 draft section 3.2.7).

An event carries the generation of the change that it reports; a snapshot (Task) carries the generation of the state
that it shows and is not an event. Each stream has a cursor of its own: the same generation on two streams is one event
sent twice. The events of a task are remembered, so that a missing generation can be classified: lost on this stream
only, or never relayed.

Rules call `generation_verdicts()`. The first call for a frame updates the tracker; later calls return the cached
result.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.facts.event_digest import artifacts_digest, update_digest
from a2a_proxy.rules.state.records import Notes, TaskRecord

MAX_EVENTS = 256
"""Number of events remembered for each task and for each stream."""
MAX_GAPS = 16
"""Number of open gaps remembered for each task, and of audiences."""
MAX_MISSING = 64
"""Number of missing generations of a stream that may still arrive, and of snapshots remembered for each task."""

_UPDATE_EVENTS = frozenset({EventKind.STATUS, EventKind.ARTIFACT})
_OTHER_EVENTS = frozenset({EventKind.MESSAGE, EventKind.UNKNOWN})
"""Events of a proposal (`messageUpdate`, Q-32): tracked only if they have a generation."""


class GenerationFault(Enum):
    """What is wrong with one generation."""

    GAP = "generations are missing"
    FIRST_GAP = "generations are missing before the first event of a stream that has no snapshot to count from"
    AWAY = "generations advanced while no stream was open"
    REPEAT = "a different event with the last generation"
    AGAIN = "the same event again"
    PROGRESS = "a progress update with the last generation (undefined in the draft)"
    REGRESS = "a generation lower than the last one"
    LATE = "an event that fills a gap"
    ZERO = "no generation, although the task had one"
    BEHIND = "a snapshot with a lower generation than the last event"
    SAME = "a snapshot with the generation of another one, but different content"
    DIFFERS = "a different event than elsewhere with this generation"


class Verdict(msgspec.Struct, frozen=True):
    """One fault of one frame."""

    fault: GenerationFault
    last: int = 0
    """Previous generation on this stream."""
    first: int = 0
    final: int = 0
    """First and last missing generation."""
    elsewhere: tuple[int, ...] = ()
    """Missing generations that another stream or a push notification carried."""
    other: int = 0
    """Exchange, or state, to compare with."""
    snapshot: bool = False


class _NumberedEvent(msgspec.Struct, array_like=True):
    """Facts of one event of a task, stored by its generation."""

    digest: str
    exchange: int
    event: int
    state: int
    is_change: bool
    """Whether the event is known to be a counted change: an artifact, or a state other than the previous one."""


def generation_verdicts(context: RuleContext) -> list[Verdict]:
    """Return the faults of this frame's generation, and update the tracker at the first call."""
    found = context.cache.get("generations")
    if found is None:
        found = context.cache["generations"] = _judge_generation(context)
    result: list[Verdict] = found
    return result


def open_gaps(task: TaskRecord) -> list[list[Any]]:
    """Return the open gaps of a task, each as first, last, time (ns), exchange, client."""
    found: list[list[Any]] = (task.notes or {}).get("gen", {}).get("gaps", [])
    return found


def _judge_generation(context: RuleContext) -> list[Verdict]:
    frame, task = context.frame, context.task
    if task is None and frame.generation > 0:
        task = context.session.task_record(context.record.agent, frame.task_id)
    if task is None or (frame.event in _OTHER_EVENTS and frame.generation <= 0):
        return []
    if frame.generation <= 0 and "gen" not in (task.notes or {}):
        return []  # the task has never had a generation: nothing to judge or to remember
    log: Notes = task.writable_notes().setdefault("gen", {"seen": {}, "snapshots": {}, "lanes": [], "gaps": []})
    line: Notes = context.record.writable_notes().setdefault("gen", {"last": 0, "missing": [], "told": {}})
    found = _judge_numbered(context, task, log, line) if frame.generation > 0 else _judge_unnumbered(context, log, line)
    if frame.state:
        line["state"] = frame.state
    line["before"], line["at"] = line.get("at", 0), frame.at
    return found


# --- without a generation -----------------------------------------------------------------------------------------


def _audience(context: RuleContext) -> str:
    """Return the audience of a frame: a task is compared with frames for the same version, as older ones get no
    generations."""
    return "push" if context.binding is Binding.WEBHOOK else context.exchange.version_header


def _judge_unnumbered(context: RuleContext, log: Notes, line: Notes) -> list[Verdict]:
    if line.get("off") or _audience(context) not in log["lanes"]:
        return []
    malformed = _has_malformed_number(context)
    if malformed or context.has_flag(FrameFlag.SAME):
        line["blank"] = line.get("blank", 0) + 1
    else:
        line["off"] = True
    last = line["last"] or (context.task.generation if context.task else 0)
    if malformed:
        return [Verdict(GenerationFault.REGRESS, last)] if context.binding is Binding.GRPC else []
    return [Verdict(GenerationFault.ZERO, last)]


def _has_malformed_number(context: RuleContext) -> bool:
    """Return whether `generation` is present but not usable: another fault (A2A-GEN-020), on gRPC a negative number."""
    value = context.object.get("generation")
    return value is not None and str(value) != "0"


# --- with a generation --------------------------------------------------------------------------------------------


def _judge_numbered(context: RuleContext, task: TaskRecord, log: Notes, line: Notes) -> list[Verdict]:
    lane = _audience(context)
    if lane not in log["lanes"] and len(log["lanes"]) < MAX_GAPS:
        log["lanes"].append(lane)
    if line.get("off"):
        return []
    found: list[Verdict] = []
    seen = _remember_snapshot(context, log) if context.frame.event is EventKind.TASK else []
    if context.record.is_streaming:
        found += _judge_stream_number(context, task, log, line)
    if not any(
        each.fault is GenerationFault.BEHIND for each in found
    ):  # a wrong generation says nothing about the state of the task
        found += seen
    if context.frame.event is not EventKind.TASK and not any(each.fault is GenerationFault.PROGRESS for each in found):
        found += _remember_event(context, log, line)
    _note_gaps(context, log, found)
    return found


def _judge_stream_number(context: RuleContext, task: TaskRecord, log: Notes, line: Notes) -> list[Verdict]:
    frame, last = context.frame, line["last"]
    number = frame.generation
    if not last:
        found = _judge_first_number(context, task, number)
        line["last"] = number
    elif frame.event is EventKind.TASK:
        found = _judge_later_snapshot(number, last, log, line)
        line["last"] = max(last, number)
    else:
        found = _judge_later_event(context, number, log, line)
    if frame.event is not EventKind.TASK:
        _put_bounded(line["told"], number, update_digest(context), MAX_EVENTS)
    return found


def _judge_first_number(context: RuleContext, task: TaskRecord, number: int) -> list[Verdict]:
    """Judge the first generation of a stream: the others are counted from it, whatever the task had before."""
    if len(task.streams) > 1 or context.record.events > 1:
        return []  # another stream may lag behind this one, or generations began in mid-stream
    if context.frame.event is EventKind.TASK:
        if context.operation in _RETURN_OPERATIONS and 0 < task.generation < number:
            return [Verdict(GenerationFault.AWAY, task.generation, task.generation + 1, number, snapshot=True)]
        return []
    if task.generation + 1 >= number or not (task.generation or task.created_by == context.record.id):
        return []
    return [Verdict(GenerationFault.FIRST_GAP, task.generation, task.generation + 1, number - 1)]


_RETURN_OPERATIONS = frozenset({"SubscribeToTask", "ReconnectToTask"})


def _judge_later_snapshot(number: int, last: int, log: Notes, line: Notes) -> list[Verdict]:
    if number < last:
        return [Verdict(GenerationFault.BEHIND, last, snapshot=True)]
    first = _next_number(line)
    return [_open_gap(last, first, number, log, line, snapshot=True)] if number >= first else []


def _next_number(line: Notes) -> int:
    """Return the generation that is due: events with an unreadable generation may have had the ones before it."""
    return int(line["last"] + 1 + line.pop("blank", 0))


def _judge_later_event(context: RuleContext, number: int, log: Notes, line: Notes) -> list[Verdict]:
    last, again = line["last"], line.get("again", 0)
    if again and number == again + 1:  # the agent has started to count again, from a lower generation
        line["again"] = number if number < last else 0
        line["last"] = max(last, number)
        return []
    if number > last:
        first, line["last"] = _next_number(line), number
        return [_open_gap(last, first, number - 1, log, line)] if number > first else []
    if number in line["missing"]:
        line["missing"].remove(number)
        log["gaps"] = [
            gap for gap in log["gaps"] if gap[3] != context.record.id or not _is_gap_filled(gap, number, line)
        ]
        return [Verdict(GenerationFault.LATE, last)]
    if number < last:
        return _judge_lower_number(context, number, log, line)
    return _judge_equal_number(context, number, line)


def _is_gap_filled(gap: list[Any], number: int, line: Notes) -> bool:
    """Return whether the last missing event of a gap has arrived. A gap of more than `MAX_MISSING` never counts as
    filled."""
    first, final = gap[0], gap[1]
    here = first <= number <= final and final - first < MAX_MISSING
    return here and not any(first <= each <= final for each in line["missing"])


def _judge_lower_number(context: RuleContext, number: int, log: Notes, line: Notes) -> list[Verdict]:
    if _is_repeated_event(context, number, line):
        return [Verdict(GenerationFault.AGAIN, line["last"])]
    line["again"] = number
    log["seen"], log["snapshots"] = {}, {}
    return [Verdict(GenerationFault.REGRESS, line["last"])]


def _judge_equal_number(context: RuleContext, number: int, line: Notes) -> list[Verdict]:
    """Judge an event with the last generation: a snapshot before it may have the same one, another event may not."""
    last = line["last"]
    if context.has_flag(FrameFlag.REPEAT):
        return [Verdict(GenerationFault.AGAIN, last)]
    if str(number) not in line["told"]:
        return []
    if context.frame.event is EventKind.STATUS and context.has_flag(FrameFlag.SAME):
        return [Verdict(GenerationFault.PROGRESS, last)]
    if _is_repeated_event(context, number, line):
        return [Verdict(GenerationFault.AGAIN, last)]
    line["off"] = True
    return [Verdict(GenerationFault.REPEAT, last)]


def _is_repeated_event(context: RuleContext, number: int, line: Notes) -> bool:
    told = line["told"].get(str(number))
    return bool(told) and told == update_digest(context)


def _open_gap(last: int, first: int, final: int, log: Notes, line: Notes, snapshot: bool = False) -> Verdict:
    room = range(first, min(final, first + MAX_MISSING) + 1)
    late = room[:-1] if snapshot else room  # the event with the generation of the snapshot may follow it
    line["missing"] = [*line["missing"], *late][-MAX_MISSING:]
    elsewhere = tuple(number for number in room if str(number) in log["seen"])
    return Verdict(GenerationFault.GAP, last, first, final, elsewhere, snapshot=snapshot)


# --- events and snapshots of the task -----------------------------------------------------------------------------


def _remember_event(context: RuleContext, log: Notes, line: Notes) -> list[Verdict]:
    """Remember the event, and compare it with the event of the same generation in another exchange."""
    frame = context.frame
    if frame.event not in _UPDATE_EVENTS:
        return []
    change = frame.event is EventKind.ARTIFACT or (frame.state != line.get("state", context.stream_state_before) != 0)
    here = _NumberedEvent(update_digest(context), context.record.id, int(frame.event), frame.state, change)
    known = log["seen"].get(str(frame.generation))
    before = msgspec.convert(known, _NumberedEvent) if known else None
    if before is None or (here.is_change and not before.is_change):
        _put_bounded(log["seen"], frame.generation, msgspec.to_builtins(here), MAX_EVENTS)
    if before is None or before.exchange == here.exchange or not _are_contradictory(before, here):
        return []
    return [Verdict(GenerationFault.DIFFERS, line["last"], other=before.exchange)]


def _are_contradictory(one: _NumberedEvent, two: _NumberedEvent) -> bool:
    """Return whether two events of one generation exclude each other. Progress updates may share it with another
    event."""
    if not one.digest or not two.digest or one.digest == two.digest:
        return False
    status = int(EventKind.STATUS)
    if one.event == two.event == status and one.state != two.state:
        return True
    return one.is_change and two.is_change


def _remember_snapshot(context: RuleContext, log: Notes) -> list[Verdict]:
    """Remember the snapshot, and compare it with another one of the same generation. Either may lack artifacts."""
    frame = context.frame
    log["gaps"] = [gap for gap in log["gaps"] if gap[1] > frame.generation or gap[4] != context.record.client]
    here = [frame.state, artifacts_digest(context)]
    before = log["snapshots"].get(str(frame.generation))
    if before is None:
        _put_bounded(log["snapshots"], frame.generation, here, MAX_MISSING)
        return []
    differs = (frame.state and before[0] and frame.state != before[0]) or (
        before[1] and here[1] and before[1] != here[1]
    )
    return [Verdict(GenerationFault.SAME, frame.generation, other=before[0], snapshot=True)] if differs else []


def _note_gaps(context: RuleContext, log: Notes, found: list[Verdict]) -> None:
    for each in found:
        if each.fault is GenerationFault.GAP and not each.snapshot:
            log["gaps"] = [
                *log["gaps"],
                [each.first, each.final, context.at, context.record.id, context.record.client],
            ][-MAX_GAPS:]


def _put_bounded(table: dict[str, Any], number: int, value: Any, room: int) -> None:
    """Put a value under its generation, and delete the oldest entry if the table has more than `room`."""
    table.setdefault(str(number), value)
    table[str(number)] = value
    if len(table) > room:
        del table[next(iter(table))]
