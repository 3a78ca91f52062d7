"""What can go wrong with a recording file, in words for the person who named it."""

from __future__ import annotations


class RecordingError(Exception):
    """The recording cannot be used. `str()` is the message; `hint` says what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CassetteChanged(RecordingError):
    """A cassette whose counts or digests no longer fit its lines: it was edited by hand, or damaged."""


class PositionConflict(Exception):
    """Another recorder has advanced the journal position of this session; nothing was stored."""
