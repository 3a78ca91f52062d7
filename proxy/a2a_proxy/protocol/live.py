"""Which of three payloads a SendLiveMessage stream carries, settled while its messages come
(manual/protocol.md "Live payload detection").

All three use one path. What only one of them has is proof, for the side that said it. A message of BIDI is often one of
`2153` as well: such a stream is called BIDI until a later message of either side proves the other. Frames that were
given by then keep their schema, for their bytes read the same in both.
"""

from __future__ import annotations

from typing import Any

from a2a_proto import LivePayload, detect_live, proves_bidi
from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import LiveMode
from a2a_proxy.protocol.schema import schema_of

_MESSAGES_OF_PAYLOAD = {
    "bidi": ("1.0", "SendMessageRequest", "StreamResponse"),
    "1975": ("live-1975", "LiveRequest", "LiveResponse"),
    "2153": ("live-2153", "StreamRequest", "StreamResponse"),
}
_DISTINCTIVE_BYTES = (b"\x0a", b"\x2a")
"""First bytes of agents' messages in which `2153` shows: a Task (its timeline), a message update."""


def live_schema(payload: LivePayload, direction: Direction) -> str:
    """The schema of one side's messages."""
    line, *names = _MESSAGES_OF_PAYLOAD[payload or "bidi"]
    return schema_of(line, names[direction])


def detect_payload(direction: Direction, data: bytes) -> LivePayload:
    """What one message looks like; empty where it does not tell."""
    return detect_live(data, None) if direction is Direction.TO_AGENT else detect_live(None, data)


class LiveReading:
    """One stream: how its messages are read."""

    def __init__(self, mode: LiveMode = "auto") -> None:
        self.fixed_payload: LivePayload = "" if mode == "auto" else mode
        self._detected: list[LivePayload] = ["", ""]
        """By direction: what its messages look like so far."""
        self._is_proved = [False, False]
        """By direction: it can be nothing else."""

    def payload_for(self, direction: Direction) -> LivePayload:
        """How messages of this side are read now; empty before the first."""
        if self.fixed_payload:
            return self.fixed_payload
        mine, other = self._detected[direction], self._detected[1 - direction]
        weaker = not mine or (other == "2153" and not self._is_proved[direction])
        return other if weaker else mine

    def learn_from(self, direction: Direction, data: bytes) -> bool:
        """Learn from one message; whether messages may be read otherwise from here on."""
        if self.fixed_payload or self._is_proved[direction]:
            return False
        before = self._detected[direction]
        if before and direction is Direction.TO_CLIENT and data[:1] not in _DISTINCTIVE_BYTES:
            return False
        found = detect_payload(direction, data)
        if not found or (before and found != "2153"):
            return False
        self._detected[direction] = found
        proof = found != "bidi" or (direction is Direction.TO_AGENT and proves_bidi(data))
        self._is_proved[direction] = proof
        return found != before

    def save(self) -> dict[str, Any]:
        """Plain values for `restore`."""
        return {"forced": self.fixed_payload, "seen": list(self._detected), "proved": list(self._is_proved)}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> LiveReading:
        """The reading that gave `state`."""
        made = cls(state["forced"] or "auto")
        made._detected, made._is_proved = list(state["seen"]), list(state["proved"])
        return made
