"""A cassette written once more, as this version writes it: after an edit by hand, or from an older format."""

from __future__ import annotations

import contextlib
import filecmp
import os
import sqlite3
import tempfile
from pathlib import Path

import msgspec

from a2a_proxy.recording.cassette.file import is_cassette, write_cassette
from a2a_proxy.recording.cassette.importer import Importer
from a2a_proxy.recording.errors import CassetteChanged, RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.database import open_private


class RewriteResult(msgspec.Struct, frozen=True):
    """What writing a cassette once more means."""

    changed: bool
    """The file was, or would be, another one."""
    edited: bool
    """Its counts or digests did not fit its lines."""
    before: int
    """Version of the format that the file says."""
    after: int
    """Version that it says when it is written once more: the lowest that can hold what is in it."""


def rewrite_cassette(
    path: Path, *, blobs: bool | None = None, edited: bool = False, check: bool = False
) -> RewriteResult:
    """Write the cassette in its place as this version writes it, and say what that changes; `check` only says it.

    `blobs`: large payloads lie beside it, or in it; None: as they do. With `edited` counts and digests need not fit.
    The file is replaced as a whole, and keeps its permissions.

    Raises:
        RecordingError: it is no cassette, cannot be read or written, was changed, or is of a newer format.
    """
    file = Path(os.path.realpath(path))
    try:
        with contextlib.closing(open_private()) as db:
            read, fits = _import_cassette(path, db, edited=edited)
            keep = read.blobs if blobs is None else blobs
            with Recording.from_connection(db, str(path)) as recording, tempfile.TemporaryDirectory() as folder:
                made = Path(folder) / "again.a2a.jsonl"
                write_cassette(recording, made, blobs=keep)
                changed = not filecmp.cmp(file, made, shallow=False)
                after = cassette_version(made)
                if changed and not check:
                    mode = file.stat().st_mode & 0o777
                    write_cassette(recording, file, blobs=keep, overwrite=True)
                    file.chmod(mode)
    except OSError as wrong:
        raise RecordingError(f"cannot use {path}: {wrong.strerror}", "check its permissions and its disk") from wrong
    return RewriteResult(changed, not fits, read.version, after)


def cassette_version(path: Path) -> int:
    """Version of the format that a sound cassette says in its first line."""
    with path.open("rb") as stream:
        return int(msgspec.json.decode(stream.readline())["version"])


def _import_cassette(path: Path, db: sqlite3.Connection, *, edited: bool) -> tuple[Importer, bool]:
    """Store the cassette in `db`; what read it, and whether its counts and digests fit."""
    if path.exists() and not is_cassette(path):
        raise RecordingError(f"{path} is not a cassette", "name a file that `a2a-inspect export` wrote")
    with path.open("rb") as stream:
        reader = Importer(path, stream, db, verify=True)
        try:
            reader.run()
        except CassetteChanged:
            # The check comes after the last line: everything is stored but the ends of the sessions.
            if not edited:
                raise
            reader.finish()
            return reader, False
    return reader, True
