"""Protobuf bytes field by field: what parsers pass over in silence (manual/protocol.md "Shared field numbers")."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from a2a_proto import SCHEMA_SETS, message_class
from a2a_proxy.model.frame import Frame
from a2a_proxy.protocol.schema import is_protobuf, split_schema
from a2a_proxy.rules.context import RuleContext

_MAX_DEPTH = 32
_MAX_FOUND = 20
_VARINT, _FIXED64, _LEN, _FIXED32 = 0, 1, 2, 5
_WIRE_TYPES = {
    1: _FIXED64,
    2: _FIXED32,
    6: _FIXED64,
    7: _FIXED32,
    9: _LEN,
    11: _LEN,
    12: _LEN,
    15: _FIXED32,
    16: _FIXED64,
}
"""Wire type of a field type, as numbered in `descriptor.proto`; varint where it is not here."""
_GOOGLE_PREFIX = "google.protobuf."


class Unknown(msgspec.Struct, frozen=True):
    """A field that the message's type does not have."""

    path: str
    message: str
    """Full name of the message type."""
    number: int
    wire: int


class OneofConflict(msgspec.Struct, frozen=True):
    """More than one member of a oneof in one message."""

    path: str
    message: str
    members: tuple[str, ...]
    """In the order of the wire: parsers keep the last."""


class Oddities(msgspec.Struct):
    """What was found in one message."""

    unknown: list[Unknown] = []
    several: list[OneofConflict] = []


def message_oddities(context: RuleContext) -> Oddities:
    """Of the frame that a rule looks at; worked out once for all rules."""
    found: Oddities | None = context.cache.get("grpc_fields")
    if found is None:
        found = context.cache["grpc_fields"] = _find_oddities(context.frame)
    return found


def fields_of_other_dialects(unknown: Unknown) -> str:
    """What other lines of the same package call a field of this number and wire type; empty where none has it."""
    short = unknown.message.rpartition(".")[2]
    found = [f"`{name}` in {line}" for line in SCHEMA_SETS for name in _matching_fields(line, short, unknown)]
    return " or ".join(found)


def _matching_fields(line: str, short: str, unknown: Unknown) -> Iterator[str]:
    try:
        shape: Any = message_class(line, short).DESCRIPTOR
    except KeyError:
        return
    field = shape.fields_by_number.get(unknown.number) if shape.full_name == unknown.message else None
    if field is not None and _WIRE_TYPES.get(field.type, _VARINT) == unknown.wire:
        yield field.name


def _find_oddities(frame: Frame) -> Oddities:
    found = Oddities()
    if not frame.payload or frame.truncated or not is_protobuf(frame.schema):
        return found
    cls: Any = message_class(*split_schema(frame.schema))
    try:
        message = cls.FromString(frame.payload)
    except Exception:  # redaction or a peer left bytes that are no message: other rules speak of that
        return found
    message.DiscardUnknownFields()
    if message.ByteSize() != len(frame.payload):  # else there is nothing that the type does not tell
        _FieldWalk(found).walk_message(frame.payload, cls.DESCRIPTOR, "", 0)
    return found


@cache
def _message_fields(descriptor: Any) -> dict[int, tuple[str, Any, int, bool, str]]:
    """Number -> name, message type or None, wire type, whether it may be packed, its oneof or empty."""
    made = {}
    for field in descriptor.fields:
        wire = _WIRE_TYPES.get(field.type, _VARINT)
        oneof = field.containing_oneof
        one = oneof.name if oneof is not None and len(oneof.fields) > 1 else ""
        packs = field.is_repeated and wire != _LEN
        made[field.number] = (field.name, field.message_type, wire, packs, one)
    return made


class _FieldWalk:
    """Through the bytes of one message that parses."""

    def __init__(self, found: Oddities) -> None:
        self._found = found

    def walk_message(self, data: bytes, descriptor: Any, path: str, depth: int) -> None:
        """Look at one message and those within. Structs, timestamps and the like are not looked into."""
        if depth > _MAX_DEPTH or len(self._found.unknown) + len(self._found.several) > _MAX_FOUND:
            return
        shape = _message_fields(descriptor)
        chosen: dict[str, list[str]] = {}
        for number, wire, start, end in _split_fields(data):
            name, inner, expected, packs, oneof = shape.get(number, ("", None, -1, False, ""))
            if wire != expected and not (packs and wire == _LEN):
                self._found.unknown.append(Unknown(path, descriptor.full_name, number, wire))
                continue
            if oneof and name not in chosen.setdefault(oneof, []):
                chosen[oneof].append(name)
            if inner is not None and not inner.full_name.startswith(_GOOGLE_PREFIX):
                self.walk_message(data[start:end], inner, f"{path}.{name}" if path else name, depth + 1)
        for members in chosen.values():
            if len(members) > 1:
                self._found.several.append(OneofConflict(path, descriptor.full_name, tuple(members)))


def _split_fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type and span of the value of each field. Stops at a group, which nobody uses."""
    at, size = 0, len(data)
    while at < size:
        tag, at = _read_varint(data, at)
        wire, start = tag & 7, at
        if wire == _LEN:
            length, start = _read_varint(data, at)
            at = start + length
        elif wire == _VARINT:
            at = _read_varint(data, at)[1]
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            return
        yield tag >> 3, wire, start, at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
