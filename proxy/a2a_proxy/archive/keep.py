"""Sessions of a recording into the archive. What the archive has says where to go on: nothing is remembered here."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable
from pathlib import Path

from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.find import days, manifests
from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.place import Place
from a2a_proxy.archive.segment import next_rows, put_segment
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import SessionRow

ID_FILE = "archive.id"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def proxy_id(state: Path) -> str:
    """The id of the proxies of this state directory in every archive; made once. Raises OSError, ArchiveError."""
    file = state / ID_FILE
    if not file.exists():
        made = file.with_name(f".{ID_FILE}.{os.getpid()}")
        made.write_text(f"{uuid.uuid4().hex[:16]}\n")
        try:
            os.link(made, file)
        except FileExistsError:
            pass  # another process was first
        finally:
            made.unlink()
    return checked_id(file.read_text().strip(), str(file))


def checked_id(name: str, of: str = "--archive-id") -> str:
    """The id if it can stand in a key. Raises ArchiveError."""
    if not _ID.fullmatch(name):
        raise ArchiveError(f"{of}: {name!r} is no id", "letters, digits, `-`, `_` and `.`, at most 64")
    return name


class Keeper:
    """Brings one session into the archive, and what comes to it later. Methods raise RecordingError, ArchiveError."""

    def __init__(self, place: Place, proxy: str, recording: Recording, session: SessionRow) -> None:
        self._place = place
        self._proxy = proxy
        self._recording = recording
        self._session = session
        self._last = self._known()

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
            if not (found.full or self._session.how or (rest and found.rows)):
                break
            self._last = put_segment(self._place, self._proxy, self._recording, self._session, self._last, found)
            count += self._last.frames.rows
            told(self._last)
        return count

    def _known(self) -> Manifest | None:
        uuid = self._session.facts.uuid
        since = days(self._place, self._session.facts.started, 1 << 62)
        return max(manifests(self._place, since, self._proxy, uuid), key=lambda each: each.cut.number, default=None)
