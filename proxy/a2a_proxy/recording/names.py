"""Names of recording files within a folder that the caller gives."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

SUFFIX = ".a2a.db"


def recording_name(at: int) -> str:
    """The name of a recording that begins at `at` (ns since the epoch), in UTC: `a2a-20261121-063000.123.a2a.db`."""
    moment = datetime.fromtimestamp(at // 1_000_000_000, UTC)
    return f"a2a-{moment:%Y%m%d-%H%M%S}.{at // 1_000_000 % 1000:03d}{SUFFIX}"


def newest_recording(folder: Path) -> Path | None:
    """The recording in this folder that was written to last; None where there is none."""
    found = [(_changed(path), path) for path in folder.glob(f"*{SUFFIX}")] if folder.is_dir() else []
    return max(found)[1] if found else None


def _changed(path: Path) -> float:
    """When the recording last grew: while it is written, its write-ahead log tells."""
    times = []
    for file in (path, path.with_name(path.name + "-wal")):
        try:
            times.append(file.stat().st_mtime)
        except FileNotFoundError:
            continue
    return max(times, default=0.0)
