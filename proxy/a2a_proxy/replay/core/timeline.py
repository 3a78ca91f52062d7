"""What is told of each task over all its calls, in the order in which it happened, and how far it has been told now.

Every stream of a task is fed from it: the same event on two streams is one happening, and neither stream runs ahead of
what the other one still waits for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import msgspec

from a2a_proxy.model.frame import EventKind
from a2a_proxy.replay.core.script import LineKind, RecordedCall, ReplayScript, ScriptLine, ScriptSide

EventKey = tuple[str, bytes, int]
"""Task, what the event says, and which time on its stream it says so."""
UPDATE_KINDS = (EventKind.STATUS, EventKind.ARTIFACT)


class TimelineEvent(msgspec.Struct):
    """An event of a task, or a look at the whole task."""

    at: int
    """Ns since the Unix epoch: when it was first told."""
    line: ScriptLine
    key: EventKey | None
    """None of a look at the whole task: each stream has its own."""


class Timeline:
    """All tasks of a script, by recorded id."""

    def __init__(self, script: ReplayScript) -> None:
        self._events: dict[str, list[TimelineEvent]] = defaultdict(list)
        self._key_of_place: dict[str, EventKey | None] = {}
        """By place of the line."""
        self._index_of_place: dict[str, int] = {}
        """By place of the line: where in its task's order it is."""
        self._sent_counts: Counter[str] = Counter()
        """By task: happenings that have been told now."""
        self._sent_keys: set[EventKey] = set()
        self._collect_events(script)

    def _collect_events(self, script: ReplayScript) -> None:
        known: dict[EventKey, TimelineEvent] = {}
        found: list[tuple[TimelineEvent, str]] = []
        for call in script.calls:
            said: Counter[tuple[str, bytes]] = Counter()
            for line in call.lines:
                if line.side is ScriptSide.CLIENT or line.what is not LineKind.MESSAGE or not line.task:
                    continue
                key = None
                if line.event in UPDATE_KINDS:
                    same = line.task, msgspec.json.encode(line.value, order="deterministic")
                    key = (*same, said[same])
                    said[same] += 1
                elif line.event is not EventKind.TASK:
                    continue
                self._key_of_place[line.place] = key
                happening = known.get(key) if key is not None else None
                at = call.began + line.at
                if happening is None:
                    happening = TimelineEvent(at, line, key)
                elif at < happening.at:
                    happening.at, happening.line = at, line
                if key is not None:
                    known[key] = happening
                found.append((happening, line.place))
        self._sort_events(found)

    def _sort_events(self, found: list[tuple[TimelineEvent, str]]) -> None:
        places: dict[int, int] = {}
        for happening, _ in sorted(found, key=lambda each: each[0].at):
            if id(happening) not in places:
                order = self._events[happening.line.task]
                places[id(happening)] = len(order)
                order.append(happening)
        for happening, place in found:
            self._index_of_place[place] = places[id(happening)]

    def event_key(self, line: ScriptLine) -> EventKey | None:
        """Of an event of a task; None of anything else."""
        return self._key_of_place.get(line.place)

    def mark_sent(self, line: ScriptLine) -> None:
        """A line goes out now."""
        if line.place in self._index_of_place:
            self._sent_counts[line.task] = max(self._sent_counts[line.task], self._index_of_place[line.place] + 1)
            if (key := self._key_of_place[line.place]) is not None:
                self._sent_keys.add(key)

    def recorded_time(self, line: ScriptLine, call: RecordedCall) -> int:
        """When a line was said, ns since the Unix epoch: an event, when it was first told on any stream."""
        index = self._index_of_place.get(line.place)
        return call.began + line.at if index is None else self._events[line.task][index].at

    def is_sent(self, key: EventKey) -> bool:
        """Some stream has said it."""
        return key in self._sent_keys

    def is_task_sent(self, task: str) -> bool:
        """A client has been told of it."""
        return self._sent_counts[task] > 0

    def has_updates(self, task: str) -> bool:
        """Streams tell of it."""
        return any(happening.key for happening in self._events.get(task, ()))

    def sent_count(self, task: str) -> int:
        """How many of its happenings have been told."""
        return self._sent_counts[task]

    def last_sent_time(self, task: str) -> int:
        """Recorded time of the last thing told of it, ns since the Unix epoch; 0 where nothing was."""
        reach = self._sent_counts[task]
        return self._events[task][reach - 1].at if reach else 0

    def unsent_events(self, task: str) -> list[TimelineEvent]:
        """Events that have not been told, in order."""
        return [each for each in self._events.get(task, ())[self._sent_counts[task] :] if each.key is not None]

    def is_same_point(self, task: str, one: int, other: int) -> bool:
        """No event lies between two points of its order."""
        low, high = sorted((one, other))
        return not any(each.key for each in self._events.get(task, ())[max(low, 0) : max(high, 0)])

    def last_event_before(self, task: str, at: int) -> tuple[int, int] | None:
        """Place in its order, and recorded time, of the last happening until `at`; None where there is none."""
        found = [(index, each.at) for index, each in enumerate(self._events.get(task, ())) if each.at <= at]
        return found[-1] if found else None

    def events_after(self, task: str, event_id: str) -> list[TimelineEvent] | None:
        """Events after the one that an event stream gave this id; None where none had it."""
        order = self._events.get(task, [])
        place = next((index for index, each in enumerate(order) if each.line.event_id == event_id), None)
        return None if place is None else [each for each in order[place + 1 :] if each.key is not None]

    def index_of(self, line: ScriptLine) -> int:
        """Where in its task's order a line is; -1 where it tells of none."""
        return self._index_of_place.get(line.place, -1)

    def sent_generation(self, task: str) -> int:
        """The highest generation that has been told of it now; 0 where none was."""
        sent = self._events.get(task, ())[: self._sent_counts[task]]
        return max((each.line.generation for each in sent), default=0)

    def has_later_generation(self, task: str, generation: int) -> bool:
        """The recording goes on to a later generation than this."""
        return any(each.line.generation > generation for each in self._events.get(task, ()))

    def task_snapshot(self, task: str) -> dict[str, Any] | None:
        """The task as it is at this point of the replay, in recorded identifiers; None where nothing was told of it."""
        made: dict[str, Any] | None = None
        for happening in self._events.get(task, ())[: self._sent_counts[task]]:
            made = _apply_event(made, happening.line.value, task)
        return made


def _apply_event(task: dict[str, Any] | None, value: Any, identifier: str) -> dict[str, Any] | None:
    """A task after an event."""
    if not isinstance(value, dict):
        return task
    if isinstance(whole := value.get("task"), dict):
        return dict(whole)
    update = value.get("statusUpdate") or value.get("artifactUpdate")
    if not isinstance(update, dict):
        return task
    made = dict(task or {"id": identifier})
    for name in ("contextId", "generation"):
        if name in update:
            made[name] = update[name]
    if "status" in update:
        made["status"] = update["status"]
    if isinstance(artifact := update.get("artifact"), dict):
        made["artifacts"] = _merge_artifact(made.get("artifacts"), artifact, append=bool(update.get("append")))
    return made


def _merge_artifact(artifacts: Any, artifact: dict[str, Any], *, append: bool) -> list[Any]:
    """Artifacts after one of them came, or a chunk of it."""
    kept = list(artifacts) if isinstance(artifacts, list) else []
    for index, each in enumerate(kept):
        if isinstance(each, dict) and each.get("artifactId") == artifact.get("artifactId"):
            parts = [*each.get("parts", ()), *artifact.get("parts", ())] if append else artifact.get("parts", [])
            kept[index] = {**each, **artifact, "parts": parts} if append else artifact
            return kept
    return [*kept, artifact]
