"""Rewriting of a cassette in canonical form, after an edit by hand."""

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
    """The effect of rewriting a cassette."""

    changed: bool
    """Whether the file was changed, or would be."""
    edited: bool
    """Whether its counts or digests did not match its lines."""


def rewrite_cassette(
    path: Path, *, blobs: bool | None = None, check: bool = False
) -> RewriteResult:
    """Rewrite the cassette in place in canonical form and return the effect. `check` changes
    nothing.

    `blobs`: whether large payloads go to separate files; None keeps them as they are. Counts and
    digests need not match. The file is replaced atomically, and keeps its permissions.

    Raises:
        RecordingError: the file is not a cassette, cannot be read or written, or is of a newer
        format.
    """
    file = Path(os.path.realpath(path))
    try:
        with contextlib.closing(open_private()) as db:
            read, fits = _import_cassette(path, db)
            keep = read.blobs if blobs is None else blobs
            with (
                Recording.from_connection(db, str(path)) as recording,
                tempfile.TemporaryDirectory() as folder,
            ):
                rewritten = Path(folder) / "again.a2a.jsonl"
                write_cassette(recording, rewritten, blobs=keep, with_command=True)
                changed = not filecmp.cmp(file, rewritten, shallow=False)
                if changed and not check:
                    mode = file.stat().st_mode & 0o777
                    write_cassette(recording, file, blobs=keep, overwrite=True, with_command=True)
                    file.chmod(mode)
    except OSError as wrong:
        raise RecordingError(
            f"cannot use {path}: {wrong.strerror}", "check its permissions and its disk"
        ) from wrong
    return RewriteResult(changed, not fits)


def _import_cassette(path: Path, db: sqlite3.Connection) -> tuple[Importer, bool]:
    """Store the cassette in `db`. Return its importer, and whether its counts and digests match."""
    if path.exists() and not is_cassette(path):
        raise RecordingError(
            f"{path} is not a cassette", "name a file that `a2a-inspect export` wrote"
        )
    with path.open("rb") as stream:
        reader = Importer(path, stream, db, verify=True)
        try:
            reader.run()
        except CassetteChanged:
            # The check follows the last line: everything is stored except the ends of the sessions.
            reader.finish()
            return reader, False
    return reader, True
