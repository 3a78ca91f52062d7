"""Events that several streams of one task have delivered while they were open together (A2A 1.0
section 3.5.2).

Every event goes to every stream, in the same order. Two streams are compared by digests of their
events (`rules.facts.event_digest`), so that bindings make no difference, and by generations if the
events have them. Differences with another explanation are not reported: an event from before the
second stream's snapshot that reaches a slow client late, and an event with the same content as
another one.
"""

from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.endings.call_index import CLIENT_LEFT
from a2a_proxy.rules.facts.event_digest import update_digest
from a2a_proxy.rules.state.records import ExchangeRecord, Notes, TaskRecord

MAX_DELIVERED_EVENTS = 256
"""Number of events remembered for one stream."""
MAX_STREAMS = 8
LIVE_OPERATIONS = frozenset({"SendLiveMessage", "ReconnectToTask"})
AMBIGUOUS_POSITION = -1
"""Position of an event that was delivered more than once."""


class StreamDelivery:
    """The events delivered on one stream: a view of its notes."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    @property
    def first_at(self) -> int:
        """Time of the stream's first event, or of the moment when it first was not the only stream
        of the task, ns."""
        return int(self._notes["first"])

    @property
    def is_live(self) -> bool:
        """Whether it is a live stream."""
        return bool(self._notes["live"])

    @property
    def connection(self) -> int:
        """Number of the stream's connection."""
        return int(self._notes["connection"])

    @property
    def joined(self) -> int:
        """Ordinal of the stream among the streams of the task."""
        return int(self._notes["joined"])

    @property
    def is_over(self) -> bool:
        """Whether the agent has ended the stream, so that nothing can be delivered on it any
        more."""
        return bool(self._notes.get("over"))

    @property
    def base_number(self) -> int:
        """The generation from which the stream counts; 0 without generations."""
        return int(self._notes["base"])

    @property
    def keys(self) -> list[str]:
        """The latest events in order."""
        found: list[str] = self._notes["keys"]
        return found

    def position_of(self, key: str) -> int | None:
        """Return the position of an event, None if it was not delivered, or AMBIGUOUS_POSITION if
        it was delivered twice."""
        found: int | None = self._notes["places"].get(key)
        return found

    def keys_with_number(self, number: str) -> set[str]:
        """Return the delivered events with this generation."""
        return {key for key in self.keys if key.startswith(f"{number}:")}

    def add_event(self, key: str) -> None:
        """Append the next event."""
        places, keys = self._notes["places"], self.keys
        places[key] = AMBIGUOUS_POSITION if key in places else self._notes["count"]
        self._notes["count"] += 1
        keys.append(key)
        if len(keys) > MAX_DELIVERED_EVENTS:
            places.pop(keys.pop(0), None)


def stream_delivery(task: TaskRecord, exchange: int) -> StreamDelivery | None:
    """Return the events that one stream has delivered, or None if it was never open together with
    another."""
    notes = _deliveries(task).get(str(exchange))
    return StreamDelivery(notes) if notes is not None else None


def other_streams(task: TaskRecord, exchange: int) -> list[tuple[int, StreamDelivery]]:
    """Return the other compared streams of a task and their events; some of the streams may have
    ended."""
    found = sorted(
        (int(number), StreamDelivery(notes)) for number, notes in _deliveries(task).items()
    )
    return [(number, each) for number, each in found if number != exchange]


def event_key(context: RuleContext) -> str:
    """Return the key by which an event is recognised: `3:9f...`, or `:9f...` without a generation;
    empty if it has none."""
    if context.frame.event not in (EventKind.STATUS, EventKind.ARTIFACT):
        return ""
    found = update_digest(context)
    return f"{context.frame.generation or ''}:{found}" if found else ""


def learn_event(context: RuleContext) -> str:
    """Record one event of a stream that is not the only one of its task, and return its key, or an
    empty string if it cannot be compared."""
    found = context.cache.get("delivery")
    if found is None:
        found = context.cache["delivery"] = _apply_event(context)
    return str(found)


def learn_end(context: RuleContext) -> None:
    """Record the end of an exchange if it was a compared stream and the agent ended it."""
    task = context.task
    found = _deliveries(task).get(str(context.record.id)) if task is not None else None
    if found is not None and context.exchange.how not in CLIENT_LEFT:
        found["over"] = True


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
    """Start recording the events of a stream; return None if enough others are compared, because a
    task may have thousands of streams."""
    every = task.writable_notes().setdefault("shared", {})
    for number in [each for each in every if int(each) not in task.streams]:
        if context.at - every[number]["first"] > 60_000_000_000 or len(every) >= MAX_STREAMS:
            del every[number]
    for number in task.streams:  # later events must be delivered on those as well
        if len(every) >= MAX_STREAMS:
            return None
        other = context.session.exchange_records.get(number)
        if other is not None and number != context.record.id and str(number) not in every:
            _add_delivery(every, task, other, context.at, other.generation)
    if len(every) >= MAX_STREAMS:
        return None
    told = context.frame.generation
    base = (
        told
        if context.frame.event is EventKind.TASK
        else context.generation_before or max(told - 1, 0)
    )
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
    """Whether another stream may have this event before an event that was delivered earlier on this
    stream.

    Each stream keeps, for each other stream, the furthest position there of the events that both
    have delivered. Events may later prove to have been delivered twice: `find_crossing` checks
    again.
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
    """Return the other live streams of a live stream: A2A-LIVE-016 judges events missing there."""
    mine = stream_delivery(task, exchange)
    return (
        [number for number, each in other_streams(task, exchange) if each.is_live]
        if mine is not None and mine.is_live
        else []
    )


def find_crossing(task: TaskRecord, exchange: int, key: str) -> tuple[int, str] | None:
    """Return another stream that has this event before an event that was delivered earlier here,
    and that earlier event; or None."""
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
            if (
                there is not None
                and there > here
                and mine.position_of(earlier) != AMBIGUOUS_POSITION
            ):
                return number, earlier
    return None


def is_in_order(before: str, after: str) -> bool:
    """Whether both events have generations and these increase: then the other stream is the wrong
    one."""
    one, two = before.partition(":")[0], after.partition(":")[0]
    return bool(one and two) and int(one) <= int(two)


class MissingEvent:
    """Evidence that the stream `suspect` should have delivered an event of the stream `delivered`,
    judged when the time for it has passed."""

    def __init__(
        self, delivered: StreamDelivery, suspect: StreamDelivery, key: str, *, progress: bool
    ) -> None:
        self._delivered, self._suspect, self._key, self._progress = (
            delivered,
            suspect,
            key,
            progress,
        )
        self._number = key.partition(":")[0]
        place = delivered.position_of(key)
        self._position = AMBIGUOUS_POSITION if place is None else place

    @property
    def has_number(self) -> bool:
        """Whether the event has a generation."""
        return bool(self._number)

    @property
    def has_come(self) -> bool:
        """Whether the event was delivered, or this cannot be decided. If its generation was
        delivered with other content, A2A-GEN-021 reports it."""
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
        """Whether the event is certainly later than the beginning of the stream: by its generation,
        or because an event before it was delivered on both."""
        if not self._number or (self._progress and int(self._number) == self._suspect.base_number):
            return self._has_common_event(range(self._position))
        return int(self._number) > self._suspect.base_number

    @property
    def is_passed_over(self) -> bool:
        """Whether an event after it was delivered, so that it will not be delivered any more."""
        return self._has_common_event(range(self._position + 1, 1 << 62))

    def _has_common_event(self, places: range) -> bool:
        """Whether an event at one of these positions was delivered on both streams."""
        for key in self._delivered.keys:
            place, there = self._delivered.position_of(key), self._suspect.position_of(key)
            if (
                place is not None
                and place in places
                and there is not None
                and there != AMBIGUOUS_POSITION
            ):
                return True
        return False


def is_progress(context: RuleContext) -> bool:
    """Whether the frame is a status update that changes nothing and repeats the last generation,
    which the draft allows."""
    repeats = context.frame.generation == context.generation_before
    return repeats and context.frame.event is EventKind.STATUS and context.has_flag(FrameFlag.SAME)


def is_task_end(context: RuleContext) -> bool:
    """Whether the event shows the end of the task: A2A-STREAM-021 reports a stream without it."""
    return context.frame.event is EventKind.STATUS and TaskState(context.frame.state).terminal
