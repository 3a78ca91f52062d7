"""Errors that the user can fix: one error line, one hint line, exit code 2, never a traceback."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

EXIT_USAGE = 2
"""Exit code of all errors that the user can fix, as in click and most command-line tools."""


class UserError(Exception):
    """An error that the user can fix. `hint` is the command or action to take next."""

    def __init__(self, message: str, hint: str, code: int = EXIT_USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        """Exit code of the command."""


@contextlib.contextmanager
def state_directory_errors() -> Iterator[None]:
    """Convert an OSError in the block, which uses the state directory, into an error that names the folder.

    Raises:
        UserError: the folder cannot be created, read or written.
    """
    try:
        yield
    except OSError as wrong:
        reason = f"{wrong.filename or ''}: {(wrong.strerror or str(wrong)).lower()}".removeprefix(": ")
        hint = "choose another folder: export A2A_PROXY_STATE=DIR"
        raise UserError(f"the state directory cannot be used: {reason}", hint) from wrong


@contextlib.contextmanager
def route_errors(option: str = "") -> Iterator[None]:
    """Convert a RouteError in the block into an error of the user, whose message begins with `option` if it is given.

    Raises:
        UserError: an address, a port or a certificate cannot be used.
    """
    from a2a_proxy.relay.route import RouteError

    try:
        yield
    except RouteError as wrong:
        raise UserError(f"{option}: {wrong.message}" if option else wrong.message, wrong.hint) from wrong


def print_error(program: str, message: str, hint: str) -> None:
    """Print the error as `program: error: ...` and `program: hint: ...` on stderr, with control characters escaped.

    A stderr that cannot be written, as of a closed terminal, does not change the exit code.
    """
    from a2a_proxy.protocol.text import make_visible

    with contextlib.suppress(OSError):
        for word, text in (("error", message), ("hint", hint)):
            if text:
                harmless = "\n".join(map(make_visible, text.split("\n")))
                print(f"{program}: {word}: {harmless}", file=sys.stderr)
