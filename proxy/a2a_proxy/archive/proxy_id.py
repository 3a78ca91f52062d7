"""Id of a proxy in every archive: one for each state directory, created once."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from pathlib import Path

from a2a_proxy.archive.errors import ArchiveError

ID_FILE = "archive.id"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def proxy_id(state: Path) -> str:
    """Return the id of the proxies of this state directory. Raises OSError, ArchiveError."""
    file = state / ID_FILE
    if not file.exists():
        made = file.with_name(f".{ID_FILE}.{os.getpid()}")
        made.write_text(f"{uuid.uuid4().hex[:16]}\n")
        with contextlib.suppress(FileExistsError):  # another process created it first
            os.link(made, file)
        made.unlink()
    return check_id(file.read_text().strip(), str(file))


def check_id(name: str, option: str = "--archive-id") -> str:
    """Return the id if it is valid as a part of a key. Raises ArchiveError."""
    if not _ID.fullmatch(name):
        raise ArchiveError(f"{option}: {name!r} is not a valid id", "use letters, digits, `-`, `_` and `.`, at most 64")
    return name
