"""Read position in a table, for followers of a recording.

Rows are only added at the end, but SQLite reuses the numbers of pruned rows at the end of a table.
Then the row at the cursor has changed, and the last rows read of the remaining sessions determine
the position.
"""

import sqlite3

from a2a_proxy.recording.read.reader import Recording

_ROW = """SELECT s.uuid, r.exchange, r.connection, r.seq, r.at
  FROM {table} r JOIN session s ON s.id = r.session WHERE r.id = ?"""
"""Columns that identify a row independently of its number."""

Fingerprint = tuple[str | int, ...]


def read_fingerprint(db: sqlite3.Connection, table: str, number: int) -> Fingerprint:
    """Return the identity of the row of `frame` or `finding` with this number, or an empty
    tuple."""
    row = db.execute(_ROW.format(table=table), (number,)).fetchone()
    return tuple(row) if row is not None else ()


class RowCursor:
    """Read position in `frame` or `finding`, over all sessions."""

    def __init__(self, recording: Recording, table: str) -> None:
        self._recording = recording
        self._table = table
        self.row = 0
        """Number of the last row that was read."""
        self._fingerprint: Fingerprint = ()
        self._sessions_by_uuid: dict[str, int] = {}
        """Number of each session by UUID, as of the last poll."""
        self._last: dict[int, int] = {}
        """Number of the last row that was read, by session; only sessions that may get more
        rows."""

    def start_at(self, row: int) -> None:
        """Set the position: rows up to this one count as read."""
        self.row = row
        for session in self._recording.read_sessions():
            self._sessions_by_uuid[session.facts.uuid] = session.id
            if not session.how:
                self._last[session.id] = self._last_row_before(row, [session.id])
        self._fingerprint = read_fingerprint(self._recording.db, self._table, row)

    def advance_to(self, row: int, session: int) -> None:
        """Move the position to this row, the next one."""
        self.row = row
        self._last[session] = row

    def end_look(self) -> None:
        """End a poll: remember the row at the position. Call it after each poll.

        Other processes may delete rows before the next poll.
        """
        self._fingerprint = read_fingerprint(self._recording.db, self._table, self.row)
        self._sessions_by_uuid.clear()
        for session in self._recording.read_sessions():
            self._sessions_by_uuid[session.facts.uuid] = session.id
            if not session.how:
                self._last.setdefault(
                    session.id, 0
                )  # the session began since, and none of its rows was read

    def begin_look(self) -> int:
        """Begin a poll and return the number of the last row that was read. Call it before each
        poll."""
        if (
            self.row
            and read_fingerprint(self._recording.db, self._table, self.row) != self._fingerprint
        ):
            left = [
                row.id
                for row in self._recording.read_sessions()
                if self._sessions_by_uuid.get(row.facts.uuid) == row.id
            ]
            self._last = {session: row for session, row in self._last.items() if session in left}
            ended = [session for session in left if session not in self._last]
            self.row = max(
                (*self._last.values(), self._last_row_before(self.row, ended)), default=0
            )
        return self.row

    def _last_row_before(self, row: int, sessions: list[int]) -> int:
        """Return the number of the last row of these sessions, not above `row`."""
        marks = ",".join("?" * len(sessions))
        # Without `+` SQLite would sort all rows of the sessions, although the newest one is near.
        query = (
            f"SELECT id FROM {self._table} WHERE id <= ? AND +session IN ({marks}) "
            "ORDER BY id DESC LIMIT 1"
        )
        found = self._recording.db.execute(query, (row, *sessions)).fetchone() if sessions else None
        return int(found[0]) if found is not None else 0
