"""Upload of a recording's sessions to the archive.

Keeps no state of its own: the segments in the archive determine where an upload continues.
"""

from __future__ import annotations

from collections.abc import Callable

from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.search import LATEST, list_days, read_manifests
from a2a_proxy.archive.segment import PendingRows, next_rows, put_segment
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow


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
        known = self._read_manifests()
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

    def _read_manifests(self) -> list[Manifest]:
        uuid = self._session.facts.uuid
        since = list_days(self._store, self._session.facts.started, LATEST)
        return read_manifests(self._store, since, self._proxy, uuid)
