"""Exchanges of a recording to a new file, or to a stream, in one of the formats of `formats.registry`."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.registry import FORMATS
from a2a_proxy.recording.errors import RecordingError


def export_selection(selection: ExportSelection, target: Path | BinaryIO, form: str, **options: Any) -> int:
    """Write what was chosen; how many exchanges that is.

    An existing file is never replaced, and one that cannot be finished is never there.

    Raises:
        RecordingError: the recording cannot be read, the file not be written, or the format needs what is not
            installed.
    """
    if isinstance(target, Path):
        with new_file(target) as stream:
            FORMATS[form].write(selection, stream, **options)
    else:
        FORMATS[form].write(selection, target, **options)
    return selection.count()


@contextlib.contextmanager
def new_file(target: Path) -> Iterator[BinaryIO]:
    """A file (0600) that has its name when all of it is written. Raises RecordingError."""
    if target.exists():
        raise _target_exists_error(target)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
            _rename_into_place(Path(name), target)
        finally:
            Path(name).unlink(missing_ok=True)
    except FileExistsError as wrong:
        raise _target_exists_error(target) from wrong
    except OSError as wrong:
        why = (wrong.strerror or str(wrong)).lower()
        raise RecordingError(f"cannot write {target}: {why}", "name another file") from wrong


def _target_exists_error(target: Path) -> RecordingError:
    return RecordingError(f"{target} exists", "name another file, or delete it first")


def _rename_into_place(temporary: Path, target: Path) -> None:
    """Give it its name, where nobody else has taken that meanwhile: a link, or a rename where there are no links."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:
        if target.exists():
            raise FileExistsError(target) from None
        temporary.rename(target)


def unused_path(folder: Path, recording: Path, part: str, suffix: str) -> Path:
    """A name in this folder that nobody has: `run-filtered.a2a.jsonl`, then `run-filtered-2.a2a.jsonl`."""
    stem = recording.name
    for known in (".a2a.db", ".a2a.jsonl", recording.suffix):
        stem = stem.removesuffix(known) if known else stem
    names = (f"{stem}-{part}{f'-{number}' if number > 1 else ''}{suffix}" for number in itertools.count(1))
    return next(path for path in map(folder.joinpath, names) if not path.exists())
