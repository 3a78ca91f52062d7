"""Data of the screens: pages of exchanges and frames, one frame with its payload, and change
detection.

All reading happens in one separate thread, one query after another; widgets get frozen values. No
transaction is held between two calls. Modules that decode payloads are imported in that thread on
first use, so that they do not delay the first rows.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from a2a_inspect.data.finding_counts import (
    ExchangeLine,
    FindingCounts,
    count_by_frame,
    ending_words,
    exchange_lines,
)
from a2a_inspect.data.observed import open_observed
from a2a_inspect.data.positions import PAGE, PagePositions
from a2a_proxy.capture.backlog import MIN_LAG, recording_lag
from a2a_proxy.model.values import Connection, Note
from a2a_proxy.present import generations
from a2a_proxy.protocol.finding_totals import count_occurrences
from a2a_proxy.recording.names import missing_folder_error
from a2a_proxy.recording.read.outcome_sql import COUNTED_FINDING
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, SessionRow, make_key, split_key
from a2a_proxy.recording.store.corruption_guard import guard_corruption
from a2a_proxy.recording.write.note_writer import NotePlace

if TYPE_CHECKING:
    from a2a_proxy.recording.read.endings import EndingReader

_Value = TypeVar("_Value")
_INDEXED_AT_ONCE = 2_000
"""Calls that are indexed for endings between two questions of the screen: 50 ms."""
_LARGE = 5_000
"""Calls of a growing recording from which on its endings are renewed less often."""
_ENDING_SECONDS = 5.0
_EXPLAINED = f"SELECT count(*) FROM finding WHERE session = ? AND NOT {COUNTED_FINDING}"


class RecordingSnapshot(msgspec.Struct, frozen=True):
    """Contents of a recording at one moment."""

    sessions: tuple[SessionRow, ...] = ()
    lengths: tuple[int, ...] = ()
    """Exchanges of each session."""
    highest: int = 0
    """Highest number of an exchange."""
    frames: int = 0
    findings: int = 0
    """Findings, repetitions that the recording does not list included."""
    notes: Mapping[NotePlace, Note] = {}
    """Notes and bookmarks by place."""
    lag: int = 0
    """Time by which the recording of a running session is behind its relay, ns; 0 if below
    `MIN_LAG`."""

    @property
    def exchanges(self) -> int:
        """Exchanges of all sessions: the length of the list."""
        return sum(self.lengths)

    @property
    def is_live(self) -> bool:
        """Whether a session is still open."""
        return any(not session.how for session in self.sessions)


class FrameLine(msgspec.Struct, frozen=True):
    """A frame as displayed in the list."""

    row: FrameRow
    """The frame without its payload."""
    text: str
    """One-line summary."""
    finding_counts: FindingCounts | None = None
    """Findings about the frame."""


class ExchangeStream(msgspec.Struct, frozen=True):
    """The current state of an exchange."""

    row: ExchangeRow
    frames: int
    connection: Connection | None = None
    generations: str = ""
    """Generations of its task, in words."""
    ending: str = ""
    """Why it did not end well, in one line."""


def _is_missing(path: Path) -> bool:
    """Return whether the file does not exist or is empty: a proxy may be about to write it."""
    try:
        return path.is_file() and not path.stat().st_size if path.exists() else True
    except OSError:
        return False


def _file_identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of the file; None if it does not exist or is empty, because a
    proxy may be about to write it.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status.st_size else None


class RecordingSource:
    """One recording or cassette. The coroutines run one at a time, in the order in which they were
    awaited.

    A file that does not exist yet, or is empty, has no exchanges until a proxy writes it. A deleted
    or moved file is shown unchanged until another file has its name, which is shown then. Opening,
    and each coroutine, raises RecordingError if the file cannot be read.
    """

    until = 0
    """Moment that is shown, ns since the epoch (see `replay.source`); 0: the current state."""

    def __init__(self, path: Path, *, files: tuple[str, ...] = (), later: bool = False) -> None:
        """With `later` the file is opened by the first query, in the reader thread."""
        self.path = path
        self.files = files
        """Short names of the recordings that this one joins (see `joined`); empty if it joins
        none."""
        if _is_missing(path) and not path.absolute().parent.is_dir():
            raise missing_folder_error(path)
        self._reader: _RecordingReader | None = None
        self._open_file: tuple[int, int] | None = None
        """Device and inode of the open file."""
        if not later and not _is_missing(path):
            self._open_reader()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="recording")

    async def poll(self) -> RecordingSnapshot | None:
        """Return the current contents; None if nothing has changed since the last call or there is
        no recording yet."""
        return await self._run_question(lambda reader: reader.poll(), None, reopen_if_replaced=True)

    async def read_exchanges(self, page: int) -> list[ExchangeLine]:
        """Return one page of the list: PAGE rows of all sessions without headers, by session and
        first byte."""
        return await self._run_question(lambda reader: reader.read_exchanges(page), [])

    async def read_lines(self, keys: Sequence[int]) -> list[ExchangeLine]:
        """Return these exchanges without headers as lines of the list."""
        return await self._run_question(lambda reader: reader.read_lines(keys), [])

    async def read_stream(self, exchange: int) -> ExchangeStream | None:
        """Return the current state of this exchange."""
        return await self._run_question(lambda reader: reader.read_stream(exchange), None)

    async def read_frames(self, exchange: int, page: int) -> list[FrameLine]:
        """Return one page of frames of the exchange that `read_stream` returned last; empty for any
        other exchange."""
        return await self._run_question(lambda reader: reader.read_frames(exchange, page), [])

    async def read_frame(self, number: int) -> FrameRow | None:
        """Return one frame by its id, with its payload."""
        return await self._run_question(lambda reader: reader.recording.read_frame(number), None)

    async def run_query(self, question: Callable[[Recording], _Value], nothing: _Value) -> _Value:
        """Run a query in the reader thread and return its result; `nothing` while there is no
        recording yet."""
        return await self._run_question(lambda reader: question(reader.recording), nothing)

    async def ask_cancellable(
        self, question: Callable[[Recording], _Value], nothing: _Value
    ) -> _Value:
        """Run a query as `run_query` does.

        If the caller is cancelled, SQLite is interrupted, so that the next query need not wait.
        """
        turn = _CancellableQuestion()
        try:
            return await self._run_question(
                lambda reader: turn.answer_question(reader.recording, question, nothing), nothing
            )
        except asyncio.CancelledError:
            turn.cancel()
            raise

    async def exchange_index(self, exchange: int) -> int:
        """Return the index of this exchange in the list of all, or where it would be."""
        return await self._run_question(lambda reader: reader.exchange_index(exchange), 0)

    def reopen_recording(self) -> Recording | None:
        """Open the same recording again, for another thread; None while there is no recording yet.

        Raises:
            RecordingError: it cannot be opened.
        """
        return None if _is_missing(self.path) else open_observed(self.path)

    def close(self) -> None:
        """Close the file after the running query. No coroutine may be awaited afterwards."""
        self._thread.submit(self._close_reader)
        self._thread.shutdown(wait=False)

    async def _run_question(
        self,
        question: Callable[[_RecordingReader], _Value],
        nothing: _Value,
        *,
        reopen_if_replaced: bool = False,
    ) -> _Value:
        """Run a query; with `reopen_if_replaced`, on the file that has the name now."""

        def call() -> _Value:
            if (
                reopen_if_replaced
                and self._open_file is not None
                and _file_identity(self.path) not in (None, self._open_file)
            ):
                self._close_reader()
            if self._reader is None:
                if _is_missing(self.path):
                    return nothing
                self._open_reader()
            assert self._reader is not None
            with guard_corruption(self._reader.recording):
                return question(self._reader)

        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _open_reader(self) -> None:
        self._open_file = _file_identity(self.path)
        self._reader = _RecordingReader(open_observed(self.path))

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.recording.close()
            self._reader = None


class _CancellableQuestion:
    """A query that can be cancelled before it starts or while SQLite runs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running_on: Recording | None = None
        self._is_awaited = True

    def answer_question(
        self, recording: Recording, question: Callable[[Recording], _Value], nothing: _Value
    ) -> _Value:
        """Return the result, or `nothing` if the query was cancelled. Runs in the reader thread."""
        with self._lock:
            if not self._is_awaited:
                return nothing
            self._running_on = recording
        try:
            return question(recording)
        finally:
            with self._lock:
                self._running_on = None

    def cancel(self) -> None:
        """Cancel the query. Other queries are not interrupted because queries run one after
        another."""
        with self._lock:
            self._is_awaited = False
            if self._running_on is not None:
                self._running_on.db.interrupt()


class _RecordingReader:
    """The open recording, used by one thread."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._version = -1
        self._snapshot = RecordingSnapshot()
        self._positions_by_session: dict[int, PagePositions] = {}
        self._frame_counter = RowCounter(recording, "frame")
        self._finding_counter = RowCounter(recording, "finding")
        self._corrections: dict[int, int] = {}
        """What is added to the number of rows of findings, by session."""
        self._endings: EndingReader | None = None
        self._next_endings: EndingReader | None = None
        """Those that are shown as soon as all calls are indexed."""
        self._endings_at = 0.0
        self._selected_exchange = 0
        self._selected_frames = self._frame_positions(0)

    def poll(self) -> RecordingSnapshot | None:
        """Return as `RecordingSource.poll`."""
        version = self.recording.data_version()
        if version == self._version:
            before, lag = self._snapshot, self._read_lag(self._snapshot.sessions)
            if lag == before.lag and not self._prepare_endings():
                return None
            self._snapshot = msgspec.structs.replace(before, lag=lag)
            return self._snapshot
        sessions = tuple(self.recording.read_sessions())
        session_ids = {session.id for session in sessions}
        if not session_ids.issuperset(self._positions_by_session):
            self._positions_by_session.clear()
        lengths = tuple(
            self._exchange_positions(session.id).read_new_positions() for session in sessions
        )
        highest = max(
            (split_key(positions.last)[1] for positions in self._positions_by_session.values()),
            default=0,
        )
        rows = self.recording.read_notes()
        self._snapshot = RecordingSnapshot(
            sessions,
            lengths,
            highest,
            self._frame_counter.count_rows(),
            self._finding_counter.count_rows() + sum(map(self._correct_count, sessions)),
            {NotePlace(row.session, row.note.exchange, row.note.seq): row.note for row in rows},
            self._read_lag(sessions),
        )
        self._renew_endings(self._snapshot)
        self._version = version  # if this cannot be read, the next poll raises again
        return self._snapshot

    def _renew_endings(self, now: RecordingSnapshot) -> None:
        """Let the endings be computed again, of a growing recording now and then. Until all calls
        are indexed, those of before are shown."""
        since = time.monotonic() - self._endings_at
        is_due = not now.is_live or since > _ENDING_SECONDS * max(now.exchanges / _LARGE, 1)
        if self._next_endings is None and (self._endings is None or is_due):
            from a2a_proxy.recording.read.endings import EndingReader

            self._next_endings = EndingReader(self.recording)
        self._prepare_endings()

    def _prepare_endings(self) -> bool:
        """Index more calls for the next endings; return whether they are ready now."""
        if self._next_endings is None or not self._next_endings.prepare(_INDEXED_AT_ONCE):
            return False
        self._endings, self._next_endings = self._next_endings, None
        self._endings_at = time.monotonic()
        return True

    def _read_lag(self, sessions: tuple[SessionRow, ...]) -> int:
        """Return the largest lag, rounded to seconds, ns."""
        now = time.time_ns()
        lags = (
            recording_lag(each.facts.uuid, each.position, now) for each in sessions if not each.how
        )
        lag = max(lags, default=0)
        return (lag + 500_000_000) // 1_000_000_000 * 1_000_000_000 if lag >= MIN_LAG else 0

    def _correct_count(self, session: SessionRow) -> int:
        """Return the number of findings that only the totals of a session have, less those that
        follow from endings; both are known from its end on."""
        if session.how and session.id not in self._corrections:
            totals = self.recording.finding_totals(session.id)
            explained = self.recording.db.execute(_EXPLAINED, (session.id,)).fetchone()[0]
            self._corrections[session.id] = (
                sum(count_occurrences(each) - 1 for each in totals) - explained
            )
        return self._corrections.get(session.id, 0)

    def read_exchanges(self, page: int) -> list[ExchangeLine]:
        """Return as `RecordingSource.read_exchanges`; a page may begin in one session and end in
        another."""
        rows: list[ExchangeRow] = []
        skip = page * PAGE
        for session, positions in sorted(self._positions_by_session.items()):
            if len(rows) == PAGE:
                break
            if skip >= positions.count:
                skip -= positions.count
                continue
            within, missing = skip % PAGE, PAGE - len(rows)
            after = positions.key_before(skip // PAGE)
            rows += list(
                self.recording.read_exchanges(
                    session, after=after, limit=within + missing, headers=False
                )
            )[within:]
            skip = 0
        return exchange_lines(self.recording, rows, endings=self._endings)

    def read_lines(self, keys: Sequence[int]) -> list[ExchangeLine]:
        """Return as `RecordingSource.read_lines`."""
        found = (self.recording.read_exchange(key, headers=False) for key in keys)
        rows = [row for row in found if row is not None]
        return exchange_lines(self.recording, rows, endings=self._endings)

    def exchange_index(self, exchange: int) -> int:
        """Return as `RecordingSource.exchange_index`."""
        session = split_key(exchange)[0]
        before = sum(
            positions.count
            for each, positions in self._positions_by_session.items()
            if each < session
        )
        page, after = self._exchange_positions(session).page_of(exchange)
        within = "SELECT count(*) FROM exchange WHERE id > ? AND id < ?"
        return (
            before
            + page * PAGE
            + int(self.recording.db.execute(within, (after, exchange)).fetchone()[0])
        )

    def read_stream(self, exchange: int) -> ExchangeStream | None:
        """Return as `RecordingSource.read_stream`."""
        row = self.recording.read_exchange(exchange)
        if row is None:
            return None
        if exchange != self._selected_exchange:
            self._selected_exchange, self._selected_frames = (
                exchange,
                self._frame_positions(exchange),
            )
        connection = self.recording.read_connection(make_key(row.session, row.exchange.connection))
        return ExchangeStream(
            row,
            self._selected_frames.read_new_positions(),
            None if connection is None else connection.connection,
            self._generation_words(row),
            self._ending_words(row),
        )

    def _ending_words(self, row: ExchangeRow) -> str:
        return ending_words(row, self._endings.read(row) if self._endings is not None else None)

    def _generation_words(self, row: ExchangeRow) -> str:
        from a2a_inspect.data.generation_gaps import operation_of

        rows = self.recording.read_task(row.exchange.task_id) if row.exchange.task_id else []
        reasons = (
            generations.generations_line(
                each.task, lambda number: operation_of(self.recording, row.session, number)
            )
            for each in rows
            if each.session == row.session and row.exchange.id in each.task.exchanges
        )
        return next(filter(None, reasons), "")

    def read_frames(self, exchange: int, page: int) -> list[FrameLine]:
        """Return as `RecordingSource.read_frames`."""
        from a2a_inspect.data.frame_summary import summarize_frame

        if exchange != self._selected_exchange:
            return []
        row = self.recording.read_exchange(exchange)
        of = row.exchange if row is not None else None
        after = self._selected_frames.key_before(page)
        rows = list(self.recording.read_frames(exchange, after=after, limit=PAGE, payloads=False))
        found = count_by_frame(self.recording, rows)
        return [
            FrameLine(row, summarize_frame(self.recording, row, of), found.get(row.frame.seq))
            for row in rows
        ]

    def _exchange_positions(self, session: int) -> PagePositions:
        if session not in self._positions_by_session:
            query = "SELECT id AS k FROM exchange WHERE id < ? AND id > ? ORDER BY id LIMIT ?"
            self._positions_by_session[session] = PagePositions(
                self.recording.db, query, (make_key(session + 1, 0),), make_key(session, 0)
            )
        return self._positions_by_session[session]

    def _frame_positions(self, exchange: int) -> PagePositions:
        query = (
            "SELECT seq AS k FROM frame WHERE session = ? AND exchange = ? AND seq > ? ORDER BY "
            "seq LIMIT ?"
        )
        return PagePositions(self.recording.db, query, split_key(exchange), -1)


class RowCounter:
    """Number of rows of a table. Counts all rows once, later only the new ones."""

    def __init__(self, recording: Recording, table: str) -> None:
        self._db = recording.db
        self._table = table
        self._count = 0
        self._last = 0

    def count_rows(self) -> int:
        """Return the current number of rows."""
        last = self._db.execute(f"SELECT max(id) FROM {self._table}").fetchone()[0] or 0
        if last < self._last:  # a session was deleted
            self._count = self._last = 0
        if self._last:
            since = f"SELECT count(*) FROM {self._table} WHERE id > ? AND id <= ?"
            self._count += self._db.execute(since, (self._last, last)).fetchone()[0]
        else:  # SQLite counts a whole table without reading its rows, in a fifth of the time
            whole = (
                f"SELECT (SELECT count(*) FROM {self._table}), (SELECT max(id) FROM {self._table})"
            )
            self._count, last = self._db.execute(whole).fetchone()
        self._last = last or 0
        return self._count
