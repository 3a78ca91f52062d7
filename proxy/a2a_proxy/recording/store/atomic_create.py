"""Atomic creation of a recording from other recordings: the file exists completely or not at
all."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.store.database import has_log, open_writable
from a2a_proxy.recording.store.file_header import check_recording, check_writable


def check_recording_target(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Check that a recording can be created here.

    With `overwrite` an existing recording that no process has open is accepted.

    Raises RecordingError.
    """
    if not os.path.lexists(path):
        check_writable(path)
        return
    if not overwrite:
        raise RecordingError(f"{os.fspath(path)} exists", "name another file, or delete it first")
    check_recording(path)
    if has_log(path):
        raise RecordingError(f"{os.fspath(path)} is open in another program", "close that program")


@contextlib.contextmanager
def create_atomically(
    path: str | os.PathLike[str], *, overwrite: bool = False
) -> Iterator[sqlite3.Connection]:
    """Yield an empty recording of the newest schema, which gets its name when the block ends
    without an error.

    Raises RecordingError if `check_recording_target` does, or if the file cannot be written.
    """
    target = Path(path)
    check_recording_target(target, overwrite=overwrite)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with contextlib.closing(open_writable(draft)) as db:
            yield db
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        check_recording_target(target, overwrite=overwrite)
        os.replace(draft, target)
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{draft}{suffix}").unlink(missing_ok=True)
