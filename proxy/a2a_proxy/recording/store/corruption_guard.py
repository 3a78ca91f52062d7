"""Guard for SQL queries that bypass the reader: attributes errors over invalid rows to the file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.database import translate_errors
from a2a_proxy.recording.store.row_types import DAMAGED_HINT, ROW_ERRORS
from a2a_proxy.recording.store.table_check import has_strict_types


@contextlib.contextmanager
def guard_corruption(recording: Recording) -> Iterator[None]:
    """Raise RecordingError if SQLite cannot read the recording, or if invalid values in its tables cause an error in
    the block.

    An error over tables that enforce their types (STRICT) is a mistake of this program and is raised unchanged.
    """
    try:
        with translate_errors(recording.path):
            yield
    except ROW_ERRORS as wrong:
        if has_strict_types(recording.db):
            raise
        raise RecordingError(f"the rows of {recording.path} are not valid", DAMAGED_HINT) from wrong
