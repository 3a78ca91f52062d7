"""The events of each task across all its calls, in the order in which they happened, and how far
they have been sent.

All streams of a task follow it: the same event on two streams is one event of the timeline, and a
stream does not run ahead of an event that another one still waits for.
"""

from collections import Counter, defaultdict
from typing import Any

import msgspec

from a2a_proxy.model.values import EventKind
from a2a_proxy.replay.core.script import (
    LineKind,
    RecordedCall,
    ReplayScript,
    ScriptLine,
    ScriptSide,
)

EventKey = tuple[str, bytes, int]
"""Task id, content of the event, and how many times its stream had sent the same content before."""
UPDATE_KINDS = (EventKind.STATUS, EventKind.ARTIFACT)


class TimelineEvent(msgspec.Struct):
    """An event of a task, or a snapshot of the whole task."""

    at: int
    """When it was first sent, in ns since the Unix epoch."""
    line: ScriptLine
    key: EventKey | None
    """None for a snapshot of the task: each stream has its own."""


class Timeline:
    """All tasks of a script, by recorded id."""

    def __init__(self, script: ReplayScript) -> None:
        self._events: dict[str, list[TimelineEvent]] = defaultdict(list)
        self._key_of_place: dict[str, EventKey | None] = {}
        """By place of the line."""
        self._index_of_place: dict[str, int] = {}
        """Index of the event in the order of its task, by place of the line."""
        self._sent_counts: Counter[str] = Counter()
        """By task: number of its events that have been sent."""
        self._sent_keys: set[EventKey] = set()
        self._collect_events(script)

    def _collect_events(self, script: ReplayScript) -> None:
        events: dict[EventKey, TimelineEvent] = {}
        found: list[tuple[TimelineEvent, str]] = []
        for call in script.calls:
            event_counts: Counter[tuple[str, bytes]] = Counter()
            for line in call.lines:
                if (
                    line.side is ScriptSide.CLIENT
                    or line.what is not LineKind.MESSAGE
                    or not line.task
                ):
                    continue
                key = None
                if line.event in UPDATE_KINDS:
                    same = line.task, msgspec.json.encode(line.value, order="deterministic")
                    key = (*same, event_counts[same])
                    event_counts[same] += 1
                elif line.event is not EventKind.TASK:
                    continue
                self._key_of_place[line.place] = key
                happening = events.get(key) if key is not None else None
                at = call.began + line.at
                if happening is None:
                    happening = TimelineEvent(at, line, key)
                elif at < happening.at:
                    happening.at, happening.line = at, line
                if key is not None:
                    events[key] = happening
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
        """Return the key of an event of a task; None for any other line."""
        return self._key_of_place.get(line.place)

    def mark_sent(self, line: ScriptLine) -> None:
        """Mark a line as sent."""
        if line.place in self._index_of_place:
            self._sent_counts[line.task] = max(
                self._sent_counts[line.task], self._index_of_place[line.place] + 1
            )
            if (key := self._key_of_place[line.place]) is not None:
                self._sent_keys.add(key)

    def recorded_time(self, line: ScriptLine, call: RecordedCall) -> int:
        """Return when a line was sent in the recording, in ns since the Unix epoch; for an event,
        first on any stream."""
        index = self._index_of_place.get(line.place)
        return call.began + line.at if index is None else self._events[line.task][index].at

    def is_sent(self, key: EventKey) -> bool:
        """Whether a stream has sent the event."""
        return key in self._sent_keys

    def is_task_sent(self, task: str) -> bool:
        """Whether an event of the task has been sent to a client."""
        return self._sent_counts[task] > 0

    def has_updates(self, task: str) -> bool:
        """Whether streams report events of the task."""
        return any(happening.key for happening in self._events.get(task, ()))

    def sent_count(self, task: str) -> int:
        """Return the number of events of the task that have been sent."""
        return self._sent_counts[task]

    def last_sent_time(self, task: str) -> int:
        """Return the recorded time of the last event sent for a task, in ns since the Unix epoch; 0
        if none was."""
        reach = self._sent_counts[task]
        return self._events[task][reach - 1].at if reach else 0

    def unsent_events(self, task: str) -> list[TimelineEvent]:
        """Return the events that have not been sent, in order."""
        return [
            each
            for each in self._events.get(task, ())[self._sent_counts[task] :]
            if each.key is not None
        ]

    def is_same_point(self, task: str, one: int, other: int) -> bool:
        """Whether no event is between two indexes of the task's order."""
        low, high = sorted((one, other))
        return not any(each.key for each in self._events.get(task, ())[max(low, 0) : max(high, 0)])

    def last_event_before(self, task: str, at: int) -> tuple[int, int] | None:
        """Return index and recorded time of the last event until `at`, or None if there is none."""
        found = [
            (index, each.at)
            for index, each in enumerate(self._events.get(task, ()))
            if each.at <= at
        ]
        return found[-1] if found else None

    def events_after(self, task: str, event_id: str) -> list[TimelineEvent] | None:
        """Return the events after the one with this SSE id, or None if no event has it."""
        order = self._events.get(task, [])
        place = next(
            (index for index, each in enumerate(order) if each.line.event_id == event_id), None
        )
        return (
            None if place is None else [each for each in order[place + 1 :] if each.key is not None]
        )

    def index_of(self, line: ScriptLine) -> int:
        """Return the index of a line in the order of its task; -1 if it is not an event of a
        task."""
        return self._index_of_place.get(line.place, -1)

    def sent_generation(self, task: str) -> int:
        """Return the highest generation sent for the task so far; 0 if none was."""
        sent = self._events.get(task, ())[: self._sent_counts[task]]
        return max((each.line.generation for each in sent), default=0)

    def has_later_generation(self, task: str, generation: int) -> bool:
        """Whether the recording has a later generation than this."""
        return any(each.line.generation > generation for each in self._events.get(task, ()))

    def task_snapshot(self, task: str) -> dict[str, Any] | None:
        """Return the task at this point of the replay, with recorded identifiers; None if nothing
        was sent of it."""
        task_value: dict[str, Any] | None = None
        for happening in self._events.get(task, ())[: self._sent_counts[task]]:
            task_value = _apply_event(task_value, happening.line.value, task)
        return task_value


def _apply_event(task: dict[str, Any] | None, value: Any, identifier: str) -> dict[str, Any] | None:
    """Return the task after an event."""
    if not isinstance(value, dict):
        return task
    if isinstance(whole := value.get("task"), dict):
        return dict(whole)
    update = value.get("statusUpdate") or value.get("artifactUpdate")
    if not isinstance(update, dict):
        return task
    task_value = dict(task or {"id": identifier})
    for name in ("contextId", "generation"):
        if name in update:
            task_value[name] = update[name]
    if "status" in update:
        task_value["status"] = update["status"]
    if isinstance(artifact := update.get("artifact"), dict):
        task_value["artifacts"] = _merge_artifact(
            task_value.get("artifacts"), artifact, append=bool(update.get("append"))
        )
    return task_value


def _merge_artifact(artifacts: Any, artifact: dict[str, Any], *, append: bool) -> list[Any]:
    """Return the artifacts after one of them, or a chunk of it, was added."""
    merged = list(artifacts) if isinstance(artifacts, list) else []
    for index, each in enumerate(merged):
        if isinstance(each, dict) and each.get("artifactId") == artifact.get("artifactId"):
            parts = (
                [*each.get("parts", ()), *artifact.get("parts", ())]
                if append
                else artifact.get("parts", [])
            )
            merged[index] = {**each, **artifact, "parts": parts} if append else artifact
            return merged
    return [*merged, artifact]
