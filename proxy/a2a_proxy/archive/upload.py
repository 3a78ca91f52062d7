"""Sessions of a recording into the archive. What the archive has says where to go on: nothing is remembered here."""

from __future__ import annotations

from collections.abc import Callable

from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.search import LATEST, list_days, read_manifests
from a2a_proxy.archive.segment import PendingRows, next_rows, put_segment
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow


class SessionUpload:
    """Brings one session into the archive, and what comes to it later. Methods raise RecordingError, ArchiveError."""

    def __init__(self, store: ArchiveStore, proxy: str, recording: Recording, session: SessionRow) -> None:
        self._store = store
        self._proxy = proxy
        self._recording = recording
        self._session = session
        known = self._read_manifests()
        self._last_manifest = max(known, key=lambda each: each.cut.number, default=None)
        self._manifests = sum(each.frames.rows for each in known)

    @property
    def missing_frames(self) -> int:
        """Frames that the archive will never have: it has the session to its end, of a recording that had fewer."""
        return max(self._recording.counts(self._session.id).frames - self._manifests, 0) if self.is_complete else 0

    @property
    def is_complete(self) -> bool:
        """The archive has all of the session, and its end."""
        return self._last_manifest is not None and self._last_manifest.cut.over

    def put_segments(self, *, include_rest: bool, on_segment: Callable[[Manifest], None] = lambda _: None) -> int:
        """Put the segments that are full, with `include_rest` all there is; frames that came into the archive."""
        count = 0
        while not self.is_complete:
            self._session = self._recording.session(self._session.id) or self._session
            found = next_rows(self._recording, self._session, self._last_manifest)
            if not (found.full or self._session.how or (include_rest and found.rows)) or self._is_empty(found):
                break
            self._last_manifest = put_segment(
                self._store, self._proxy, self._recording, self._session, self._last_manifest, found
            )
            count += self._last_manifest.frames.rows
            self._manifests += self._last_manifest.frames.rows
            on_segment(self._last_manifest)
        return count

    def _is_empty(self, found: PendingRows) -> bool:
        """Nobody ever came."""
        nobody = next(self._recording.connections(self._session.id), None) is None
        return self._last_manifest is None and not found.rows and nobody

    def _read_manifests(self) -> list[Manifest]:
        uuid = self._session.facts.uuid
        since = list_days(self._store, self._session.facts.started, LATEST)
        return read_manifests(self._store, since, self._proxy, uuid)
