"""The loop of a follower: reads new rows, hands them over, stores its position, and waits if there
is nothing new.

Each row is handed over once. If a process dies, the next one repeats the call in which it died and
continues from there. No transaction is open during a call.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from a2a_proxy.follower.batch_reader import FollowedRow, next_batch, read_value
from a2a_proxy.follower.checkpoint import (
    CallMark,
    CheckpointFile,
    FollowerState,
    PendingBatch,
    SessionCursor,
)
from a2a_proxy.follower.consumer import Consumer, RowKind
from a2a_proxy.follower.hook_consumer import CallTally
from a2a_proxy.follower.status import FollowerLag, Status
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import reopen_recording
from a2a_proxy.recording.read.rows import SessionRow
from a2a_proxy.recording.store.file_header import file_identity

POLL_SECONDS = 0.1
"""Seconds between two checks for a commit."""
_CHECK_ROUNDS = 10
"""Number of these checks between two checks whether the path still leads to the same file."""
_MIN_REPORTED_LAG = 10_000
"""Lag in frames that is reported first, and again each time it has doubled."""


class FollowTarget(msgspec.Struct, frozen=True):
    """The recording, and the sessions of it, to follow."""

    path: str
    session: str = ""
    """UUID of the only session to follow; empty: all of the file."""
    follow: bool = False
    """Whether to wait for more rows of sessions that have not ended."""


class Follower:
    """Hands the rows of a recording to consumers."""

    def __init__(
        self,
        target: FollowTarget,
        make_consumer: Callable[[], Consumer],
        checkpoint: CheckpointFile,
        tally: CallTally,
        notify: Callable[[Status], None],
        hurry: Callable[[], None] = lambda: None,
    ) -> None:
        """Create a follower. `make_consumer` creates the consumer of a session, which counts its
        calls in `tally`.

        `hurry` is called when a session that is followed live has ended, because a caller may wait
        from now on. Raises RecordingError.
        """
        self._target = target
        self._make_consumer = make_consumer
        self._checkpoint = checkpoint
        self._tally = tally
        self._notify = notify
        self._hurry = hurry
        self._reported_lag = _MIN_REPORTED_LAG
        self._consumers: dict[str, Consumer] = {}
        self._mark = checkpoint.read_mark()
        tally.calls, tally.errors = self._mark.calls, self._mark.errors
        self._state = checkpoint.load()
        self._recording = open_recording_or_cassette(target.path)
        self._version = -1
        self.stopping = False
        """Set from outside to end after the current call."""
        self._adopt_file()

    def run(self) -> None:
        """Follow until there are no more rows, or until `stopping` is set."""
        self._finish_batch()
        while not self.stopping:
            self._version = self._recording.data_version()
            if not self._follow_round():
                if self._is_finished():
                    break
                self._wait_for_commit()
            self._poll_consumers()
        for name in list(self._consumers):
            self._close_consumer(name)
        self._recording.close()

    def _follow_round(self) -> bool:
        """Hand over one batch of each running session and all batches of ended ones; return False
        if there were none."""
        moved = False
        for session in self._followed_sessions():
            cursor = self._state.cursors.setdefault(session.id, SessionCursor())
            while not (self.stopping or cursor.over):
                more = self._hand_over_batch(session, cursor)
                cursor = self._state.cursors[session.id]
                moved |= more
                if not more or (self._target.follow and not session.how):
                    break
        return moved

    def _followed_sessions(self) -> list[SessionRow]:
        rows = self._recording.read_sessions()
        return [row for row in rows if self._target.session in ("", row.facts.uuid)]

    def _hand_over_batch(self, session: SessionRow, cursor: SessionCursor) -> bool:
        """Hand over one batch; return False if there are no rows now."""
        consumer = self._consumer_of(session)
        batch = next_batch(self._recording, session.id, cursor, consumer.row_kinds)
        if batch is None:
            return False
        if batch.session.how and self._target.follow:
            self._hurry()
        if batch.items:
            self._state.batch = PendingBatch(
                session.id, [(item.kind, item.row) for item in batch.items], batch.after
            )
            self._store_state(done=0)
        if not batch.items or self._hand_over(consumer, batch.items, 0):
            self._commit_batch(session.id, batch.after)
        if batch.more:
            newest = self._recording.db.execute("SELECT max(id) FROM frame").fetchone()[0] or 0
            if self._target.follow and newest - batch.after.frame >= self._reported_lag:
                self._reported_lag = 2 * (newest - batch.after.frame)
                self._notify(FollowerLag(newest - batch.after.frame))
        elif not batch.items and (batch.session.how or not self._target.follow):
            self._close_consumer(session.facts.uuid)
            batch.after.over = True
            self._store_state(done=0)
        return bool(batch.items) or batch.more

    def _finish_batch(self) -> None:
        """Finish the last batch of a process that died."""
        batch = self._state.batch
        if batch is None:
            return
        session = self._recording.read_session(batch.session)
        items = [FollowedRow(0, RowKind(kind), row) for kind, row in batch.items]
        if session is None or self._hand_over(self._consumer_of(session), items, self._mark.done):
            self._commit_batch(batch.session, batch.after)

    def _hand_over(self, consumer: Consumer, items: list[FollowedRow], done: int) -> bool:
        """Hand over items from number `done` on; return False if the follower was stopped before
        the batch was settled."""
        for number in range(0 if consumer.takes_batches else done, len(items)):
            if self.stopping:
                return False
            item = items[number]
            value: Any = read_value(self._recording, item)
            if value is not None:
                consumer.add_row(item.kind, value)
            item.value = None
            frame = item.row if item.kind is RowKind.FRAME else self._mark.frame
            self._store_mark(
                done=self._mark.done if consumer.takes_batches else number + 1, frame=frame
            )
        return consumer.finish_batch()

    def _commit_batch(self, session: int, after: SessionCursor) -> None:
        """Store the cursor after a batch that was handed over completely."""
        self._state.cursors[session] = after
        if self._state.batch is not None:
            self._state.batch = None
            self._store_state(done=0, frame=max(after.frame, self._mark.frame))
        else:
            self._store_mark(done=0, frame=max(after.frame, self._mark.frame))

    def _consumer_of(self, session: SessionRow) -> Consumer:
        name = session.facts.uuid
        if name not in self._consumers:
            self._store_mark(done=self._mark.done)
            self._consumers[name] = consumer = self._make_consumer()
            consumer.start(self._target.path, session)
        return self._consumers[name]

    def _close_consumer(self, name: str) -> None:
        consumer = self._consumers.pop(name, None)
        if consumer is not None:
            consumer.close()
            self._store_mark(done=self._mark.done)

    def report_alive(self) -> None:
        """Report that the current call makes progress and does not hang."""
        self._store_mark(done=self._mark.done)

    @property
    def done(self) -> int:
        """Settled part of a batch that its consumer takes as a whole, in this process or an earlier
        one."""
        return self._mark.done

    def save_done(self, count: int) -> None:
        """Store `count` as the settled part of the batch, so that it survives this process."""
        self._store_mark(done=count)

    @property
    def notes(self) -> dict[int, int]:
        """The consumer's notes by the key of a call; empty for a recording that was started
        again."""
        return self._state.notes

    def save_notes(self) -> None:
        """Store the notes, so that they survive this process."""
        self._store_state(done=self._mark.done)

    def _poll_consumers(self) -> None:
        for session in self._followed_sessions():
            consumer = self._consumers.get(session.facts.uuid)
            cursor = self._state.cursors.get(session.id)
            if consumer is not None and cursor is not None:
                consumer.poll(cursor.open)

    def _is_finished(self) -> bool:
        known = [self._state.cursors[row.id].over for row in self._followed_sessions()]
        return all(known) and bool(known or not self._target.session)

    def _wait_for_commit(self) -> None:
        """Wait for a commit."""
        self._mark_idle()
        looks = 0
        while not self.stopping and self._recording.data_version() == self._version:
            time.sleep(POLL_SECONDS)
            looks += 1
            if looks % _CHECK_ROUNDS == 0 and self._adopt_file():
                break
            if looks % _CHECK_ROUNDS == 0:
                self._poll_consumers()
                self._mark_idle()

    def _mark_idle(self) -> None:
        """Mark that no call is running."""
        self._checkpoint.store_mark(msgspec.structs.replace(self._mark, since=0))

    def _adopt_file(self) -> bool:
        """Follow the file that the path leads to now, because a recorder starts a deleted recording
        again under its name.

        Returns True if it is another file.
        """
        file = file_identity(self._target.path)
        if file is None or self._state.file == file:
            return False
        if self._state.file is not None:
            fresh = reopen_recording(self._target.path)
            if fresh is None:
                return False
            self._recording.close()
            self._recording = fresh
            self._state = FollowerState()
        self._state.file = file
        self._store_state(done=0)
        return True

    def _store_mark(self, done: int, frame: int | None = None) -> None:
        self._checkpoint.store_mark(self._next_mark(done, frame))

    def _store_state(self, done: int, frame: int | None = None) -> None:
        self._checkpoint.store_state(self._state, self._next_mark(done, frame))

    def _next_mark(self, done: int, frame: int | None) -> CallMark:
        """Return the mark of the current position, with the next call starting now."""
        frame = self._mark.frame if frame is None else frame
        self._mark = CallMark(
            done, self._tally.calls, self._tally.errors, frame, time.monotonic_ns()
        )
        return self._mark
