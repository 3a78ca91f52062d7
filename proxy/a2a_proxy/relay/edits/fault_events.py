"""The events in JSON that faults look for: their facts, and another generation in their bytes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from a2a_proxy.faults.plan import EventFacts
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.frame import EventKind
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.json_summary import summarise_leniently
from a2a_proxy.protocol.summary import Summary, generation_number

MAX_MESSAGE_BYTES = 4 << 20
"""Bytes of the largest event that is read."""

_TURN_ENDS = frozenset(int(state) for state in TaskState if state.terminal or state.interrupted)
_DATA_LINE = re.compile(rb"^data(?::[ ]?([^\r\n]*))?(\r\n|\r|\n)", re.MULTILINE)
_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n|\Z))")
NO_FACTS = EventFacts()
"""Those of an event that cannot be read."""


def facts_of(summary: Summary) -> EventFacts:
    """Return the facts of an event with this summary."""
    kind, state, final = summary[0], summary[5], summary[9]
    return EventFacts(kind, state, final or kind is EventKind.MESSAGE or state in _TURN_ENDS)


def read_json_event(text: bytes, *, streaming: bool) -> EventFacts:
    """Return the facts of an event or an answer: a JSON-RPC response, or the object itself."""
    try:
        value = msgspec.json.decode(text)
    except UNREADABLE_ERRORS:
        return NO_FACTS
    return facts_of(summarise_leniently(_result_of(value), streaming))


def change_json_generation(text: bytes, change: int) -> bytes | None:
    """Return the event with its generation changed by a number, or None if it has none."""
    try:
        value = msgspec.json.decode(text)
    except UNREADABLE_ERRORS:
        return None
    result = _result_of(value)
    if not isinstance(result, dict):
        return None
    for holder in (result, *result.values()):
        number = holder.get("generation") if isinstance(holder, dict) else None
        if number is not None and (before := generation_number(number)):
            after = max(before + change, 0)
            holder["generation"] = after if isinstance(number, int) else str(after)
            return msgspec.json.encode(value)
    return None


def _result_of(value: Any) -> Any:
    return value["result"] if isinstance(value, dict) and "result" in value else value


class SseEvents:
    """Splits a body into events, as bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes, end: int) -> list[tuple[bytes, int]]:
        """Return the events that are complete, each with the offset of its last byte. `end`: the offset after the last
        byte of `data`."""
        self._rest += data
        events, begin, start = [], end - len(self._rest), 0
        for found in _EVENT_END.finditer(self._rest):
            events.append((self._rest[start : found.end()], begin + found.end() - 1))
            start = found.end()
        self._rest = self._rest[start:]
        return events

    def take_rest(self) -> bytes:
        """Return the bytes of an event that is not complete."""
        rest, self._rest = self._rest, b""
        return rest

    @property
    def is_too_long(self) -> bool:
        """Whether the event that is not complete is larger than MAX_MESSAGE_BYTES."""
        return len(self._rest) > MAX_MESSAGE_BYTES


def data_of_event(event: bytes) -> bytes:
    """Return the values of the data lines of an SSE event, joined by LF; empty if it has none."""
    return b"\n".join(found[1] or b"" for found in _DATA_LINE.finditer(event))


def change_event_generation(event: bytes, change: int) -> bytes | None:
    """Return the SSE event with its generation changed by a number, in one data line, or None if it has none."""
    data = change_json_generation(data_of_event(event), change)
    if data is None:
        return None
    lines = iter([b"data: " + data])
    return _DATA_LINE.sub(lambda found: (line + found[2]) if (line := next(lines, b"")) else b"", event)
