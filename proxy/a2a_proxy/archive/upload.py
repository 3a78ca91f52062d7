"""Sessions of a recording into the archive. What the archive has says where to go on: nothing is remembered here."""

from __future__ import annotations

from collections.abc import Callable

from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.search import LATEST, days, manifests
from a2a_proxy.archive.segment import PendingRows, next_rows, put_segment
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow


class SessionUpload:
    """Brings one session into the archive, and what comes to it later. Methods raise RecordingError, ArchiveError."""

    def __init__(self, place: ArchiveStore, proxy: str, recording: Recording, session: SessionRow) -> None:
        self._place = place
        self._proxy = proxy
        self._recording = recording
        self._session = session
        known = self._known()
        self._last = max(known, key=lambda each: each.cut.number, default=None)
        self._there = sum(each.frames.rows for each in known)

    @property
    def lacking(self) -> int:
        """Frames that the archive will never have: it has the session to its end, of a recording that had fewer."""
        return max(self._recording.counts(self._session.id).frames - self._there, 0) if self.over else 0

    @property
    def over(self) -> bool:
        """The archive has all of the session, and its end."""
        return self._last is not None and self._last.cut.over

    def put(self, *, rest: bool, told: Callable[[Manifest], None] = lambda _: None) -> int:
        """Put the segments that are full, with `rest` all there is; frames that came into the archive."""
        count = 0
        while not self.over:
            self._session = self._recording.session(self._session.id) or self._session
            found = next_rows(self._recording, self._session, self._last)
            if not (found.full or self._session.how or (rest and found.rows)) or self._nothing(found):
                break
            self._last = put_segment(self._place, self._proxy, self._recording, self._session, self._last, found)
            count += self._last.frames.rows
            self._there += self._last.frames.rows
            told(self._last)
        return count

    def _nothing(self, found: PendingRows) -> bool:
        """Nobody ever came."""
        nobody = next(self._recording.connections(self._session.id), None) is None
        return self._last is None and not found.rows and nobody

    def _known(self) -> list[Manifest]:
        uuid = self._session.facts.uuid
        since = days(self._place, self._session.facts.started, LATEST)
        return manifests(self._place, since, self._proxy, uuid)
