"""Standard output and error that take every text: a terminal without UTF-8, or no descriptor at all, is no failure."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import select
import stat
import sys
from typing import TextIO

_ASCII_REPLACEMENTS = str.maketrans("─╌│┊├┤┼◀▶▲≠✕×»→←▸◂●◆…█▏▎▍▌▋▊▉", "--||+++<>^!xx>><><**~#|||####")
"""What our own drawings have where their characters cannot be printed; each one cell wide."""

_ERROR_HANDLER_NAME = "a2a_visible"


def prepare_streams() -> None:
    """Make the standard streams fit for what is printed: characters that their encoding lacks are written as ASCII, and
    where a stream was closed (`>&-`) what is printed goes nowhere, not into the next file that is opened."""
    codecs.register_error(_ERROR_HANDLER_NAME, _replace_characters)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)  # takes the number that is free: 1 or 2
            setattr(sys, name, os.fdopen(nowhere, "w", encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERROR_HANDLER_NAME)


def is_reader_gone() -> bool:
    """Whoever read our output through a pipe (`| head`) has ended; while we have nothing to say nothing else tells."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):  # no descriptor: it is held in memory
        return False
    return any(what & select.POLLERR for _, what in poll.poll(0))


def discard(stream: TextIO) -> None:
    """Let what the stream still holds, and all that follows, go nowhere: the interpreter writes it at its end."""
    with contextlib.suppress(OSError, ValueError):  # there is no descriptor: nothing will be written
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def terminal_gone(wrong: OSError) -> bool:
    """Return True if the error is that of an output to a terminal that was closed."""
    try:
        return wrong.errno == errno.EIO and not wrong.filename and stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _replace_characters(error: UnicodeError) -> tuple[str, int]:
    """Drawn characters by their look, all others by their number, as in `\\xe9`, so that nothing is lost."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    drawn = error.object[error.start : error.end].translate(_ASCII_REPLACEMENTS)
    return drawn.encode("ascii", "backslashreplace").decode("ascii"), error.end
