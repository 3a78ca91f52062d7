"""Guard for SQL queries that bypass the reader: attributes errors over invalid rows to the file."""

import contextlib
from collections import deque
from collections.abc import Iterator
from itertools import chain

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.database import translate_errors
from a2a_proxy.recording.store.row_types import DAMAGED_HINT, ROW_ERRORS
from a2a_proxy.recording.store.table_check import has_strict_types


@contextlib.contextmanager
def guard_corruption(recording: Recording) -> Iterator[None]:
    """Raise RecordingError if SQLite cannot read the recording, or if invalid values in its tables
    cause an error in the block.

    An error over tables that enforce their types (STRICT), of which each row can be decoded, is a
    mistake of this program and is raised unchanged.
    """
    try:
        with translate_errors(recording.path):
            yield
    except ROW_ERRORS as wrong:
        if has_strict_types(recording.db):
            _check_rows(recording)
            raise
        raise RecordingError(f"the rows of {recording.path} are not valid", DAMAGED_HINT) from wrong


def _check_rows(recording: Recording) -> None:
    """Decode all rows. Raises RecordingError: one of them is not valid, for example because of its
    time."""
    rows = chain(
        recording.read_sessions(),
        recording.read_connections(),
        recording.read_exchanges(headers=False),
        recording.frames_after(0, payloads=False),
        recording.read_tasks(),
        recording.read_findings(),
        recording.read_segments(),
        recording.read_interruptions(),
        recording.read_handoffs(),
    )
    deque(rows, maxlen=0)
