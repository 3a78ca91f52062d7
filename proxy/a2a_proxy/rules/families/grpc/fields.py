"""Scan protobuf bytes for fields that parsers ignore silently (manual/protocol.md "Shared field
numbers")."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from a2a_proto import SCHEMA_SETS, message_class
from a2a_proxy.model.values import Frame
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
"""Field type, as numbered in `descriptor.proto`, to wire type; field types not listed are
varints."""
_GOOGLE_PREFIX = "google.protobuf."


class Unknown(msgspec.Struct, frozen=True):
    """A field that is not defined in the type of its message."""

    path: str
    message: str
    """Full name of the message type."""
    number: int
    wire: int


class OneofConflict(msgspec.Struct, frozen=True):
    """Several members of one oneof in one message."""

    path: str
    message: str
    members: tuple[str, ...]
    """Names in wire order: parsers keep the last one."""


class Oddities(msgspec.Struct):
    """Unknown fields and oneof conflicts of one message."""

    unknown: list[Unknown] = []
    several: list[OneofConflict] = []


def message_oddities(context: RuleContext) -> Oddities:
    """Return the oddities of the current frame, computed once for all rules."""
    found: Oddities | None = context.cache.get("grpc_fields")
    if found is None:
        found = context.cache["grpc_fields"] = _find_oddities(context.frame)
    return found


def fields_of_other_dialects(unknown: Unknown) -> str:
    """Return the names that other dialects give to a field of this number and wire type, or an
    empty string."""
    short = unknown.message.rpartition(".")[2]
    found = [
        f"`{name}` in {line}"
        for line in SCHEMA_SETS
        for name in _matching_fields(line, short, unknown)
    ]
    return " or ".join(found)


def _matching_fields(line: str, short: str, unknown: Unknown) -> Iterator[str]:
    try:
        shape: Any = message_class(line, short).DESCRIPTOR
    except KeyError:
        return
    field = (
        shape.fields_by_number.get(unknown.number) if shape.full_name == unknown.message else None
    )
    if field is not None and _WIRE_TYPES.get(field.type, _VARINT) == unknown.wire:
        yield field.name


def _find_oddities(frame: Frame) -> Oddities:
    found = Oddities()
    if not frame.payload or frame.truncated or not is_protobuf(frame.schema):
        return found
    cls: Any = message_class(*split_schema(frame.schema))
    try:
        message = cls.FromString(frame.payload)
    except Exception:  # redacted or malformed bytes: other rules report them
        return found
    message.DiscardUnknownFields()
    if message.ByteSize() != len(frame.payload):  # equal sizes: all bytes belong to known fields
        _FieldWalk(found).walk_message(frame.payload, cls.DESCRIPTOR, "", 0)
    return found


@cache
def _message_fields(descriptor: Any) -> dict[int, tuple[str, Any, int, bool, str]]:
    """Map each field number to name, message type or None, wire type, whether it may be packed, and
    its oneof or ""."""
    made = {}
    for field in descriptor.fields:
        wire = _WIRE_TYPES.get(field.type, _VARINT)
        oneof = field.containing_oneof
        one = oneof.name if oneof is not None and len(oneof.fields) > 1 else ""
        packs = field.is_repeated and wire != _LEN
        made[field.number] = (field.name, field.message_type, wire, packs, one)
    return made


class _FieldWalk:
    """Walk through the bytes of one message that parses."""

    def __init__(self, found: Oddities) -> None:
        self._found = found

    def walk_message(self, data: bytes, descriptor: Any, path: str, depth: int) -> None:
        """Scan one message and the messages within it. Types of `google.protobuf`, such as Struct,
        are not scanned."""
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
                self.walk_message(
                    data[start:end], inner, f"{path}.{name}" if path else name, depth + 1
                )
        for members in chosen.values():
            if len(members) > 1:
                self._found.several.append(
                    OneofConflict(path, descriptor.full_name, tuple(members))
                )


def _split_fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, wire type, and start and end offset of the value of each field. Stops at a
    group (unused in A2A)."""
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
