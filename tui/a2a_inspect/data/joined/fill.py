"""The joining process: `python -m a2a_inspect.data.joined.fill PARENT TARGET UUID RECORDING...`.

It ends with its parent and deletes the files that a killed parent left behind.
"""

import contextlib
import os
import shutil
import sys
import time
from pathlib import Path

from a2a_proxy.protocol.completeness import COMPLETE
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.joined.joiner import Joiner
from a2a_proxy.recording.read.rows import SessionRow
from a2a_proxy.recording.store.database import open_writable
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from a2a_proxy.recording.write.writer import resume_writer

POLL_INTERVAL = 0.1
"""Seconds between polls of recordings that may grow."""


class JoinProcess:
    """A joined recording and its sources; sources that do not exist yet are looked for at each
    step."""

    def __init__(self, target: str, uuid: str, files: list[str]) -> None:
        self._target = target
        self._uuid = uuid
        self._missing_files = dict(enumerate(map(Path, files)))
        self._joiner = Joiner(resume_writer(target, uuid), len(files))
        self._copied_notes: list[object] = []
        self._is_finished = False

    def copy_new_rows(self) -> None:
        """Copy new rows. Raises RecordingError."""
        for number, path in list(self._missing_files.items()):
            if path.exists() and path.stat().st_size:
                self._joiner.add_file(number, open_recording_or_cassette(path))
                del self._missing_files[number]
        if self._is_finished and self._joiner.has_changed():
            self._reopen_session()
        if not self._is_finished and self._joiner.copy_new_rows():
            notes = self._joiner.copied_notes()
            for note in notes:
                if note not in self._copied_notes:
                    write_note(
                        self._target,
                        NotePlace(1, note.exchange, note.seq),
                        note.at,
                        text=note.text,
                        bookmark=note.bookmark,
                    )
            self._copied_notes = [*notes]
            self._finish_session()

    def _reopen_session(self) -> None:
        """Mark the session as open again: a proxy records into a file whose sessions had all
        ended."""
        with contextlib.closing(open_writable(self._target, create=False)) as db:
            db.execute("UPDATE session SET ended = NULL, how = '', complete = ''")
        self._joiner.writer = resume_writer(self._target, self._uuid)
        self._is_finished = False

    def mark_incomplete(self, why: str) -> None:
        """Mark the session as incomplete for the reason `why`."""
        self._joiner.writer.finish(0, how="unclean", complete=why)

    def _finish_session(self) -> None:
        """Mark the session as ended once all sources have ended. Rows written later are still
        copied."""
        sessions = self._joiner.read_sessions()
        if self._missing_files or not all(row.how for row in sessions):
            return
        how = "clean" if all(row.how == "clean" for row in sessions) else "unclean"
        lost, edits = sum(row.lost for row in sessions), sum(row.edits for row in sessions)
        last = max((row.ended for row in sessions), default=0)
        self._joiner.end_segments(last)
        self._joiner.writer.finish(
            last, how=how, complete=_joined_completeness(sessions), lost=lost, edits=edits
        )
        self._is_finished = True


def _joined_completeness(sessions: list[SessionRow]) -> str:
    """Return `complete`, or the text of the first session that lacks something, else of one with a
    choice."""
    missing = [row.complete for row in sessions if row.missing_text]
    return next(iter(missing + [row.complete for row in sessions if row.choice_text]), COMPLETE)


def main(arguments: list[str]) -> int:
    """Join recordings until the parent ends; return the exit code."""
    parent, target, uuid, *files = arguments
    filling = JoinProcess(target, uuid, files)
    try:
        while os.getppid() == int(parent):
            filling.copy_new_rows()
            time.sleep(POLL_INTERVAL)
    except RecordingError as wrong:
        filling.mark_incomplete(wrong.message)
        return 1
    shutil.rmtree(Path(target).parent, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
