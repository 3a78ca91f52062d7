"""A user's mistake, and how it is told: one error line, one hint line, exit code 2, never a traceback."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from a2a_proxy.protocol.text import make_visible

EXIT_USAGE = 2
"""The code for everything the user can mend; as of click and most command-line tools."""


class UserError(Exception):
    """Something the user can mend. `hint` says what to type or do next."""

    def __init__(self, message: str, hint: str, code: int = EXIT_USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        """What the command exits with."""


@contextlib.contextmanager
def state_directory_errors() -> Iterator[None]:
    """Around what uses the state directory: where that fails, the user is told which folder it is about.

    Raises:
        UserError: the folder cannot be made, read or written.
    """
    try:
        yield
    except OSError as wrong:
        reason = f"{wrong.filename or ''}: {(wrong.strerror or str(wrong)).lower()}".removeprefix(": ")
        hint = "choose another folder: export A2A_PROXY_STATE=DIR"
        raise UserError(f"the state directory cannot be used: {reason}", hint) from wrong


def print_error(program: str, message: str, hint: str) -> None:
    """Print the error as `program: error: ...` and `program: hint: ...` on stderr, made harmless.

    A stderr that takes nothing, as of a terminal that is gone, changes no exit code.
    """
    with contextlib.suppress(OSError):
        for word, text in (("error", message), ("hint", hint)):
            if text:
                harmless = "\n".join(map(make_visible, text.split("\n")))
                print(f"{program}: {word}: {harmless}", file=sys.stderr)
