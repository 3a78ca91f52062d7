"""Detection of the exchanges that changed in a growing recording."""

from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import key_bounds, make_key
from a2a_proxy.recording.store.database import translate_errors


class ChangedExchanges:
    """Last row of each table and the exchanges open at that time. Used by the reader thread."""

    def __init__(self, recording: Recording) -> None:
        with translate_errors(recording.path):
            sessions = recording.read_sessions()
            self._last_rows = {table: _last_row(recording, table) for table in ("frame", "finding")}
            self._last_exchanges = {
                session.id: _last_exchange(recording, session.id) for session in sessions
            }
            query = "SELECT id FROM exchange WHERE id > ? AND id < ? AND closed IS NULL"
            self._open_exchanges: set[int] = set()
            for session in sessions:
                if not session.how:
                    bounds = key_bounds(session.id)
                    self._open_exchanges.update(
                        row[0] for row in recording.db.execute(query, bounds)
                    )

    def pop_changed_keys(self, recording: Recording) -> set[int]:
        """Return keys of exchanges that may have changed since the last call."""
        with translate_errors(recording.path):
            began = self._new_exchanges(recording)
            touched = self._open_exchanges | began | self._exchanges_with_new_rows(recording)
            self._open_exchanges = {
                each for each in self._open_exchanges | began if _is_exchange_open(recording, each)
            }
            return touched

    def _new_exchanges(self, recording: Recording) -> set[int]:
        found: set[int] = set()
        for session in recording.read_sessions():
            last = self._last_exchanges.get(session.id, make_key(session.id, 0))
            query = "SELECT id FROM exchange WHERE id > ? AND id < ? ORDER BY id"
            new = [
                row[0] for row in recording.db.execute(query, (last, make_key(session.id + 1, 0)))
            ]
            self._last_exchanges[session.id] = new[-1] if new else last
            found.update(new)
        return found

    def _exchanges_with_new_rows(self, recording: Recording) -> set[int]:
        found: set[int] = set()
        for table, last in self._last_rows.items():
            self._last_rows[table] = now = _last_row(recording, table)
            query = (
                f"SELECT DISTINCT session, exchange FROM {table} WHERE id > ? AND id <= ? AND "
                f"exchange > 0"
            )
            found.update(make_key(*row) for row in recording.db.execute(query, (last, now)))
        return found


def _last_row(recording: Recording, table: str) -> int:
    return int(recording.db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])


def _last_exchange(recording: Recording, session: int) -> int:
    bounds = key_bounds(session)
    query = "SELECT coalesce(max(id), ?1) FROM exchange WHERE id > ?1 AND id < ?2"
    return int(recording.db.execute(query, bounds).fetchone()[0])


def _is_exchange_open(recording: Recording, exchange: int) -> bool:
    row = recording.db.execute(
        "SELECT closed IS NULL FROM exchange WHERE id = ?", (exchange,)
    ).fetchone()
    return row is not None and bool(row[0])
