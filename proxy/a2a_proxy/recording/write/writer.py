"""Writer of one session: stores the values that the observer yields, in short transactions.

Several writers, of other sessions and other processes, may share the file; SQLite makes them wait
for each other.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from a2a_proxy.model.values import Changes, Finding, Frame
from a2a_proxy.recording.errors import PositionConflict, RecordingError
from a2a_proxy.recording.read.rows import SessionFacts
from a2a_proxy.recording.store.blocks import Blocks
from a2a_proxy.recording.store.codec import pack_json
from a2a_proxy.recording.store.database import open_writable, transaction, translate_errors
from a2a_proxy.recording.store.file_header import check_recording, check_writable
from a2a_proxy.recording.store.intern import ShapeInterner, ident_interner, text_interner
from a2a_proxy.recording.write.frame_writer import FrameWriter
from a2a_proxy.recording.write.state_writer import StateWriter

Position = tuple[int, int]
"""Number of the journal segment, and byte offset in it."""

_ADVANCE = (
    "UPDATE session SET segment = ?, position = ?, snapshot = coalesce(?, snapshot)"
    " WHERE id = ? AND segment IS ? AND position IS ?"
)
_DELETE_ENDINGS = (
    "DELETE FROM finding WHERE session = ? AND rule IN "
    "(SELECT id FROM text WHERE value LIKE 'A2A-END-%')"
)


class Writer:
    """Writes one session.

    The constructor only checks that the file can be written; it is created by `open`, or by the
    first `write`, so that a start that fails elsewhere leaves no file. Raises RecordingError, here
    and in every method.
    """

    def __init__(
        self, path: str | os.PathLike[str], session: SessionFacts, *, create: bool = True
    ) -> None:
        self._path = os.fspath(path)
        self._facts = session
        self._create = create
        self._owner = True
        self._store: _SessionTables | None = None
        self.position: Position | None = None
        """The committed journal position, or None before the first commit."""
        self.snapshot: str | None = None
        """Name of the decoder snapshot that belongs to `position`."""
        if create:
            check_writable(self._path)
        else:
            check_recording(self._path)

    @classmethod
    def on_connection(cls, db: sqlite3.Connection, session: SessionFacts) -> Writer:
        """Return a writer on an open connection that has the tables and stays open (see
        `database.open_private`)."""
        writer = cls.__new__(cls)
        writer._path, writer._facts, writer._create, writer._owner = (
            "the recording",
            session,
            False,
            False,
        )
        writer.position = writer.snapshot = writer._store = None
        with writer._transaction(db):
            writer._store = _SessionTables(db, _insert_session(db, session), session.started)
        return writer

    @property
    def session(self) -> int:
        """Row number of the session. Reading it opens the recording."""
        return self._open_tables().session

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection to the file. While it is open this process must not open the file again:
        closing it would release the locks of this connection too."""
        return self._open_tables().db

    def open(self) -> None:
        """Create the file if it does not exist, and the session's row."""
        self._open_tables()

    def write(
        self,
        frames: Sequence[Frame],
        findings: Sequence[Finding] = (),
        changes: Changes | None = None,
        position: Position | None = None,
        snapshot: str | None = None,
    ) -> None:
        """Store all arguments and advance the journal position, in one transaction.

        Without `position` the committed position stays unchanged; without `snapshot` its name does.
        Raises PositionConflict if another recorder has advanced the position since this writer last
        did, RecordingError if the file cannot be written (disk full, locked). After any error
        nothing is stored, and the same call may be repeated.
        """
        store = self._open_tables()
        with self._transaction(store.db):
            if position is not None:
                known = self.position or (None, None)
                advance = (*position, snapshot, store.session, *known)
                if store.db.execute(_ADVANCE, advance).rowcount != 1:
                    raise PositionConflict(
                        f"session {self._facts.uuid}: the journal position is no longer "
                        f"{self.position}"
                    )
            store.frames.write(frames)
            store.states.write(changes or _NO_CHANGES, findings)
            store.blocks.flush()
        if position is not None:
            self.position, self.snapshot = position, snapshot or self.snapshot

    def finish(
        self,
        ended: int,
        *,
        how: str = "clean",
        complete: str = "complete",
        lost: int = 0,
        edits: int = 0,
        endings: Sequence[Finding] | None = None,
        explained: Mapping[int, Finding] = MappingProxyType({}),
    ) -> None:
        """Mark the session as ended at `ended` (ns; 0 if unknown) and close the file.

        `how` is `clean` or `unclean`; `complete` is `complete` or describes what is missing; `lost`
        is the number of bytes that were not captured. `endings` are stored in place of the findings
        about endings that a recorder has stored that died afterwards. The evidence of stored
        findings becomes that of `explained`, by the ids of their rows.
        """
        store = self._open_tables()
        with self._transaction(store.db):
            if endings is not None:
                store.db.execute(_DELETE_ENDINGS, (store.session,))
                store.states.write(_NO_CHANGES, endings)
            evidence = ((pack_json(each.evidence), row) for row, each in explained.items())
            store.db.executemany("UPDATE finding SET evidence = ? WHERE id = ?", evidence)
            store.blocks.close()
            store.db.execute(
                "UPDATE session SET ended = ?, how = ?, complete = ?, lost = ?, edits = ? WHERE id "
                "= ?",
                (
                    ended - self._facts.started if ended else None,
                    how,
                    complete,
                    lost,
                    edits,
                    store.session,
                ),
            )
        with contextlib.suppress(sqlite3.Error):
            if store.db.execute("SELECT count(*) FROM session").fetchone()[0] == 1:
                # Interleaved frames of many exchanges leave its pages two thirds full. Rebuilding
                # takes half a second for a million frames, during which other sessions could not
                # write.
                store.db.execute("REINDEX frame_exchange")
            # Release the pages of the open block and the index. `execute` would stop after the
            # first page.
            store.db.executescript("PRAGMA incremental_vacuum;")
        self.close()

    def close(self) -> None:
        """Close the file without ending the session, so that it can be resumed."""
        if self._store is not None and self._owner:
            db, self._store = self._store.db, None
            with contextlib.suppress(sqlite3.Error):
                db.execute("PRAGMA busy_timeout = 1000")  # a checkpoint is not worth a long wait
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.close()

    def _open_tables(self) -> _SessionTables:
        if self._store is None:
            db = open_writable(self._path, create=self._create)
            with self._transaction(db):
                self._store = _SessionTables(
                    db, _insert_session(db, self._facts), self._facts.started
                )
        return self._store

    @contextlib.contextmanager
    def _transaction(self, db: sqlite3.Connection) -> Iterator[None]:
        with translate_errors(self._path):
            try:
                with transaction(db):
                    yield
            except BaseException:
                if self._store is not None:
                    self._store.clear_caches()
                raise


_NO_CHANGES = Changes([], [], [])


class _SessionTables:
    """The parts that write one session's tables."""

    def __init__(self, db: sqlite3.Connection, session: int, started: int) -> None:
        self.db = db
        self.session = session
        self.blocks = Blocks(db, session)
        self._words = text_interner(db)
        self._idents = ident_interner(db)
        self.states = StateWriter(db, session, started, self._words, self._idents, self.blocks)
        self._shapes = ShapeInterner(db, self._words)
        self.frames = FrameWriter(db, session, started, self._idents, self._shapes, self.blocks)

    def clear_caches(self) -> None:
        """Discard all caches after a rollback and reload the state from the file."""
        for part in (self._words, self._idents, self._shapes, self.states):
            part.clear_caches()
        self.blocks.reload_block()


def resume_writer(path: str | os.PathLike[str], session_uuid: str) -> Writer:
    """Return a writer that continues a session of this file from its `position` and `snapshot`.

    Raises RecordingError if the file has no such session.
    """
    db = open_writable(path, create=False)
    with translate_errors(path):
        found = db.execute(
            "SELECT id, started, segment, position, snapshot FROM session WHERE uuid = ?",
            (session_uuid,),
        ).fetchone()
    if found is None:
        db.close()
        raise RecordingError(
            f"{path} has no session {session_uuid}", "it may belong to another recording"
        )
    session, started, segment, position, snapshot = found
    writer = Writer(path, SessionFacts(uuid=session_uuid, tool="", started=started), create=False)
    writer._store = _SessionTables(db, session, started)
    writer._store.blocks.reload_block()
    if segment is not None:
        writer.position, writer.snapshot = (segment, position), snapshot
    return writer


def _insert_session(db: sqlite3.Connection, facts: SessionFacts) -> int:
    columns = {
        name: pack_json(value) if isinstance(value, tuple) else value
        for name, value in msgspec.structs.asdict(facts).items()
    }
    query = f"INSERT INTO session ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    number = db.execute(query, tuple(columns.values())).lastrowid
    assert number is not None
    return number
