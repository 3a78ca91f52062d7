"""Standard streams that always work: no failure without UTF-8 or without a descriptor."""

import codecs
import contextlib
import errno
import io
import os
import select
import stat
import sys
from typing import TextIO

_ASCII_REPLACEMENTS = str.maketrans(
    "─╌│┊├┤┼◀▶▲≠✕×»→←▸◂●◆…█▏▎▍▌▋▊▉", "--||+++<>^!xx>><><**~#|||####"
)
"""ASCII replacements of the characters of the program's own drawings; each one cell wide."""

_ERROR_HANDLER_NAME = "a2a_visible"


def prepare_streams() -> None:
    """Prepare the standard streams of this process and its children: characters that their encoding
    lacks are written as ASCII, and a closed stream (`<&-`) becomes the null device, so that no
    other file or socket gets its number."""
    codecs.register_error(_ERROR_HANDLER_NAME, _replace_characters)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: 0, 1 or 2
            os.set_inheritable(nowhere, True)
            setattr(sys, name, os.fdopen(nowhere, mode, encoding="utf-8"))
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERROR_HANDLER_NAME)


def is_reader_gone() -> bool:
    """Return whether the reader of stdout (`| head`) has ended, which an idle program would not
    notice otherwise."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):  # no descriptor: the output is kept in memory
        return False
    return any(what & select.POLLERR for _, what in poll.poll(0))


def discard_output(stream: TextIO) -> None:
    """Discard the stream's buffer, which the interpreter writes at its end, and all further
    output."""
    with contextlib.suppress(OSError, ValueError):  # without a descriptor nothing will be written
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def terminal_gone(wrong: OSError) -> bool:
    """Return whether an output to a closed terminal raised the error."""
    try:
        return (
            wrong.errno == errno.EIO
            and not wrong.filename
            and stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode)
        )
    except (OSError, ValueError):
        return False


def _replace_characters(error: UnicodeError) -> tuple[str, int]:
    """Replace drawn characters by similar ones, all others by their number, as in `\\xe9`, so that
    nothing is lost."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    drawn = error.object[error.start : error.end].translate(_ASCII_REPLACEMENTS)
    return drawn.encode("ascii", "backslashreplace").decode("ascii"), error.end
