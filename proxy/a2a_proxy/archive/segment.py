"""One segment: which rows come next, its two tables, and the way into the archive.

What was put once stays. The facts are put first, then the frames, and the manifest when both are there; where somebody
died between, whoever comes next finds the facts, and in their footer which frames belong to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

import msgspec
import pyarrow as pa

from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.facts import Fact, FactsTable, facts_table
from a2a_proxy.archive.files import agents_with_card, cut_of, distinct_of, file_of, stored
from a2a_proxy.archive.frame_context import FrameContexts
from a2a_proxy.archive.manifest import DAY, MANIFESTS, Manifest, SegmentRange, day_of, decode, encode
from a2a_proxy.archive.rows import frames_table
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.recording.cassette.exporter import session_line
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, make_key
from a2a_proxy.recording.store.corruption_guard import guard_corruption

ROWS = 200_000
"""Frames of a segment, at most."""
_NEVER = 1 << 62
"""ns; after all times."""
OCTETS = 128 << 20
"""Octets of their payloads, at most but for the last one."""


class PendingFrame(NamedTuple):
    """A frame that the archive does not have yet."""

    id: int
    at: int
    """ns."""
    exchange: int
    connection: int
    octets: int


class PendingRows(msgspec.Struct):
    """What the archive does not have yet of a session, up to the limits of a segment."""

    rows: list[PendingFrame]
    after: int
    """They are those of the session after this one."""
    finding: int
    """The same for findings."""
    full: bool
    """There may be more: the limit, or the end of a day, was met."""


_PASSED = """SELECT id, at, exchange, connection, max(span, coalesce(size, 0)) FROM frame
  WHERE +session = ? AND id > ? ORDER BY id LIMIT ?"""


_LAST = """SELECT id FROM frame WHERE id <= ? AND +session = ? AND at <= ? ORDER BY id DESC LIMIT 1"""
_LAST_FINDING = _LAST.replace("frame", "finding")


def next_rows(recording: Recording, session: SessionRow, last: Manifest | None) -> PendingRows:
    """Frames after the last segment. Raises RecordingError."""
    rows: list[PendingFrame] = []
    octets = 0
    start = session.facts.started
    with guard_corruption(recording):
        after, finding = _known(recording, session, last.cut) if last is not None else (0, 0)
        found = recording.db.execute(_PASSED, (session.id, after, ROWS + 1)).fetchall()
        for number, at, *more in found:
            row = PendingFrame(number, start + at, *more)
            if rows and (len(rows) == ROWS or octets > OCTETS or row.at // DAY != rows[0].at // DAY):
                return PendingRows(rows, after, finding, full=True)
            rows.append(row)
            octets += row.octets
    return PendingRows(rows, after, finding, full=False)


def _known(recording: Recording, session: SessionRow, cut: SegmentRange) -> tuple[int, int]:
    """The last frame and the last finding that the archive has.

    They have other numbers where the recording was deleted and begun anew in mid-run, or its newest rows were pruned:
    then the times tell, of which none of what is known is later."""

    def find(query: str, through: int) -> int:
        row = recording.db.execute(query, (through, session.id, cut.until - session.facts.started)).fetchone()
        return int(row[0]) if row is not None else 0

    frame, finding = find(_LAST, cut.through), cut.findings[1]
    return frame, finding if frame == cut.through else find(_LAST_FINDING, finding)


def put_segment(
    place: ArchiveStore,
    proxy: str,
    recording: Recording,
    session: SessionRow,
    last: Manifest | None,
    found: PendingRows,
) -> Manifest:
    """Put the next segment of a session; its manifest, which may be that of another one who put it first.

    Raises RecordingError, ArchiveError.
    """
    with guard_corruption(recording):
        gathered = _SegmentRows(recording, session, last, found, proxy)
        cut = gathered.cut
        facts_key = cut.key("facts")
        facts = place.put_once(facts_key, file_of(facts_table(gathered.facts()), cut, "number"))
        cut = cut_of(facts, facts_key)
        if (cut.session, cut.number) != (session.facts.uuid, gathered.cut.number):
            raise ArchiveError(f"{facts_key} is of another session", "give this proxy another id: --archive-id")
        frames_key = cut.key("frames")
        frames = place.put_once(frames_key, file_of(_frames(recording, session, cut, gathered.calls), cut, "frame"))
    manifest = Manifest(
        cut,
        tasks=len(distinct_of(frames, "task_id")),
        contexts=len(distinct_of(frames, "context_id")),
        traces=len(distinct_of(frames, "trace_id")),
        agents=tuple(distinct_of(frames, "agent")),
        frames=stored(frames, frames_key),
        facts=stored(facts, facts_key),
        cards=tuple(agents_with_card(frames)),
    )
    name = cut.key(MANIFESTS)
    return decode(place.put_once(name, encode(manifest)), name)


def _frames(recording: Recording, session: SessionRow, cut: SegmentRange, calls: list[Exchange]) -> pa.Table:
    scenes = FrameContexts(recording, {make_key(session.id, call.id): call for call in calls})
    rows = recording.frames_after(cut.after, session=session.id)
    return frames_table((row, scenes.of(row)) for row in takewhile(lambda row: row.id <= cut.through, rows))


class _SegmentRows:
    """What belongs to the next segment of a session."""

    def __init__(
        self, recording: Recording, session: SessionRow, last: Manifest | None, found: PendingRows, proxy: str
    ) -> None:
        self._recording = recording
        self._session = session
        before = last.cut if last is not None else None
        self._over = bool(session.how) and not found.full
        self._since = found.rows[0].at if found.rows else before.until if before else session.facts.started
        lowest = min((row.at for row in found.rows), default=self._since)
        highest = max((row.at for row in found.rows), default=self._since)
        self._lowest, self._highest = lowest, highest
        exchange, connection = (before.exchange, before.connection) if before else (0, 0)
        self._exchanges = self._numbers(
            "exchange", {row.exchange for row in found.rows}, before.open_exchanges if before else (), exchange
        )
        values = [recording.exchange(make_key(session.id, number)) for number in self._exchanges]
        self.calls = [row.exchange for row in values if row is not None]
        """That it has frames of, or news."""
        of_calls = {call.connection for call in self.calls} | {row.connection for row in found.rows}
        self._connections = self._numbers("connection", of_calls, before.open_connections if before else (), connection)
        channels = [recording.connection(make_key(session.id, number)) for number in self._connections]
        self._channels = [row.connection for row in channels if row is not None]
        self._agents = {channel.id: channel.upstream for channel in self._channels}
        self._findings = list(recording.findings(session.id, after=found.finding))
        self.cut = SegmentRange(
            proxy=proxy,
            session=session.facts.uuid,
            number=before.number + 1 if before else 1,
            day=day_of(self._since),
            after=found.after,
            through=found.rows[-1].id if found.rows else found.after,
            findings=(found.finding, self._findings[-1].id if self._findings else found.finding),
            exchange=max([exchange, *self._exchanges]),
            connection=max([connection, *self._connections]),
            open_exchanges=() if self._over else tuple(call.id for call in self.calls if not call.closed),
            open_connections=() if self._over else tuple(each.id for each in self._channels if not each.closed),
            since=lowest,
            until=highest,
            over=self._over,
            line=session_line(session),
        )

    def facts(self) -> Iterator[Fact]:
        """All rows."""
        make = FactsTable(self._session.facts)
        yield make.session(self.cut.line, self._session.ended)
        for channel in self._channels:
            yield make.connection(channel)
        of_call = {}
        for call in self.calls:
            of_call[call.id] = self._agents.get(call.connection, "")
            yield make.exchange(call, of_call[call.id])
        for number in self._touched():
            row = self._recording.task_row(number)
            if row is not None:
                yield make.task(row.task)
        for found in self._findings:
            finding = found.finding
            yield make.finding(found, of_call.get(finding.exchange) or self._agents.get(finding.connection, ""))

    def _numbers(self, table: str, named: set[int], still: tuple[int, ...], before: int) -> list[int]:
        """Those that frames name, that were open before, and that have none of their own, up to the newest named one;
        at the end of a session all that are left."""
        session = self._session.id
        top = make_key(session + 1, 0) if self._over else make_key(session, max(named, default=0) + 1)
        rows = self._recording.db.execute(
            f"SELECT id FROM {table} WHERE id > ? AND id < ?", (make_key(session, before), top)
        )
        fresh = {row[0] - make_key(session, 0) for row in rows}
        return sorted((named | fresh | set(still)) - {0})

    def _touched(self) -> list[int]:
        """Rows of the tasks that were heard of since the segment began; those that began after it come later."""
        start = self._session.facts.started
        until = _NEVER if self._over else self._highest - start
        query = "SELECT id FROM task WHERE session = ? AND last >= ? AND first <= ? ORDER BY id"
        rows = self._recording.db.execute(query, (self._session.id, self._lowest - start, until))
        return [row[0] for row in rows]
