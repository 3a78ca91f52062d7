"""Timestamps of protobuf that no JSON text can represent.

Such a payload has no JSON form that a shape could check: `google.protobuf.Timestamp` is limited to
the years 1 to 9999.
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from a2a_proto import message_class
from a2a_proxy.protocol.strict.protobuf import MAX_SECONDS
from a2a_proxy.rules.schema.fault import FaultKind, SchemaFault

_MIN_SECONDS = -62_135_596_800
"""Beginning of the year 1."""
_MAX_NANOS = 999_999_999


def time_faults(line: Any, name: str, payload: bytes) -> list[SchemaFault]:
    """Return the timestamps out of range in a payload of the message `name`; none if it cannot be
    parsed."""
    try:
        return list(_faults_in(message_class(line, name).FromString(payload), ""))
    except (DecodeError, KeyError):
        return []


def _faults_in(message: Any, path: str) -> Iterator[SchemaFault]:
    kind = message.DESCRIPTOR.full_name
    if kind == "google.protobuf.Timestamp":
        yield from _faults_of(message, path.rstrip("."))
    elif not kind.startswith("google.protobuf."):
        for field, value in message.ListFields():
            if field.message_type is None or field.message_type.GetOptions().map_entry:
                continue
            label = path + field.json_name
            if hasattr(value, "ListFields"):
                yield from _faults_in(value, f"{label}.")
                continue
            for number, each in enumerate(value):
                yield from _faults_in(each, f"{label}[{number}].")


def _faults_of(timestamp: Any, path: str) -> Iterator[SchemaFault]:
    seconds, nanos = timestamp.seconds, timestamp.nanos
    if not _MIN_SECONDS <= seconds <= MAX_SECONDS:
        told = (
            f"`{path}` has {seconds} seconds, expected {_MIN_SECONDS} to {MAX_SECONDS} (the years "
            f"1 to 9999)"
        )
        yield SchemaFault(FaultKind.RANGE, path, told, str(seconds))
    elif not 0 <= nanos <= _MAX_NANOS:
        yield SchemaFault(
            FaultKind.RANGE,
            path,
            f"`{path}` has {nanos} ns, expected 0 to {_MAX_NANOS}",
            str(nanos),
        )
