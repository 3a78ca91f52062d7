"""Sessions that are being recorded: until when their calls are observed."""

import time
from contextlib import suppress
from pathlib import Path

from a2a_proxy.capture import file_layout
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow


def is_being_recorded(session: SessionRow) -> bool:
    """Return whether a proxy records the session now."""
    if session.how:
        return False
    with suppress(OSError):
        uuid = session.facts.uuid
        left = {each.session.uuid for each in file_layout.find_leftovers()}
        return uuid not in left and uuid in file_layout.sessions_with_journal()
    return False


def open_observed(path: Path) -> Recording:
    """Open a recording, whose open calls are measured until now while it is being recorded. Raises
    RecordingError."""
    recording = open_recording_or_cassette(path)
    recording.find_end = present_end
    return recording


def present_end(session: SessionRow) -> int:
    """Return the present time in ns if the session is being recorded; otherwise 0."""
    return time.time_ns() if is_being_recorded(session) else 0
