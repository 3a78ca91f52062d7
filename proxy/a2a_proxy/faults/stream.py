"""The faults of one response: events in, pieces to send out, whatever the framing of the events."""

from collections.abc import Callable
from typing import Any

import msgspec

from a2a_proxy.faults.live import LiveFault
from a2a_proxy.faults.plan import CallFaults, EventFacts, describe_mark

MAX_HELD_BYTES = 1 << 20
"""Bytes of events that wait for the other event of a swap; with more the swap is given up."""

Regenerate = Callable[[bytes, int], bytes | None]
"""Returns the framed event with its generation changed by the number, or None if it has no
generation."""


class FaultPiece(msgspec.Struct, frozen=True):
    """Bytes to send, framed as events."""

    data: bytes
    delay: float = 0.0
    """Seconds by which it is sent later than the piece before it, or than now."""
    cut: str = ""
    """The text of the fault that ends the response after it; empty if the response continues."""


class FaultMark(msgspec.Struct, frozen=True):
    """What happened to an event of the agent."""

    place: int
    """A byte of the event: its offset in what the agent sent on the connection."""
    note: str
    ends: bool = False
    """Whether the response ends with the event."""

    def make_detail(self, stream: int) -> dict[str, Any]:
        """Return the mark as members of a record; with the number of its stream if the response
        ends."""
        return {"note": self.note, "stream": stream} if self.ends else {"note": self.note}


class StreamFaults:
    """Applies the faults of one call to the events of its response."""

    def __init__(self, faults: CallFaults, regenerate: Regenerate) -> None:
        self.faults = faults
        self.marks: list[FaultMark] = []
        """What happened to events; its owner empties it."""
        self._regenerate = regenerate
        self._held: list[bytes] = []
        """Events from the first one of a swap on."""
        self.held_bytes = 0
        """Bytes of events that wait for another event."""
        self._swap: LiveFault | None = None
        self._given_up: LiveFault | None = None
        """A swap whose second event came too late."""
        self._is_first = True

    def feed_event(self, raw: bytes, facts: EventFacts, place: int) -> list[FaultPiece]:
        """Return the pieces to send for an event. `place` is an offset as in `FaultMark`."""
        delay, copies, given_up = self.faults.pause, 1, ""
        if self._is_first:
            self._is_first = False
            for text in self.faults.count_response():
                self._mark(place, "changed", text)
        for fault in self.faults.match_event(facts):
            if fault.verb == "swap":
                raw = self._swap_event(fault, raw, place)
                if not raw:
                    return []
                continue
            if fault.verb == "gen":
                changed = self._regenerate(raw, round(fault.amount))
                if changed is None:
                    continue
                raw = changed
            elif fault.verb == "drop":
                copies = 0
            elif fault.verb == "dup":
                copies *= 2
            elif fault.verb == "stall":
                delay += fault.amount / 1e9
            elif fault.verb == "cut":
                raw, given_up = raw[: round(len(raw) * fault.amount / 100)], fault.text
            self._mark(place, _DONE[fault.verb], fault.text)
            self.faults.count_event(fault)
        if self._swap is not None and not given_up:
            self._held += [raw] * copies
            self.held_bytes += len(raw) * copies
            return self.finish() if self.held_bytes > MAX_HELD_BYTES else []
        before = self.finish() if self._held else []
        copies = max(copies, bool(given_up))
        pieces = [FaultPiece(raw, delay if not copy else 0.0, given_up) for copy in range(copies)]
        return [*before, *pieces]

    def finish(self) -> list[FaultPiece]:
        """Return the pieces that wait, because no event follows or no more may wait."""
        held, self._held, self.held_bytes = self._held, [], 0
        self._given_up, self._swap = self._swap or self._given_up, None
        return [FaultPiece(raw) for raw in held]

    def _swap_event(self, fault: LiveFault, raw: bytes, place: int) -> bytes:
        """Hold the first event of a swap, or put the second one in its place and return the bytes
        to send."""
        if fault is self._given_up:
            return raw
        if self._swap is None:
            self._swap = fault
            self._held.append(raw)
            self.held_bytes += len(raw)
            self._mark(place, "held", fault.text)
            return b""
        if self._swap is not fault:
            return raw
        first, between = self._held[0], self._held[1:]
        self._held, self.held_bytes, self._swap = [], 0, None
        self._mark(place, "sent early", fault.text)
        self.faults.count_event(fault)
        return b"".join([raw, *between, first])

    def _mark(self, place: int, what: str, text: str) -> None:
        self.marks.append(FaultMark(place, describe_mark(what, text), what == _DONE["cut"]))


_DONE = {
    "drop": "dropped",
    "dup": "sent twice",
    "stall": "delayed",
    "cut": "cut",
    "gen": "sent with another generation",
}
