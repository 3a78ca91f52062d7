"""`a2a-inspect cassette read` and `fmt`: convert a cassette to a recording, or rewrite it.

`export` converts a recording to a text file.
"""

import contextlib
from pathlib import Path

from a2a_inspect.commands.file_loop import process_files
from a2a_proxy.model.errors import UserError
from a2a_proxy.present.output import print_line
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.cassette.file import read_cassette
from a2a_proxy.recording.cassette.rewrite import RewriteResult, rewrite_cassette

_SQLITE_MAGIC = b"SQLite format 3\0"
"""The first bytes of a recording."""


def import_cassette(source: Path, recording: Path) -> None:
    """Convert the cassette to a recording; an existing file is never replaced.

    Raises:
        UserError: a file cannot be read or written.
    """
    if recording.exists():
        raise UserError(f"{recording} exists", "name a new file, or delete that one first")
    _refuse_recording(source)
    read_cassette(source, recording)


def format_files(paths: tuple[Path, ...], *, blobs: bool | None, check: bool) -> int:
    """Rewrite cassettes as `export` would write them, also those edited by hand, and print what
    changes in each.

    Returns the exit code: 2 if a file cannot be read or written, 1 if `check` is set and a file
    would be rewritten.
    """

    def format_one(path: Path) -> bool:
        _refuse_recording(path)
        result = rewrite_cassette(path, blobs=blobs, check=check)
        print_line(f"{path}: {_format_result_words(result, check=check)}")
        return check and result.changed

    return process_files(paths, format_one)


def _format_result_words(result: RewriteResult, *, check: bool) -> str:
    if not result.changed:
        return "unchanged"
    why = "edited by hand; " if result.edited else ""
    return f"{why}would be rewritten" if check else f"{why}rewritten, with new digests"


def _refuse_recording(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC:
            hint = f"inspect it: {shell_line('a2a-inspect', 'ls', str(path))}"
            raise UserError(f"{path} is a recording, not a cassette", hint)
