"""The limit of open files: each relayed connection needs two."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Iterator

from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.system_errors import LIMIT_HINTS

MIN_OPEN_FILES = 64
"""The lowest limit of open files with which an event loop is started. The demo needs 40; with fewer, libraries
abort the process or raise errors of their own."""
_EXHAUSTED = {errno.EMFILE, errno.ENFILE}


def require_file_limit() -> None:
    """Raise the limit of this process if it is below `MIN_OPEN_FILES`. Raises OSError if the system does not allow
    it."""
    if 0 <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] < MIN_OPEN_FILES:
        raise_file_limit()
        if 0 <= (limit := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) < MIN_OPEN_FILES:
            raise OSError(errno.EMFILE, f"the limit of open files is {limit}, {MIN_OPEN_FILES} are needed")


def raise_file_limit() -> None:
    """Raise the limit of this process and its later children to what the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # macOS refuses values above a limit of its own
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def is_file_limit(error: Exception) -> bool:
    """Return whether an error says that no more files may be open."""
    return isinstance(error, OSError) and error.errno in _EXHAUSTED


def file_limit_note() -> ConsoleNote:
    """Return the line for clients that wait because no more files may be open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = f"too many open files: the limit is {limit}; new clients wait until other connections close"
    return ConsoleNote(text, LIMIT_HINTS[errno.EMFILE], loud=True)


class SpareFile:
    """A descriptor in reserve: modules that answer clients are loaded when the first is needed, also at the limit."""

    def __init__(self) -> None:
        self._descriptor: int | None = os.open(os.devnull, os.O_RDONLY)

    @contextlib.contextmanager
    def lend(self) -> Iterator[None]:
        """Close the descriptor while the block runs, so that the block can open a file."""
        self.close()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # another thread has taken it
                self._descriptor = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
