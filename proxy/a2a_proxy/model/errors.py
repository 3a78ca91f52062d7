"""The error that the user can fix: a message and a hint, exit code 2, never a traceback."""

from collections.abc import Sequence

EXIT_USAGE = 2
"""Exit code of all errors that the user can fix, as in click and most command-line tools."""


class UserError(Exception):
    """An error that the user can fix. `hint` is the command or action to take next, `details` are
    the lines below the message."""

    def __init__(
        self, message: str, hint: str = "", code: int = EXIT_USAGE, details: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        """Exit code of the command."""
        self.details = details
