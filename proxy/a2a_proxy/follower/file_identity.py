"""Identity of a recording's file: if it is deleted during a run, its recorder starts it again under
the same name."""

from __future__ import annotations

import os

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording

FileIdentity = tuple[int, int]
"""Device and inode."""


def file_identity(path: str) -> FileIdentity | None:
    """Return the file that the path leads to now, or None if there is none; it may appear again."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def reopen_recording(path: str) -> Recording | None:
    """Open the file that the path leads to now; return None while it is being created."""
    try:
        return Recording(path)
    except RecordingError:
        return None
