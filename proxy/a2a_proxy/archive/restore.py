"""A task, a context, a trace or a time back from the archive, as a recording.

First the rows that name what is asked for tell which calls it is about; then these calls are brought whole, from all
segments that have rows of them. Of each file only those row groups are read whose filters say that they may have some.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from a2a_proxy.archive.cards import cards_before
from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.ranges import ParquetFiles
from a2a_proxy.archive.rebuild import RestoredCounts, SessionRebuild
from a2a_proxy.archive.rows import plain
from a2a_proxy.archive.search import SegmentQuery, days, manifests
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.recording.store.atomic_create import create_atomically

_COLUMNS = {"task": "task_id", "context": "context_id", "trace": "trace_id"}


_OPEN = 1 << 62
"""A call that was not over may go on on any day after."""


class CallSelection(msgspec.Struct):
    """Which calls of a session are wanted."""

    numbers: set[int] = msgspec.field(default_factory=set)
    since: int = 1 << 62
    until: int = 0
    first: dict[str, int] = msgspec.field(default_factory=dict)
    """By agent the time of the first one, ns."""


def bring(place: ArchiveStore, wanted: SegmentQuery, what: str, into: Path) -> RestoredCounts:
    """Make a recording of all calls that are wanted; `what` says which they are, for who opens it.

    Raises:
        ArchiveError: there is nothing of it, or the archive cannot be read.
        RecordingError: the file exists, or cannot be written.
    """
    known = {each.cut.name: each for each in manifests(place, days(place, wanted.since, wanted.until))}
    files = ParquetFiles(place)
    calls = _calls(files, [each for each in known.values() if wanted.may_be_in(each)], wanted)
    if not calls:
        hint = "see what there is: a2a-inspect archive ls"
        raise ArchiveError(f"{place.url} has nothing of {what}{_lost(files)}", hint)
    since, until = min(each.since for each in calls.values()), max(each.until for each in calls.values())
    more = [day for day in days(place, since, until) if not any(each.cut.day == day for each in known.values())]
    known |= {each.cut.name: each for each in manifests(place, more)}
    parts: dict[str, list[Manifest]] = defaultdict(list)
    for each in sorted(known.values(), key=lambda each: each.cut.number):
        if each.cut.session in calls:
            parts[each.cut.session].append(each)
    with create_atomically(into) as db:
        counts = [_rebuilt(files, parts[uuid], calls[uuid], what).store(db) for uuid in _by_start(parts)]
    return RestoredCounts(
        sessions=len(counts),
        exchanges=sum(each.exchanges for each in counts),
        frames=sum(each.frames for each in counts),
        segments=sum(each.segments for each in counts),
        gone=tuple(sorted(files.gone)),
    )


def _rebuilt(files: ParquetFiles, parts: list[Manifest], calls: CallSelection, what: str) -> SessionRebuild:
    cards = cards_before(files, reversed(parts), calls.first) - calls.numbers
    return SessionRebuild(
        files, parts, calls.numbers | cards, f"{what}, with the agent card before it" if cards else what
    )


def _lost(files: ParquetFiles) -> str:
    """Nobody should take for a proof what is not there any more."""
    return f"; files that may have had it are gone: {len(files.gone)}, {min(files.gone)} first" if files.gone else ""


def _by_start(parts: dict[str, list[Manifest]]) -> list[str]:
    return sorted(parts, key=lambda uuid: (parts[uuid][-1].cut.line["started"], uuid))


def _calls(files: ParquetFiles, of: list[Manifest], wanted: SegmentQuery) -> dict[str, CallSelection]:
    """The calls of which a row is what is wanted."""
    found: dict[str, CallSelection] = defaultdict(CallSelection)
    for manifest in of:
        columns = ["time", "agent", "exchange", *_COLUMNS.values()]
        frames = _rows(files, manifest, "frames", wanted, columns)
        facts = _rows(files, manifest, "facts", wanted, ["kind", "ended", *columns])
        for table in (frames, facts):
            for row in table.to_pylist():
                if row["exchange"] and row.get("kind", "exchange") == "exchange":
                    _learn(found[manifest.cut.session], row)
    return dict(found)


def _learn(calls: CallSelection, row: dict[str, Any]) -> None:
    calls.numbers.add(row["exchange"])
    calls.since = min(calls.since, row["time"])
    if row["agent"]:
        calls.first[row["agent"]] = min(calls.first.get(row["agent"], _OPEN), row["time"])
    ended = (row["ended"] or _OPEN) if "ended" in row else 0
    calls.until = max(calls.until, row["time"], ended)


def _rows(files: ParquetFiles, manifest: Manifest, table: str, wanted: SegmentQuery, columns: list[str]) -> pa.Table:
    """The rows of a file for which everything holds that is asked for."""
    file = manifest.file(table)
    groups = set(range(len(file.groups)))
    for kind, ident in wanted.idents:
        groups &= set(file.groups_with(kind, {ident}))
    rows = plain(files.read(manifest, table, sorted(groups), columns))
    for kind, ident in wanted.idents:
        rows = rows.filter(pc.equal(rows.column(_COLUMNS[kind]), ident))
    late = rows.column("ended") if table == "facts" else rows.column("time")
    lasts = pc.fill_null(late, wanted.until)
    return rows.filter(pc.and_(pc.greater_equal(lasts, wanted.since), pc.less_equal(rows.column("time"), wanted.until)))
