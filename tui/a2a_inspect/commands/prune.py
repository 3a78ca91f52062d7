"""`a2a-inspect prune`: delete whole old sessions, never the session that is recorded now."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_line
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.names import RECORDING_SUFFIX
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow
from a2a_proxy.recording.store.corruption_guard import guard_corruption
from a2a_proxy.recording.tools.prune import remove_sessions


class PruneLimits(msgspec.Struct, frozen=True):
    """Limits for the remaining sessions. None: no limit of this kind."""

    older_than: int | None = None
    """Age in ns: sessions that ended longer ago are deleted."""
    keep: int | None = None
    """Number of the newest sessions to keep."""
    max_size: int | None = None
    """Size in bytes: the oldest sessions are deleted until the rest fits."""


class _StoredSession(msgspec.Struct, frozen=True):
    """A session and its file."""

    path: Path
    id: int
    started: int
    last: int
    """End of the session, ns since the epoch; its start if the end is unknown."""
    size: int
    """Bytes on disk: its share of the file, by frames."""
    is_recording: bool
    """Whether the session is being recorded or waits for `recover`."""
    where: str

    def describe_session(self) -> str:
        """Return a line that identifies the session."""
        return (
            f"session {self.id} of {make_visible(str(self.path))}  "
            f"{text.format_date_time(self.started)}  {make_visible(self.where)}"
        )


def prune_files(
    paths: tuple[Path, ...], limits: PruneLimits, now: int, *, dry_run: bool, as_json: bool = False
) -> None:
    """Delete the sessions beyond the limits and print them.

    `paths` are the recordings; empty: all in the state directory. `now` is in ns since the epoch. A
    file without remaining sessions is deleted.

    Raises:
        UserError: no limit was given, or a recording cannot be read or written.
    """
    if limits == PruneLimits():
        raise UserError(
            "no limit given for the sessions to keep",
            "for example: a2a-inspect prune --older-than 30d --dry-run",
        )
    # Each file is listed once even if it is named twice. A symbolic link to itself is reported when
    # it is opened.
    paths_by_file = {os.path.realpath(path): path for path in reversed(paths)}
    stored = _stored_sessions(tuple(paths_by_file.values()) or tuple(_state_directory_recordings()))
    to_delete = _sessions_to_delete(stored, limits, now)
    for path in dict.fromkeys(each.path for each in to_delete):
        sessions = [each for each in to_delete if each.path == path]
        if not dry_run:
            _delete_sessions(
                path,
                [each.id for each in sessions],
                delete_file=len(sessions) == sum(each.path == path for each in stored),
            )
        for each in sessions:
            print_line(
                _session_object(each, dry_run)
                if as_json
                else f"{_deleted_words(dry_run)} {each.describe_session()}"
            )
    size = sum(each.size for each in to_delete)
    if not as_json:
        print_line(
            f"{_deleted_words(dry_run)} {text.format_count(len(to_delete), 'session')} of "
            f"{len(stored)}, about {text.format_size(size)}"
        )


def _deleted_words(dry_run: bool) -> str:
    return "would delete" if dry_run else "deleted"


def _session_object(session: _StoredSession, dry_run: bool) -> str:
    """Return a deleted session as a line of JSON with stable names."""
    facts = {
        "recording": str(session.path),
        "session": session.id,
        "started": text.format_utc(session.started),
        "size": session.size,
    }
    return json.dumps({**facts, "deleted": not dry_run})


def _state_directory_recordings() -> Iterator[Path]:
    with state_directory_errors():
        yield from sorted(file_layout.recordings_dir().glob(f"*{RECORDING_SUFFIX}"))


def _stored_sessions(paths: Iterable[Path]) -> list[_StoredSession]:
    """Return the sessions of the recordings, oldest first. Raises UserError."""
    found: list[_StoredSession] = []
    for path in paths:
        with Recording(path) as recording, guard_corruption(recording):
            found += _read_sessions(path, recording)
    return sorted(found, key=lambda each: (each.last, each.started))


def _read_sessions(path: Path, recording: Recording) -> Iterator[_StoredSession]:
    frames = dict(
        recording.db.execute("SELECT session, count(*) FROM frame GROUP BY session").fetchall()
    )
    total = sum(frames.values())
    size = path.stat().st_size
    for session in recording.read_sessions():
        share = size * frames.get(session.id, 0) // total if total else 0
        last = session.ended or session.facts.started
        where = ", ".join(session.facts.upstreams)
        yield _StoredSession(
            path, session.id, session.facts.started, last, share, _has_journal(session), where
        )


def _has_journal(session: SessionRow) -> bool:
    """Return whether a journal of the session exists: the session is being recorded or waits for
    `recover`.

    Raises UserError.
    """
    if session.how:
        return False
    with state_directory_errors():
        return session.facts.uuid in file_layout.sessions_with_journal()


def _sessions_to_delete(
    sessions: list[_StoredSession], limits: PruneLimits, now: int
) -> list[_StoredSession]:
    """Return the sessions to delete, oldest first."""
    size = sum(each.size for each in sessions)
    to_delete: list[_StoredSession] = []
    for place, each in enumerate(sessions):
        old = limits.older_than is not None and now - each.last > limits.older_than
        many = limits.keep is not None and len(sessions) - place > limits.keep
        large = limits.max_size is not None and size > limits.max_size
        if not each.is_recording and (old or many or large):
            to_delete.append(each)
            size -= each.size
    return to_delete


def _delete_sessions(path: Path, sessions: list[int], *, delete_file: bool) -> None:
    try:
        if delete_file:
            for end in ("", "-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
        else:
            remove_sessions(path, sessions)
    except OSError as wrong:
        raise UserError(
            f"cannot delete {path}: {wrong.strerror}", "check its permissions and its folder's"
        ) from wrong
