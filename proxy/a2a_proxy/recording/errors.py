"""Errors of a recording file, worded for the user who named it."""

from a2a_proxy.model.errors import UserError


class RecordingError(UserError):
    """The recording cannot be used. `str()` is the message; `hint` names the next step."""


class CassetteChanged(RecordingError):
    """The counts or digests of a cassette no longer match its lines: it was edited by hand, or
    damaged."""


class PositionConflict(Exception):
    """Another recorder has advanced the journal position of this session. Nothing was stored."""
