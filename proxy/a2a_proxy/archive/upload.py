"""Upload of a recording's sessions to the archive.

Keeps no state of its own: the segments in the archive determine where an upload continues.

Upload of a session while it is recorded: a segment whenever one is full or its oldest row is old
enough.

Rows that the storage refuses stay in the recording and are uploaded later.
"""

import time
from collections.abc import Callable

import msgspec

from a2a_proxy.archive.destination import ArchiveJob
from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.search import LATEST, list_days, read_manifests
from a2a_proxy.archive.segment import MAX_ROWS, PendingRows, next_rows, put_segment
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.follower.checkpoint import CallMark, CheckpointFile
from a2a_proxy.follower.status import FollowerNotice, Status
from a2a_proxy.recording.read.reader import Recording, reopen_recording
from a2a_proxy.recording.read.rows import SessionRow
from a2a_proxy.recording.store.file_header import file_identity


class SessionUpload:
    """Uploads one session, including rows that are recorded later. Methods raise RecordingError,
    ArchiveError."""

    def __init__(
        self, store: ArchiveStore, proxy: str, recording: Recording, session: SessionRow
    ) -> None:
        self._store = store
        self._proxy = proxy
        self._recording = recording
        self._session = session
        uuid = self._session.facts.uuid
        since = list_days(self._store, self._session.facts.started, LATEST)
        known = read_manifests(self._store, since, self._proxy, uuid)
        self._last_manifest = max(known, key=lambda each: each.cut.number, default=None)
        self._manifests = sum(each.frames.rows for each in known)

    @property
    def missing_frames(self) -> int:
        """Number of frames that the archive will never have.

        Not 0 if the session was archived to its end from a recording that had fewer frames than
        this one.
        """
        return (
            max(self._recording.count_rows(self._session.id).frames - self._manifests, 0)
            if self.is_complete
            else 0
        )

    @property
    def is_complete(self) -> bool:
        """Whether the archive has the whole session, including its end."""
        return self._last_manifest is not None and self._last_manifest.cut.over

    def put_segments(
        self, *, include_rest: bool, on_segment: Callable[[Manifest], None] = lambda _: None
    ) -> int:
        """Upload the full segments, or all pending rows with `include_rest`, and return the number
        of frames."""
        count = 0
        while not self.is_complete:
            self._session = self._recording.read_session(self._session.id) or self._session
            found = next_rows(self._recording, self._session, self._last_manifest)
            if not (
                found.full or self._session.how or (include_rest and found.rows)
            ) or self._is_empty(found):
                break
            self._last_manifest = put_segment(
                self._store, self._proxy, self._recording, self._session, self._last_manifest, found
            )
            count += self._last_manifest.frames.rows
            self._manifests += self._last_manifest.frames.rows
            on_segment(self._last_manifest)
        return count

    def _is_empty(self, found: PendingRows) -> bool:
        """Whether the session has neither connections nor frames nor segments."""
        nobody = next(self._recording.read_connections(self._session.id), None) is None
        return self._last_manifest is None and not found.rows and nobody


POLL_SECONDS = 0.5
"""Seconds between two polls of the recording."""
RETRY_SECONDS = 10.0
"""Seconds between a failed upload and the next attempt. `_END_RETRY_SECONDS` applies once the
session has ended, because the proxy waits for the end of the upload.
"""
_END_RETRY_SECONDS = 2.0


class LiveUpload:
    """Follows one session to its end. Raises RecordingError."""

    def __init__(
        self, job: ArchiveJob, checkpoint: CheckpointFile, notify: Callable[[Status], None]
    ) -> None:
        self._job = job
        self._checkpoint = checkpoint
        self._notify = notify
        self._mark = checkpoint.read_mark()
        self._upload: SessionUpload | None = None
        self._reported_error: set[str] = set()
        self._next_due = 0.0
        self._file = file_identity(job.path)
        self._recording = Recording(job.path)

    def run(self) -> None:
        """Upload until the session has ended and is completely archived."""
        self._next_due = time.monotonic() + self._job.every
        while True:
            self._adopt_file()
            session = next(
                (
                    row
                    for row in self._recording.read_sessions()
                    if row.facts.uuid == self._job.session
                ),
                None,
            )
            if (
                session is not None
                and self._is_due(session)
                and self._put_segments(session)
                and session.how
            ):
                break
            time.sleep(POLL_SECONDS)
        self._recording.close()

    def _adopt_file(self) -> None:
        """Switch to the file that now has the recording's name, if it is another file. The session
        is the same."""
        file = file_identity(self._job.path)
        fresh = reopen_recording(self._job.path) if file not in (None, self._file) else None
        if fresh is not None:
            self._recording.close()
            self._recording, self._file, self._upload = fresh, file, None
            self._mark = msgspec.structs.replace(self._mark, frame=0)
            self._checkpoint.store_mark(self._mark)

    def _is_due(self, session: SessionRow) -> bool:
        """Whether a segment is full or the pending rows have waited long enough."""
        return self._is_all_due(session) or self._newest_frame() - self._mark.frame > MAX_ROWS

    def _is_all_due(self, session: SessionRow) -> bool:
        return bool(session.how) or time.monotonic() >= self._next_due

    def _newest_frame(self) -> int:
        return self._recording.db.execute("SELECT max(id) FROM frame").fetchone()[0] or 0

    def _put_segments(self, session: SessionRow) -> bool:
        """Upload the pending rows and return True, or False if the upload has to be repeated."""
        rest = self._is_all_due(session)
        try:
            if self._upload is None:
                self._upload = SessionUpload(
                    ArchiveStore(self._job.url), self._job.proxy, self._recording, session
                )
            self._upload.put_segments(include_rest=rest, on_segment=self._on_segment)
        except ArchiveError as wrong:
            self._mark = msgspec.structs.replace(self._mark, errors=self._mark.errors + 1)
            self._checkpoint.store_mark(self._mark)
            if wrong.message not in self._reported_error:
                self._reported_error.add(wrong.message)
                self._notify(
                    FollowerNotice(
                        wrong.message,
                        f"{wrong.hint}; the upload is retried, and the recording keeps everything",
                    )
                )
            self._upload = None
            self._next_due = time.monotonic() + RETRY_SECONDS
            time.sleep(_END_RETRY_SECONDS if session.how else 0)
            return False
        if rest:
            self._next_due = time.monotonic() + self._job.every
        return True

    def _on_segment(self, manifest: Manifest) -> None:
        self._mark = CallMark(0, self._mark.calls + 1, self._mark.errors, manifest.cut.through, 0)
        self._checkpoint.store_mark(self._mark)
