"""The events in JSON that faults look for: their facts, and another generation in their bytes."""

import re
from typing import Any

import msgspec

from a2a_proxy.faults.plan import EventFacts
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.json_summary import summarise_leniently
from a2a_proxy.protocol.summary import Summary, generation_number
from a2a_proxy.relay.edits.card_response import MOST_TOKENS, count_tokens
from a2a_proxy.wire.sse import BOM

MAX_MESSAGE_BYTES = 4 << 20
"""Bytes of the largest event that is read."""
MOST_LINES = 20_000
"""Lines of an event that is read."""

EVENT_WORK = 40
"""Units of the budget of an editor for an event that is read, and one more for each 2 **
EVENT_SHIFT bytes."""
EVENT_SHIFT = 2

_TURN_ENDS = frozenset(int(state) for state in TaskState if state.terminal or state.interrupted)
_EVENT_END = re.compile(rb"((?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n|\Z)))[\r\n]*")
_LONGEST_END = 4
"""Bytes of the longest end of an event."""
NO_FACTS = EventFacts()
"""Those of an event that cannot be read."""


def facts_of(summary: Summary) -> EventFacts:
    """Return the facts of an event with this summary."""
    kind, state, final = summary[0], summary[5], summary[9]
    return EventFacts(kind, state, final or kind is EventKind.MESSAGE or state in _TURN_ENDS)


def read_json_event(text: bytes, *, streaming: bool) -> EventFacts:
    """Return the facts of an event or an answer: a JSON-RPC response, or the object itself."""
    if count_tokens(text) > MOST_TOKENS:
        return NO_FACTS
    try:
        value = msgspec.json.decode(text)
    except UNREADABLE_ERRORS:
        return NO_FACTS
    return facts_of(summarise_leniently(_result_of(value), streaming))


def change_json_generation(text: bytes, change: int) -> bytes | None:
    """Return the event with its generation changed by a number, or None if it has none."""
    if count_tokens(text) > MOST_TOKENS:
        return None
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
        self._rest = bytearray()
        self._has_events = False

    def feed(self, data: bytes, end: int) -> list[tuple[bytes, int]]:
        """Return the events that are complete, each with the offset of its last byte; empty lines
        between them as an event without data. `end`: the offset after the last byte of `data`."""
        rest, start = self._rest, 0
        events, begin, searched = (
            [],
            end - len(rest) - len(data),
            max(0, len(rest) - _LONGEST_END + 1),
        )
        rest += data
        if not searched and (start := len(rest) - len(rest.lstrip(b"\r\n"))):
            events.append((bytes(rest[:start]), begin + start - 1))
        for found in _EVENT_END.finditer(rest, max(searched, start)):
            for stop in sorted({found.end(1), found.end()}):
                events.append((bytes(rest[start:stop]), begin + stop - 1))
                start = stop
        del rest[:start]
        if events and not self._has_events:
            self._has_events = True
            first, place = events[0]
            if first.startswith(BOM):  # of the stream, not of its first event
                events[:1] = [(BOM, place), (first[len(BOM) :], place)]
        return events

    def take_rest(self) -> bytes:
        """Return the bytes of an event that is not complete."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest

    @property
    def held_bytes(self) -> int:
        """Bytes of the event that is not complete."""
        return len(self._rest)


def data_of_event(event: bytes) -> bytes:
    """Return the values of the data lines of an SSE event, joined by LF; empty if it has none or
    too many lines."""
    if b"data" not in event or event.count(b"\n") + event.count(b"\r") > MOST_LINES:
        return b""
    return b"\n".join(
        [line[5:].removeprefix(b" ") for line in event.splitlines() if _is_data_line(line)]
    )


def change_event_generation(event: bytes, change: int) -> bytes | None:
    """Return the SSE event with its generation changed by a number, in one data line, or None if it
    has none."""
    data = change_json_generation(data_of_event(event), change)
    if data is None:
        return None
    kept: list[bytes] = []
    for line in event.splitlines(keepends=True):
        bare = line.rstrip(b"\r\n")
        if not _is_data_line(bare):
            kept.append(line)
        elif data:
            kept += (b"data: ", data, line[len(bare) :])
            data = b""
    return b"".join(kept)


def _is_data_line(line: bytes) -> bool:
    return line.startswith(b"data:") or line == b"data"
