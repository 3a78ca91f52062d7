"""Segments of an archive by what they have: manifests are read of the days that are asked for, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from a2a_proxy.archive.errors import GoneError
from a2a_proxy.archive.manifest import MANIFESTS, Manifest, day_of, decode, start_of
from a2a_proxy.archive.store import ArchiveStore

_AT_ONCE = 16
"""Requests that wait for their answers at a time."""
_DAY = "dt="
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


def segments(place: ArchiveStore, wanted: SegmentQuery) -> list[Manifest]:
    """The segments that may have something of it, by time. Raises ArchiveError."""
    return [each for each in manifests(place, days(place, wanted.since, wanted.until)) if wanted.may_be_in(each)]


def days(place: ArchiveStore, since: int, until: int) -> list[str]:
    """The days from `since` to `until` (ns) of which there is something. Raises ArchiveError."""
    first, last = day_of(since), day_of(until)
    found = [name.removeprefix(_DAY) for name in place.folders(MANIFESTS) if name.startswith(_DAY)]
    return [day for day in found if first <= day <= last]


def manifests(place: ArchiveStore, of: Iterable[str], proxy: str = "", session: str = "") -> list[Manifest]:
    """All manifests of some days, or those of one proxy and session, by time. Raises ArchiveError."""
    below = f"/proxy={proxy}" if proxy else ""
    keys = [key for day in of for key in place.keys(f"{MANIFESTS}/{_DAY}{day}{below}")]
    if session:
        keys = [key for key in keys if key.rpartition("/")[2].startswith(start_of(session))]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = [each for each in pool.map(lambda key: _read(place, key), keys) if each is not None]
    return sorted(found, key=lambda each: (each.cut.since, each.cut.session, each.cut.number))


def _read(place: ArchiveStore, key: str) -> Manifest | None:
    """A manifest; None where a rule of the bucket has removed it since it was listed."""
    try:
        return decode(place.get(key), key)
    except GoneError:
        return None


def gone(place: ArchiveStore, of: Iterable[Manifest]) -> dict[str, list[str]]:
    """Which tables of segments are not there (any more), by the names of the segments. One listing for each day and
    table tells all of it. Raises ArchiveError."""
    wanted = list(of)
    found: dict[str, list[str]] = {}
    for table in ("frames", "facts"):
        there = {key for day in {each.cut.day for each in wanted} for key in place.keys(f"{table}/{_DAY}{day}")}
        for each in wanted:
            if each.cut.key(table) not in there:
                found.setdefault(each.cut.name, []).append(table)
    return found
