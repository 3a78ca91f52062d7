"""Errors that the user can fix: one error line, one hint line, exit code 2, never a traceback."""

import contextlib
from collections.abc import Iterator, Sequence

from a2a_proxy.model.errors import UserError


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
def option_errors(option: str) -> Iterator[None]:
    """Begin the message of a UserError in the block with the option that it is about."""
    try:
        yield
    except UserError as wrong:
        raise UserError(f"{option}: {wrong.message}", wrong.hint, details=wrong.details) from wrong


def print_error(program: str, message: str, hint: str, details: Sequence[str] = ()) -> None:
    """Print the error as `program: error: ...`, its `details` below it, and `program: hint: ...` on
    stderr.

    A stderr that cannot be written, as of a closed terminal, does not change the exit code.
    """
    from a2a_proxy.present.output import print_note
    from a2a_proxy.protocol.text import make_visible

    with contextlib.suppress(OSError):
        for line in (
            f"{program}: error: {make_visible(message)}",
            *details,
            *([f"{program}: hint: {hint}"] if hint else ()),
        ):
            print_note(line)
