"""What keeps an export from its work."""

from __future__ import annotations


class TelemetryError(Exception):
    """One line about what is wrong, one about what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
