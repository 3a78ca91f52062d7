"""Manifests: one small JSON object for each segment, written once the segment is complete.

    frames/dt=2026-11-22/proxy=<id>/seg-<session>-<n>.parquet
    facts/dt=2026-11-22/proxy=<id>/seg-<session>-<n>.parquet
    manifests/dt=2026-11-22/proxy=<id>/seg-<session>-<n>.json

A segment belongs to one session and one day (UTC). `<session>` is the first digits of the session's
UUID, `<n>` counts from 1. So only a process that has the recording can arrive at the same name.

Manifests contain Bloom filters of the identifiers in each row group, 12 bits for each: no false
negatives, about one in 300 false positives.
"""

import datetime
import hashlib
import json
from collections.abc import Collection, Iterator
from typing import Any, TypeVar

import msgspec

from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.schema import VERSION
from a2a_proxy.installation import upgrade_hint

_Made = TypeVar("_Made")

MANIFEST_TABLE = "manifests"
_NUMBER_DIGITS = 12
DAY_NS = 86_400_000_000_000
"""Length of a day in ns."""
_BITS_PER_KEY = 12
"""Bits of the filter for each identifier."""
_PROBES = 8


class SegmentRange(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a recording that one segment contains.

    It is also written to the footer of the segment's Parquet files, so that a process that finds
    them without a manifest can complete the segment.
    """

    version: int = VERSION
    proxy: str
    session: str
    number: int
    day: str
    after: int
    """Number of the last frame before the segment: its frames have greater numbers ..."""
    through: int
    """... up to and including this one."""
    findings: tuple[int, int]
    """The same two limits for findings."""
    exchange: int
    """The highest exchange number in this segment and all earlier ones."""
    connection: int
    open_exchanges: tuple[int, ...]
    """Exchanges that were still open. The next segment contains them again."""
    open_connections: tuple[int, ...]
    since: int
    """Time of the first frame, in ns, or `until` of the preceding segment if the segment has no
    frames."""
    until: int
    over: bool
    """Whether the session has ended and this is its last segment."""
    line: dict[str, Any]
    """The session, as in the first line of a cassette."""

    @property
    def name(self) -> str:
        """`dt=.../proxy=.../seg-...`, without the file extension."""
        return (
            f"dt={self.day}/proxy={self.proxy}/{segment_name_prefix(self.session)}{self.number:06}"
        )

    def object_key(self, table: str) -> str:
        """Return the key of the segment's object in `table`: `frames`, `facts` or `manifests`."""
        return f"{table}/{self.name}.{'json' if table == MANIFEST_TABLE else 'parquet'}"


class RowGroup(msgspec.Struct, frozen=True):
    """One row group of a Parquet file."""

    rows: int
    index: dict[str, bytes]
    """Bloom filters of the identifiers in its rows, by kind: `task`, `context`, `trace`, `call`."""


class StoredFile(msgspec.Struct, frozen=True):
    """One Parquet file."""

    byte_count: int
    sha256: str
    rows: int
    groups: tuple[RowGroup, ...]

    def groups_with(self, kind: str, idents: set[str]) -> list[int]:
        """Return the numbers of the row groups that may contain one of the identifiers."""
        return [
            number
            for number, group in enumerate(self.groups)
            if any(may_contain(group.index.get(kind, b""), ident) for ident in idents)
        ]


class Manifest(msgspec.Struct, frozen=True):
    """A complete segment."""

    cut: SegmentRange
    tasks: int
    """Number of distinct tasks in the frames; likewise for contexts and traces."""
    contexts: int
    traces: int
    agents: tuple[str, ...]
    frames: StoredFile
    facts: StoredFile
    cards: tuple[str, ...]
    """Agents that have a card among the frames."""

    def stored_file(self, table: str) -> StoredFile:
        """Return the entry of the file of `frames` or `facts`."""
        return self.frames if table == "frames" else self.facts


_encode = msgspec.json.Encoder(order="deterministic").encode


def encode_manifest(value: SegmentRange | Manifest) -> bytes:
    """Return the value as JSON.

    The command line of a session may contain bytes that are not Unicode; such text is escaped.
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, order="deterministic")
        return json.dumps(plain, separators=(",", ":")).encode()


def _decode_json(data: bytes, type_: type[_Made]) -> _Made:
    """Decode what `encode_manifest` wrote. Raises ValueError, the base class of msgspec's
    errors."""
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(data), type_)


def decode_manifest(data: bytes, key: str) -> Manifest:
    """Return the manifest stored under `key`. Raises ArchiveError."""
    try:
        found = _decode_json(data, Manifest)
    except (RecursionError, ValueError) as wrong:
        raise foreign_object_error(key) from wrong
    if found.cut.object_key(MANIFEST_TABLE) != key:
        raise foreign_object_error(key)
    _check_range(found.cut, key)
    return found


def decode_range(data: bytes, key: str) -> SegmentRange:
    """Return the range in a Parquet file's footer. Raises ArchiveError."""
    try:
        return _check_range(_decode_json(data, SegmentRange), key)
    except (RecursionError, ValueError) as wrong:
        raise foreign_object_error(key) from wrong


def _check_range(segment_range: SegmentRange, key: str) -> SegmentRange:
    if segment_range.version > VERSION:
        raise ArchiveError(
            f"{key} was written by a newer a2a-proxy (version {segment_range.version}, not "
            f"{VERSION})",
            upgrade_hint(),
        )
    return segment_range


def foreign_object_error(key: str) -> ArchiveError:
    """Return the error for an object that a2a-proxy did not write or that was changed
    afterwards."""
    return ArchiveError(
        f"{key} was not written by a2a-proxy",
        "it is foreign or was changed: move it out of the archive",
    )


def segment_name_prefix(session: str) -> str:
    """Return the common prefix of the names of a session's segments."""
    return f"seg-{session.replace('-', '')[:_NUMBER_DIGITS]}-"


def day_name(at: int) -> str:
    """Return the UTC day of a time in ns, as `2026-11-22`."""
    return datetime.datetime.fromtimestamp(at // 1_000_000_000, datetime.UTC).date().isoformat()


def bloom_filter(idents: Collection[str]) -> bytes:
    """Return the filter of these identifiers, or empty bytes if there are no identifiers."""
    bits = bytearray((_BITS_PER_KEY * len(idents) + 7) // 8)
    for ident in idents:
        for place in _bit_positions(ident, len(bits)):
            bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def may_contain(bloom_bits: bytes, ident: str) -> bool:
    """Whether the identifier may be among the identifiers of the filter."""
    return bool(bloom_bits) and all(
        bloom_bits[place >> 3] >> (place & 7) & 1
        for place in _bit_positions(ident, len(bloom_bits))
    )


def _bit_positions(ident: str, size: int) -> Iterator[int]:
    digest = int.from_bytes(
        hashlib.blake2b(ident.encode(errors="surrogatepass"), digest_size=16).digest()
    )
    first, step = digest >> 64, digest & ((1 << 64) - 1) | 1
    return ((first + number * step) % (size << 3) for number in range(_PROBES))
