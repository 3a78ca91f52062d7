"""The limit of open files: each relayed connection needs two."""

from __future__ import annotations

import contextlib
import errno
import resource

from a2a_proxy.relay.edits.edit import ConsoleNote

HINT = "raise the limit of open files and start the proxy again: ulimit -n 65536"
_EXHAUSTED = {errno.EMFILE, errno.ENFILE}


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
    return ConsoleNote(text, HINT, loud=True)
