"""Walk protobuf bytes field by field and replace strings in place; only their lengths, and those around them, change.

Unknown fields, field order and odd encodings stay as sent. Descriptors say which field is text and which a message;
fields that no descriptor knows are told apart by trying.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import a2a_proto
from a2a_proto import SCHEMA_SETS, SchemaSet
from a2a_proxy.redaction.json_walk import number_text
from a2a_proxy.redaction.replaced_places import NAME_CHARS, ReplacedPlaces
from a2a_proxy.redaction.scope import INNER, Scope, has_siblings, inner_scope, item_name, judged_name, sibling_names
from a2a_proxy.redaction.secret_names import NUMBER, fold, member_kind, secret_member

if TYPE_CHECKING:
    # At run time protobuf is loaded when the first message comes: a process that only cleans texts never needs it.
    from google.protobuf.descriptor import Descriptor

_MAX_DEPTH: Final = 100
_STRING, _MESSAGE, _BYTES = 9, 11, 12
"""Field types, as numbered in `descriptor.proto`."""
_VALUE: Final = "google.protobuf.Value"
_STRUCT: Final = "google.protobuf.Struct"
_LIST: Final = "google.protobuf.ListValue"
_NUMBER: Final = 0x11
"""Tag of the `number_value` of a Value, a double."""
_TEXT: Final = 0x1A
"""Tag of its `string_value`."""

Replace = Callable[[bytes, str | None, bool], bytes | None]
"""As in `json_text`: bytes of the string, its name, whether it is cut; gives the new bytes or None."""


Delimited = tuple[int, int, int, int, bool]
"""A length-delimited field: its number, where its length, value and next field begin, whether its end is missing."""


class Malformed(ValueError):
    """These bytes are no protobuf message."""


class Named(NamedTuple):
    """What the names at and around a value say of it."""

    name: str | None = None
    """Its own: of a field, of the entry of a map, of a Struct's value."""
    scope: Scope = INNER
    siblings: Mapping[str, str | None] = {}
    """In the entries of a Struct: `scope.sibling_names`."""

    @property
    def judged(self) -> str | None:
        """The name by which a string or number is judged."""
        return judged_name(self.scope, self.name)

    def of_entry(self, key: str) -> Named:
        """The same for the value of an entry with this key."""
        return self._replace(name=self.siblings.get(fold(key), key) if self.siblings else key)


class FieldDescription(NamedTuple):
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
    lines: list[SchemaSet] = [line for line, source in SCHEMA_SETS.items() if schema.startswith(source.package + ".")]
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
def _fields(shape: Descriptor) -> dict[int, FieldDescription]:
    return {
        field.number: FieldDescription(
            field.name,
            field.type in (_STRING, _BYTES),
            field.message_type if field.type == _MESSAGE else None,
        )
        for field in shape.fields
    }


@lru_cache(maxsize=1024)
def _facts(shape: Descriptor) -> tuple[dict[int, FieldDescription], str, bool]:
    """Its fields, its full name, and whether it is the entry of a map."""
    return _fields(shape), shape.full_name, shape.GetOptions().map_entry


_UNKNOWN: Final[tuple[dict[int, FieldDescription], str, bool]] = ({}, "", True)
"""A message that nobody described may be a map's entry: then its first field names the second."""


@lru_cache(maxsize=1024)
def names_secret(shape: Descriptor) -> bool:
    """Whether a message of this shape has a secret by name (`token`, `credentials`) somewhere within."""
    return _names_secret(shape, set())


@lru_cache(maxsize=1024)
def secret_fields(shape: Descriptor) -> frozenset[int]:
    """Numbers of the fields of a message that are, or hold, a secret by name."""
    return frozenset(number for number, field in _fields(shape).items() if _worth(field))


def field_numbers(data: bytes) -> set[int]:
    """Numbers of the length-delimited fields of a message, of none where the bytes are no message."""
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
    Malformed where the bytes are no message.
    """
    return MessageWalk(replace, named_only).run(data, shape, cut=cut)


class MessageWalk:
    """One walk through a message."""

    def __init__(self, replace: Replace, named_only: bool = False) -> None:
        self._replace = replace
        self.told = ReplacedPlaces()
        self._named_only = named_only
        self._siblings = False
        """Members of Structs may be judged by the names beside them."""

    def run(self, data: bytes, shape: Descriptor | None, *, cut: bool) -> tuple[bytes, list[str]]:
        """The message with strings replaced, and where. Raises Malformed."""
        self._siblings = not self._named_only and has_siblings(data)
        new = self.message(data, shape, "", Named(), cut, 0)
        return (data if new is None else new), self.told.paths()

    def message(
        self, data: bytes, shape: Descriptor | None, path: str, named: Named, cut: bool, depth: int
    ) -> bytes | None:
        """The message with its strings replaced, None where nothing was. `named` is what a Struct calls this value."""
        fields, kind, is_entry = _facts(shape) if shape is not None else _UNKNOWN
        found = _delimited(data, cut)
        type_name: str | None = None
        second: Named | None = None
        if kind in (_STRUCT, _LIST):
            array, named = named.name, self._members(data, found, named) if kind == _STRUCT else _items(named)
            second = _second_item(data, found, named, array) if kind == _LIST else None
        pieces: list[bytes] = []
        done = 0
        for number, head, start, end, missing in found:
            field = fields.get(number)
            value = data[start:end]
            is_key = is_entry and number == 1
            if kind == "google.protobuf.Any" and number == 1:
                type_name = value.decode("utf-8", "replace").rpartition("/")[2]
            elif kind == "google.protobuf.Any" and field is not None:
                field = _any_value(field, type_name)
            entry = f"[{(named.name or '')[:NAME_CHARS]}]" if is_entry and shape else ""
            step = "" if kind == _VALUE else entry or f".{field.name if field else number}"
            if is_key:
                inner = Named()
            elif is_entry or kind in (_VALUE, _STRUCT, _LIST):
                inner = second if second is not None and head == found[1][1] else named
            else:
                inner = Named(field.name) if field is not None else Named()
            new = (self.key if is_key else self.field)(value, field, path + step, inner, missing, depth)
            if is_key:
                named = named.of_entry((value if new is None else new).decode("utf-8", "replace"))
            if new is not None:
                pieces += (data[done:head], data[head:start] if missing else varint(len(new)), new)
                done = end
        if not pieces:
            return None
        pieces.append(data[done:])
        return b"".join(pieces)

    def key(
        self, data: bytes, field: FieldDescription | None, path: str, named: Named, cut: bool, depth: int
    ) -> bytes | None:
        """The name of a map's entry."""
        return self.field(data, field, path, named, cut, depth)

    def field(
        self, data: bytes, field: FieldDescription | None, path: str, named: Named, cut: bool, depth: int
    ) -> bytes | None:
        """The value of a field with its strings replaced, None where nothing was."""
        if self._named_only and not _worth(field):
            return None
        if field is not None and field.message is not None and field.message.full_name == _VALUE and _is_number(data):
            text = self.number(number_text(struct.unpack("<d", data[1:])[0]), path, named)
            if text is None:
                return None
            self.told.add(path.lstrip("."))
            return bytes([_TEXT]) + varint(len(text)) + text
        if depth < _MAX_DEPTH and field is not None and field.message is not None:
            try:
                return self.message(data, field.message, path, named, cut, depth + 1)
            except Malformed:
                pass
        elif depth < _MAX_DEPTH and field is None and not cut and not _is_text(data):
            try:
                return self.message(data, None, path, Named(), cut, depth + 1)
            except Malformed:
                pass
        new = self._replace(data, named.judged, cut)
        if new is not None:
            self.told.add(path.lstrip("."))
        return new

    def _members(self, data: bytes, found: list[Delimited], named: Named) -> Named:
        """For the entries of a Struct that is called so."""
        scope = inner_scope(named.scope, named.name, True)
        siblings = sibling_names(dict(_texts(data, found))) if self._siblings else {}
        return Named(None, scope._replace(secret=None) if "token" in siblings else scope, siblings)

    def number(self, text: bytes, path: str, named: Named) -> bytes | None:  # noqa: ARG002 - places are at a path
        """What to put in place of a number of a Struct; None where it stays."""
        name = named.judged
        return self._replace(text, name, False) if name is not None and member_kind(name) & NUMBER else None


def _texts(data: bytes, found: list[Delimited]) -> Iterator[tuple[str, str | None]]:
    """The folded keys of a Struct, each with its value where that is a string."""
    for _, _, start, end, _ in found:
        entry = data[start:end]
        with contextlib.suppress(Malformed):
            halves = {number: entry[first:last] for number, _, first, last, _ in _delimited(entry, True)}
            yield fold(halves.get(1, b"").decode("utf-8", "replace")), _string(halves.get(2, b""))


def _items(named: Named) -> Named:
    """For the values of a ListValue that is called so."""
    return Named(None, inner_scope(named.scope, named.name, False))


def _second_item(data: bytes, found: list[Delimited], named: Named, array: str | None) -> Named | None:
    """For the second of two values, if the first one names it."""
    if len(found) != 2:
        return None
    first, second = (_string(data[start:end]) for _, _, start, end, _ in found)
    if first is None or second is None:
        return None
    return named._replace(name=item_name(first, second.encode("utf-8", "surrogateescape"), array))


def _string(value: bytes) -> str | None:
    """The string of a Value, None where it holds something else."""
    if value[:1] != bytes([_TEXT]):
        return None
    with contextlib.suppress(IndexError, Malformed):
        return value[_read(value, 1)[1] :].decode("utf-8", "replace")
    return None


def _is_number(value: bytes) -> bool:
    """Whether a Value holds a number."""
    return len(value) == 9 and value[0] == _NUMBER


def _any_value(field: FieldDescription, type_name: str | None) -> FieldDescription:
    """The payload of an Any as the message that its type names; as bytes where nobody knows it."""
    known = _shapes(type_name or "")
    return field._replace(message=known[0]) if known else field


def _worth(field: FieldDescription | None) -> bool:
    if field is None:
        return False
    return names_secret(field.message) if field.message is not None else field.text and secret_member(field.name)


def _is_text(data: bytes) -> bool:
    """Whether these bytes read as text: then they are no message, though by bad luck they might parse as one."""
    if not data or data[0] == 0x0A:
        return False
    try:
        return data.decode().replace("\n", "").replace("\t", "").replace("\r", "").isprintable()
    except UnicodeDecodeError:
        return False


def _delimited(data: bytes, cut: bool) -> list[Delimited]:
    """The length-delimited fields of a message. Raises Malformed."""
    found: list[Delimited] = []
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
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
    raise Malformed


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
