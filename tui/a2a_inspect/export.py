"""Exchanges of a recording to a file: as a cassette, which is a recording again, or as JSON lines for programs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from a2a_inspect.commands.show import conversation_objects, whole_objects
from a2a_inspect.commands.wanted import Wanted
from a2a_proxy.recording.cassette import write_cassette
from a2a_proxy.recording.cassette_out import Exporter, Selection
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import CHOSEN

FORMATS = {"cassette": ".a2a.jsonl", "jsonl": ".jsonl"}
"""Name -> how its files end."""


def export(recording: Recording, target: Path | BinaryIO, form: str, keys: Iterable[int] | None, what: str) -> int:
    """Write the exchanges of these keys, whole, or with None everything; how many exchanges that is.

    `what` says which they are: it stands in the sessions of the cassette. An existing file is never replaced, and one
    that cannot be finished is not left behind.

    Raises:
        RecordingError: the recording cannot be read, or the file not be written.
    """
    wanted = None if keys is None else set(keys)
    selection = None if wanted is None else Selection(recording, wanted, f"{CHOSEN}{what}")
    if form == "jsonl":
        _lines(recording, target, wanted)
    elif isinstance(target, Path):
        write_cassette(recording, target, selection=selection)
    else:
        Exporter(recording, recording.sessions(), target, selection=selection).run()
    return recording.counts().exchanges if wanted is None else len(wanted)


def free_name(folder: Path, recording: Path, what: str, suffix: str) -> Path:
    """A name in this folder that nobody has: `run-filtered.a2a.jsonl`, then `run-filtered-2.a2a.jsonl`."""
    stem = recording.name
    for known in (".a2a.db", ".a2a.jsonl", recording.suffix):
        stem = stem.removesuffix(known) if known else stem
    names = (f"{stem}-{what}{f'-{number}' if number > 1 else ''}{suffix}" for number in itertools.count(1))
    return next(path for path in map(folder.joinpath, names) if not path.exists())


def _lines(recording: Recording, target: Path | BinaryIO, wanted: set[int] | None) -> None:
    if not isinstance(target, Path):
        _write_lines(recording, target, wanted)
        return
    try:
        stream = target.open("xb")
    except FileExistsError:
        raise RecordingError(f"{target} exists", "name another file, or delete it first") from None
    except OSError as wrong:
        raise _unwritten(target, wrong) from wrong
    try:
        with stream:
            target.chmod(0o600)
            _write_lines(recording, stream, wanted)
    except BaseException as wrong:
        target.unlink(missing_ok=True)
        if isinstance(wrong, OSError):
            raise _unwritten(target, wrong) from wrong
        raise


def _unwritten(target: Path, wrong: OSError) -> RecordingError:
    return RecordingError(f"cannot write {target}: {wrong.strerror}", "name another file")


def _write_lines(recording: Recording, stream: BinaryIO, wanted: set[int] | None) -> None:
    told = conversation_objects(recording, Wanted()) if wanted is None else whole_objects(recording, wanted)
    for each in told:
        stream.write(json.dumps(each).encode() + b"\n")
