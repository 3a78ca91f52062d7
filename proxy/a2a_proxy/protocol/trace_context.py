"""The W3C `traceparent` header (Trace Context 3.2): parse one, and build the one that continues it.
No I/O."""

import re
from collections.abc import Callable, Sequence

import msgspec

RandomBits = Callable[[int], int]
"""Function that returns a number of so many random bits, as `random.Random.getrandbits`."""

TRACESTATE = "tracestate"
_TRACEPARENT_PATTERN = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_KNOWN_FLAGS = 0x03
"""Sampled, and random trace id. Unknown flags are not passed on (3.2.2.5)."""
_SAMPLED = 0x01
_MAX_KEPT = 256
"""Maximum number of characters kept of a client's value, which can be any text."""


class TraceParent(msgspec.Struct, frozen=True, gc=False):
    """A valid `traceparent`."""

    trace: str
    """32 hexadecimal digits."""
    span: str
    """16 hexadecimal digits: the id of the parent span."""
    flags: int


def parse_traceparent(text: str) -> TraceParent | None:
    """Parse a `traceparent`; None if it is invalid and thus ignored. A later version is read as
    version 00."""
    found = _TRACEPARENT_PATTERN.fullmatch(text.strip())
    if found is None or (found[1] == "00" and found[5]):
        return None
    return TraceParent(found[2], found[3], int(found[4], 16))


class TraceOrigin(msgspec.Struct, frozen=True):
    """Trace of a request, from which the next `traceparent` is built."""

    before: str | None
    """Received value, or all of them joined; None if there was none."""
    trace: str
    """Trace id; empty if a new trace begins."""
    flags: int

    def next_traceparent(self, bits: RandomBits) -> str:
        """Return the `traceparent` of a span of the proxy."""
        trace = self.trace or f"{bits(128) or 1:032x}"
        return f"00-{trace}-{bits(64) or 1:016x}-{self.flags:02x}"


def origin_of(values: Sequence[bytes]) -> TraceOrigin:
    """Return the trace of a request from its `traceparent` fields; several fields are ambiguous and
    count as invalid.

    If a new trace begins, a received `tracestate` does not belong to it and is not passed on
    (3.3.1.1, 4.3).
    """
    known = parse_traceparent(values[0].decode("latin-1")) if len(values) == 1 else None
    before = b", ".join(values).decode("latin-1")[:_MAX_KEPT] if values else None
    if known is None:
        return TraceOrigin(before, "", _SAMPLED)
    return TraceOrigin(before, known.trace, known.flags & _KNOWN_FLAGS)
