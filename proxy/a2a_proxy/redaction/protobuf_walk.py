"""Walk protobuf bytes field by field and replace strings in place, adjusting the lengths of the
enclosing messages.

Unknown fields, field order and unusual encodings stay as sent. Descriptors show which field is text
and which is a message; a field without a descriptor is parsed as a message first, and is text if
that fails. The descriptor may be that of another version than the sender's: in a field that it does
not have, a push configuration is known by its URL, and authentication by its scheme.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import a2a_proto
from a2a_proto import SCHEMA_SETS, SchemaSet
from a2a_proxy.redaction.json_walk import number_text
from a2a_proxy.redaction.replaced_places import NAME_CHARS, ReplacedPlaces
from a2a_proxy.redaction.scope import (
    INNER,
    Scope,
    has_siblings,
    inner_scope,
    item_name,
    judged_name,
    sibling_names,
)
from a2a_proxy.redaction.secret_names import (
    AUTH_SCHEMES,
    NUMBER,
    fold_name,
    member_kind,
    secret_member,
)

if TYPE_CHECKING:
    # protobuf is imported with the first message: a process that only redacts texts never needs it.
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

_MAX_DEPTH: Final = 100
_STRING, _MESSAGE, _BYTES = 9, 11, 12
"""Field types, as numbered in `descriptor.proto`."""
_VALUE: Final = "google.protobuf.Value"
_STRUCT: Final = "google.protobuf.Struct"
_LIST: Final = "google.protobuf.ListValue"
_NUMBER: Final = 0x11
"""Tag of the `number_value` of a Value, a double."""
_TEXT: Final = 0x1A
"""Tag of the `string_value` of a Value."""

_PUSH_CONFIGURATIONS: Final[tuple[tuple[SchemaSet, str, int], ...]] = (
    ("1.0", "TaskPushNotificationConfig", 4),
    ("0.3", "PushNotificationConfig", 2),
)
"""Messages with a token, and the number of their URL."""

Replace = Callable[[bytes, str | None, bool], bytes | None]
"""As in `json_walk`: called with the bytes of the string, its name, and whether it is cut. Returns
the new bytes or None."""


Delimited = tuple[int, int, int, int, bool]
"""A length-delimited field: its number, the offsets of its length, value and next field, whether
its end is missing."""


class Malformed(ValueError):
    """Bytes that are not a protobuf message."""


class Named(NamedTuple):
    """The names at and around a value, which determine whether it is a secret."""

    name: str | None = None
    """The value's own name: of a field, of a map entry, of a Struct's value."""
    scope: Scope = INNER
    siblings: Mapping[str, str | None] = {}
    """For the entries of a Struct: the result of `scope.sibling_names`."""

    @property
    def judged(self) -> str | None:
        """The name by which a string or number is judged."""
        return judged_name(self.scope, self.name)

    def of_entry(self, key: str) -> Named:
        """Return the names for the value of an entry with this key."""
        return self._replace(name=self.siblings.get(fold_name(key), key) if self.siblings else key)


class FieldDescription(NamedTuple):
    """Facts about a field from its descriptor."""

    name: str
    text: bool
    message: Descriptor | None


def find_shapes(schema: str) -> list[Descriptor]:
    """Return the descriptors that a full message name may denote, best first; empty if the name is
    unknown.

    The live proposals share names with 1.0. All of them are returned, because a secret in any of
    them is redacted. The proposal that a frame's schema may name (`lf.a2a.v1.Task@live-2153`) is a
    guess.
    """
    return list(_find_shapes(schema.partition("@")[0]))


@lru_cache(maxsize=256)
def _find_shapes(schema: str) -> tuple[Descriptor, ...]:
    lines: list[SchemaSet] = [
        line for line, source in SCHEMA_SETS.items() if schema.startswith(source.package + ".")
    ]
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
def _describe_fields(shape: Descriptor) -> dict[int, FieldDescription]:
    return {
        field.number: FieldDescription(
            field.name,
            field.type in (_STRING, _BYTES),
            field.message_type if field.type == _MESSAGE else None,
        )
        for field in shape.fields
    }


@lru_cache(maxsize=1024)
def _describe_message(shape: Descriptor) -> tuple[dict[int, FieldDescription], str, bool]:
    """Return a message's fields, its full name, and whether it is the entry of a map."""
    return _describe_fields(shape), shape.full_name, shape.GetOptions().map_entry


_UNKNOWN: Final[tuple[dict[int, FieldDescription], str, bool]] = ({}, "", True)
"""A message without a descriptor may be a map entry, whose first field names the second."""


@lru_cache(maxsize=1024)
def names_secret(shape: Descriptor) -> bool:
    """Whether a message of this shape has a field with a secret's name (`token`, `credentials`) at
    any depth."""
    return _names_secret(shape, set())


@lru_cache(maxsize=1024)
def secret_fields(shape: Descriptor) -> frozenset[int]:
    """Return the numbers of the fields of a message that have a secret's name or contain such a
    field."""
    return frozenset(
        number for number, field in _describe_fields(shape).items() if _may_hold_secret(field)
    )


def field_numbers(data: bytes) -> set[int]:
    """Return the numbers of the length-delimited fields of a message; empty if the bytes are not a
    message."""
    try:
        return {number for number, *_ in _split_fields(data, False)}
    except Malformed:
        return set()


def has_unknown_field(data: bytes, shape: Descriptor) -> bool:
    """Whether a message, or a message in it, has a field that its descriptor does not have, or
    cannot be parsed."""
    message_type, error = _message_class(shape)
    try:
        message = message_type.FromString(data)
    except error:
        return True
    size = message.ByteSize()
    message.DiscardUnknownFields()
    return size != message.ByteSize()


@lru_cache(maxsize=256)
def _message_class(shape: Descriptor) -> tuple[type[Message], type[Exception]]:
    """Return the class of a message, and the error that it raises."""
    # protobuf is imported with the first message.
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(shape), DecodeError


def _find_credentials(data: bytes, shape: Descriptor | None, cut: bool) -> Descriptor | None:
    """Return the descriptor of a message with credentials by the texts around them: a URL, or the
    name of a scheme. Returns None for other bytes, and for a message of `shape`."""
    fields = _describe_fields(shape) if shape is not None else {}
    try:
        texts = {number: data[start:end] for number, _, start, end, _ in _split_fields(data, cut)}
    except Malformed:
        return None
    if fields.keys() >= texts.keys():
        return None
    for line, name, url in _PUSH_CONFIGURATIONS:
        if texts.get(url, b"").startswith((b"https://", b"http://")):
            return cast("Descriptor", a2a_proto.message_class(line, name).DESCRIPTOR)
    if 2 in texts and texts.get(1, b"").lower() in AUTH_SCHEMES:
        return cast("Descriptor", a2a_proto.message_class("1.0", "AuthenticationInfo").DESCRIPTOR)
    return None


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


def redact_message(
    data: bytes,
    shape: Descriptor | None,
    replace: Replace,
    *,
    named_only: bool = False,
    cut: bool = False,
) -> tuple[bytes, list[str]]:
    """Return the message with secrets replaced, and their field paths, such as
    `configuration.push.token`.

    `named_only` checks only fields with secret names, which is much faster. `cut` means that the
    end of the message is missing. Raises Malformed if the bytes are not a message.
    """
    return MessageWalk(replace, named_only).run(data, shape, cut=cut)


class MessageWalk:
    """One walk through a message."""

    def __init__(self, replace: Replace, named_only: bool = False) -> None:
        self._replace = replace
        self.told = ReplacedPlaces()
        self._named_only = named_only
        self._finds_credentials = False
        """Whether there are fields that the descriptor does not have, which may hold credentials.
        Messages of other services than A2A have no descriptor."""
        self._siblings = False
        """Whether members of Structs may be judged by the names of their siblings."""

    def run(self, data: bytes, shape: Descriptor | None, *, cut: bool) -> tuple[bytes, list[str]]:
        """Return the message with secrets replaced, and their paths. Raises Malformed."""
        self._siblings = not self._named_only and has_siblings(data)
        self._finds_credentials = (
            shape is not None and not self._named_only and (cut or has_unknown_field(data, shape))
        )
        new = self.redact_message(data, shape, "", Named(), cut, 0)
        return (data if new is None else new), self.told.list_paths()

    def redact_message(
        self, data: bytes, shape: Descriptor | None, path: str, named: Named, cut: bool, depth: int
    ) -> bytes | None:
        """Return the message with secrets replaced, or None. `named` has the names of a value in a
        Struct."""
        fields, kind, is_entry = _describe_message(shape) if shape is not None else _UNKNOWN
        found = _split_fields(data, cut)
        type_name: str | None = None
        items: dict[int, Named] = {}
        if kind in (_STRUCT, _LIST):
            array, named = (
                named.name,
                self._find_entry_names(data, found, named)
                if kind == _STRUCT
                else _find_item_names(named),
            )
            items = _name_items(data, found, named, array) if kind == _LIST else {}
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
                inner = items.get(head, named)
            else:
                inner = Named(field.name) if field is not None else Named()
            new = (self.redact_key if is_key else self.redact_field)(
                value, field, path + step, inner, missing, depth
            )
            if is_key:
                named = named.of_entry((value if new is None else new).decode("utf-8", "replace"))
            if new is not None:
                pieces += (
                    data[done:head],
                    data[head:start] if missing else encode_varint(len(new)),
                    new,
                )
                done = end
        if not pieces:
            return None
        pieces.append(data[done:])
        return b"".join(pieces)

    def redact_key(
        self,
        data: bytes,
        field: FieldDescription | None,
        path: str,
        named: Named,
        cut: bool,
        depth: int,
    ) -> bytes | None:
        """Return the key of a map entry with secrets replaced, or None if it stays."""
        return self.redact_field(data, field, path, named, cut, depth)

    def redact_field(
        self,
        data: bytes,
        field: FieldDescription | None,
        path: str,
        named: Named,
        cut: bool,
        depth: int,
    ) -> bytes | None:
        """Return the value of a field with secrets replaced, or None if it stays."""
        if self._named_only and not _may_hold_secret(field):
            return None
        if (
            field is not None
            and field.message is not None
            and field.message.full_name == _VALUE
            and _is_number(data)
        ):
            text = self.redact_number(number_text(struct.unpack("<d", data[1:])[0]), path, named)
            if text is None:
                return None
            self.told.add(path.lstrip("."))
            return bytes([_TEXT]) + encode_varint(len(text)) + text
        shape = field.message if field is not None else None
        if depth < _MAX_DEPTH and (field is None or shape is not None):
            other = _find_credentials(data, shape, cut) if self._finds_credentials else None
            is_guess = other is None and shape is None
            if not is_guess or (not _is_text(data) and (self._finds_credentials or not cut)):
                names = named if other is None and shape is not None else Named()
                with contextlib.suppress(Malformed):
                    new = self.redact_message(data, other or shape, path, names, cut, depth + 1)
                    if new is not None or not (is_guess and cut):
                        return new
        new = self._replace(data, named.judged, cut)
        if new is not None:
            self.told.add(path.lstrip("."))
        return new

    def _find_entry_names(self, data: bytes, found: list[Delimited], named: Named) -> Named:
        """Return the names for the entries of a Struct with these names."""
        scope = inner_scope(named.scope, named.name, True)
        siblings = sibling_names(dict(_read_entries(data, found))) if self._siblings else {}
        return Named(None, scope._replace(secret=None) if "token" in siblings else scope, siblings)

    def redact_number(self, text: bytes, path: str, named: Named) -> bytes | None:  # noqa: ARG002 - subclasses use the path
        """Return the replacement of a number of a Struct, or None if it stays."""
        name = named.judged
        return (
            self._replace(text, name, False)
            if name is not None and member_kind(name) & NUMBER
            else None
        )


def _read_entries(data: bytes, found: list[Delimited]) -> Iterator[tuple[str, str | None]]:
    """Yield the folded keys of a Struct with their values, None for values that are not strings."""
    for _, _, start, end, _ in found:
        entry = data[start:end]
        with contextlib.suppress(Malformed):
            halves = {
                number: entry[first:last]
                for number, _, first, last, _ in _split_fields(entry, True)
            }
            yield (
                fold_name(halves.get(1, b"").decode("utf-8", "replace")),
                _decode_string(halves.get(2, b"")),
            )


def _find_item_names(named: Named) -> Named:
    """Return the names for the values of a ListValue with these names."""
    return Named(None, inner_scope(named.scope, named.name, False))


def _name_items(
    data: bytes, found: list[Delimited], named: Named, array: str | None
) -> dict[int, Named]:
    """Return the names for the values that the value before them names, by their byte offset."""
    texts = [_decode_string(data[start:end]) for _, _, start, end, _ in found]
    names: dict[int, Named] = {}
    for (before, text), (_, head, *_) in zip(pairwise(texts), found[1:], strict=True):
        if before is not None and text is not None:
            name = item_name(
                before, text.encode("utf-8", "surrogateescape"), array, pair=len(texts) == 2
            )
            names[head] = named._replace(name=name)
    return names


def _decode_string(value: bytes) -> str | None:
    """Return the string of a Value, or None if it holds another kind."""
    if value[:1] != bytes([_TEXT]):
        return None
    with contextlib.suppress(IndexError, Malformed):
        return value[_read_varint(value, 1)[1] :].decode("utf-8", "replace")
    return None


def _is_number(value: bytes) -> bool:
    """Whether a Value holds a number."""
    return len(value) == 9 and value[0] == _NUMBER


def _any_value(field: FieldDescription, type_name: str | None) -> FieldDescription:
    """Describe the payload of an Any: a message of the named type, or bytes if the type is
    unknown."""
    known = _find_shapes(type_name or "")
    return field._replace(message=known[0]) if known else field


def _may_hold_secret(field: FieldDescription | None) -> bool:
    if field is None:
        return False
    return (
        names_secret(field.message)
        if field.message is not None
        else field.text and secret_member(field.name)
    )


def _is_text(data: bytes) -> bool:
    """Whether these bytes are text. Text is not walked as a message, although it may parse as one
    by chance."""
    if not data or data[0] == 0x0A:
        return False
    try:
        return data.decode().replace("\n", "").replace("\t", "").replace("\r", "").isprintable()
    except UnicodeDecodeError:
        return False


def _split_fields(data: bytes, cut: bool) -> list[Delimited]:
    """Return the length-delimited fields of a message. Raises Malformed if the bytes are not a
    message."""
    found: list[Delimited] = []
    at, size = 0, len(data)
    while at < size:
        try:
            tag, at = _read_varint(data, at)
            number, wire = tag >> 3, tag & 7
            if not 0 < number < 1 << 29:
                raise Malformed
            if wire == 2:
                head = at
                length, at = _read_varint(data, at)
                found.append((number, head, at, min(at + length, size), at + length > size))
                at += length
            elif wire == 0:
                at = _read_varint(data, at)[1]
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            elif wire not in (3, 4):  # fields of groups are read as fields of the message
                raise Malformed
        except IndexError:
            at = size + 1
    if at > size and not cut:
        raise Malformed
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint and the offset after it. Raises IndexError at the end, Malformed if it is too
    long."""
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


def encode_varint(value: int) -> bytes:
    """Encode a number as a protobuf varint."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
