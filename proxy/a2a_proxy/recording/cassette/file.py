"""Cassettes: recordings as JSON lines, files for people to read, review and commit (`*.a2a.jsonl`).

    {"cassette":"a2a","version":1,"tool":...,"sessions":[...]}
    {"connection":1,...}                    before the first line that needs it
    {"exchange":1,...}                      the same
    {"frame":"request","at":1203400,...,"data":{...}}  in the order of storing, that of the wire
    {"task":"...",...}
    {"finding":"A2A-GEN-001",...}
    {"note":"look here",...}                written by a person
    {"end":{counts},"payloads":"<sha256 of all payloads>","sha256":"<sha256 of all lines before>"}

Lines of any session except the first name it: `"session":2`. Times are ns relative to the start of
their session. The conversion is lossless both ways, except for the state of a live journal
(position, snapshot) and, unless they are asked for, command lines: a cassette is made to be
committed. Segments, interruptions and hand-offs have no lines: they are rebuilt from the frames on
reading. Writing and reading hold one line at a time in memory, and as much of a recording as one
transaction.

The exporter and the importer are imported only when they are used, so that opening a recording does
not wait for them.
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
from a2a_proxy.recording.store.database import create_atomically, open_private

if TYPE_CHECKING:
    from a2a_proxy.recording.cassette.exporter import Selection

_FIRST_BYTES = b'{"cassette":"a2a",'


def is_cassette(path: str | os.PathLike[str]) -> bool:
    """Whether the file begins like a cassette."""
    try:
        if not os.path.isfile(path):
            return False  # opening a pipe would block until another process writes to it
        with open(path, "rb") as file:
            return file.read(len(_FIRST_BYTES)) == _FIRST_BYTES
    except OSError:
        return False


def check_replaceable(file: Path, *, overwrite: bool) -> None:
    """Check that a cassette can be written here.

    With `overwrite` it may replace a cassette or an empty file, but no other.

    Raises RecordingError.
    """
    if not file.exists():
        return
    if not overwrite:
        raise RecordingError(f"{file} exists", "name another file, or delete it first")
    if not file.is_file() or (file.stat().st_size and not is_cassette(file)):
        raise RecordingError(
            f"{file} is not a cassette, so it is not overwritten", "name another file"
        )


def write_cassette(
    recording: Recording,
    path: str | os.PathLike[str],
    *,
    sessions: Iterable[int] | None = None,
    selection: Selection | None = None,
    blobs: bool = False,
    overwrite: bool = False,
    with_command: bool = False,
) -> None:
    """Write a recording, or some of its sessions or exchanges, as a cassette (mode 0600),
    completely or not at all.

    With `blobs`, payloads of MIN_BLOB_BYTES or more go to `blobs/<sha256>` in the same folder. With
    `overwrite` it replaces a cassette or an empty file, but no other. Without `with_command` it has
    neither the command line and the process id of the proxy nor the folders in the command line of
    a stdio agent. Raises RecordingError if the file must not be replaced or cannot be written.
    """
    file = Path(path)
    check_replaceable(file, overwrite=overwrite)
    numbers = None if sessions is None else set(sessions)
    rows = [row for row in recording.read_sessions() if numbers is None or row.id in numbers]
    from a2a_proxy.recording.cassette.exporter import Exporter

    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                folder = file.parent / "blobs" if blobs else None
                Exporter(
                    recording, rows, stream, folder, selection, with_command=with_command
                ).run()
            os.replace(name, file)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise RecordingError(
            f"cannot write {file}: {error.strerror}", "name another file"
        ) from error


def read_cassette(
    path: str | os.PathLike[str], into: str | os.PathLike[str], *, verify: bool = True
) -> None:
    """Convert a cassette to a recording. `into` must not exist, and is not created if the
    conversion fails.

    Raises RecordingError with the number of the line if the cassette is truncated, changed (unless
    `verify` is False: for a cassette edited by hand), of a newer format, or not valid.
    """
    with create_atomically(into) as db:
        _import_lines(Path(path), db, verify)


def open_recording_or_cassette(path: str | os.PathLike[str]) -> Recording:
    """Open a recording, or a cassette as a private recording, deleted when closed. Raises
    RecordingError."""
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
