"""The W3C `traceparent` (Trace Context 3.2): what one says, and the one that goes on from it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

RandomBits = Callable[[int], int]
"""Gives a number of so many random bits, as `random.Random.getrandbits` does."""

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
_TRACEPARENT_PATTERN = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_KNOWN_FLAGS = 0x03
"""Sampled, and random trace id: flags of which nothing is known are not passed on (3.2.2.5)."""
_SAMPLED = 0x01
_MAX_KEPT = 256
"""Characters that are kept of what a client sent; it can be any text."""


class TraceParent(msgspec.Struct, frozen=True, gc=False):
    """A valid one."""

    trace: str
    """32 hexadecimal digits."""
    span: str
    """16 hexadecimal digits: of the caller's span."""
    flags: int


def parse_traceparent(text: str) -> TraceParent | None:
    """None where it is none, which the standard has one ignore. Of a later version what version 00 knows."""
    found = _TRACEPARENT_PATTERN.fullmatch(text.strip())
    if found is None or (found[1] == "00" and found[5]):
        return None
    return TraceParent(found[2], found[3], int(found[4], 16))


class TraceOrigin(msgspec.Struct, frozen=True):
    """What a request says about its trace: from it the next `traceparent` is made."""

    before: str | None
    """The value that came, or all of them; None where none did."""
    trace: str
    """Empty: a new trace begins."""
    flags: int

    def next_traceparent(self, bits: RandomBits) -> str:
        """The `traceparent` of a span of our own."""
        trace = self.trace or f"{bits(128) or 1:032x}"
        return f"00-{trace}-{bits(64) or 1:016x}-{self.flags:02x}"


def origin_of(values: Sequence[bytes]) -> TraceOrigin:
    """Of the values of a request's `traceparent` fields: several say nothing certain, and count as none that is valid.

    Where a new trace begins, a `tracestate` belongs to none, and is not passed on (3.3.1.1, 4.3).
    """
    known = parse_traceparent(values[0].decode("latin-1")) if len(values) == 1 else None
    before = b", ".join(values).decode("latin-1")[:_MAX_KEPT] if values else None
    if known is None:
        return TraceOrigin(before, "", _SAMPLED)
    return TraceOrigin(before, known.trace, known.flags & _KNOWN_FLAGS)
