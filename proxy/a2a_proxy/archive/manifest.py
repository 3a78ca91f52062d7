"""What says where something lies: one small JSON object for each segment, put when all of the segment is there.

    frames/dt=2026-11-22/proxy=<id>/seg-<session>-<n>.parquet
    facts/dt=2026-11-22/proxy=<id>/seg-<session>-<n>.parquet
    manifests/dt=2026-11-22/proxy=<id>/seg-<session>-<n>.json

A segment is of one session and one day (UTC). `<session>` are the first digits of its uuid, `<n>` counts from 1; so
nobody but who has the recording can come to the same name.
"""

from __future__ import annotations

import datetime
import json
from typing import Any, TypeVar

import msgspec

from a2a_proxy.archive.bloom import may_contain
from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.schema import VERSION

_Made = TypeVar("_Made")

MANIFEST_TABLE = "manifests"
_NUMBER_DIGITS = 12
DAY_NS = 86_400_000_000_000
"""ns."""


class SegmentRange(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of a recording a segment has. It stands in the footer of its Parquet files too: whoever finds them
    without a manifest goes on with it."""

    version: int = VERSION
    proxy: str
    session: str
    number: int
    day: str
    after: int
    """Frames of the session with a greater number ..."""
    through: int
    """... up to this one."""
    findings: tuple[int, int]
    """The same for findings."""
    exchange: int
    """The highest number of a call that this segment or one before has."""
    connection: int
    open_exchanges: tuple[int, ...]
    """Calls that were not over: the next segment has them again."""
    open_connections: tuple[int, ...]
    since: int
    """Time of the first frame, ns; where there is none, of the end before."""
    until: int
    over: bool
    """The session has ended, and this is its last segment."""
    line: dict[str, Any]
    """The session, as a cassette's first line has it."""

    @property
    def name(self) -> str:
        """`dt=.../proxy=.../seg-...`, without its ending."""
        return f"dt={self.day}/proxy={self.proxy}/{segment_name_prefix(self.session)}{self.number:06}"

    def object_key(self, table: str) -> str:
        """Of `frames`, `facts` or `manifests`."""
        return f"{table}/{self.name}.{'json' if table == MANIFEST_TABLE else 'parquet'}"


class RowGroup(msgspec.Struct, frozen=True):
    """One row group of a file."""

    rows: int
    index: dict[str, bytes]
    """Filters of what its rows name: `task`, `context`, `trace`, `call`."""


class StoredFile(msgspec.Struct, frozen=True):
    """One Parquet file."""

    byte_count: int = msgspec.field(name="octets")
    sha256: str
    rows: int
    groups: tuple[RowGroup, ...]

    def groups_with(self, kind: str, idents: set[str]) -> list[int]:
        """The row groups that may name one of these."""
        return [
            number
            for number, group in enumerate(self.groups)
            if any(may_contain(group.index.get(kind, b""), ident) for ident in idents)
        ]


class Manifest(msgspec.Struct, frozen=True):
    """A segment that is there as a whole."""

    cut: SegmentRange
    tasks: int
    """How many of each the frames name."""
    contexts: int
    traces: int
    agents: tuple[str, ...]
    frames: StoredFile
    facts: StoredFile
    cards: tuple[str, ...] | None = None
    """Agents of which a card is among the frames; None where nobody said so yet."""

    def stored_file(self, table: str) -> StoredFile:
        """That of `frames` or `facts`."""
        return self.frames if table == "frames" else self.facts


_encode = msgspec.json.Encoder(order="deterministic").encode


def encode_manifest(value: SegmentRange | Manifest) -> bytes:
    """As JSON. The command line of a session may have bytes that are no Unicode: such text is escaped."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, order="deterministic")
        return json.dumps(plain, separators=(",", ":")).encode()


def _decode_json(data: bytes, type_: type[_Made]) -> _Made:
    """Inverse of `encode`. Raises ValueError, which msgspec's errors are too."""
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(data), type_)


def decode_manifest(data: bytes, key: str) -> Manifest:
    """Inverse of `encode`. Raises ArchiveError."""
    try:
        found = _decode_json(data, Manifest)
    except (RecursionError, ValueError) as wrong:
        raise foreign_object_error(key) from wrong
    if found.cut.object_key(MANIFEST_TABLE) != key:
        raise foreign_object_error(key)
    _check_range(found.cut, key)
    return found


def decode_range(data: bytes, key: str) -> SegmentRange:
    """The cut of a Parquet file's footer. Raises ArchiveError."""
    try:
        return _check_range(_decode_json(data, SegmentRange), key)
    except (RecursionError, ValueError) as wrong:
        raise foreign_object_error(key) from wrong


def _check_range(segment_range: SegmentRange, key: str) -> SegmentRange:
    if segment_range.version > VERSION:
        hint = "upgrade: pip install -U a2a-proxy"
        raise ArchiveError(
            f"{key} was made by a newer a2a-proxy (version {segment_range.version}, not {VERSION})", hint
        )
    return segment_range


def foreign_object_error(key: str) -> ArchiveError:
    """What is under this key was not made by this program, or was changed."""
    return ArchiveError(f"{key} is not what a2a-proxy puts there", "it is foreign or was changed: move it away")


def segment_name_prefix(session: str) -> str:
    """How the names of a session's segments begin."""
    return f"seg-{session.replace('-', '')[:_NUMBER_DIGITS]}-"


def day_name(at: int) -> str:
    """The day of a time, UTC, as `2026-11-22`."""
    return datetime.datetime.fromtimestamp(at // 1_000_000_000, datetime.UTC).date().isoformat()
