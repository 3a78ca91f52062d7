"""Walk protobuf octets field by field and replace strings in place; only their lengths, and those around them, change.

Unknown fields, field order and odd encodings stay as sent. Descriptors say which field is text and which a message;
fields that no descriptor knows are told apart by trying.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import a2a_proto
from a2a_proto import LINES, Line
from a2a_proxy.redaction.names import secret_member
from a2a_proxy.redaction.told import NAME_CHARS, Told

if TYPE_CHECKING:
    # At run time protobuf is loaded when the first message comes: a process that only cleans texts never needs it.
    from google.protobuf.descriptor import Descriptor

_MAX_DEPTH: Final = 100
_STRING, _MESSAGE, _BYTES = 9, 11, 12
"""Field types, as numbered in `descriptor.proto`."""

Replace = Callable[[bytes, str | None, bool], bytes | None]
"""As in `json_text`: octets of the string, its name, whether it is cut; gives the new octets or None."""


class Malformed(ValueError):
    """These octets are no protobuf message."""


class Field(NamedTuple):
    """What a descriptor says of a field."""

    name: str
    text: bool
    message: Descriptor | None


def shapes(schema: str) -> list[Descriptor]:
    """The descriptors that a full message name may mean, best first; none where it is not known.

    `a2a.v1` is two lines, 0.3 and the release candidate, and the live proposals share names with 1.0: all are given,
    since a secret that any of them knows is one. The line that a frame's schema may name (`a2a.v1.Task@rc`) is a guess.
    """
    return list(_shapes(schema.partition("@")[0]))


@lru_cache(maxsize=256)
def _shapes(schema: str) -> tuple[Descriptor, ...]:
    lines: list[Line] = [line for line, source in LINES.items() if schema.startswith(source.package + ".")]
    if schema.startswith("google.protobuf."):
        lines = ["1.0"]
    found: list[Descriptor] = []
    for line in lines:
        try:
            found.append(cast("Descriptor", a2a_proto.message_class(line, schema).DESCRIPTOR))
        except KeyError:
            continue
    return tuple(found)


@lru_cache(maxsize=1024)
def _fields(shape: Descriptor) -> dict[int, Field]:
    return {
        field.number: Field(
            field.name,
            field.type in (_STRING, _BYTES),
            field.message_type if field.type == _MESSAGE else None,
        )
        for field in shape.fields
    }


@lru_cache(maxsize=1024)
def names_secret(shape: Descriptor) -> bool:
    """Whether a message of this shape has a secret by name (`token`, `credentials`) somewhere within."""
    return _names_secret(shape, set())


@lru_cache(maxsize=1024)
def secret_fields(shape: Descriptor) -> frozenset[int]:
    """Numbers of the fields of a message that are, or hold, a secret by name."""
    return frozenset(number for number, field in _fields(shape).items() if _worth(field))


def field_numbers(data: bytes) -> set[int]:
    """Numbers of the length-delimited fields of a message, of none where the octets are no message."""
    try:
        return {number for number, *_ in _delimited(data, False)}
    except Malformed:
        return set()


def _names_secret(shape: Descriptor, above: set[str]) -> bool:
    if shape.full_name in above:
        return False
    above.add(shape.full_name)
    for field in shape.fields:
        if field.type == _STRING and secret_member(field.name):
            return True
        if field.message_type is not None and _names_secret(field.message_type, above):
            return True
    return False


def walk(
    data: bytes, shape: Descriptor | None, replace: Replace, *, named_only: bool = False, cut: bool = False
) -> tuple[bytes, list[str]]:
    """The message with strings replaced, and the field paths of those replaced: `configuration.push.token`.

    `named_only` looks at fields with secret names only, which is much quicker. `cut`: the end is missing. Raises
    Malformed where the octets are no message.
    """
    return Walk(replace, named_only).run(data, shape, cut=cut)


class Walk:
    """One walk through a message."""

    def __init__(self, replace: Replace, named_only: bool = False) -> None:
        self._replace = replace
        self.told = Told()
        self._named_only = named_only

    def run(self, data: bytes, shape: Descriptor | None, *, cut: bool) -> tuple[bytes, list[str]]:
        """The message with strings replaced, and where. Raises Malformed."""
        new = self.message(data, shape, "", None, cut, 0)
        return (data if new is None else new), self.told.paths()

    def message(
        self, data: bytes, shape: Descriptor | None, path: str, name: str | None, cut: bool, depth: int
    ) -> bytes | None:
        """The message with its strings replaced, None where nothing was. `name` is what a Struct calls this value."""
        fields = _fields(shape) if shape is not None else {}
        kind = "" if shape is None else shape.full_name
        # A message that nobody described may be a map's entry: then its first field names the second.
        is_entry = shape is None or shape.GetOptions().map_entry
        is_value = kind == "google.protobuf.Value"
        pieces: list[bytes] = []
        done = 0
        for number, head, start, end, missing in _delimited(data, cut):
            field = fields.get(number)
            value = data[start:end]
            is_key = is_entry and number == 1
            if kind == "google.protobuf.Any" and number == 1:
                name = value.decode("utf-8", "replace").rpartition("/")[2]
            elif kind == "google.protobuf.Any" and field is not None:
                field = _any_value(field, name)
            entry = f"[{(name or '')[:NAME_CHARS]}]" if is_entry and shape else ""
            step = "" if is_value else entry or f".{field.name if field else number}"
            inner = None if is_key else name if is_value or is_entry else field.name if field is not None else None
            new = (self.key if is_key else self.field)(value, field, path + step, inner, missing, depth)
            if is_key:
                name = (value if new is None else new).decode("utf-8", "replace")
            if new is not None:
                pieces += (data[done:head], data[head:start] if missing else varint(len(new)), new)
                done = end
        if not pieces:
            return None
        pieces.append(data[done:])
        return b"".join(pieces)

    def key(self, data: bytes, field: Field | None, path: str, name: str | None, cut: bool, depth: int) -> bytes | None:
        """The name of a map's entry."""
        return self.field(data, field, path, name, cut, depth)

    def field(
        self, data: bytes, field: Field | None, path: str, name: str | None, cut: bool, depth: int
    ) -> bytes | None:
        """The value of a field with its strings replaced, None where nothing was."""
        if self._named_only and not _worth(field):
            return None
        if depth < _MAX_DEPTH and field is not None and field.message is not None:
            try:
                return self.message(data, field.message, path, name, cut, depth + 1)
            except Malformed:
                pass
        elif depth < _MAX_DEPTH and field is None and not cut and not _is_text(data):
            try:
                return self.message(data, None, path, None, cut, depth + 1)
            except Malformed:
                pass
        new = self._replace(data, name, cut)
        if new is not None:
            self.told.add(path.lstrip("."))
        return new


def _any_value(field: Field, type_name: str | None) -> Field:
    """The payload of an Any as the message that its type names; as octets where nobody knows it."""
    known = _shapes(type_name or "")
    return field._replace(message=known[0]) if known else field


def _worth(field: Field | None) -> bool:
    if field is None:
        return False
    return names_secret(field.message) if field.message is not None else field.text and secret_member(field.name)


def _is_text(data: bytes) -> bool:
    """Whether these octets read as text: then they are no message, though by bad luck they might parse as one."""
    if not data or data[0] == 0x0A:
        return False
    try:
        return data.decode().replace("\n", "").replace("\t", "").replace("\r", "").isprintable()
    except UnicodeDecodeError:
        return False


def _delimited(data: bytes, cut: bool) -> list[tuple[int, int, int, int, bool]]:
    """The length-delimited fields: number, start of length, start and end of value, whether the end is missing."""
    found: list[tuple[int, int, int, int, bool]] = []
    at, size = 0, len(data)
    while at < size:
        try:
            tag, at = _read(data, at)
            number, wire = tag >> 3, tag & 7
            if not 0 < number < 1 << 29:
                raise Malformed
            if wire == 2:
                head = at
                length, at = _read(data, at)
                found.append((number, head, at, min(at + length, size), at + length > size))
                at += length
            elif wire == 0:
                at = _read(data, at)[1]
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            elif wire not in (3, 4):  # groups: their fields are read as if they were ours
                raise Malformed
        except IndexError:
            at = size + 1
    if at > size and not cut:
        raise Malformed
    return found


def _read(data: bytes, at: int) -> tuple[int, int]:
    """One varint and where it ends. Raises IndexError at the end of the data, Malformed where it is too long."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for shift in range(7, 70, 7):
        at += 1
        octet = data[at]
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at + 1
    raise Malformed


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
