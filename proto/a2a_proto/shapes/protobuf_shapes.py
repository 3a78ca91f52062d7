"""Shapes of all objects that have a protobuf definition (manual/protocol.md "Messages"), derived
from the descriptors.
"""

from functools import cache
from typing import Any

import msgspec

from a2a_proto.pools import package_files
from a2a_proto.schema_sets import SchemaSet
from a2a_proto.shapes.required_members import REQUIRED_MEMBERS, REQUIRED_MEMBERS_0_3
from a2a_proto.shapes.shape import Family, Grammar, JsonKind, ObjectShape, ShapeMember

_FREE = {
    "google.protobuf.Struct": JsonKind.OBJECT,
    "google.protobuf.Value": JsonKind.ANY,
    "google.protobuf.Timestamp": JsonKind.STAMP,
    "google.protobuf.Duration": JsonKind.TEXT,
}


@cache
def make_grammar(line: SchemaSet, binary: bool) -> Grammar:
    """Return the shapes of a schema set, as protobuf messages or as JSON in the protobuf form."""
    family = Family.OLD_PROTO if line == "0.3" else Family.NEW
    required = REQUIRED_MEMBERS_0_3 if line == "0.3" else REQUIRED_MEMBERS
    shapes: dict[str, ObjectShape] = {}
    enums: dict[str, tuple[str, ...]] = {}
    for file in package_files(line):
        for message in file.message_types_by_name.values():
            shapes[message.name] = _object_shape(message, required.get(message.name, ""))
            for enum in (
                field.enum_type for field in message.fields if field.enum_type is not None
            ):
                enums[enum.name] = tuple(value.name for value in enum.values)
    return Grammar(family, shapes, enums, binary)


@cache
def json_1_0() -> Grammar:
    """Return 1.0 as JSON, with the members added by drafts of 1.1 and the live proposals, so that
    they are not unknown.
    """
    base = make_grammar("1.0", False)
    shapes, enums = dict(base.shapes), dict(base.enums)
    lines: tuple[SchemaSet, ...] = ("live-2153", "live-1975")
    for line in lines:
        other = make_grammar(line, False)
        enums = other.enums | enums
        for name, shape in other.shapes.items():
            shapes[name] = _merge_shapes(shapes[name], shape) if name in shapes else shape
    return Grammar(base.family, shapes, enums)


@cache
def nested_members(name: str) -> tuple[tuple[str, str, bool], ...]:
    """Return the members of an object of 1.0 that hold objects: name, shape, and whether it is a
    list of them."""
    members = make_grammar("1.0", False).shapes[name].members.items()
    return tuple(
        (label, each.type_name, each.is_repeated)
        for label, each in members
        if each.kind is JsonKind.SHAPE
    )


@cache
def int64_members(name: str) -> tuple[str, ...]:
    """Return the members of an object of 1.0 that are decimal strings in ProtoJSON."""
    members = make_grammar("1.0", False).shapes[name].members.items()
    return tuple(label for label, each in members if each.kind is JsonKind.INT64)


@cache
def timestamp_members() -> frozenset[str]:
    """Return the names of all members of 1.0 that are timestamps."""
    shapes = json_1_0().shapes.values()
    return frozenset(
        name
        for shape in shapes
        for name, each in shape.members.items()
        if each.kind is JsonKind.STAMP
    )


def _merge_shapes(one: ObjectShape, other: ObjectShape) -> ObjectShape:
    return msgspec.structs.replace(
        one,
        members=other.members | one.members,
        one_of=one.one_of + tuple(name for name in other.one_of if name not in one.one_of),
        aliases=other.aliases | one.aliases,
    )


def _object_shape(message: Any, required: str) -> ObjectShape:
    members = {field.json_name: _shape_member(field) for field in message.fields}
    needed = frozenset(required.split())
    groups = [group for group in message.oneofs if not group.name.startswith("_")]
    return ObjectShape(
        message.name,
        members,
        required=needed,
        filled=frozenset(each for each in needed if members[each].is_repeated),
        one_of=tuple(field.json_name for group in groups for field in group.fields),
        aliases={
            field.name: field.json_name for field in message.fields if field.name != field.json_name
        },
    )


def _shape_member(field: Any) -> ShapeMember:
    inner = field.message_type
    if inner is None:
        if field.enum_type is not None:
            return ShapeMember(JsonKind.ENUM, field.enum_type.name, field.is_repeated)
        return ShapeMember(_scalar_kind(field), is_repeated=field.is_repeated)
    if inner.full_name in _FREE:
        return ShapeMember(_FREE[inner.full_name], is_repeated=field.is_repeated)
    if inner.GetOptions().map_entry:
        value = inner.fields_by_name["value"].message_type
        return ShapeMember(JsonKind.MAP, value.name if value is not None else "")
    return ShapeMember(JsonKind.SHAPE, inner.name, field.is_repeated)


def _scalar_kind(field: Any) -> JsonKind:
    by_type = {
        field.CPPTYPE_STRING: JsonKind.BYTES if field.type == field.TYPE_BYTES else JsonKind.TEXT,
        field.CPPTYPE_BOOL: JsonKind.BOOL,
        field.CPPTYPE_INT64: JsonKind.INT64,
        field.CPPTYPE_UINT64: JsonKind.INT64,
    }
    return by_type.get(field.cpp_type, JsonKind.INT32)
