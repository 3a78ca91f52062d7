"""Names of recording files in a folder."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from a2a_proxy.recording.errors import RecordingError

RECORDING_SUFFIX = ".a2a.db"
_READABLE_SUFFIXES = (".db", ".a2a.jsonl")
_MAX_SUGGESTIONS = 3
"""Maximum number of names in a suggestion."""


def recording_name(at: int) -> str:
    """Return the name of a recording that begins at `at` (ns since the epoch), in UTC.

    Example: `a2a-20261121-063000.123.a2a.db`.
    """
    started = datetime.fromtimestamp(at // 1_000_000_000, UTC)
    return f"a2a-{started:%Y%m%d-%H%M%S}.{at // 1_000_000 % 1000:03d}{RECORDING_SUFFIX}"


def newest_recording(folder: Path, *others: Path) -> Path | None:
    """Return the most recently written recording of this folder and of the others; None if there is
    none."""
    return find_newest([*(folder.glob(f"*{RECORDING_SUFFIX}") if folder.is_dir() else ()), *others])


def find_newest(paths: Iterable[Path]) -> Path | None:
    """Return the most recently written recording; None if there is none."""
    return max(((_last_write_time(path), path) for path in paths), default=(0.0, None))[1]


def missing_folder_error(path: Path) -> RecordingError:
    """Return the error for a recording whose folder is missing or a file."""
    return RecordingError(
        f"there is no recording {path}: {path.parent} is not a folder", suggest_names(path)
    )


def suggest_names(missing: Path) -> str:
    """Return a hint for the name of a missing recording: the recordings in its folder with similar
    names."""
    from difflib import get_close_matches

    if str(missing).partition("/")[0].endswith(":"):
        return "a URL is the value of an option: --help lists them"
    try:
        names = sorted(
            path.name for path in missing.parent.iterdir() if path.name.endswith(_READABLE_SUFFIXES)
        )
    except OSError:
        names = []
    stem = _name_stem(missing.name)
    matches = [name for name in names if stem and name.startswith(stem)]
    if not matches:
        close = get_close_matches(stem, map(_name_stem, names))
        matches = [
            name for stem in dict.fromkeys(close) for name in names if _name_stem(name) == stem
        ]
    if not matches:
        return "check the name"
    return (
        f"did you mean "
        f"{' or '.join(str(missing.with_name(name)) for name in matches[:_MAX_SUGGESTIONS])}?"
    )


def _name_stem(name: str) -> str:
    """Return the name without the suffix of recordings and cassettes."""
    for suffix in (RECORDING_SUFFIX, *_READABLE_SUFFIXES):
        name = name.removesuffix(suffix)
    return name


def _last_write_time(path: Path) -> float:
    """Return the time of the last write, in seconds since the epoch.

    While a recording is written, only its write-ahead log changes.
    """
    times = []
    for file in (path, path.with_name(path.name + "-wal")):
        try:
            times.append(file.stat().st_mtime)
        except FileNotFoundError:
            continue
    return max(times, default=0.0)
