"""What is asked of a recording past its reader, in SQL: where it fails over the rows, the file is to blame."""

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
    """Around what works with a recording: raises RecordingError where SQLite cannot read it, or where its tables may
    hold any type and what they hold made no sense. A mistake of this program over sound tables stays what it is.
    """
    try:
        with translate_errors(recording.path):
            yield
    except ROW_ERRORS as wrong:
        if has_strict_types(recording.db):
            raise
        raise RecordingError(f"the rows of {recording.path} make no sense", DAMAGED_HINT) from wrong
