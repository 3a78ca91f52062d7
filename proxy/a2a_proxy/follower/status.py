"""Messages of a follower to the program that started it: one JSON object per line, too few to fill
the pipe."""

import msgspec

from a2a_proxy.model import name_json


class FollowerFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The follower cannot work, and neither could another one."""

    message: str
    hint: str = ""


class HookCallFailed(msgspec.Struct, frozen=True, tag="faulty"):
    """A call failed with a new kind of error. Calls continue."""

    message: str


class FollowerNotice(msgspec.Struct, frozen=True, tag="told"):
    """A message for people; the work continues."""

    message: str
    hint: str = ""


class FollowerLag(msgspec.Struct, frozen=True, tag="behind"):
    """The follower does not keep up."""

    frames: int


class FollowerDone(msgspec.Struct, frozen=True, tag="done"):
    """Everything has been handed over; the process exits."""


Status = FollowerFailed | HookCallFailed | FollowerNotice | FollowerLag | FollowerDone

encode = name_json.encode_json
"""Encodes a status as one line without its line end."""


def decode_status(line: bytes) -> Status:
    """Return the message of a line. Raises msgspec.DecodeError."""
    status: Status = name_json.decode_json(line, Status)
    return status
