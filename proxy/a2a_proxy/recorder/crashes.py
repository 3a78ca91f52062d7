"""Positions at which earlier recorders of a journal died, so that one bad record does not kill all
later recorders.

A recorder that follows a dead one starts carefully: it commits after each record, so that the
committed position shows which record caused a death. A record that has killed three recorders is
skipped: its connection is opaque from there.
"""

import contextlib
from pathlib import Path

import msgspec

from a2a_proxy.capture.record_format import START_POSITION, Position

CAREFUL_RECORDS = 500
"""Records committed one by one after a death; if the bad one is further on, the next recorder
starts closer to it."""
_MAX_CAREFUL_TRIES = 2
"""Careful recorders that died at a record; with the first one, which was not careful, the record
has killed three."""


class _DeathRecord(msgspec.Struct):
    at: Position = START_POSITION
    tries: int = 0
    abandoned: list[Position] = []


class CrashHistory:
    """The known deaths, stored in a small file next to the journal."""

    def __init__(self, folder: Path, committed: Position | None, *, is_successor: bool) -> None:
        """Load the history.

        `committed` is where this recorder continues; `is_successor`: another recorder ran before.
        """
        self._path = folder / "crashes.json"
        self._deaths = _read_deaths(self._path)
        self._committed = committed or START_POSITION
        self.careful_records = CAREFUL_RECORDS if is_successor else 0
        """Number of records that are still to be committed one by one."""
        if self._deaths.at != self._committed:
            self._deaths.at, self._deaths.tries = self._committed, 0
        elif self._deaths.tries >= _MAX_CAREFUL_TRIES:
            self._deaths.abandoned.append(self._committed)
            self._deaths.tries = 0
            self._save_deaths()

    def note_start(self) -> None:
        """Note that the record at the committed position is read next; a death from now on counts
        against it."""
        if self.careful_records:
            self._deaths.tries += 1
            self._save_deaths()

    def note_commit(self) -> None:
        """Note a commit."""
        self.careful_records = max(0, self.careful_records - 1)

    def next_abandoned(self, position: Position) -> Position | None:
        """Return the first record at or after `position` that must be skipped."""
        return min((at for at in self._deaths.abandoned if at >= position), default=None)

    def _save_deaths(self) -> None:
        with contextlib.suppress(OSError):  # on a full disk this death is not counted
            self._path.write_bytes(msgspec.json.encode(self._deaths))


def _read_deaths(path: Path) -> _DeathRecord:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_DeathRecord)
    except (OSError, msgspec.DecodeError):
        return _DeathRecord()
