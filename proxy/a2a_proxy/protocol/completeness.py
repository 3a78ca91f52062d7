"""Whether a capture is complete: all bytes that were relayed were decoded, or the place and the
reason are named.

This is the only definition (manual/recordings.md "Incomplete captures"). What a person chose to
leave out is named too, but does not make a capture incomplete.
"""

from collections.abc import Iterator

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import OPAQUE_COUNTERS, Connection
from a2a_proxy.model.wire import Control, Direction, Undecodable

COMPLETE = "complete"
"""The text of a complete capture."""
UNENDED = "the session has no end"
"""What a capture lacks whose session was not recorded to its end."""
CHOICE_PREFIX = "only "
"""Prefix of the last part of a text if a person left something out: calls that were not selected,
or `--pass`."""
MAX_GAPS = 20
"""Places that are named, those that a person chose not counted; of more, only their number is
given."""

_SEPARATOR = "; "
_OPAQUE_REASONS: dict[object, str] = {
    "tls": "TLS that is not opened",
    "unknown": "not HTTP",
    "server first": "the agent spoke first",
}
DECODED_PROTOCOLS = ("h2c", "websocket")
"""Protocols that are decoded after a switch from HTTP/1.1."""


class Gap(msgspec.Struct, frozen=True):
    """Bytes of one direction of a connection that were relayed and not decoded."""

    connection: int
    direction: Direction
    offset: int
    size: int
    """Number of bytes."""
    why: str
    is_chosen: bool = False
    """Whether a person chose it."""

    @property
    def label(self) -> str:
        """The place and the reason: `connection 1: 185 bytes to the agent from byte 262 were not
        decoded: not HTTP`."""
        peer = "agent" if self.direction is Direction.TO_AGENT else "client"
        return (
            f"connection {self.connection}: {self.size} bytes to the {peer} from byte "
            f"{self.offset} {self.why}"
        )


class CaptureGaps(State):
    """The gaps of a session, in the order in which they became known."""

    named: list[Gap] = []
    _unnamed: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    """Number of further gaps: not chosen, and chosen."""

    def add(self, gap: Gap) -> None:
        """Add a gap; of too many only the number is kept."""
        if sum(each.is_chosen is gap.is_chosen for each in self.named) < MAX_GAPS:
            self.named.append(gap)
        else:
            self._unnamed[gap.is_chosen] += 1

    def describe(self, *reasons: str) -> str:
        """Return `complete`, or what is missing in words, `reasons` first, and then what a person
        left out."""
        missing, chosen = [*reasons, *self._labels(False)], self._labels(True)
        words = [f"{CHOICE_PREFIX}by choice: {', '.join(chosen)}"] if chosen else []
        return _SEPARATOR.join(missing + words) or COMPLETE

    def _labels(self, is_chosen: bool) -> list[str]:
        more = self._unnamed[is_chosen]
        labels = [each.label for each in self.named if each.is_chosen is is_chosen]
        return [*labels, f"{more} more places"] if more else labels


def find_gaps(connection: Connection, why: str, *, is_chosen: bool = False) -> Iterator[Gap]:
    """Yield the bytes of a closed connection that were not decoded, for the reason `why`.

    There are none if the client sent nothing: clients of A2A speak first.
    """
    sizes = connection.bytes_to_agent, connection.bytes_to_client
    for direction, size, counter in zip(Direction, sizes, OPAQUE_COUNTERS, strict=True):
        if (unread := connection.counters.get(counter, 0)) and connection.bytes_to_agent:
            yield Gap(
                connection.id,
                direction,
                size - unread,
                unread,
                f"were not decoded: {why}",
                is_chosen,
            )


def unread_note(event: Undecodable) -> str:
    """Describe an undecodable place: the expected and the actual bytes."""
    return f"expected {event.expected}, got {event.got}"


def unread_reason(event: Control | Undecodable) -> str:
    """Return why the bytes after this event are not decoded; empty if they are."""
    if isinstance(event, Undecodable):
        return unread_note(event)
    if event.name == "upgrade" and event.detail["protocol"] not in DECODED_PROTOCOLS:
        return f"switched to {event.detail['protocol']}"
    return _OPAQUE_REASONS.get(event.detail.get("looks_like"), "") if event.name == "opaque" else ""


def split_completeness(text: str) -> tuple[str, str]:
    """Return of a text of `CaptureGaps.describe` what is missing, and what a person left out; each
    empty if nothing is."""
    missing, mark, choice = f"{_SEPARATOR}{text}".partition(f"{_SEPARATOR}{CHOICE_PREFIX}")
    missing = missing.removeprefix(_SEPARATOR)
    return "" if missing == COMPLETE else missing, f"{CHOICE_PREFIX}{choice}" if mark else ""
