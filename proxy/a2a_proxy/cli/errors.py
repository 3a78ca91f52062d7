"""Errors that the user can fix: one error line, one hint line, exit code 2, never a traceback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_proxy.recording.query.errors import QueryError

EXIT_USAGE = 2
"""Exit code of all errors that the user can fix, as in click and most command-line tools."""


class UserError(Exception):
    """An error that the user can fix. `hint` is the command or action to take next, `details` are
    the lines below the message."""

    def __init__(
        self, message: str, hint: str, code: int = EXIT_USAGE, details: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        """Exit code of the command."""
        self.details = details


def filter_error(wrong: QueryError) -> UserError:
    """Return the error of an expression with a caret below its position."""
    hint = wrong.hint or "the language is described by: a2a-inspect help filters"
    return UserError(wrong.message, hint, details=[f"  {line}" for line in wrong.caret])


@contextlib.contextmanager
def state_directory_errors() -> Iterator[None]:
    """Convert an OSError in the block, which uses the state directory, into an error that names the
    folder.

    Raises:
        UserError: the folder cannot be created, read or written.
    """
    try:
        yield
    except OSError as wrong:
        reason = f"{wrong.filename or ''}: {(wrong.strerror or str(wrong)).lower()}".removeprefix(
            ": "
        )
        hint = "choose another folder: export A2A_PROXY_STATE=DIR"
        raise UserError(f"the state directory cannot be used: {reason}", hint) from wrong


@contextlib.contextmanager
def route_errors(option: str = "") -> Iterator[None]:
    """Convert a RouteError in the block into an error of the user, whose message begins with
    `option` if it is given.

    Raises:
        UserError: an address, a port or a certificate cannot be used.
    """
    from a2a_proxy.relay.route import RouteError

    try:
        yield
    except RouteError as wrong:
        raise UserError(
            f"{option}: {wrong.message}" if option else wrong.message, wrong.hint
        ) from wrong


def print_error(program: str, message: str, hint: str, details: Sequence[str] = ()) -> None:
    """Print the error as `program: error: ...`, its `details` below it, and `program: hint: ...` on
    stderr.

    A stderr that cannot be written, as of a closed terminal, does not change the exit code.
    """
    from a2a_proxy.present.output import print_note

    with contextlib.suppress(OSError):
        for line in (
            f"{program}: error: {message}",
            *details,
            *([f"{program}: hint: {hint}"] if hint else ()),
        ):
            print_note(line)
