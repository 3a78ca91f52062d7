"""The file layout: the state directory, journals, recordings, and the key that labels redacted
secrets.

Creates folders and small files; reads no traffic.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from platformdirs import user_state_dir

from a2a_proxy.capture.recorder_options import RecorderOptions
from a2a_proxy.model import name_json
from a2a_proxy.private_files import make_private_folder, open_private

STATE_VARIABLE = "A2A_PROXY_STATE"
KEY_BYTES = 32
RECORDER_LOCK = "recorder.lock"
_FOLDER_LOCK, _PROXY_LOCK = "lock", "proxy.lock"
"""The first lock may be shared with a recorder and protects the folder; the second is freed when
the proxy exits."""
_LOCK_TRIES, _LOCK_PAUSE = 5, 0.05
_LAST_RECORDING = "last-recording"


def state_dir() -> Path:
    """Return `$A2A_PROXY_STATE` or the platform's state directory; created with mode 0700 if
    missing.

    Raises OSError.
    """
    return make_private_folder(_state_path())


def _state_path() -> Path:
    return Path(os.environ.get(STATE_VARIABLE) or user_folder(user_state_dir))


def user_folder(find: Callable[[str], str]) -> Path:
    """Return the user's folder of one kind for this program, which may not exist; `find` is a
    function of platformdirs.

    Raises FileNotFoundError: the user has no home directory, as in a container that runs with an
    arbitrary user id.
    """
    try:
        folder = Path(find("a2a-proxy"))
    except RuntimeError:
        folder = Path()
    if (
        not folder.is_absolute()
    ):  # platformdirs returns a path that begins with "~", or raises the error, by version
        raise FileNotFoundError(errno.ENOENT, "this user has no home directory")
    return folder


def journals_dir() -> Path:
    """Return the folder with one subfolder per running or left-over session. Raises OSError."""
    return make_private_folder(state_dir() / "journals")


def recordings_dir() -> Path:
    """Return the folder of recordings made without `--record`. Raises OSError."""
    return make_private_folder(state_dir() / "recordings")


def remember_recording(path: Path) -> None:
    """Remember a recording outside the state directory, so that it can be found as the newest one.

    Recordings made by tests are not remembered. A state directory that cannot be written changes
    nothing.
    """
    if "PYTEST_CURRENT_TEST" not in os.environ:
        with (
            contextlib.suppress(OSError),
            open(state_dir() / _LAST_RECORDING, "w", encoding="utf-8", opener=open_private) as file,
        ):
            file.write(str(path.absolute()))


def remembered_recording() -> Path | None:
    """Return the last recording outside the state directory, if it exists."""
    try:
        path = Path((_state_path() / _LAST_RECORDING).read_text("utf-8"))
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None


def hooks_dir() -> Path:
    """Return the folder of the hooks' logs. Raises OSError."""
    return make_private_folder(state_dir() / "hooks")


def otlp_dir() -> Path:
    """Return the folder that notes which spans a backend has received. Raises OSError."""
    return make_private_folder(state_dir() / "otlp")


def authority_dir() -> Path:
    """Return the folder of the authority for TLS. Raises OSError."""
    return make_private_folder(state_dir() / "ca")


def webhooks_dir() -> Path:
    """Return the folder of registered webhooks. Raises OSError."""
    return make_private_folder(state_dir() / "webhooks")


def redaction_key() -> bytes:
    """Return the key from which labels of secrets are derived; created on first use, 0600.

    Raises OSError, ValueError.
    """
    path = state_dir() / "redaction.key"
    if not path.exists():
        import secrets  # imports hashlib too; seldom needed, and never by the relay

        _create_whole(path, secrets.token_bytes(KEY_BYTES))
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise ValueError(f"{path} is not a key of {KEY_BYTES} bytes")
    return key


def _create_whole(path: Path, data: bytes) -> None:
    """Create a file with its whole content at once. If two processes try, the first one wins."""
    fd, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.link(name, path)
    except FileExistsError:
        return
    finally:
        os.unlink(name)


class SessionFile(msgspec.Struct, frozen=True):
    """`session.json` of a journal: the facts needed to finish it, and the recorder's options."""

    recording: str
    """Path of the session's recording."""
    pid: int
    """Process id of the relay."""
    started: int
    """ns since the epoch."""
    uuid: str = ""
    """UUID of the session; identifies it in the recording."""
    command: tuple[str, ...] = ()
    """The command line as typed."""
    listens: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    """Parallel to `listens`."""
    names: tuple[str, ...] = ()
    """Names that the user gave to the agents, parallel to `listens`; empty if there are none."""
    options: RecorderOptions = RecorderOptions()
    reports_receivers: bool = False
    """Whether a line names each webhook whose notifications do not pass the proxy."""


class JournalFolder:
    """A journal's folder, locked by the relay as long as it lives."""

    def __init__(self, path: Path) -> None:
        """Lock the folder. Raises OSError."""
        self.path = path
        self._lock, self._proxy_lock = (
            _take_lock(path / _FOLDER_LOCK),
            _take_lock(path / _PROXY_LOCK),
        )

    @property
    def lock(self) -> int:
        """The descriptor of the lock. Every process that has it open, or a copy of it, holds the
        lock too."""
        return self._lock

    def restore_files(self, session: SessionFile) -> bool:
        """Recreate the folder's files if they were deleted; return False if they were not. Raises
        OSError."""
        if (self.path / _FOLDER_LOCK).exists() and (self.path / "session.json").exists():
            return False
        make_private_folder(self.path)
        self.release_locks()
        self._lock, self._proxy_lock = (
            _take_lock(self.path / _FOLDER_LOCK),
            _take_lock(self.path / _PROXY_LOCK),
        )
        write_session(self.path, session)
        return True

    def release_locks(self) -> None:
        """Release the locks: from now on any process that finds the folder may finish it."""
        for lock in (self._lock, self._proxy_lock):
            if lock >= 0:
                os.close(lock)
        self._lock = self._proxy_lock = -1


def write_session(path: Path, session: SessionFile) -> None:
    """Replace the `session.json` of a journal's folder atomically. Raises OSError."""
    fresh = path / "session.json.new"
    with open(fresh, "wb", opener=open_private) as file:
        file.write(name_json.encode_json(session))
    os.replace(fresh, path / "session.json")


class Leftover(msgspec.Struct, frozen=True):
    """A journal whose relay has exited."""

    path: Path
    session: SessionFile


def create_journal(session: SessionFile) -> JournalFolder:
    """Create a session's folder (0700) with its `session.json` (0600) and lock it. Raises
    OSError."""
    path = Path(tempfile.mkdtemp(prefix=f"{session.started // 1_000_000_000}-", dir=journals_dir()))
    folder = JournalFolder(path)
    _create_whole(path / "session.json", name_json.encode_json(session))
    return folder


def _take_lock(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def delete_journal(path: Path) -> None:
    """Delete a journal's folder so that it is never taken for a left-over meanwhile.

    Files that cannot be deleted stay.
    """
    with contextlib.suppress(OSError):
        (path / "session.json").unlink()
    shutil.rmtree(path, ignore_errors=True)


def find_leftovers() -> list[Leftover]:
    """Return the journals locked by neither a relay nor a recorder, oldest first, without
    unreadable `session.json`."""
    found = []
    for path in journals_dir().iterdir():
        if is_in_use(path):
            continue
        session = read_session(
            path
        )  # after the locks: a folder that is being deleted loses this file before its locks
        if session is not None:
            found.append(Leftover(path, session))
    return sorted(found, key=lambda leftover: leftover.session.started)


class Unfinished(msgspec.Struct, frozen=True):
    """A session that is not recorded to its end."""

    path: Path
    """Path of the journal's folder."""
    session: SessionFile
    proxy_lives: bool
    is_at_work: bool
    """Whether a proxy or a recorder holds the journal; otherwise only `recover` will finish it."""


def find_unfinished(recording: Path | None = None) -> list[Unfinished]:
    """Return the sessions of this recording, or of all. Returns an empty list if the state
    directory is unreadable."""
    try:
        folders = list((_state_path() / "journals").iterdir())
    except OSError:
        return []
    found, name = [], recording and os.path.realpath(recording)
    for path in folders:
        held = _is_locked(path / _PROXY_LOCK), is_in_use(path)
        session = read_session(
            path
        )  # after the locks: a folder that is being deleted loses this file before its locks
        if session is not None and name in (None, os.path.realpath(session.recording)):
            found.append(Unfinished(path, session, *held))
    return found


def find_journals(uuid: str) -> list[Path]:
    """Return the journal folders of a session: one, or none. Unreadable folders are left out."""
    try:
        folders = list((_state_path() / "journals").iterdir())
    except OSError:
        return []
    return [
        path
        for path in folders
        if (session := read_session(path)) is not None and session.uuid == uuid
    ]


def sessions_with_journal() -> set[str]:
    """Return the UUIDs of sessions that are being recorded or wait to be finished. Raises
    OSError."""
    known = (read_session(path) for path in journals_dir().iterdir())
    return {session.uuid for session in known if session is not None}


def read_session(path: Path) -> SessionFile | None:
    """Return the `session.json` of a journal's folder, or None if it cannot be read."""
    try:
        session: SessionFile = name_json.decode_json(
            (path / "session.json").read_bytes(), SessionFile
        )
        return session
    except (OSError, msgspec.DecodeError):
        return None


def is_in_use(path: Path) -> bool:
    """Whether a relay writes this journal or a recorder reads it."""
    return is_held(path) or _is_locked(path / RECORDER_LOCK)


def is_held(path: Path) -> bool:
    """Whether a relay still writes this journal. Uses a lock, because a pid may belong to another
    process by now."""
    return _is_locked(path / _FOLDER_LOCK)


def lock_recorder(path: Path) -> int | None:
    """Lock a journal for one recorder and return the descriptor, or None if another recorder has
    it. Raises OSError."""
    fd = os.open(path / RECORDER_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(_LOCK_TRIES):  # another process may be testing the lock
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE)
    os.close(fd)
    return None


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
