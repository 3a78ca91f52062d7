"""How far the rows of a table have been passed, for whoever follows a recording.

Rows are only ever added at the end, but where the last ones are pruned SQLite gives their numbers out again. Then the
row at the cursor is another one, and what was seen last of the sessions that are left says where to go on.
"""

from __future__ import annotations

import sqlite3

from a2a_proxy.recording.read.reader import Recording

_ROW = """SELECT s.uuid, r.exchange, r.connection, r.seq, r.at FROM {table} r JOIN session s ON s.id = r.session
  WHERE r.id = ?"""
"""What makes a row that row, whatever its number."""

Fingerprint = tuple[str | int, ...]


def fingerprint(db: sqlite3.Connection, table: str, number: int) -> Fingerprint:
    """Which row of `frame` or `finding` has this number; empty where none has."""
    row = db.execute(_ROW.format(table=table), (number,)).fetchone()
    return tuple(row) if row is not None else ()


class RowCursor:
    """A cursor into `frame` or `finding`, over all sessions."""

    def __init__(self, recording: Recording, table: str) -> None:
        self._recording = recording
        self._table = table
        self.row = 0
        """Number of the last row that was passed."""
        self._fingerprint: Fingerprint = ()
        self._sessions_by_uuid: dict[str, int] = {}
        """By uuid the number of the session, of those that were there."""
        self._last: dict[int, int] = {}
        """By number of the session the last of its rows, of those that may get more."""

    def start_at(self, row: int) -> None:
        """Everything up to this row is passed."""
        self.row = row
        for session in self._recording.sessions():
            self._sessions_by_uuid[session.facts.uuid] = session.id
            if not session.how:
                self._last[session.id] = self._last_row_before(row, [session.id])
        self._fingerprint = fingerprint(self._recording.db, self._table, row)

    def advance(self, row: int, session: int) -> None:
        """The next row is passed: this one."""
        self.row = row
        self._last[session] = row

    def end_look(self) -> None:
        """There are no more now: until the next look others may take rows away. Call it after each look."""
        self._fingerprint = fingerprint(self._recording.db, self._table, self.row)
        self._sessions_by_uuid.clear()
        for session in self._recording.sessions():
            self._sessions_by_uuid[session.facts.uuid] = session.id
            if not session.how:
                self._last.setdefault(session.id, 0)  # it began since, and has nothing that was passed

    def begin_look(self) -> int:
        """The number after which there is what is new. Call it before each look."""
        if self.row and fingerprint(self._recording.db, self._table, self.row) != self._fingerprint:
            left = [
                row.id for row in self._recording.sessions() if self._sessions_by_uuid.get(row.facts.uuid) == row.id
            ]
            self._last = {session: row for session, row in self._last.items() if session in left}
            ended = [session for session in left if session not in self._last]
            self.row = max((*self._last.values(), self._last_row_before(self.row, ended)), default=0)
        return self.row

    def _last_row_before(self, row: int, sessions: list[int]) -> int:
        """The last row up to this one of some sessions."""
        marks = ",".join("?" * len(sessions))
        # Without `+` SQLite would sort all rows of the sessions: the newest one is near.
        query = f"SELECT id FROM {self._table} WHERE id <= ? AND +session IN ({marks}) ORDER BY id DESC LIMIT 1"
        found = self._recording.db.execute(query, (row, *sessions)).fetchone() if sessions else None
        return int(found[0]) if found is not None else 0
