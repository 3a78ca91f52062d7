"""A recording that is made of others in one go: there whole, or not at all."""

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
    """May a recording be made here? With `overwrite` one that nobody has open may be there, but no other file.

    Raises RecordingError.
    """
    if not os.path.lexists(path):
        check_writable(path)
        return
    if not overwrite:
        raise RecordingError(f"{os.fspath(path)} exists", "name another file, or delete it first")
    check_recording(path)
    if has_log(path):
        raise RecordingError(f"{os.fspath(path)} is open in another program", "close what has it open")


@contextlib.contextmanager
def create_atomically(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[sqlite3.Connection]:
    """An empty recording of the newest schema to fill; it gets its name when all has gone well.

    Raises RecordingError as `check_recording_target`, or where nothing can be written there.
    """
    target = Path(path)
    check_recording_target(target, overwrite=overwrite)
    made = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with contextlib.closing(open_writable(made)) as db:
            yield db
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        check_recording_target(target, overwrite=overwrite)
        os.replace(made, target)
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{made}{suffix}").unlink(missing_ok=True)
