"""Names of recording files within a folder that the caller gives."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

RECORDING_SUFFIX = ".a2a.db"
_READABLE_SUFFIXES = (".db", ".a2a.jsonl")
_MAX_SUGGESTIONS = 3
"""Names that are told."""


def recording_name(at: int) -> str:
    """The name of a recording that begins at `at` (ns since the epoch), in UTC: `a2a-20261121-063000.123.a2a.db`."""
    moment = datetime.fromtimestamp(at // 1_000_000_000, UTC)
    return f"a2a-{moment:%Y%m%d-%H%M%S}.{at // 1_000_000 % 1000:03d}{RECORDING_SUFFIX}"


def newest_recording(folder: Path) -> Path | None:
    """The recording in this folder that was written to last; None where there is none."""
    found = [(_last_write_time(path), path) for path in folder.glob(f"*{RECORDING_SUFFIX}")] if folder.is_dir() else []
    return max(found)[1] if found else None


def suggest_names(missing: Path) -> str:
    """A hint for the name of a recording that is not there: those in its folder that are called nearly so."""
    from difflib import get_close_matches

    try:
        names = sorted(path.name for path in missing.parent.iterdir() if path.name.endswith(_READABLE_SUFFIXES))
    except OSError:
        names = []
    stem = _name_stem(missing.name)
    matches = [name for name in names if stem and name.startswith(stem)]
    if not matches:
        close = get_close_matches(stem, map(_name_stem, names))
        matches = [name for stem in dict.fromkeys(close) for name in names if _name_stem(name) == stem]
    if not matches:
        return "check the name"
    return f"did you mean {' or '.join(str(missing.with_name(name)) for name in matches[:_MAX_SUGGESTIONS])}?"


def _name_stem(name: str) -> str:
    """What tells files of a kind apart."""
    for suffix in (RECORDING_SUFFIX, *_READABLE_SUFFIXES):
        name = name.removesuffix(suffix)
    return name


def _last_write_time(path: Path) -> float:
    """When the recording last grew: while it is written, its write-ahead log tells."""
    times = []
    for file in (path, path.with_name(path.name + "-wal")):
        try:
            times.append(file.stat().st_mtime)
        except FileNotFoundError:
            continue
    return max(times, default=0.0)
