"""Opening of recording files: checks their kind and permissions, and creates them completely or not
at all.

Reads no table.

A new recording is completed under a temporary name and then linked to its own. So eight processes
that create one file at the same time get one file, and no process ever sees an incomplete one.

Atomic creation of a recording from other recordings: the file exists completely or not at
all.
"""

import contextlib
import errno
import fcntl
import os
import resource
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.store.file_header import (
    NAME_ANOTHER,
    check_recording,
    check_version,
    check_writable,
)
from a2a_proxy.recording.store.schema import APPLICATION_ID, PAGE_SIZE, create_script
from a2a_proxy.recording.store.table_check import check_tables
from a2a_proxy.system_errors import LIMIT_HINTS, hint_for

BUSY_SECONDS = 30.0
"""Seconds that a short transaction waits for transactions of other processes."""
_STRICT_SINCE = (3, 37)
"""Version of SQLite."""
_GROWTH_ERRORS = {
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
}
"""Errors of SQLite if a file cannot grow; it does not say why."""


def open_writable(path: str | os.PathLike[str], *, create: bool = True) -> sqlite3.Connection:
    """Return a connection that can write.

    Create the file (mode 0600) if it is missing. Raises RecordingError, in which case nothing was
    created or changed.
    """
    file = Path(path)
    if create:
        check_writable(file)
        if not file.exists():
            _create_file(file)
    check_recording(file)
    with translate_errors(file):
        connection = _connect_file(str(file))
        try:
            check_version(file, _read_version(connection))
            check_tables(file, connection, writing=True)
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
    return connection


def open_readable(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """Return a connection that can only read, also while other processes write, also in a read-only
    folder.

    Raises RecordingError.
    """
    file = Path(path)
    check_recording(file)
    uri = f"{_file_uri(file)}?mode=ro"
    with translate_errors(file):
        connection = _connect_file(uri)
        try:
            version = _read_version(connection)
        except sqlite3.OperationalError:
            connection.close()
            connection = (
                _connect_file(uri + "&immutable=1") if _has_no_log(file) else _connect_file(uri)
            )
            version = _read_version(connection)
        try:
            check_version(file, version)
            check_tables(file, connection)
            connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
    return connection


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit everything that the block writes, or nothing. No other process can write in the
    meantime."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def has_log(path: str | os.PathLike[str]) -> bool:
    """Whether the recording has a write-ahead log: a program has it open, or did not close it."""
    return Path(f"{os.fspath(path)}-wal").exists()


def remove_empty_log(path: str | os.PathLike[str]) -> None:
    """Let SQLite remove an empty log that a read-only connection created and could not remove.

    The log stays if another program has the file open, or if the file is not writable.
    """
    if _has_no_log(Path(path)) and has_log(path):
        uri = f"{_file_uri(Path(path))}?mode=rw"
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(_connect_file(uri)) as connection,
        ):
            _read_version(connection)


def _file_uri(file: Path) -> str:
    """Return the file's name as a SQLite URI, also if it is not text in any encoding."""
    return f"file:{quote(os.fsencode(file.absolute()))}"


def _connect_file(target: str) -> sqlite3.Connection:
    return sqlite3.connect(
        target,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        uri=target.startswith("file:"),
        check_same_thread=False,
    )


def _has_no_log(file: Path) -> bool:
    """Whether the write-ahead log is missing or empty, so that the main file alone is the whole
    recording."""
    log = file.with_name(file.name + "-wal")
    return not log.exists() or not log.stat().st_size


def _read_version(connection: sqlite3.Connection) -> int:
    """Return the schema version. It may be in the log, where the file's header does not show it
    yet."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _create_file(file: Path) -> None:
    """Create the file unless another process has just created it."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError as error:
        hint = hint_for(error, NAME_ANOTHER)
        raise RecordingError(f"cannot record to {file}: {error.strerror}", hint) from error
    os.close(handle)
    draft = Path(name)
    try:
        with translate_errors(file), contextlib.closing(_connect_file(name)) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            _create_schema(connection)
            connection.execute("PRAGMA journal_mode = WAL")
        with _lock_folder(file.parent):
            _remove_stale_log(file)
            _move_into_place(draft, file)
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(name + suffix).unlink(missing_ok=True)


@contextlib.contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Let one process at a time name a new recording, because another may already have it open,
    with a log."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_stale_log(file: Path) -> None:
    """Remove a log that a deleted database left under this name.

    SQLite cannot recognize it and would apply it to the new file.
    """
    if not file.exists():
        for suffix in ("-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                file.with_name(file.name + suffix).unlink()


def _move_into_place(draft: Path, file: Path) -> None:
    """Give the file its name without replacing another: by a link if the file system has links,
    else by a rename."""
    try:
        os.link(draft, file)
    except FileExistsError:
        return
    except OSError:
        if not file.exists():
            draft.rename(file)


class translate_errors:  # used like a function, and entered for every row that is read
    """Context manager that converts SQLite's errors to RecordingError with message and hint."""

    __slots__ = ("_file",)

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise _make_recording_error(self._file, error) from error


def _make_recording_error(file: str | os.PathLike[str], error: sqlite3.Error) -> RecordingError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return RecordingError(f"{file} is locked by another program", "close that program")
    if "full" in text:
        return RecordingError(
            f"cannot write to {file}: the disk is full", LIMIT_HINTS[errno.ENOSPC]
        )
    if (
        getattr(error, "sqlite_errorcode", 0) in _GROWTH_ERRORS
        and resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
    ):
        return RecordingError(f"cannot write to {file}: file too large", LIMIT_HINTS[errno.EFBIG])
    if "readonly" in text or "unable to open" in text:
        return RecordingError(
            f"cannot open {file}: {text}", "check its permissions and those of its folder"
        )
    return RecordingError(
        f"{file} cannot be used: {text}", "if it is damaged: sqlite3 FILE .recover"
    )


def open_private() -> sqlite3.Connection:
    """Return an empty private recording, in memory while it is small, deleted when it is closed."""
    connection = _connect_file("")
    _create_schema(connection)
    return connection


def _create_schema(connection: sqlite3.Connection) -> None:
    connection.executescript(create_script(strict=sqlite3.sqlite_version_info >= _STRICT_SINCE))


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
