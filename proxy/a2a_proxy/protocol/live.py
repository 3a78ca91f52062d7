"""Detection of the payload of a SendLiveMessage stream, one of three, while its messages arrive
(manual/protocol.md "Live payload detection").

All three share a path. A field that only one of them has is proof, for the direction of the
message. A BIDI message is often valid as `2153` as well: such a stream counts as BIDI until a later
message of either side proves the other. Frames emitted before that keep their schema, because their
bytes have the same meaning in both.
"""

import msgspec

from a2a_proto import LivePayload, detect_live, proves_bidi
from a2a_proxy.model.option import LiveMode
from a2a_proxy.model.saved_state import State
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.schema import schema_of

_MESSAGES_OF_PAYLOAD = {
    "bidi": ("1.0", "SendMessageRequest", "StreamResponse"),
    "1975": ("live-1975", "LiveRequest", "LiveResponse"),
    "2153": ("live-2153", "StreamRequest", "StreamResponse"),
}
_DISTINCTIVE_BYTES = (b"\x0a", b"\x2a")
"""First bytes of an agent's messages that can show `2153`: a Task (its elicitations), a message
update."""


def live_schema(payload: LivePayload, direction: Direction) -> str:
    """Return the schema of the messages of one direction."""
    line, *names = _MESSAGES_OF_PAYLOAD[payload or "bidi"]
    return schema_of(line, names[direction])


def detect_payload(direction: Direction, data: bytes) -> LivePayload:
    """Return the payload that one message shows, or an empty string if it fits several."""
    return detect_live(data, None) if direction is Direction.TO_AGENT else detect_live(None, data)


class LiveReading(State):
    """Payload detection of one stream."""

    mode: LiveMode = "auto"
    _detected: list[LivePayload] = msgspec.field(default_factory=lambda: ["", ""])
    """By direction: the payload detected so far."""
    _is_proved: list[bool] = msgspec.field(default_factory=lambda: [False, False])
    """By direction: whether the payload is proved."""

    @property
    def fixed_payload(self) -> LivePayload:
        """The payload that the user has specified, or an empty string."""
        return "" if self.mode == "auto" else self.mode

    def payload_for(self, direction: Direction) -> LivePayload:
        """Return the payload as which messages of this direction are read now; empty before the
        first message."""
        if self.fixed_payload:
            return self.fixed_payload
        mine, other = self._detected[direction], self._detected[1 - direction]
        weaker = not mine or (other == "2153" and not self._is_proved[direction])
        return other if weaker else mine

    def learn_from(self, direction: Direction, data: bytes) -> bool:
        """Update the detection from one message; return whether later messages may be read
        differently."""
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
