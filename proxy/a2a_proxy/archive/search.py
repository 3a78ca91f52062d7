"""Segments of an archive by what they have: manifests are read of the days that are asked for, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from a2a_proxy.archive.errors import GoneError
from a2a_proxy.archive.manifest import MANIFEST_TABLE, Manifest, day_name, decode_manifest, segment_name_prefix
from a2a_proxy.archive.store import ArchiveStore

_MAX_PARALLEL = 16
"""Requests that wait for their answers at a time."""
_DAY_PREFIX = "dt="
LATEST = 1 << 62
"""ns, in the year 2116: no time that is looked for is later. Columns of times take no more than 64 bits."""


class SegmentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for; all that is given must hold."""

    since: int = 0
    """ns; of frames."""
    until: int = LATEST
    idents: tuple[tuple[str, str], ...] = ()
    """Pairs of `task`, `context` or `trace` and the identifier."""

    def may_be_in(self, manifest: Manifest) -> bool:
        """The segment may have something of it."""
        if manifest.cut.until < self.since or manifest.cut.since > self.until:
            return False
        files = (manifest.frames, manifest.facts)
        return all(any(file.groups_with(kind, {ident}) for file in files) for kind, ident in self.idents)


def find_segments(store: ArchiveStore, query: SegmentQuery) -> list[Manifest]:
    """The segments that may have something of it, by time. Raises ArchiveError."""
    return [each for each in read_manifests(store, list_days(store, query.since, query.until)) if query.may_be_in(each)]


def list_days(store: ArchiveStore, since: int, until: int) -> list[str]:
    """The days from `since` to `until` (ns) of which there is something. Raises ArchiveError."""
    first, last = day_name(since), day_name(until)
    found = [name.removeprefix(_DAY_PREFIX) for name in store.folders(MANIFEST_TABLE) if name.startswith(_DAY_PREFIX)]
    return [day for day in found if first <= day <= last]


def read_manifests(store: ArchiveStore, days: Iterable[str], proxy: str = "", session: str = "") -> list[Manifest]:
    """All manifests of some days, or those of one proxy and session, by time. Raises ArchiveError."""
    below = f"/proxy={proxy}" if proxy else ""
    keys = [key for day in days for key in store.keys(f"{MANIFEST_TABLE}/{_DAY_PREFIX}{day}{below}")]
    if session:
        keys = [key for key in keys if key.rpartition("/")[2].startswith(segment_name_prefix(session))]
    with ThreadPoolExecutor(_MAX_PARALLEL) as pool:
        found = [each for each in pool.map(lambda key: _read_manifest(store, key), keys) if each is not None]
    return sorted(found, key=lambda each: (each.cut.since, each.cut.session, each.cut.number))


def _read_manifest(store: ArchiveStore, key: str) -> Manifest | None:
    """A manifest; None where a rule of the bucket has removed it since it was listed."""
    try:
        return decode_manifest(store.get(key), key)
    except GoneError:
        return None


def find_gone_tables(store: ArchiveStore, manifests: Iterable[Manifest]) -> dict[str, list[str]]:
    """Which tables of segments are not there (any more), by the names of the segments. One listing for each day and
    table tells all of it. Raises ArchiveError."""
    wanted = list(manifests)
    found: dict[str, list[str]] = {}
    for table in ("frames", "facts"):
        there = {key for day in {each.cut.day for each in wanted} for key in store.keys(f"{table}/{_DAY_PREFIX}{day}")}
        for each in wanted:
            if each.cut.object_key(table) not in there:
                found.setdefault(each.cut.name, []).append(table)
    return found
