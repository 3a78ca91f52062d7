"""The error of a failed export."""

from __future__ import annotations


class TelemetryError(Exception):
    """One line that describes the error, and one with the next action."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
