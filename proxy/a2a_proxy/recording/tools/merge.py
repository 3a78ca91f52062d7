"""Merging of several recordings by whole sessions: writes a file with the content that
`MultiReader` shows.

Everything is stored again, so ids, interned texts, blocks and blobs belong to the new file, in the
newest schema. Frames are stored in the order of their times, as if the proxies had written into one
file. Each source is read in its state at one moment.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import msgspec

from a2a_proxy.model.values import Changes, Frame
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.multi_reader import MultiReader, MultiReaderFile
from a2a_proxy.recording.read.rows import FrameRow, SessionRow
from a2a_proxy.recording.store.database import (
    check_recording_target,
    create_atomically,
    translate_errors,
)
from a2a_proxy.recording.store.notes import store_notes
from a2a_proxy.recording.write.writer import Writer

UNENDED = "merged before it had ended"
"""`session.complete` of a session that was still running when it was merged."""

_BATCH_FRAMES = 1000
"""Rows of a transaction."""
_BATCH_BYTES = 8 << 20
"""Bytes of payloads after which a transaction takes no more frames."""

_Value = TypeVar("_Value")


class MergedSession(msgspec.Struct, frozen=True):
    """A session that is copied to the new file."""

    member: MultiReaderFile
    row: SessionRow
    frames: int


class SkippedSession(msgspec.Struct, frozen=True):
    """A session that is skipped, because another file has at least as much of it."""

    member: MultiReaderFile
    row: SessionRow
    better: MultiReaderFile


def plan_merge(several: MultiReader) -> tuple[list[MergedSession], list[SkippedSession]]:
    """Return the sessions to merge, by start time, and the sessions to skip."""
    merged = [
        MergedSession(member, row, member.recording.count_rows(row.id).frames)
        for member, row in several.read_sessions()
    ]
    home = {each.row.facts.uuid: each.member for each in merged}
    skipped = [
        SkippedSession(member, row, home[row.facts.uuid])
        for member in several.members
        for row in member.recording.read_sessions()
        if home[row.facts.uuid] is not member
    ]
    return merged, skipped


def merge_sessions(
    several: MultiReader, into: str | os.PathLike[str], *, overwrite: bool = False
) -> list[MergedSession]:
    """Merge the recordings into a new one. The sources are only read. `into` is complete, or
    unchanged after an error.

    Raises RecordingError if the file exists (unless `overwrite`), is one of the sources or cannot
    be written, and if a source is damaged.
    """
    check_merge_target(several, into, overwrite=overwrite)
    with _hold_snapshots(several), create_atomically(into, overwrite=overwrite) as db:
        merged, _ = plan_merge(several)
        _Merge(db, several, merged).run()
    return merged


def check_merge_target(
    several: MultiReader, into: str | os.PathLike[str], *, overwrite: bool
) -> None:
    """Check that the new file can be created. Raises RecordingError as `merge_sessions` does."""
    check_not_source(several, into)
    check_recording_target(into, overwrite=overwrite)


def check_not_source(several: MultiReader, into: str | os.PathLike[str]) -> None:
    """Check that the new file is not one of the sources. Raises RecordingError."""
    for member in several.members:
        path = member.recording.path
        with contextlib.suppress(OSError):
            if os.path.samefile(path, into):
                raise RecordingError(
                    f"{path} is one of the recordings to merge and cannot be the result",
                    "name another file",
                )


@contextlib.contextmanager
def _hold_snapshots(several: MultiReader) -> Iterator[None]:
    """Hold a read transaction on every file, so that each is read in its current state."""
    with contextlib.ExitStack() as stack:
        for member in several.members:
            db = member.recording.db
            with translate_errors(member.recording.path):
                db.execute("BEGIN")
                stack.callback(db.execute, "ROLLBACK")
                db.execute("SELECT count(*) FROM session").fetchone()
        yield


class _Merge:
    """Fills an empty recording."""

    def __init__(
        self, db: sqlite3.Connection, several: MultiReader, merged_sessions: list[MergedSession]
    ) -> None:
        self._db = db
        self._several = several
        self._merged_sessions = {
            (each.member.number, each.row.id): each for each in merged_sessions
        }
        self._remaining_frames = {
            whose: each.frames for whose, each in self._merged_sessions.items()
        }
        self._writers = {
            whose: Writer.on_connection(db, each.row.facts)
            for whose, each in self._merged_sessions.items()
        }

    def run(self) -> None:
        """Copy all sessions. Each is finished after its last frame."""
        for session_key in [whose for whose, left in self._remaining_frames.items() if not left]:
            self._finish_session(session_key)
        for portion in _frame_batches(self._several.read_frames()):
            for session_key, frames in portion.items():
                self._writers[session_key].write(frames)
                self._remaining_frames[session_key] -= len(frames)
                if not self._remaining_frames[session_key]:
                    self._finish_session(session_key)

    def _finish_session(self, whose: tuple[int, int]) -> None:
        """Copy the remaining rows of a session, and end it."""
        member, row = self._merged_sessions[whose].member, self._merged_sessions[whose].row
        recording, session, writer = member.recording, row.id, self._writers.pop(whose)
        write_values = partial(_write_values, writer)
        write_values(
            "connections", (each.connection for each in recording.read_connections(session))
        )
        write_values("exchanges", (each.exchange for each in recording.read_exchanges(session)))
        write_values("tasks", (each.task for each in recording.read_tasks(session)))
        for findings in _split_batches(each.finding for each in recording.read_findings(session)):
            writer.write([], findings)
        write_values("segments", (each.segment for each in recording.read_segments(session)))
        write_values(
            "interruptions", (each.interruption for each in recording.read_interruptions(session))
        )
        write_values("handoffs", (each.handoff for each in recording.read_handoffs(session)))
        store_notes(
            self._db,
            writer.session,
            row.facts.started,
            (each.note for each in recording.read_notes(session)),
        )
        if row.how:
            writer.finish(
                row.ended, how=row.how, complete=row.complete, lost=row.lost, edits=row.edits
            )
        else:
            writer.finish(0, how="unclean", complete=UNENDED, lost=row.lost, edits=row.edits)


def _write_values(writer: Writer, name: str, values: Iterable[Any]) -> None:
    for batch in _split_batches(values):
        changes = Changes([], [], [])
        setattr(changes, name, batch)
        writer.write([], [], changes)


def _split_batches(values: Iterable[_Value]) -> Iterator[list[_Value]]:
    source = iter(values)
    while batch := list(islice(source, _BATCH_FRAMES)):
        yield batch


def _frame_batches(
    frames: Iterable[tuple[MultiReaderFile, FrameRow]],
) -> Iterator[dict[tuple[int, int], list[Frame]]]:
    """Yield the frames of one transaction each, by file and session."""
    portion: dict[tuple[int, int], list[Frame]] = {}
    count = byte_count = 0
    for member, row in frames:
        portion.setdefault((member.number, row.session), []).append(row.frame)
        count, byte_count = count + 1, byte_count + len(row.frame.payload)
        if count == _BATCH_FRAMES or byte_count > _BATCH_BYTES:
            yield portion
            portion, count, byte_count = {}, 0, 0
    if portion:
        yield portion
