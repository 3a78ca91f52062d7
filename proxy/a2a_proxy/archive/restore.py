"""Restore a task, a context, a trace or a time range from the archive as a recording.

The rows that contain the wanted identifiers determine the calls. Then these calls are restored
completely, from all segments that contain rows of them, together with the preceding call that
fetched the card of each agent: without it, rules about cards and a replay of the recording would
lack the description of the agent. Only row groups whose filters may contain a match are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.files import ParquetFiles
from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.rebuild import RestoredCounts, SessionRebuild
from a2a_proxy.archive.rows import times_as_numbers
from a2a_proxy.archive.search import SegmentQuery, list_days, read_manifests
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.recording.store.atomic_create import create_atomically

_INDEX_COLUMNS = {"task": "task_id", "context": "context_id", "trace": "trace_id"}
_NEVER_ENDED = 1 << 62
"""End of a call that was still open, in ns: it may continue on any later day."""
_CARD_COLUMNS = ["time", "agent", "event", "exchange"]


class CallSelection(msgspec.Struct):
    """The selected calls of a session."""

    numbers: set[int] = msgspec.field(default_factory=set)
    since: int = 1 << 62
    until: int = 0
    first: dict[str, int] = msgspec.field(default_factory=dict)
    """Time of the first selected call of each agent, in ns."""


def restore_recording(
    store: ArchiveStore, query: SegmentQuery, selection: str, path: Path
) -> RestoredCounts:
    """Write a recording with all calls that match `query`. `selection` describes them to readers of
    the recording.

    Raises:
        ArchiveError: nothing matches, or the archive cannot be read.
        RecordingError: the file exists, or cannot be written.
    """
    known = {
        each.cut.name: each
        for each in read_manifests(store, list_days(store, query.since, query.until))
    }
    files = ParquetFiles(store)
    calls = _select_calls(files, [each for each in known.values() if query.may_be_in(each)], query)
    if not calls:
        hint = "list the segments: a2a-inspect archive ls"
        raise ArchiveError(
            f"{store.url} has no frames of {selection}{_gone_files_note(files)}", hint
        )
    since, until = (
        min(each.since for each in calls.values()),
        max(each.until for each in calls.values()),
    )
    more = [
        day
        for day in list_days(store, since, until)
        if not any(each.cut.day == day for each in known.values())
    ]
    known |= {each.cut.name: each for each in read_manifests(store, more)}
    parts: dict[str, list[Manifest]] = defaultdict(list)
    for each in sorted(known.values(), key=lambda each: each.cut.number):
        if each.cut.session in calls:
            parts[each.cut.session].append(each)
    with create_atomically(path) as db:
        counts = [
            _make_rebuild(files, parts[uuid], calls[uuid], selection).write_to(db)
            for uuid in _sort_by_start(parts)
        ]
    return RestoredCounts(
        sessions=len(counts),
        exchanges=sum(each.exchanges for each in counts),
        frames=sum(each.frames for each in counts),
        segments=sum(each.segments for each in counts),
        gone=tuple(sorted(files.gone)),
    )


def _make_rebuild(
    files: ParquetFiles, segments: list[Manifest], calls: CallSelection, selection: str
) -> SessionRebuild:
    cards = _cards_before(files, reversed(segments), calls.first) - calls.numbers
    return SessionRebuild(
        files,
        segments,
        calls.numbers | cards,
        f"{selection}, with the agent card before it" if cards else selection,
    )


def _gone_files_note(files: ParquetFiles) -> str:
    """Return a remark on missing files, so that an empty result is not taken as proof."""
    return (
        f"; files that may have had it are missing: {len(files.gone)}, first {min(files.gone)}"
        if files.gone
        else ""
    )


def _sort_by_start(segments: dict[str, list[Manifest]]) -> list[str]:
    return sorted(segments, key=lambda uuid: (segments[uuid][-1].cut.line["started"], uuid))


def _select_calls(
    files: ParquetFiles, manifests_: list[Manifest], query: SegmentQuery
) -> dict[str, CallSelection]:
    """Return the calls that have a matching row, by session."""
    found: dict[str, CallSelection] = defaultdict(CallSelection)
    for manifest in manifests_:
        columns = ["time", "agent", "exchange", *_INDEX_COLUMNS.values()]
        frames = _matching_rows(files, manifest, "frames", query, columns)
        facts = _matching_rows(files, manifest, "facts", query, ["kind", "ended", *columns])
        for table in (frames, facts):
            for row in table.to_pylist():
                if row["exchange"] and row.get("kind", "exchange") == "exchange":
                    _add_call(found[manifest.cut.session], row)
    return dict(found)


def _add_call(calls: CallSelection, row: dict[str, Any]) -> None:
    calls.numbers.add(row["exchange"])
    calls.since = min(calls.since, row["time"])
    if row["agent"]:
        calls.first[row["agent"]] = min(calls.first.get(row["agent"], _NEVER_ENDED), row["time"])
    ended = (row["ended"] or _NEVER_ENDED) if "ended" in row else 0
    calls.until = max(calls.until, row["time"], ended)


def _matching_rows(
    files: ParquetFiles, manifest: Manifest, table: str, query: SegmentQuery, columns: list[str]
) -> pa.Table:
    """Return the rows of a file that satisfy every condition of the query."""
    file = manifest.stored_file(table)
    groups = set(range(len(file.groups)))
    for kind, ident in query.idents:
        groups &= set(file.groups_with(kind, {ident}))
    rows = times_as_numbers(files.read(manifest, table, sorted(groups), columns))
    for kind, ident in query.idents:
        rows = rows.filter(pc.equal(rows.column(_INDEX_COLUMNS[kind]), ident))
    late = rows.column("ended") if table == "facts" else rows.column("time")
    lasts = pc.fill_null(late, query.until)
    return rows.filter(
        pc.and_(
            pc.greater_equal(lasts, query.since), pc.less_equal(rows.column("time"), query.until)
        )
    )


def _cards_before(
    files: ParquetFiles, parts: Iterable[Manifest], first: dict[str, int]
) -> set[int]:
    """Return the numbers of the last card calls before the selected calls.

    `first` maps an agent to the time of its first selected call, in ns. `parts` are the segments of
    one session, the newest first. Raises ArchiveError if a segment cannot be read.
    """
    left, found = dict(first), set[int]()
    for part in parts:
        for agent, before in list(left.items()):
            call = (
                _last_card_call(files, part, agent, before)
                if _may_contain_card(part, agent, before)
                else None
            )
            if call is not None:
                found.add(call)
                del left[agent]
    return found


def _may_contain_card(part: Manifest, agent: str, before: int) -> bool:
    return part.cut.since <= before and agent in part.cards


def _last_card_call(files: ParquetFiles, part: Manifest, agent: str, before: int) -> int | None:
    """Return the number of the last card call of `agent` in a segment at or before `before` (ns),
    or None.

    Frames of cards name no task, so they are last in a file, sorted by frame number.
    """
    for group in reversed(range(len(part.frames.groups))):
        rows = times_as_numbers(files.read(part, "frames", [group], _CARD_COLUMNS))
        rows = rows.filter(
            pc.and_(pc.equal(rows.column("event"), "card"), pc.equal(rows.column("agent"), agent))
        )
        rows = rows.filter(pc.less_equal(rows.column("time"), before))
        if rows.num_rows:
            return int(rows.column("exchange")[-1].as_py())
    return None
