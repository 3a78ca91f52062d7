"""The file of a recording: one that is deleted in mid-run is begun anew by its recorder, under the same name."""

from __future__ import annotations

import os

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording

FileIdentity = tuple[int, int]
"""Device and inode."""


def file_identity(path: str) -> FileIdentity | None:
    """Which file has this name now; None where none has, which may come again."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def reopen_recording(path: str) -> Recording | None:
    """The file that has this name now; None while it is being made."""
    try:
        return Recording(path)
    except RecordingError:
        return None
