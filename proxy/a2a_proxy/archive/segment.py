"""One segment: the choice of its rows, its two tables, and their upload.

A stored object is never replaced. The facts are stored first, then the frames, then the manifest.
If a process dies in between, the next one finds the facts, and in their footer the range of frames
that belongs to them.

Rows of the table `facts`: everything that is recorded besides frames.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.files import (
    agents_with_card,
    describe_file,
    distinct_in_file,
    encode_file,
    range_of_file,
)
from a2a_proxy.archive.manifest import (
    DAY_NS,
    MANIFEST_TABLE,
    Manifest,
    SegmentRange,
    day_name,
    decode_manifest,
    encode_manifest,
)
from a2a_proxy.archive.rows import FrameContexts, frames_table
from a2a_proxy.archive.schema import FACT_COLUMNS, FACTS_SCHEMA, is_column_value, trace_id_of
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Connection, Exchange, Task
from a2a_proxy.recording.cassette import json_objects
from a2a_proxy.recording.cassette.exporter import session_line
from a2a_proxy.recording.cassette.json_objects import Line
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FindingRow, SessionFacts, SessionRow, make_key
from a2a_proxy.recording.store.corruption_guard import guard_corruption

MAX_ROWS = 200_000
"""Maximum number of frames in a segment."""
_NEVER = 1 << 62
"""ns; later than any time."""
MAX_SEGMENT_BYTES = 128 << 20
"""Maximum size of a segment's payloads in bytes, not counting the last frame."""


Fact = dict[str, Any]
"""Values by column name. A missing column is null."""


class FactsTable:
    """Builds the rows of one session."""

    def __init__(self, session: SessionFacts) -> None:
        self._session = session.uuid
        self._start = session.started

    def session_row(self, line: Line, ended: int) -> Fact:
        """Return the row of the session itself."""
        upstreams = line.get("upstreams", ())
        agent = upstreams[0] if len(upstreams) == 1 else None
        return self._make_row("session", 0, self._start, line, ended=ended, agent=agent)

    def connection_row(self, value: Connection) -> Fact:
        """Return the row of a connection."""
        line = json_objects.write_line(value, self._start)
        return self._make_row(
            "connection", value.id, value.opened, line, ended=value.closed, agent=value.upstream
        )

    def exchange_row(self, value: Exchange) -> Fact:
        """Return the row of an exchange."""
        return self._make_row(
            "exchange",
            value.id,
            value.started,
            json_objects.write_line(value, self._start),
            ended=value.closed,
            agent=value.agent,
            exchange=value.id,
            task_id=value.task_id,
            context_id=value.context_id,
            trace_id=trace_id_of(value.trace_context),
            binding=str(value.binding),
            operation=value.operation,
        )

    def task_row(self, value: Task) -> Fact:
        """Return the row of a task."""
        known = value.state in TaskState._value2member_map_ and value.state
        return self._make_row(
            "task",
            None,
            value.first,
            json_objects.write_line(value, self._start),
            ended=value.last,
            agent=value.agent,
            task_id=value.task_id,
            context_id=value.context_id,
            state=TaskState(value.state).label if known else "",
            missed=len(value.gaps),
        )

    def finding_row(self, row: FindingRow, agent: str) -> Fact:
        """Return the row of a finding."""
        value = row.finding
        return self._make_row(
            "finding",
            row.id,
            value.at,
            json_objects.write_line(value, self._start),
            agent=agent,
            exchange=value.exchange,
            task_id=value.task_id,
            rule=value.rule,
            severity=value.severity.name.lower(),
            summary=value.summary,
        )

    def _make_row(self, kind: str, number: int | None, at: int, line: Line, **cells: Any) -> Fact:
        plain = {name: cell for name, cell in cells.items() if cell and is_column_value(cell)}
        return {
            "session": self._session,
            "kind": kind,
            "number": number,
            "time": at,
            "line": json.dumps(line),
            **plain,
        }


def facts_table(facts: Iterable[Fact]) -> pa.Table:
    """Return the Arrow table of the facts, in their order."""
    rows = list(facts)
    arrays = [
        pa.array([row.get(column.name) for row in rows], field.type)
        for column, field in zip(FACT_COLUMNS, FACTS_SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=FACTS_SCHEMA)


class PendingFrame(NamedTuple):
    """A frame that is not archived yet."""

    id: int
    at: int
    """Time in ns."""
    exchange: int
    connection: int
    byte_count: int


class PendingRows(msgspec.Struct):
    """The rows of a session that are not archived yet, up to the limits of a segment."""

    rows: list[PendingFrame]
    last_frame: int
    """Number of the last archived frame: `rows` follow it."""
    last_finding: int
    """Number of the last archived finding."""
    full: bool
    """Whether there may be more rows: a limit, or the end of a day, was reached."""


_FRAMES_QUERY = """SELECT id, at, exchange, connection, max(span, coalesce(size, 0)) FROM frame
  WHERE +session = ? AND id > ? ORDER BY id LIMIT ?"""


_LAST_FRAME_QUERY = (
    """SELECT id FROM frame WHERE id <= ? AND +session = ? AND at <= ? ORDER BY id DESC LIMIT 1"""
)
_LAST_FINDING_QUERY = _LAST_FRAME_QUERY.replace("frame", "finding")


def next_rows(recording: Recording, session: SessionRow, last: Manifest | None) -> PendingRows:
    """Return the rows after the last segment. Raises RecordingError."""
    rows: list[PendingFrame] = []
    byte_count = 0
    start = session.facts.started
    with guard_corruption(recording):
        after, finding = (
            _last_archived(recording, session, last.cut) if last is not None else (0, 0)
        )
        found = recording.db.execute(_FRAMES_QUERY, (session.id, after, MAX_ROWS + 1)).fetchall()
        for number, at, *more in found:
            row = PendingFrame(number, start + at, *more)
            if rows and (
                len(rows) == MAX_ROWS
                or byte_count > MAX_SEGMENT_BYTES
                or row.at // DAY_NS != rows[0].at // DAY_NS
            ):
                return PendingRows(rows, after, finding, full=True)
            rows.append(row)
            byte_count += row.byte_count
    return PendingRows(rows, after, finding, full=False)


def _last_archived(
    recording: Recording, session: SessionRow, segment_range: SegmentRange
) -> tuple[int, int]:
    """Return the numbers of the last archived frame and the last archived finding.

    The numbers differ from those in the manifest if the recording was deleted and started again
    during the run, or if its newest rows were pruned. Then times decide: no archived row is later
    than the end of the segment.
    """

    def find_last(query: str, through: int) -> int:
        row = recording.db.execute(
            query, (through, session.id, segment_range.until - session.facts.started)
        ).fetchone()
        return int(row[0]) if row is not None else 0

    frame, finding = find_last(_LAST_FRAME_QUERY, segment_range.through), segment_range.findings[1]
    return frame, finding if frame == segment_range.through else find_last(
        _LAST_FINDING_QUERY, finding
    )


def put_segment(
    store: ArchiveStore,
    proxy: str,
    recording: Recording,
    session: SessionRow,
    last: Manifest | None,
    pending: PendingRows,
) -> Manifest:
    """Store the next segment of a session and return its manifest.

    If another process stored the segment first, the manifest is the one that it stored. Raises
    RecordingError, ArchiveError.
    """
    with guard_corruption(recording):
        gathered = _SegmentRows(recording, session, last, pending, proxy)
        cut = gathered.range
        facts_key = cut.object_key("facts")
        facts = store.put_once(
            facts_key, encode_file(facts_table(gathered.fact_rows()), cut, "number")
        )
        cut = range_of_file(facts, facts_key)
        if (cut.session, cut.number) != (session.facts.uuid, gathered.range.number):
            raise ArchiveError(
                f"{facts_key} belongs to another session",
                "give this proxy another id: --archive-id",
            )
        frames_key = cut.object_key("frames")
        contexts = FrameContexts(
            recording, {make_key(session.id, call.id): call for call in gathered.calls}
        )
        rows = recording.frames_after(cut.after, session=session.id)
        frames = store.put_once(
            frames_key,
            encode_file(
                frames_table(
                    (row, contexts.context_of(row))
                    for row in takewhile(lambda row: row.id <= cut.through, rows)
                ),
                cut,
                "frame",
            ),
        )
    manifest = Manifest(
        cut,
        tasks=len(distinct_in_file(frames, "task_id")),
        contexts=len(distinct_in_file(frames, "context_id")),
        traces=len(distinct_in_file(frames, "trace_id")),
        agents=tuple(distinct_in_file(frames, "agent")),
        frames=describe_file(frames, frames_key),
        facts=describe_file(facts, facts_key),
        cards=tuple(agents_with_card(frames)),
    )
    name = cut.object_key(MANIFEST_TABLE)
    return decode_manifest(store.put_once(name, encode_manifest(manifest)), name)


class _SegmentRows:
    """The rows of the next segment of a session."""

    def __init__(
        self,
        recording: Recording,
        session: SessionRow,
        last: Manifest | None,
        pending: PendingRows,
        proxy: str,
    ) -> None:
        self._recording = recording
        self._session = session
        before = last.cut if last is not None else None
        self._is_over = bool(session.how) and not pending.full
        self._since = (
            pending.rows[0].at
            if pending.rows
            else before.until
            if before
            else session.facts.started
        )
        lowest = min((row.at for row in pending.rows), default=self._since)
        highest = max((row.at for row in pending.rows), default=self._since)
        self._lowest, self._highest = lowest, highest
        exchange, connection = (before.exchange, before.connection) if before else (0, 0)
        self._exchanges = self._row_numbers(
            "exchange",
            {row.exchange for row in pending.rows},
            before.open_exchanges if before else (),
            exchange,
        )
        values = [
            recording.read_exchange(make_key(session.id, number)) for number in self._exchanges
        ]
        self.calls = [row.exchange for row in values if row is not None]
        """Calls that have frames in the segment or that have changed."""
        of_calls = {call.connection for call in self.calls} | {
            row.connection for row in pending.rows
        }
        self._connections = self._row_numbers(
            "connection", of_calls, before.open_connections if before else (), connection
        )
        channels = [
            recording.read_connection(make_key(session.id, number)) for number in self._connections
        ]
        self._channels = [row.connection for row in channels if row is not None]
        self._agents = {channel.id: channel.upstream for channel in self._channels}
        self._findings = list(recording.read_findings(session.id, after=pending.last_finding))
        self.range = SegmentRange(
            proxy=proxy,
            session=session.facts.uuid,
            number=before.number + 1 if before else 1,
            day=day_name(self._since),
            after=pending.last_frame,
            through=pending.rows[-1].id if pending.rows else pending.last_frame,
            findings=(
                pending.last_finding,
                self._findings[-1].id if self._findings else pending.last_finding,
            ),
            exchange=max([exchange, *self._exchanges]),
            connection=max([connection, *self._connections]),
            open_exchanges=()
            if self._is_over
            else tuple(call.id for call in self.calls if not call.closed),
            open_connections=()
            if self._is_over
            else tuple(each.id for each in self._channels if not each.closed),
            since=lowest,
            until=highest,
            over=self._is_over,
            line=session_line(session),
        )

    def fact_rows(self) -> Iterator[Fact]:
        """Yield all rows of the table `facts`."""
        make = FactsTable(self._session.facts)
        yield make.session_row(self.range.line, self._session.ended)
        for channel in self._channels:
            yield make.connection_row(channel)
        for call in self.calls:
            yield make.exchange_row(call)
        of_call = {call.id: call.agent for call in self.calls}
        for number in self._changed_tasks():
            row = self._recording.task_row(number)
            if row is not None:
                yield make.task_row(row.task)
        for found in self._findings:
            finding = found.finding
            yield make.finding_row(
                found, of_call.get(finding.exchange) or self._agents.get(finding.connection, "")
            )

    def _row_numbers(
        self, table: str, frame_numbers: set[int], open_numbers: tuple[int, ...], before: int
    ) -> list[int]:
        """Return the numbers of the segment's rows in `table`.

        These are the rows that frames name, the rows that were open before, and the rows without
        frames up to the newest named one; in the last segment of a session all remaining rows.
        """
        session = self._session.id
        top = (
            make_key(session + 1, 0)
            if self._is_over
            else make_key(session, max(frame_numbers, default=0) + 1)
        )
        rows = self._recording.db.execute(
            f"SELECT id FROM {table} WHERE id > ? AND id < ?", (make_key(session, before), top)
        )
        fresh = {row[0] - make_key(session, 0) for row in rows}
        return sorted((frame_numbers | fresh | set(open_numbers)) - {0})

    def _changed_tasks(self) -> list[int]:
        """Return the row ids of the tasks that changed since the segment began.

        Tasks that began after its end follow in a later segment.
        """
        start = self._session.facts.started
        until = _NEVER if self._is_over else self._highest - start
        query = "SELECT id FROM task WHERE session = ? AND last >= ? AND first <= ? ORDER BY id"
        rows = self._recording.db.execute(query, (self._session.id, self._lowest - start, until))
        return [row[0] for row in rows]
