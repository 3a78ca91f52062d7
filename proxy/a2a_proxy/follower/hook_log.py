"""The log file of a hook: what it prints, and how its calls failed. It takes no more than so much of the disk."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

from a2a_proxy.capture import file_layout

MAX_LOG_BYTES = 4 << 20
"""Bytes that one process may write."""
_MAX_OLD_BYTES = 1 << 20
"""A log of this size is put aside when the next run begins; the one put aside before is deleted."""
_FULL_NOTE = b"\n--- the log has taken all it may; the rest is not kept ---\n"


def log_path(name: str) -> Path:
    """Where the log of this hook lies. Raises OSError."""
    return file_layout.hooks_dir() / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}.log"


def open_log(path: Path) -> int:
    """A descriptor that appends to it. Raises OSError."""
    if path.exists() and path.stat().st_size > _MAX_OLD_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


class HookLog(io.TextIOBase):
    """A text stream into a descriptor, which drops what is too much and never raises."""

    def __init__(self, descriptor: int, room: int = MAX_LOG_BYTES) -> None:
        self._file = descriptor
        self._remaining = room

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Take all of it, keep what there is room for."""
        data = text.encode("utf-8", "backslashreplace")[: self._remaining] if self._remaining else b""
        if data:
            self._remaining -= len(data)
            self._write_data(data if self._remaining else data + _FULL_NOTE)
        return len(text)

    def _write_data(self, data: bytes) -> None:
        try:
            os.write(self._file, data)
        except OSError:  # a full disk: a hook does not stop for that
            self._remaining = 0
