"""What several streams of one task have delivered while they were open together (1.0 3.5.2).

Every event goes to every stream, in the same order. Two streams are compared by what their events say
(`rules.digest`), so that bindings make no difference, and by their numbers where they have some. What can be explained
otherwise is left alone: an event from before the second stream's snapshot that reaches a slow client late, and an event
that says what another one has said.
"""

from __future__ import annotations

from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.facts.event_digest import update_digest
from a2a_proxy.rules.state.records import ExchangeRecord, Notes, TaskRecord

MAX_DELIVERED_EVENTS = 256
"""Events of one stream that are remembered."""
MAX_STREAMS = 8
LIVE_OPERATIONS = frozenset({"SendLiveMessage", "ReconnectToTask"})
AMBIGUOUS_POSITION = -1
"""Where an event has come more than once."""


class StreamDelivery:
    """The events of one stream, over its notes."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    @property
    def first_at(self) -> int:
        """When the stream told its first event, or when it was first not alone, ns."""
        return int(self._notes["first"])

    @property
    def is_live(self) -> bool:
        """It is a live stream."""
        return bool(self._notes["live"])

    @property
    def connection(self) -> int:
        """Of the stream."""
        return int(self._notes["connection"])

    @property
    def joined(self) -> int:
        """Which one of the task's streams it was."""
        return int(self._notes["joined"])

    @property
    def base_number(self) -> int:
        """The number from which it counts; 0 where it has none."""
        return int(self._notes["base"])

    @property
    def keys(self) -> list[str]:
        """The latest events in order."""
        found: list[str] = self._notes["keys"]
        return found

    def position_of(self, key: str) -> int | None:
        """Its position; None where it has not come, AMBIGUOUS where it came twice."""
        found: int | None = self._notes["places"].get(key)
        return found

    def keys_with_number(self, number: str) -> set[str]:
        """The events with this number that have come."""
        return {key for key in self.keys if key.startswith(f"{number}:")}

    def add_event(self, key: str) -> None:
        """The next event."""
        places, keys = self._notes["places"], self.keys
        places[key] = AMBIGUOUS_POSITION if key in places else self._notes["count"]
        self._notes["count"] += 1
        keys.append(key)
        if len(keys) > MAX_DELIVERED_EVENTS:
            places.pop(keys.pop(0), None)


def stream_delivery(task: TaskRecord, exchange: int) -> StreamDelivery | None:
    """What one stream has delivered; None where it was never open beside another."""
    notes = _deliveries(task).get(str(exchange))
    return StreamDelivery(notes) if notes is not None else None


def other_streams(task: TaskRecord, exchange: int) -> list[tuple[int, StreamDelivery]]:
    """The other streams of a task that are compared, and what each has delivered; some may have ended."""
    found = sorted((int(number), StreamDelivery(notes)) for number, notes in _deliveries(task).items())
    return [(number, each) for number, each in found if number != exchange]


def event_key(context: RuleContext) -> str:
    """The event as it is known again: `3:9f...`, or `:9f...` without a number; empty where it cannot be."""
    if context.frame.event not in (EventKind.STATUS, EventKind.ARTIFACT):
        return ""
    found = update_digest(context)
    return f"{context.frame.generation or ''}:{found}" if found else ""


def learn_event(context: RuleContext) -> str:
    """Take up one event of a stream that is not alone; its key, or empty where there is nothing to compare."""
    found = context.cache.get("delivery")
    if found is None:
        found = context.cache["delivery"] = _apply_event(context)
    return str(found)


def _apply_event(context: RuleContext) -> str:
    task, record = context.task, context.record
    if task is None or record.id not in task.streams:
        return ""
    mine = stream_delivery(task, record.id) or _begin_delivery(context, task)
    key = event_key(context)
    if mine is not None and key:
        mine.add_event(key)
    return key


def _begin_delivery(context: RuleContext, task: TaskRecord) -> StreamDelivery | None:
    """None where others are compared: a task may have thousands of streams."""
    every = task.writable_notes().setdefault("shared", {})
    for number in [each for each in every if int(each) not in task.streams]:
        if context.at - every[number]["first"] > 60_000_000_000 or len(every) >= MAX_STREAMS:
            del every[number]
    for number in task.streams:  # what comes from now on has to come on those as well
        if len(every) >= MAX_STREAMS:
            return None
        other = context.session.exchange_records.get(number)
        if other is not None and number != context.record.id and str(number) not in every:
            _add_delivery(every, task, other, context.at, other.generation)
    if len(every) >= MAX_STREAMS:
        return None
    told = context.frame.generation
    base = told if context.frame.event is EventKind.TASK else context.generation_before or max(told - 1, 0)
    return _add_delivery(every, task, context.record, context.at, base)


def _add_delivery(
    every: dict[str, Any], task: TaskRecord, record: ExchangeRecord, at: int, base: int
) -> StreamDelivery:
    notes: Notes = {"first": at, "base": base, "keys": [], "places": {}, "count": 0, "top": {}}
    notes |= {
        "live": record.operation in LIVE_OPERATIONS,
        "connection": record.connection,
        "joined": task.streams[record.id],
    }
    every[str(record.id)] = notes
    return StreamDelivery(notes)


def _deliveries(task: TaskRecord) -> dict[str, Any]:
    found: dict[str, Any] = (task.notes or {}).get("shared", {})
    return found


def may_be_crossed(task: TaskRecord, exchange: int, key: str) -> bool:
    """Whether another stream may have this event before one that came here earlier.

    Each stream keeps, for each other one, the furthest place there of what both have told. Events may turn out to have
    come twice: `crossed` looks again.
    """
    every, found = _deliveries(task), False
    mine = every.get(str(exchange))
    if mine is None or not (here := mine["places"].get(key, 0)) >= 0:
        return False
    for number, other in every.items():
        there = other["places"].get(key)
        if there is None or there == AMBIGUOUS_POSITION or other is mine:
            continue
        furthest = mine["top"].get(number, AMBIGUOUS_POSITION)
        found = found or there < furthest
        mine["top"][number] = max(furthest, there)
        other["top"][str(exchange)] = max(other["top"].get(str(exchange), AMBIGUOUS_POSITION), here)
    return found


def live_beside(task: TaskRecord, exchange: int) -> list[int]:
    """The other live streams of a live stream: an event that one of them leaves out is A2A-LIVE-016's."""
    mine = stream_delivery(task, exchange)
    return (
        [number for number, each in other_streams(task, exchange) if each.is_live]
        if mine is not None and mine.is_live
        else []
    )


def find_crossing(task: TaskRecord, exchange: int, key: str) -> tuple[int, str] | None:
    """Another stream that has this event before one that came here earlier; the stream, and that event."""
    mine = stream_delivery(task, exchange)
    if mine is None or mine.position_of(key) in (None, AMBIGUOUS_POSITION):
        return None
    before = mine.keys[: mine.keys.index(key)]
    for number, other in other_streams(task, exchange):
        here = other.position_of(key)
        if here is None or here == AMBIGUOUS_POSITION:
            continue
        for earlier in reversed(before):
            there = other.position_of(earlier)
            if there is not None and there > here and mine.position_of(earlier) != AMBIGUOUS_POSITION:
                return number, earlier
    return None


def is_in_order(before: str, after: str) -> bool:
    """Both have numbers, and these go up: then the other stream is the one that is wrong."""
    one, two = before.partition(":")[0], after.partition(":")[0]
    return bool(one and two) and int(one) <= int(two)


class MissingEvent:
    """How sure it is that `lost` should have told what `shown` has: judged when the time for it is over."""

    def __init__(self, delivered: StreamDelivery, suspect: StreamDelivery, key: str, *, progress: bool) -> None:
        self._delivered, self._suspect, self._key, self._progress = delivered, suspect, key, progress
        self._number = key.partition(":")[0]
        place = delivered.position_of(key)
        self._position = AMBIGUOUS_POSITION if place is None else place

    @property
    def has_number(self) -> bool:
        """The event has a number."""
        return bool(self._number)

    @property
    def has_come(self) -> bool:
        """It came, or it cannot be told: with its number and other words it is A2A-GEN-021."""
        shown, lost = self._delivered, self._suspect
        if lost.position_of(self._key) is not None or self._position == AMBIGUOUS_POSITION:
            return True
        return bool(
            self._number
            and not self._progress
            and lost.keys_with_number(self._number) - shown.keys_with_number(self._number)
        )

    @property
    def is_due(self) -> bool:
        """It is known to be later than the beginning of the stream: its number says so, or an event before it came."""
        if not self._number or (self._progress and int(self._number) == self._suspect.base_number):
            return self._has_common_event(range(self._position))
        return int(self._number) > self._suspect.base_number

    @property
    def is_passed_over(self) -> bool:
        """An event after it came: it will not come any more."""
        return self._has_common_event(range(self._position + 1, 1 << 62))

    def _has_common_event(self, places: range) -> bool:
        """Some event at one of these places came on both."""
        for key in self._delivered.keys:
            place, there = self._delivered.position_of(key), self._suspect.position_of(key)
            if place is not None and place in places and there is not None and there != AMBIGUOUS_POSITION:
                return True
        return False


def is_progress(context: RuleContext) -> bool:
    """A status update that changes nothing and repeats the number told last, as the draft leaves open."""
    repeats = context.frame.generation == context.generation_before
    return repeats and context.frame.event is EventKind.STATUS and context.has_flag(FrameFlag.SAME)


def is_task_end(context: RuleContext) -> bool:
    """It tells the end of the task: where that is missing it is A2A-STREAM-021."""
    return context.frame.event is EventKind.STATUS and TaskState(context.frame.state).terminal
