"""A recording as it was at any moment. Holds the time of each frame and exchange, 8 bytes each; the
rest is read."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from a2a_inspect.data.finding_counts import ExchangeLine, count_by_frame, exchange_lines
from a2a_inspect.data.positions import PAGE
from a2a_inspect.data.replay.mask import ExchangeProgress, exchange_as_of, is_exchange_over
from a2a_inspect.data.source import ExchangeStream, FrameLine, RecordingSnapshot
from a2a_proxy.model.event import state_label
from a2a_proxy.model.values import FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, split_key
from a2a_proxy.recording.store.database import translate_errors
from a2a_proxy.recording.store.schema import SESSION_SHIFT

_EXCHANGE_STARTS = f"""SELECT e.id, s.started + e.started AS at
  FROM exchange e JOIN session s ON s.id = e.id >> {SESSION_SHIFT}
  WHERE {{of}} ORDER BY at, e.id"""
_FRAME_TIMES = """SELECT s.started + f.at FROM frame f JOIN session s ON s.id = +f.session
  WHERE f.exchange > 0 AND {of}"""
_FINDING_TIMES = (
    "SELECT s.started + x.at FROM finding x JOIN session s ON s.id = +x.session WHERE {of}"
)
_KEY_CONDITION = "{key} IN (SELECT value FROM json_each(?))"
_KEY_COLUMNS = {
    _EXCHANGE_STARTS: "e.id",
    _FRAME_TIMES: f"(f.session << {SESSION_SHIFT} | f.exchange)",
    _FINDING_TIMES: f"(x.session << {SESSION_SHIFT} | x.exchange)",
}
_PROGRESS = """SELECT s.direction, s.kind, s.state, count(*), min(f.seq), max(f.at), sum(f.span),
    sum(f.task <> 0), sum((f.task + f.context) <> 0)
  FROM frame f JOIN shape s ON s.id = f.shape
  WHERE f.session = ? AND f.exchange = ? AND f.seq < ?
  GROUP BY s.direction, s.kind, s.state ORDER BY min(f.seq)"""
_MESSAGE_KINDS = (FrameKind.REQUEST, FrameKind.RESPONSE, FrameKind.EVENT)


class AsOf:
    """All exchanges, or those with these keys, by the time of their first byte. Used by the reader
    thread."""

    def __init__(self, recording: Recording, keys: Sequence[int] | None = None) -> None:
        self._recording = recording
        with translate_errors(recording.path):
            self._sessions = tuple(recording.read_sessions())
            self._started = {row.id: row.facts.started for row in self._sessions}
            self.keys, self._start_times = array("q"), array("q")
            for row_key, at in self._query_times(_EXCHANGE_STARTS, keys):
                self.keys.append(row_key)
                self._start_times.append(at)
            self.frame_times = _sort_times(self._query_times(_FRAME_TIMES, keys))
            """Times of all frames, ns since the epoch, in order."""
            self._finding_times = _sort_times(self._query_times(_FINDING_TIMES, keys))
        self._last_exchange = max((split_key(each)[1] for each in self.keys), default=0)

    def _query_times(self, query: str, keys: Sequence[int] | None) -> Iterator[tuple[int, ...]]:
        if keys is None:
            return self._recording.db.execute(query.format(of="1"))
        of = _KEY_CONDITION.format(key=_KEY_COLUMNS[query])
        return self._recording.db.execute(query.format(of=of), (json.dumps(list(keys)),))

    def snapshot(self, until: int) -> RecordingSnapshot:
        """Return a snapshot of the recording at `until`."""
        # The session without an end that came after `until`.
        sessions = tuple(
            row if 0 < row.ended <= until else replace(row, ended=0, how="", complete="")
            for row in self._sessions
            if row.facts.started <= until
        )
        count = bisect_right(self._start_times, until)
        found = bisect_right(self._finding_times, until)
        return RecordingSnapshot(
            sessions, (count,), self._last_exchange, bisect_right(self.frame_times, until), found
        )

    def read_exchanges(self, page: int, until: int) -> list[ExchangeLine]:
        """Return one page of the exchanges that had begun."""
        count = bisect_right(self._start_times, until)
        keys = self.keys[page * PAGE : min((page + 1) * PAGE, count)]
        rows = (self._recording.read_exchange(each) for each in keys)
        return exchange_lines(
            self._recording, [self.rewind_row(row, until) for row in rows if row is not None], until
        )

    def find_index(self, exchange: int) -> int:
        """Return the index of this exchange; 0 if it is not listed."""
        try:
            return self.keys.index(exchange)
        except ValueError:
            return 0

    def rewind_row(self, row: ExchangeRow, until: int) -> ExchangeRow:
        """Return the exchange as it was at `until`."""
        if is_exchange_over(row.exchange, until):
            return row
        return replace(
            row, exchange=exchange_as_of(row.exchange, until, self._find_progress(row, until))
        )

    def rewind_stream(self, stream: ExchangeStream, until: int) -> ExchangeStream:
        """Return the exchange with its task and connection as they were at `until`."""
        frames = self.frame_count(stream.row, until)
        return replace(
            stream, row=self.rewind_row(stream.row, until), frames=frames, generations=""
        )

    def frames_until(self, all_lines: Sequence[FrameLine], until: int) -> list[FrameLine]:
        """Return the frames that had passed."""
        lines = [each for each in all_lines if each.row.frame.at <= until]
        found = count_by_frame(self._recording, [each.row for each in lines], until)
        return [replace(each, found=found.get(each.row.frame.seq)) for each in lines]

    def frame_count(self, row: ExchangeRow, until: int) -> int:
        """Return how many frames of an exchange had passed. Frames are numbered in order of
        time."""
        db, of = self._recording.db, split_key(row.key)
        last = db.execute(
            "SELECT max(seq) FROM frame WHERE session = ? AND exchange = ?", of
        ).fetchone()[0]
        query = (
            "SELECT at FROM frame WHERE session = ? AND exchange = ? AND seq >= ? "
            "ORDER BY seq LIMIT 1"
        )

        def at(seq: int) -> int:
            return int(db.execute(query, (*of, seq)).fetchone()[0])

        places = range(0 if last is None else last + 1)
        return bisect_right(places, until - self._started[row.session], key=at)

    def next_frame_time(self, position: int, by: int) -> int:
        """Return the time of the next frame (`by` 1), or of the frame before the last passed one
        (-1).

        Returns `position` if the recording has no such frame.
        """
        place = bisect_right(self.frame_times, position)
        if by < 0:
            place = bisect_left(self.frame_times, self.frame_times[place - 1]) - 1 if place else -1
        return self.frame_times[place] if 0 <= place < len(self.frame_times) else position

    def _find_progress(self, row: ExchangeRow, until: int) -> ExchangeProgress:
        requests = events = to_agent = to_client = last = 0
        states: list[str] = []
        task = context = False
        query = (*split_key(row.key), self.frame_count(row, until))
        for (
            direction,
            kind,
            state,
            count,
            _,
            at,
            data,
            tasks,
            contexts,
        ) in self._recording.db.execute(_PROGRESS, query):
            messages = count if kind in _MESSAGE_KINDS else 0
            task, context = task or bool(tasks), context or bool(contexts)
            if direction == Direction.TO_AGENT:
                requests, to_agent = requests + messages, to_agent + data
                continue
            events, to_client = events + messages, to_client + data
            last = max(last, at + self._started[row.session]) if messages else last
            if name := state_label(int(state)):
                states.append(name)
        return ExchangeProgress(
            requests, events, tuple(dict.fromkeys(states)), last, to_agent, to_client, task, context
        )


def _sort_times(rows: Iterator[tuple[int, ...]]) -> array[int]:
    """Sort the times. They are nearly in order, which Python sorts quickly."""
    times = array("q", (row[0] for row in rows))
    return array("q", sorted(times))
