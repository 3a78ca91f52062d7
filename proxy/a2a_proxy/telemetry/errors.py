"""The error of a failed export."""

from a2a_proxy.model.errors import UserError


class TelemetryError(UserError):
    """One line that describes the error, and one with the next action."""
