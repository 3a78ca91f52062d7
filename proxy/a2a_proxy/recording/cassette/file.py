"""Cassettes: a recording as JSON lines, the file that people read, review and commit (`*.a2a.jsonl`).

    {"cassette":"a2a","version":1,"tool":...,"sessions":[...]}
    {"connection":1,...}                    before the first line that needs it
    {"exchange":1,...}                      the same
    {"frame":"request","at":1203400,...,"data":{...}}    in the order of storing, which is the order of the wire
    {"task":"...",...}
    {"finding":"A2A-GEN-001",...}
    {"note":"look here",...}                what a person wrote; a cassette with such lines says `"version":2`
    {"end":{counts},"payloads":"<sha256 over all payloads>","sha256":"<sha256 over all lines before>"}

Lines of another session than the first say which: `"session":2`. Times are ns relative to the start of their session.
Lossless both ways but for what belongs to a live journal (position, snapshot). Segments, interruptions and hand-offs
have no lines: they follow from the frames, and are cut again on reading. Writing and reading hold one line at a time,
and as much of a recording as one transaction.

Who opens a recording does not wait for the import of what reads and writes cassettes.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.atomic_create import create_atomically
from a2a_proxy.recording.store.database import open_private

if TYPE_CHECKING:
    from a2a_proxy.recording.cassette.exporter import Selection

_FIRST_BYTES = b'{"cassette":"a2a",'


def is_cassette(path: str | os.PathLike[str]) -> bool:
    """The file begins as a cassette does."""
    try:
        if not os.path.isfile(path):
            return False  # the opening of a pipe waits until somebody writes into it
        with open(path, "rb") as file:
            return file.read(len(_FIRST_BYTES)) == _FIRST_BYTES
    except OSError:
        return False


def check_replaceable(file: Path, *, overwrite: bool) -> None:
    """May a cassette be written here? With `overwrite` one may be there, or an empty file, but no other.

    Raises RecordingError.
    """
    if not file.exists():
        return
    if not overwrite:
        raise RecordingError(f"{file} exists", "name another file, or delete it first")
    if not file.is_file() or (file.stat().st_size and not is_cassette(file)):
        raise RecordingError(f"{file} is not a cassette, and is not replaced by one", "name another file")


def write_cassette(
    recording: Recording,
    path: str | os.PathLike[str],
    *,
    sessions: Iterable[int] | None = None,
    selection: Selection | None = None,
    blobs: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a recording, or some sessions or exchanges of it, as a cassette (0600), whole or not at all.

    With `blobs`, payloads of BLOB_MIN bytes or more go to `blobs/<sha256>` beside it. With `overwrite` it replaces a
    cassette, and nothing else that has something in it. Raises RecordingError where it may not, or cannot be written.
    """
    file = Path(path)
    check_replaceable(file, overwrite=overwrite)
    wanted = None if sessions is None else set(sessions)
    rows = [row for row in recording.sessions() if wanted is None or row.id in wanted]
    from a2a_proxy.recording.cassette.exporter import Exporter

    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                Exporter(recording, rows, stream, file.parent / "blobs" if blobs else None, selection).run()
            os.replace(name, file)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise RecordingError(f"cannot write {file}: {error.strerror}", "name another file") from error


def read_cassette(path: str | os.PathLike[str], into: str | os.PathLike[str], *, verify: bool = True) -> None:
    """Make a recording of a cassette; `into` must not exist, and does not where anything goes wrong.

    Raises RecordingError with the number of the line: truncated, changed (unless `verify` is False: for one edited by
    hand), of a newer format, or senseless.
    """
    with create_atomically(into) as db:
        _import_lines(Path(path), db, verify)


def open_recording_or_cassette(path: str | os.PathLike[str]) -> Recording:
    """A recording, or a cassette as one (a private copy that is gone when it is closed). Raises RecordingError."""
    if not is_cassette(path):
        return Recording(path)
    db = open_private()
    try:
        _import_lines(Path(path), db, verify=True)
    except BaseException:
        db.close()
        raise
    return Recording.from_connection(db, os.fspath(path))


def _import_lines(path: Path, db: sqlite3.Connection, verify: bool) -> None:
    """Store all lines of a cassette."""
    from a2a_proxy.recording.cassette.importer import Importer

    try:
        with path.open("rb") as stream:
            Importer(path, stream, db, verify).run()
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}", "check the name") from error
