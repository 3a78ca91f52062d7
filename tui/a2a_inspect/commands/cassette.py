"""`a2a-inspect cassette read`: a text file to a recording; `export` is the way there."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

from a2a_proxy.cli.errors import UserError
from a2a_proxy.recording.cassette import read_cassette
from a2a_proxy.recording.errors import RecordingError

_DATABASE = b"SQLite format 3\0"
"""How a recording begins."""


def read(source: Path, recording: Path) -> None:
    """Make a recording of the cassette; an existing file is never replaced.

    Raises:
        UserError: it cannot be read or written.
    """
    _refuse_existing(recording)
    _refuse_recording(source)
    try:
        read_cassette(source, recording)
    except RecordingError as wrong:
        raise UserError(wrong.message, wrong.hint) from wrong


def _refuse_recording(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(len(_DATABASE)) == _DATABASE:
            hint = f"look at it with: {shlex.join(('a2a-inspect', 'ls', str(path)))}"
            raise UserError(f"{path} is a recording already, not a cassette", hint)


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise UserError(f"{path} exists", "name a new file, or delete that one first")
