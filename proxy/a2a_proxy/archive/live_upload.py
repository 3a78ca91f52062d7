"""A session into the archive while it is recorded: a segment where enough has come, or the oldest of it is old enough.

What the storage refuses waits in the recording, and is tried again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.job import ArchiveJob
from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.segment import ROWS
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.archive.upload import SessionUpload
from a2a_proxy.follower.checkpoint import CallMark, CheckpointFile
from a2a_proxy.follower.file_identity import identity, reopened
from a2a_proxy.follower.status import FollowerNotice, Status
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow

LOOK_EVERY = 0.5
"""Seconds between two looks at the recording."""
AGAIN = 10.0
"""Seconds after which what failed is tried again; two where the session has ended, and somebody waits."""
_AGAIN_AT_END = 2.0


class LiveUpload:
    """Follows one session to its end. Raises RecordingError."""

    def __init__(self, aim: ArchiveJob, ledger: CheckpointFile, tell: Callable[[Status], None]) -> None:
        self._aim = aim
        self._ledger = ledger
        self._tell = tell
        self._mark = ledger.read_mark()
        self._keeper: SessionUpload | None = None
        self._told: set[str] = set()
        self._due = 0.0
        self._file = identity(aim.path)
        self._recording = Recording(aim.path)

    def run(self) -> None:
        """Until the session has ended and all of it is in the archive."""
        self._due = time.monotonic() + self._aim.every
        while True:
            self._adopt()
            session = next((row for row in self._recording.sessions() if row.facts.uuid == self._aim.session), None)
            if session is not None and self._due_now(session) and self._put(session) and session.how:
                break
            time.sleep(LOOK_EVERY)
        self._recording.close()

    def _adopt(self) -> None:
        """Go on with the file that has the name now, which may be another one; the session is the same."""
        file = identity(self._aim.path)
        fresh = reopened(self._aim.path) if file not in (None, self._file) else None
        if fresh is not None:
            self._recording.close()
            self._recording, self._file, self._keeper = fresh, file, None
            self._mark = msgspec.structs.replace(self._mark, frame=0)
            self._ledger.mark(self._mark)

    def _due_now(self, session: SessionRow) -> bool:
        """A segment is full, or what there is has waited for long enough."""
        return self._all_due(session) or self._newest() - self._mark.frame > ROWS

    def _all_due(self, session: SessionRow) -> bool:
        return bool(session.how) or time.monotonic() >= self._due

    def _newest(self) -> int:
        return self._recording.db.execute("SELECT max(id) FROM frame").fetchone()[0] or 0

    def _put(self, session: SessionRow) -> bool:
        """Put what there is; False where it has to be tried again."""
        rest = self._all_due(session)
        try:
            if self._keeper is None:
                self._keeper = SessionUpload(ArchiveStore(self._aim.url), self._aim.proxy, self._recording, session)
            self._keeper.put(rest=rest, told=self._done)
        except ArchiveError as wrong:
            self._mark = msgspec.structs.replace(self._mark, errors=self._mark.errors + 1)
            self._ledger.mark(self._mark)
            if wrong.message not in self._told:
                self._told.add(wrong.message)
                self._tell(
                    FollowerNotice(wrong.message, f"{wrong.hint}; it is tried again, and the recording keeps all")
                )
            self._keeper = None
            self._due = time.monotonic() + AGAIN
            time.sleep(_AGAIN_AT_END if session.how else 0)
            return False
        if rest:
            self._due = time.monotonic() + self._aim.every
        return True

    def _done(self, manifest: Manifest) -> None:
        self._mark = CallMark(0, self._mark.calls + 1, self._mark.errors, manifest.cut.through, 0)
        self._ledger.mark(self._mark)
