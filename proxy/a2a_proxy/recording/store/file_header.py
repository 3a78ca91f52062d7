"""Checks of a recording before it is opened: its kind, its version and its permissions. Needs no
SQLite."""

import os
import stat
from pathlib import Path

from a2a_proxy.installation import upgrade_hint
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.names import missing_folder_error, suggest_names

NAME_ANOTHER = "name another file with --record"
_UNCHANGED_HINT = "name another file; this one was left as it is"
_HEADER_SIZE = 100
_MAGIC = b"SQLite format 3\0"

FileIdentity = tuple[int, int]
"""Device and inode."""


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check that a recording can be written here. Creates and changes nothing.

    Raises RecordingError.
    """
    file = Path(path)
    if file.exists():
        check_recording(file)
        if not os.access(file, os.W_OK):
            raise RecordingError(f"cannot write to {file}: permission denied", NAME_ANOTHER)
    folder = file.parent
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise RecordingError(
            f"cannot record to {file}: {folder} {what}",
            f"create it first: {shell_line('mkdir', '-p', str(folder))}",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise RecordingError(
            f"cannot record to {file}: no permission to write in {folder}", NAME_ANOTHER
        )


def check_recording(path: str | os.PathLike[str]) -> None:
    """Check that this file is a recording that this version can read. Reads its first 100 bytes
    only.

    Raises RecordingError.
    """
    head = _read_header(Path(path))
    if head[:16] != _MAGIC:
        what = "is empty" if not head else "is not a recording"
        raise RecordingError(f"{path} {what}", _UNCHANGED_HINT)
    # Inlined check: importing the schema would slow the start of a stdio relay.
    from a2a_proxy.recording.store.schema import APPLICATION_ID

    if int.from_bytes(head[68:72]) != APPLICATION_ID:
        raise RecordingError(f"{path} is a database of another program", _UNCHANGED_HINT)
    check_version(path, int.from_bytes(head[60:64]))


def _read_header(file: Path) -> bytes:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise RecordingError(f"{file} is not a file", "name a recording")
        with file.open("rb") as stream:
            return stream.read(_HEADER_SIZE)
    except FileNotFoundError:
        raise RecordingError(f"there is no recording {file}", suggest_names(file)) from None
    except NotADirectoryError:
        raise missing_folder_error(file) from None
    except PermissionError:
        raise RecordingError(
            f"cannot read {file}: permission denied", "only its owner may read it"
        ) from None
    except OSError as error:
        raise RecordingError(f"cannot read {file}: {error.strerror}", "check the name") from error


def check_version(path: str | os.PathLike[str], version: int) -> None:
    """Check that a file of this schema version can be read. Raises RecordingError."""
    from a2a_proxy.recording.store.schema import SCHEMA_VERSION

    if version != SCHEMA_VERSION:
        raise RecordingError(
            f"{path} was written by a newer a2a-proxy (schema {version}, this one reads "
            f"{SCHEMA_VERSION})",
            upgrade_hint(),
        )


def file_identity(path: str) -> FileIdentity | None:
    """Return the file that the path leads to now, or None if there is none; it may appear again."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
