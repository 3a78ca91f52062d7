"""The limit of open files: each relayed connection needs two."""

import contextlib
import errno
import resource

from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.system_errors import LIMIT_HINTS

MIN_OPEN_FILES = 64
"""The lowest limit of open files with which an event loop is started. The demo needs 40; with
fewer, libraries abort the process or raise errors of their own."""
_EXHAUSTED = {errno.EMFILE, errno.ENFILE}


def require_file_limit() -> None:
    """Raise the limit of this process if it is below `MIN_OPEN_FILES`. Raises OSError if the system
    does not allow it."""
    if 0 <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] < MIN_OPEN_FILES:
        raise_file_limit()
        if 0 <= (limit := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) < MIN_OPEN_FILES:
            raise OSError(
                errno.EMFILE, f"the limit of open files is {limit}, {MIN_OPEN_FILES} are needed"
            )


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
    text = (
        f"too many open files: the limit is {limit}; new clients wait until other connections close"
    )
    return ConsoleNote(text, LIMIT_HINTS[errno.EMFILE], loud=True)
