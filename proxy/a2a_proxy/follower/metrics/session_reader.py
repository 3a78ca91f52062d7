"""Reads the new rows of one session into metrics. Each round reads the rows since the last; memory
holds open calls."""

import json
from collections import Counter
from pathlib import Path

from a2a_proxy.capture.record_format import bytes_after
from a2a_proxy.follower.metrics.numbers import SessionMetrics
from a2a_proxy.follower.task_counts import OTHER, task_states
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind, Exchange, Frame, FrameKind
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, make_key

_MAX_BATCH = 5_000
"""Maximum rows of each kind read per round."""
_MAX_CACHED = 4_096
"""Maximum number of calls whose labels are cached."""
_CLOSED_QUERY = (
    "SELECT id FROM exchange WHERE id IN (SELECT value FROM json_each(?)) AND closed IS NOT NULL"
)
_MAX_LAG_BYTES = 4 << 20
"""Bytes that the recorder may be behind for a moment."""
_STUCK_SECONDS = 10.0
"""Seconds for which it may be behind by more, or by any number of bytes without progress."""
NO_LABELS = ("", "", "")

CallLabels = tuple[str, str, str]
"""Labels: method, binding, upstream."""


class MetricsSession:
    """Fills the metrics of one session."""

    def __init__(self, recording: Recording, row: SessionRow, journal: Path | None = None) -> None:
        """`journal` is the folder of the session's journal, needed to compute the recorder's
        lag."""
        self.numbers = SessionMetrics()
        self._recording = recording
        self._id = row.id
        self._journal = journal
        self._frame = self._finding = 0
        self._exchange = make_key(row.id, 0)
        self._open: dict[int, CallLabels] = {}
        self._last_event: dict[int, int] = {}
        """Time of the last event of each open stream, ns."""
        self._labels_by_call: dict[int, CallLabels] = {}
        self._upstreams: dict[int, str] = {}

    def read_new_rows(self) -> bool:
        """Read the new rows; return False if there were none. Raises RecordingError."""
        rows = list(
            self._recording.read_exchanges(self._id, after=self._exchange, limit=_MAX_BATCH)
        )
        for row in rows:
            self._open[row.key] = self._exchange_labels(row.exchange)
            self._exchange = row.key
        moved = [len(rows) == _MAX_BATCH, self._read_frames(), self._read_findings()]
        if not any(moved):
            self._record_ended_calls()  # after all of their frames are counted
            self._record_snapshot()
        return any(moved)

    def _read_frames(self) -> bool:
        count = 0
        for row in self._recording.frames_after(
            self._frame, limit=_MAX_BATCH, session=self._id, payloads=False
        ):
            frame, self._frame = row.frame, row.id
            call = (
                self._call_labels(make_key(self._id, frame.exchange))
                if frame.exchange
                else NO_LABELS
            )
            self.numbers.record_frame(frame, call)
            if frame.kind is FrameKind.EVENT:
                number = make_key(self._id, frame.exchange)
                before = self._last_event.get(number)
                if before is not None:
                    self.numbers.record_event_gap(max(frame.at - before, 0), call)
                if number in self._open:
                    self._last_event[number] = frame.at
            if frame.task_id and frame.state and frame.event is not EventKind.NONE:
                self._record_task_state(frame, call[2])
            count += 1
        return count == _MAX_BATCH

    def _record_task_state(self, frame: Frame, upstream: str) -> None:
        """Record the duration of a task if this frame ended it."""
        if not any(int(state) == frame.state and state.terminal for state in TaskState):
            return
        for row in self._recording.read_task(frame.task_id):
            if row.session == self._id and (frame.at, frame.state) in row.task.states:
                self.numbers.record_task_end(
                    frame.at - row.task.first, TaskState(frame.state).label, upstream
                )

    def _record_ended_calls(self) -> None:
        wanted = json.dumps(list(self._open))
        for (number,) in (
            self._recording.db.execute(_CLOSED_QUERY, (wanted,)).fetchall() if self._open else ()
        ):
            row = self._recording.read_exchange(number)
            self._open.pop(number)
            self._last_event.pop(number, None)
            if row is not None:
                self.numbers.record_call(row.exchange, self._exchange_labels(row.exchange))

    def _read_findings(self) -> bool:
        count = 0
        for row in self._recording.read_findings(self._id, after=self._finding, limit=_MAX_BATCH):
            self.numbers.record_finding(row.finding)
            self._finding = row.id
            count += 1
        return count == _MAX_BATCH

    def _record_snapshot(self) -> None:
        tasks = task_states(self._recording, self._id)
        row = self._recording.read_session(self._id)
        lost = row.lost if row is not None else 0
        self.numbers.record_snapshot(Counter(self._open.values()), tasks, lost, self.measure_lag())

    def measure_lag(self) -> int:
        """Return the number of journal bytes that are not in the recording yet."""
        row = self._recording.read_session(self._id)
        if self._journal is None or row is None or row.how:
            return 0
        return bytes_after(self._journal, row.position or (0, 0))

    def read_position(self) -> tuple[int, int] | None:
        """Return the recorder's position in the journal: file number and offset in it."""
        row = self._recording.read_session(self._id)
        return row.position if row is not None else None

    def capture_gaps(self) -> str:
        """Return the missing part of the capture in words; empty if nothing is missing so far."""
        row = self._recording.read_session(self._id)
        if row is None:
            return "the session is gone from the recording"
        return row.missing_text if row.complete else ""

    def _call_labels(self, number: int) -> CallLabels:
        """Return the labels of a call; its operation may have been unknown when it began."""
        known = self._open if number in self._open else self._labels_by_call
        if number not in known or known[number][0] == OTHER:
            row = self._recording.read_exchange(number)
            known[number] = self._exchange_labels(row.exchange) if row is not None else NO_LABELS
            if len(self._labels_by_call) > _MAX_CACHED:
                del self._labels_by_call[next(iter(self._labels_by_call))]
        return known[number]

    def _exchange_labels(self, exchange: Exchange) -> CallLabels:
        if exchange.connection not in self._upstreams:
            row = self._recording.read_connection(make_key(self._id, exchange.connection))
            self._upstreams[exchange.connection] = (
                row.connection.upstream if row is not None else ""
            )
            if len(self._upstreams) > _MAX_CACHED:
                del self._upstreams[next(iter(self._upstreams))]
        return (
            exchange.operation or OTHER,
            exchange.binding.value,
            self._upstreams[exchange.connection],
        )


class RecorderLag:
    """The recorder's lag over time."""

    def __init__(self, now: float) -> None:
        """`now`: seconds of a clock that never goes back."""
        self._last_near = self._last_moved = now
        self._position: object = None

    def describe_lag(self, lag: int, position: object, now: float) -> str:
        """Return why the recorder does not keep up, or an empty string. `position` is its position
        in the journal."""
        if lag <= _MAX_LAG_BYTES:
            self._last_near = now
        if not lag or position != self._position:
            self._last_moved, self._position = now, position
        if now - self._last_near > _STUCK_SECONDS:
            return f"the recorder is {lag} bytes behind"
        if now - self._last_moved > _STUCK_SECONDS:
            return f"the recorder makes no progress, {lag} bytes behind"
        return ""
