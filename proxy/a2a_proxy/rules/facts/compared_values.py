"""Times and parts as rules compare them (manual/protocol.md "Artifacts")."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from zlib import crc32

import msgspec

from a2a_proxy.protocol.artifact_chunks import PartContent
from a2a_proxy.protocol.status_summary import SECONDS_MARK


class PartsSummary(msgspec.Struct, frozen=True, gc=False):
    """Summary of a list of parts. Texts are joined, so their division into parts does not matter
    (Q-23)."""

    length: int = 0
    """Bytes of all text."""
    digest: int = 0
    """CRC-32 of all text."""
    byte_count: int = 0
    """Bytes of raw content."""
    other_parts: int = 0
    """Number of parts that are not text."""


NO_PARTS = PartsSummary()


def add_parts(content: PartsSummary, pieces: Sequence[PartContent]) -> PartsSummary:
    """Return the summary of the content followed by more parts."""
    length, digest, data, others = (
        content.length,
        content.digest,
        content.byte_count,
        content.other_parts,
    )
    for piece in pieces:
        if isinstance(piece, bytes):
            length += len(piece)
            digest = crc32(piece, digest)
        else:
            data += piece if isinstance(piece, int) else 0
            others += 1
    return PartsSummary(length, digest, data, others)


def time_before(stamp: str, other: str) -> int:
    """Return by how many ns `stamp` is before `other`; 0 if it is not earlier or they cannot be
    compared."""
    if not stamp or not other:
        return 0
    if stamp >= other and len(stamp) == len(other):  # same format: the text order is the time order
        return 0
    one, two = parse_timestamp(stamp), parse_timestamp(other)
    if one > 0 and two > 0:
        return max(0, two - one)
    return max(0, one - two) if one < 0 and two < 0 else 0


def parse_timestamp(stamp: str) -> int:
    """Return a timestamp in ns; negative if it has no time zone (0.x), 0 if it is missing or
    unreadable."""
    if not stamp:
        return 0
    try:
        seconds, mark, rest = stamp.partition(SECONDS_MARK)
        if mark:
            return int(seconds) * 1_000_000_000 + int(rest)
        moment = datetime.fromisoformat(stamp)
        if moment.tzinfo is None:
            return -int(moment.replace(tzinfo=UTC).timestamp() * 1e6) * 1000
        return int(moment.timestamp() * 1e6) * 1000
    except (ValueError, OverflowError):
        return 0
