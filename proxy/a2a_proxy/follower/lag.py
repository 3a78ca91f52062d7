"""Counts the frames that a hook has not handled."""

from a2a_proxy.recording.read.reader import Recording

_COUNT_QUERY = """SELECT count(*) FROM frame JOIN session ON session.id = frame.session
  WHERE session.uuid = ? AND +frame.session = session.id AND frame.id > ?"""


def count_frames_after(path: str, session: str, frame: int) -> int:
    """Return the number of frames of a session (by UUID) stored after `frame`. Raises
    RecordingError."""
    with Recording(path) as recording:
        return int(recording.db.execute(_COUNT_QUERY, (session, frame)).fetchone()[0])
