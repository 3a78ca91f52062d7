"""The log file of a hook: its output and the errors of its calls, limited in size."""

import io
import os
import re
from pathlib import Path

from a2a_proxy.capture import file_layout

MAX_LOG_BYTES = 4 << 20
"""Maximum bytes that one process may write."""
_MAX_OLD_BYTES = 1 << 20
"""A log of this size is set aside when the next run begins; the one set aside before is deleted."""
_FULL_NOTE = b"\n--- the log has reached its limit; the rest is dropped ---\n"


def log_path(name: str) -> Path:
    """Return the path of this hook's log. Raises OSError."""
    return file_layout.hooks_dir() / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}.log"


def open_log(path: Path) -> int:
    """Return a descriptor that appends to the log. Raises OSError."""
    if path.exists() and path.stat().st_size > _MAX_OLD_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


class HookLog(io.TextIOBase):
    """A text stream into a descriptor, which drops output above its limit and never raises."""

    def __init__(self, descriptor: int, room: int = MAX_LOG_BYTES) -> None:
        self._file = descriptor
        self._remaining = room

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Accept the whole text and write the part below the limit."""
        data = (
            text.encode("utf-8", "backslashreplace")[: self._remaining] if self._remaining else b""
        )
        if data:
            self._remaining -= len(data)
            self._write_data(data if self._remaining else data + _FULL_NOTE)
        return len(text)

    def _write_data(self, data: bytes) -> None:
        try:
            os.write(self._file, data)
        except OSError:  # a full disk: the hook continues without its log
            self._remaining = 0
