"""How far the recording of a running session is behind its relay."""

from pathlib import Path

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.journal_reader import JournalReader
from a2a_proxy.capture.record_format import START_POSITION, Position

MIN_LAG = 2_000_000_000
"""A lag below so many ns is not worth a word: a recorder that keeps up commits ten times a
second."""


def oldest_record_after(folder: Path, position: Position) -> int:
    """Return the time of the first record after the position, ns; 0 if there is none, or the
    journal cannot be read."""
    reader = JournalReader(folder, position)
    try:
        return next((chunk.at for chunk in reader.read(1) if chunk.at), 0)
    except OSError:
        return 0
    finally:
        reader.close()


def recording_lag(uuid: str, position: Position | None, now: int) -> int:
    """Return for how long the oldest record of the session that is not stored has been waiting, ns.

    `position`: the journal position of the recording. The result is 0 if everything is stored, or
    if this machine has no journal of the session.
    """
    for folder in file_layout.find_journals(uuid):
        if oldest := oldest_record_after(folder, position or START_POSITION):
            return max(now - oldest, 0)
    return 0
