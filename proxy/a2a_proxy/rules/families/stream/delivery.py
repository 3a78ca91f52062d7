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
from a2a_proxy.rules.digest import digest
from a2a_proxy.rules.rule import When
from a2a_proxy.rules.see import See
from a2a_proxy.rules.world import Known, Notes

MAX_EVENTS = 256
"""Events of one stream that are remembered."""
MAX_STREAMS = 8
_LOOK_BACK = 64
"""Events before one that its order is compared with."""
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


def delivered(task: Known, exchange: int) -> Delivered | None:
    """What one stream has delivered; None where it was never open beside another."""
    notes = _all(task).get(str(exchange))
    return Delivered(notes) if notes is not None else None


def others(task: Known, exchange: int) -> list[int]:
    """The other streams of a task: those that are open, and those that were open beside another one."""
    ended = (int(number) for number in _all(task))
    return [number for number in sorted({*task.streams, *ended}) if number != exchange]


def key_of(see: See) -> str:
    """The event as it is known again: `3:9f...`, or `:9f...` without a number; empty where it cannot be."""
    if see.frame.event not in (EventKind.STATUS, EventKind.ARTIFACT):
        return ""
    found = digest(see)
    return f"{see.frame.generation or ''}:{found}" if found else ""


def learn(see: See) -> str:
    """Take up one event of a stream that is not alone; its key, or empty where there is nothing to compare."""
    found = see.cache.get("delivery")
    if found is None:
        found = see.cache["delivery"] = _learn(see)
    return str(found)


def _learn(see: See) -> str:
    task, track = see.task, see.track
    if task is None or track.id not in task.streams:
        return ""
    mine = delivered(task, track.id) or _begin(see, task)
    key = key_of(see)
    if key:
        mine.add(key)
    return key


def _begin(see: See, task: Known) -> Delivered:
    every = task.remember().setdefault("shared", {})
    for number in [each for each in every if int(each) not in task.streams]:
        if see.at - every[number]["first"] > 60_000_000_000 or len(every) >= MAX_STREAMS:
            del every[number]
    number = see.frame.generation
    base = number if see.frame.event is EventKind.TASK else see.generation_before or max(number - 1, 0)
    notes: Notes = {"first": see.at, "base": base, "keys": [], "places": {}, "count": 0}
    if len(every) < MAX_STREAMS:
        every[str(see.track.id)] = notes
    return Delivered(notes)


def _all(task: Known) -> dict[str, Any]:
    found: dict[str, Any] = (task.notes or {}).get("shared", {})
    return found


def crossed(task: Known, exchange: int, key: str) -> tuple[int, str] | None:
    """Another stream that has this event before one that came here earlier; the stream, and that event."""
    mine = delivered(task, exchange)
    if mine is None or mine.place(key) == AMBIGUOUS:
        return None
    before = mine.keys[-_LOOK_BACK:-1]
    for number in _all(task):
        other = delivered(task, int(number))
        here = other.place(key) if other is not None and int(number) != exchange else None
        if other is None or here is None or here == AMBIGUOUS:
            continue
        for earlier in reversed(before):
            there = other.place(earlier)
            if there is not None and there > here and mine.place(earlier) != AMBIGUOUS:
                return int(number), earlier
    return None


def in_order(before: str, after: str) -> bool:
    """Both have numbers, and these go up: then the other stream is the one that is wrong."""
    one, two = before.partition(":")[0], after.partition(":")[0]
    return bool(one and two) and int(one) <= int(two)


class Missing:
    """How sure it is that `lost` should have come on a stream: judged when the time for it is over."""

    def __init__(self, shown: Delivered, lost: Delivered, key: str, *, progress: bool) -> None:
        self._shown, self._lost, self._key = shown, lost, key
        number = key.partition(":")[0]
        place = shown.place(key)
        self.came = lost.place(key) is not None or place is None or place == AMBIGUOUS
        """It came, or it cannot be told."""
        if number and not progress and lost.with_number(number) - shown.with_number(number):
            self.came = True  # with other words: that is A2A-GEN-021
        unsure = not number or (progress and int(number) == lost.base)
        self.due = self._common(range(place or 0)) if unsure else int(number) > lost.base
        """It is known to be later than the beginning of the stream: its number says so, or an event before it came."""
        self.numbered = bool(number)
        self.passed = self._common(range((place or 0) + 1, 1 << 62))
        """An event after it came: it will not come any more."""

    def _common(self, places: range) -> bool:
        """Some event at one of these places came on both."""
        for key in self._shown.keys:
            place, there = self._shown.place(key), self._lost.place(key)
            if place is not None and place in places and there is not None and there != AMBIGUOUS:
                return True
        return False


def is_progress(see: See) -> bool:
    """A status update that changes nothing and repeats the number told last, as the draft leaves open."""
    repeats = see.frame.generation == see.generation_before
    return repeats and see.frame.event is EventKind.STATUS and see.is_(When.SAME)


def ends(see: See) -> bool:
    """It tells the end of the task: where that is missing it is A2A-STREAM-021."""
    return see.frame.event is EventKind.STATUS and TaskState(see.frame.state).terminal
