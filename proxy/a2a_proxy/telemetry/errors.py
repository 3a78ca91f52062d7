"""The error of a failed export."""

from __future__ import annotations

from a2a_proxy.system_errors import HintedError


class TelemetryError(HintedError):
    """One line that describes the error, and one with the next action."""
