"""`a2a-inspect import`: a file of another program to a recording."""

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from a2a_inspect.imports.har_file import HarFile
from a2a_inspect.imports.packet_capture import PacketCapture
from a2a_inspect.imports.packet_file import CAPTURE_MAGICS
from a2a_inspect.imports.recording_writer import ImportOptions, write_import
from a2a_inspect.imports.source import ImportSource
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_line
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.store.database import check_recording_target

_COMPRESSED_MAGICS = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""The first bytes of gzip and Zstandard."""


_UTF16_CODINGS = {b"\1\0\1\0": "utf-16-le", b"\0\1\0\1": "utf-16-be"}
"""Codings by where the first four bytes of JSON are NUL."""


def import_file(path: Path, target: Path | None, words: tuple[str, ...]) -> None:
    """Import the file to the new recording `target` (default: beside the file), and print the
    counts and what is missing.

    Raises:
        UserError: the file cannot be read or has no A2A call, or the recording exists or cannot be
        written.
    """
    if target is None:
        if path.is_fifo():
            raise UserError(
                f"{path} is a pipe, so the recording needs a name", "name it: --output FILE.a2a.db"
            )
        target = path.with_suffix(".a2a.db")
    check_recording_target(target)
    source = open_import(path)
    done = write_import(source, target, ImportOptions(words, ("a2a-inspect", *sys.argv[1:])))
    counts = (
        f"{text.format_count(done.exchanges, 'exchange')}, "
        f"{text.format_count(done.frames, 'frame')}"
    )
    findings = (
        f"{text.format_count(done.tasks, 'task')}; {text.format_count(done.findings, 'finding')}"
    )
    print_line(f"imported {path}: {counts}, {findings}")
    if lacks := source.lacks:
        print_line(f"the {source.label} lacks:")
        for each in lacks:
            print_line(f"  {each}")
    print_line(f"inspect it: {shell_line('a2a-inspect', str(target))}")


def open_import(path: Path) -> ImportSource:
    """Return the file, opened for import.

    Raises:
        UserError: the file cannot be read, has another format or no HTTP call.
    """
    try:
        stream = _open_seekable(path)
        first = stream.read(4)
    except OSError as wrong:
        raise UserError(
            f"cannot read {path}: {(wrong.strerror or '').lower()}", "check the name"
        ) from wrong
    if first.startswith(_COMPRESSED_MAGICS):
        raise UserError(
            f"{path} is compressed", "decompress it first, for example: gunzip FILE, or unzstd FILE"
        )
    if first in CAPTURE_MAGICS:
        return PacketCapture(path, stream)
    coding = _UTF16_CODINGS.get(bytes(byte and 1 for byte in first)) or (
        "utf-16" if first.startswith((b"\xff\xfe", b"\xfe\xff")) else ""
    )
    if coding:
        return HarFile(path, _decode_utf16(stream, coding), is_recoded=True)
    return HarFile(path, stream)


def _decode_utf16(stream: BinaryIO, coding: str) -> BinaryIO:
    """Return a private copy in UTF-8, as editors and shells on Windows do not write it."""
    stream.seek(0)
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - the source closes it
    with io.TextIOWrapper(stream, coding, errors="replace", newline="") as text_stream:
        while piece := text_stream.read(1 << 20):
            copy.write(piece.encode("utf-8", "replace"))
    copy.seek(0)
    return copy


def _open_seekable(path: Path) -> BinaryIO:
    """Return the file, or a private copy of it if it is a pipe, because it is read twice. Raises
    OSError."""
    stream = path.open("rb")
    if stream.seekable():
        return stream
    with stream:
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - the source closes it
        shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy
