"""What a follower says to whoever started it: one JSON object a line, so seldom that the pipe is never full."""

from __future__ import annotations

import msgspec

from a2a_proxy.model import name_json


class FollowerFailed(msgspec.Struct, frozen=True, tag="failed"):
    """It cannot do its work, and another one could not either."""

    message: str
    hint: str = ""


class HookCallFailed(msgspec.Struct, frozen=True, tag="faulty"):
    """A call failed as none did before. The calls go on."""

    message: str


class FollowerNotice(msgspec.Struct, frozen=True, tag="told"):
    """Something that people should know; the work goes on."""

    message: str
    hint: str = ""


class FollowerLag(msgspec.Struct, frozen=True, tag="behind"):
    """It does not keep up."""

    frames: int


class FollowerDone(msgspec.Struct, frozen=True, tag="done"):
    """Everything has been handed over; it exits."""


Status = FollowerFailed | HookCallFailed | FollowerNotice | FollowerLag | FollowerDone

encode = name_json.encode
"""Status -> one line without its line end."""


def decode(line: bytes) -> Status:
    """Return what a line says. Raises msgspec.DecodeError."""
    said: Status = name_json.decode(line, Status)
    return said
