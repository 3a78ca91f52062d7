"""Errors of the operating system: the next step if a limit or a full disk is the cause, whatever
was being done."""

import errno
import os

LIMIT_HINTS = {
    errno.EMFILE: "raise the limit of open files: ulimit -n 65536",
    errno.ENFILE: "close other programs: the whole system has no more open files",
    errno.EFBIG: "raise the limit of file sizes: ulimit -f unlimited",
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there, or raise the disk quota",
}
"""Next step by error number. Other errors, such as EACCES and EROFS, need another step for each
file."""


def hint_for(error: BaseException | None, otherwise: str) -> str:
    """Return the next step for the limit that raised `error` or one of its causes; `otherwise` if
    there is none."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in LIMIT_HINTS:
            return LIMIT_HINTS[error.errno]
        error = error.__cause__
    return otherwise


def hint_for_reason(reason: str, otherwise: str) -> str:
    """Return the next step for an error of which only the lower-case text is left; `otherwise` if
    it is no limit."""
    return next(
        (hint for number, hint in LIMIT_HINTS.items() if os.strerror(number).lower() == reason),
        otherwise,
    )
