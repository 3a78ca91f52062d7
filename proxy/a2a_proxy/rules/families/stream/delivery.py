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
from a2a_proxy.rules.define.rule import FrameFlag
from a2a_proxy.rules.facts.event_digest import digest
from a2a_proxy.rules.state.records import ExchangeRecord, Notes, TaskRecord

MAX_EVENTS = 256
"""Events of one stream that are remembered."""
MAX_STREAMS = 8
LIVE = frozenset({"SendLiveMessage", "ReconnectToTask"})
AMBIGUOUS = -1
"""Where an event has come more than once."""


class Delivered:
    """The events of one stream, over its notes."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    @property
    def first(self) -> int:
        """When the stream told its first event, or when it was first not alone, ns."""
        return int(self._notes["first"])

    @property
    def live(self) -> bool:
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
    def base(self) -> int:
        """The number from which it counts; 0 where it has none."""
        return int(self._notes["base"])

    @property
    def keys(self) -> list[str]:
        """The latest events in order."""
        found: list[str] = self._notes["keys"]
        return found

    def place(self, key: str) -> int | None:
        """Its position; None where it has not come, AMBIGUOUS where it came twice."""
        found: int | None = self._notes["places"].get(key)
        return found

    def with_number(self, number: str) -> set[str]:
        """The events with this number that have come."""
        return {key for key in self.keys if key.startswith(f"{number}:")}

    def add(self, key: str) -> None:
        """The next event."""
        places, keys = self._notes["places"], self.keys
        places[key] = AMBIGUOUS if key in places else self._notes["count"]
        self._notes["count"] += 1
        keys.append(key)
        if len(keys) > MAX_EVENTS:
            places.pop(keys.pop(0), None)


def delivered(task: TaskRecord, exchange: int) -> Delivered | None:
    """What one stream has delivered; None where it was never open beside another."""
    notes = _all(task).get(str(exchange))
    return Delivered(notes) if notes is not None else None


def others(task: TaskRecord, exchange: int) -> list[tuple[int, Delivered]]:
    """The other streams of a task that are compared, and what each has delivered; some may have ended."""
    found = sorted((int(number), Delivered(notes)) for number, notes in _all(task).items())
    return [(number, each) for number, each in found if number != exchange]


def key_of(see: RuleContext) -> str:
    """The event as it is known again: `3:9f...`, or `:9f...` without a number; empty where it cannot be."""
    if see.frame.event not in (EventKind.STATUS, EventKind.ARTIFACT):
        return ""
    found = digest(see)
    return f"{see.frame.generation or ''}:{found}" if found else ""


def learn(see: RuleContext) -> str:
    """Take up one event of a stream that is not alone; its key, or empty where there is nothing to compare."""
    found = see.cache.get("delivery")
    if found is None:
        found = see.cache["delivery"] = _learn(see)
    return str(found)


def _learn(see: RuleContext) -> str:
    task, track = see.task, see.track
    if task is None or track.id not in task.streams:
        return ""
    mine = delivered(task, track.id) or _begin(see, task)
    key = key_of(see)
    if mine is not None and key:
        mine.add(key)
    return key


def _begin(see: RuleContext, task: TaskRecord) -> Delivered | None:
    """None where others are compared: a task may have thousands of streams."""
    every = task.remember().setdefault("shared", {})
    for number in [each for each in every if int(each) not in task.streams]:
        if see.at - every[number]["first"] > 60_000_000_000 or len(every) >= MAX_STREAMS:
            del every[number]
    for number in task.streams:  # what comes from now on has to come on those as well
        if len(every) >= MAX_STREAMS:
            return None
        other = see.world.tracks.get(number)
        if other is not None and number != see.track.id and str(number) not in every:
            _enter(every, task, other, see.at, other.generation)
    if len(every) >= MAX_STREAMS:
        return None
    told = see.frame.generation
    base = told if see.frame.event is EventKind.TASK else see.generation_before or max(told - 1, 0)
    return _enter(every, task, see.track, see.at, base)


def _enter(every: dict[str, Any], task: TaskRecord, track: ExchangeRecord, at: int, base: int) -> Delivered:
    notes: Notes = {"first": at, "base": base, "keys": [], "places": {}, "count": 0, "top": {}}
    notes |= {"live": track.operation in LIVE, "connection": track.connection, "joined": task.streams[track.id]}
    every[str(track.id)] = notes
    return Delivered(notes)


def _all(task: TaskRecord) -> dict[str, Any]:
    found: dict[str, Any] = (task.notes or {}).get("shared", {})
    return found


def suspect(task: TaskRecord, exchange: int, key: str) -> bool:
    """Whether another stream may have this event before one that came here earlier.

    Each stream keeps, for each other one, the furthest place there of what both have told. Events may turn out to have
    come twice: `crossed` looks again.
    """
    every, found = _all(task), False
    mine = every.get(str(exchange))
    if mine is None or not (here := mine["places"].get(key, 0)) >= 0:
        return False
    for number, other in every.items():
        there = other["places"].get(key)
        if there is None or there == AMBIGUOUS or other is mine:
            continue
        furthest = mine["top"].get(number, AMBIGUOUS)
        found = found or there < furthest
        mine["top"][number] = max(furthest, there)
        other["top"][str(exchange)] = max(other["top"].get(str(exchange), AMBIGUOUS), here)
    return found


def live_beside(task: TaskRecord, exchange: int) -> list[int]:
    """The other live streams of a live stream: an event that one of them leaves out is A2A-LIVE-016's."""
    mine = delivered(task, exchange)
    return [number for number, each in others(task, exchange) if each.live] if mine is not None and mine.live else []


def crossed(task: TaskRecord, exchange: int, key: str) -> tuple[int, str] | None:
    """Another stream that has this event before one that came here earlier; the stream, and that event."""
    mine = delivered(task, exchange)
    if mine is None or mine.place(key) in (None, AMBIGUOUS):
        return None
    before = mine.keys[: mine.keys.index(key)]
    for number, other in others(task, exchange):
        here = other.place(key)
        if here is None or here == AMBIGUOUS:
            continue
        for earlier in reversed(before):
            there = other.place(earlier)
            if there is not None and there > here and mine.place(earlier) != AMBIGUOUS:
                return number, earlier
    return None


def in_order(before: str, after: str) -> bool:
    """Both have numbers, and these go up: then the other stream is the one that is wrong."""
    one, two = before.partition(":")[0], after.partition(":")[0]
    return bool(one and two) and int(one) <= int(two)


class Missing:
    """How sure it is that `lost` should have told what `shown` has: judged when the time for it is over."""

    def __init__(self, shown: Delivered, lost: Delivered, key: str, *, progress: bool) -> None:
        self._shown, self._lost, self._key, self._progress = shown, lost, key, progress
        self._number = key.partition(":")[0]
        place = shown.place(key)
        self._place = AMBIGUOUS if place is None else place

    @property
    def numbered(self) -> bool:
        """The event has a number."""
        return bool(self._number)

    @property
    def came(self) -> bool:
        """It came, or it cannot be told: with its number and other words it is A2A-GEN-021."""
        shown, lost = self._shown, self._lost
        if lost.place(self._key) is not None or self._place == AMBIGUOUS:
            return True
        return bool(
            self._number and not self._progress and lost.with_number(self._number) - shown.with_number(self._number)
        )

    @property
    def due(self) -> bool:
        """It is known to be later than the beginning of the stream: its number says so, or an event before it came."""
        if not self._number or (self._progress and int(self._number) == self._lost.base):
            return self._common(range(self._place))
        return int(self._number) > self._lost.base

    @property
    def passed(self) -> bool:
        """An event after it came: it will not come any more."""
        return self._common(range(self._place + 1, 1 << 62))

    def _common(self, places: range) -> bool:
        """Some event at one of these places came on both."""
        for key in self._shown.keys:
            place, there = self._shown.place(key), self._lost.place(key)
            if place is not None and place in places and there is not None and there != AMBIGUOUS:
                return True
        return False


def is_progress(see: RuleContext) -> bool:
    """A status update that changes nothing and repeats the number told last, as the draft leaves open."""
    repeats = see.frame.generation == see.generation_before
    return repeats and see.frame.event is EventKind.STATUS and see.is_(FrameFlag.SAME)


def ends(see: RuleContext) -> bool:
    """It tells the end of the task: where that is missing it is A2A-STREAM-021."""
    return see.frame.event is EventKind.STATUS and TaskState(see.frame.state).terminal
