"""The timeline of a Task and the generation ranges of its artifacts (A2A 1.1 draft sections 3.2.8,
4.1.8)."""

import re
from enum import IntEnum
from typing import Any

import msgspec

from a2a_proxy.protocol.summary import generation_number

HISTORY_MARKS = re.compile(rb'"(?:timeline|history)"|\\\\u')
"""Found in every JSON text of a Task with a timeline or a history."""


class EntryKind(IntEnum):
    """Kind of a timeline entry. The numbers are saved: never renumber."""

    UNKNOWN = 0
    """A kind that this version does not know. Clients skip it, its generation counts (section
    3.2.8)."""
    MESSAGE = 1
    STATUS = 2


class TimelineEntry(msgspec.Struct, frozen=True, gc=False):
    """One change of the task."""

    generation: int
    kind: EntryKind
    message_id: str = ""
    """Id of the client's message; empty for other kinds."""


class Timeline(msgspec.Struct, frozen=True):
    """What one Task shows about its own changes."""

    generation: int
    """Generation of the Task."""
    entries: tuple[TimelineEntry, ...]
    artifact_ranges: tuple[tuple[int, int], ...] = ()
    """First and last generation of each artifact; the last one is the Task's if the artifact is not
    complete."""
    history_ids: tuple[str, ...] = ()
    """Ids of the client's messages in `history`."""

    def entry_at(self, generation: int) -> TimelineEntry | None:
        """Return the entry with this generation, or None."""
        return next((each for each in self.entries if each.generation == generation), None)

    def shows_artifact_change(self, generation: int) -> bool:
        """Whether the change with this generation must have been an artifact update.

        The timeline has entries before and none at this generation, so the change is neither a
        status nor a message, and an artifact changed in a range that includes it. A range alone
        proves nothing: statuses and messages fall inside it, and a timeline may be cut
        (`timelineLength`).
        """
        return (
            generation <= self.generation
            and any(each.generation < generation for each in self.entries)
            and self.entry_at(generation) is None
            and any(first <= generation <= last for first, last in self.artifact_ranges)
        )


def read_timeline(task: dict[str, Any], generation: int) -> Timeline | None:
    """Return the timeline of a Task in the 1.0 JSON form; None if it has neither a timeline nor a
    history."""
    entries = [_read_entry(each) for each in _list_of_objects(task.get("timeline"))]
    history = [
        each["messageId"]
        for each in _list_of_objects(task.get("history"))
        if isinstance(each.get("messageId"), str) and each.get("role") == "ROLE_USER"
    ]
    if not entries and not history:
        return None
    ranges = []
    for artifact in _list_of_objects(task.get("artifacts")):
        first = generation_number(artifact.get("startGeneration"))
        if first > 0:
            ranges.append((first, generation_number(artifact.get("endGeneration")) or generation))
    return Timeline(
        generation,
        tuple(each for each in entries if each.generation > 0),
        tuple(ranges),
        tuple(history),
    )


def _read_entry(entry: dict[str, Any]) -> TimelineEntry:
    generation = generation_number(entry.get("generation"))
    message = entry.get("message")
    if isinstance(message, dict):
        ident = message.get("messageId")
        return TimelineEntry(generation, EntryKind.MESSAGE, ident if isinstance(ident, str) else "")
    return TimelineEntry(
        generation, EntryKind.STATUS if isinstance(entry.get("status"), dict) else EntryKind.UNKNOWN
    )


def _list_of_objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
