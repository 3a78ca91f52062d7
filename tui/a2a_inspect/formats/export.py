"""Export of exchanges to a new file, or to a stream, in one of the formats of
`formats.registry`."""

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.registry import FORMATS
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.errors import RecordingError


def export_selection(
    selection: ExportSelection, target: Path | BinaryIO, form: str, **options: Any
) -> int:
    """Write the selection and return the number of exported exchanges.

    An existing file is never replaced, and an unfinished file never gets its final name.

    Raises:
        RecordingError: the recording cannot be read, the file cannot be written, or a package for
        the format is not
            installed.
    """
    if isinstance(target, Path):
        with new_file(target) as stream:
            FORMATS[form].write(selection, stream, **options)
    else:
        FORMATS[form].write(selection, target, **options)
    return selection.count_exchanges()


@contextlib.contextmanager
def new_file(target: Path) -> Iterator[BinaryIO]:
    """Yield a file (mode 0600) that gets its name once it is complete. Raises RecordingError."""
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
        create = f"create the folder first: {shell_line('mkdir', '-p', str(target.parent))}"
        hint = "name another file" if target.parent.is_dir() else create
        raise RecordingError(f"cannot write {target}: {why}", hint) from wrong


def _target_exists_error(target: Path) -> RecordingError:
    return RecordingError(f"{target} exists", "name another file, or delete it first")


def _rename_into_place(temporary: Path, target: Path) -> None:
    """Rename the file unless the name has been taken meanwhile: by a hard link, or by a rename if
    the file system has no links.
    """
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:
        if target.exists():
            raise FileExistsError(target) from None
        temporary.rename(target)


def unused_path(folder: Path, recording: Path, part: str, suffix: str) -> Path:
    """Return an unused name in this folder: `run-filtered.a2a.jsonl`, then
    `run-filtered-2.a2a.jsonl`."""
    stem = recording.name
    for known in (".a2a.db", ".a2a.jsonl", recording.suffix):
        stem = stem.removesuffix(known) if known else stem
    names = (
        f"{stem}-{part}{f'-{number}' if number > 1 else ''}{suffix}"
        for number in itertools.count(1)
    )
    return next(path for path in map(folder.joinpath, names) if not path.exists())
