"""Search for segments of an archive by their content. Only the manifests of the requested days are
read."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from a2a_proxy.archive.errors import GoneError
from a2a_proxy.archive.manifest import (
    MANIFEST_TABLE,
    Manifest,
    day_name,
    decode_manifest,
    segment_name_prefix,
)
from a2a_proxy.archive.store import ArchiveStore

_MAX_PARALLEL = 16
"""Number of requests in flight at a time."""
_DAY_PREFIX = "dt="
LATEST = 1 << 62
"""Latest time of a query, in ns (year 2116): columns of times hold 64 bits."""


class SegmentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a search; all of them must hold."""

    since: int = 0
    """Earliest time of frames, in ns."""
    until: int = LATEST
    idents: tuple[tuple[str, str], ...] = ()
    """Pairs of a kind (`task`, `context` or `trace`) and an identifier."""

    def may_be_in(self, manifest: Manifest) -> bool:
        """Whether the segment may contain a match."""
        if manifest.cut.until < self.since or manifest.cut.since > self.until:
            return False
        files = (manifest.frames, manifest.facts)
        return all(
            any(file.groups_with(kind, {ident}) for file in files) for kind, ident in self.idents
        )


def find_segments(store: ArchiveStore, query: SegmentQuery) -> list[Manifest]:
    """Return the segments that may contain a match, by time. Raises ArchiveError."""
    return [
        each
        for each in read_manifests(store, list_days(store, query.since, query.until))
        if query.may_be_in(each)
    ]


def list_days(store: ArchiveStore, since: int, until: int) -> list[str]:
    """Return the days from `since` to `until` (ns) that have segments. Raises ArchiveError."""
    first, last = day_name(since), day_name(until)
    found = [
        name.removeprefix(_DAY_PREFIX)
        for name in store.list_folders(MANIFEST_TABLE)
        if name.startswith(_DAY_PREFIX)
    ]
    return [day for day in found if first <= day <= last]


def read_manifests(
    store: ArchiveStore, days: Iterable[str], proxy: str = "", session: str = ""
) -> list[Manifest]:
    """Return the manifests of some days, of one proxy and session if they are named, by time.
    Raises ArchiveError."""
    below = f"/proxy={proxy}" if proxy else ""
    keys = [
        key
        for day in days
        for key in store.list_keys(f"{MANIFEST_TABLE}/{_DAY_PREFIX}{day}{below}")
    ]
    if session:
        keys = [
            key for key in keys if key.rpartition("/")[2].startswith(segment_name_prefix(session))
        ]
    with ThreadPoolExecutor(_MAX_PARALLEL) as pool:
        found = [
            each
            for each in pool.map(lambda key: _read_manifest(store, key), keys)
            if each is not None
        ]
    return sorted(found, key=lambda each: (each.cut.since, each.cut.session, each.cut.number))


def _read_manifest(store: ArchiveStore, key: str) -> Manifest | None:
    """Return a manifest, or None if a lifecycle rule of the bucket deleted it after it was
    listed."""
    try:
        return decode_manifest(store.read_object(key), key)
    except GoneError:
        return None


def find_gone_tables(store: ArchiveStore, manifests: Iterable[Manifest]) -> dict[str, list[str]]:
    """Return the missing tables of segments, by the names of the segments.

    Makes one listing request for each day and table. Raises ArchiveError.
    """
    wanted = list(manifests)
    found: dict[str, list[str]] = {}
    for table in ("frames", "facts"):
        there = {
            key
            for day in {each.cut.day for each in wanted}
            for key in store.list_keys(f"{table}/{_DAY_PREFIX}{day}")
        }
        for each in wanted:
            if each.cut.object_key(table) not in there:
                found.setdefault(each.cut.name, []).append(table)
    return found
