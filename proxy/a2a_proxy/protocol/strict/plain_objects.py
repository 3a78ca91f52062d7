"""The members that most objects have, and strict struct types of objects with these members alone.

The fast checks of JSON and protobuf accept no other members, because a rule may have something to
say about them. Types and alternatives come from the shapes.
"""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, defstruct

from a2a_proto.shapes.json_0_3 import EVENT_SHAPES
from a2a_proto.shapes.shape import Grammar, JsonKind, ShapeMember, camel_case

PLAIN_MEMBERS = {
    "Task": "id! context_id! status! artifacts history metadata generation",
    "TaskStatus": "state! timestamp message",
    "Message": "message_id! parts! content! role! context_id task_id metadata",
    "Artifact": "artifact_id! parts! name description metadata",
    "Part": "text data metadata filename media_type",
    "TaskStatusUpdateEvent": "task_id! context_id! status! final metadata generation",
    "TaskArtifactUpdateEvent": (
        "task_id! context_id! artifact! append last_chunk metadata generation"
    ),
    "StreamResponse": "status_update artifact_update task message",
    "SendMessageResponse": "task message",
    "SendMessageRequest": "message! configuration metadata",
    "SendMessageConfiguration": "accepted_output_modes history_length return_immediately blocking",
    "GetTaskRequest": "id!",
}
"""Members of each object, in every form that has a member of that name, such as `parts` or
`content`. `!` marks those without which the object is not plain, besides the required ones.
"""
PLAIN_MEMBERS_0_3 = PLAIN_MEMBERS | {
    **{old: PLAIN_MEMBERS[new] for old, new in EVENT_SHAPES.values()},
    "SendParams": PLAIN_MEMBERS["SendMessageRequest"],
    "SendConfiguration": PLAIN_MEMBERS["SendMessageConfiguration"],
    "IdParams": PLAIN_MEMBERS["GetTaskRequest"],
    "Part": "text! metadata",
    "PartText": "text! metadata",
    "PartData": "data! metadata",
}
"""The same for 0.3, with the names of its JSON objects."""

_ID = Annotated[str, Meta(min_length=1)]
_MEDIA_TYPE = Annotated[str, Meta(pattern=r"^[a-z]+/[a-z0-9.+*-]+\Z")]
_TYPES: dict[JsonKind, Any] = {
    JsonKind.TEXT: str,
    JsonKind.STAMP: str,
    JsonKind.BOOL: bool,
    JsonKind.INT32: Annotated[int, Meta(ge=0, lt=2**31)],
    JsonKind.INT64: Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,17}\Z")],
    JsonKind.OBJECT: dict[str, Any],
    JsonKind.ANY: Any,
}
_TYPES_BY_NAME: dict[str, Any] = {
    "id": _ID,
    "messageId": _ID,
    "taskId": _ID,
    "contextId": _ID,
    "artifactId": _ID,
    "mediaType": _MEDIA_TYPE,
    "acceptedOutputModes": _MEDIA_TYPE,
}
"""Types of texts that must not be any text."""


class StrictStruct(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """An object with camel-case names and no other members. Members that only some forms have are
    unset in the others."""

    text: ClassVar[Any] = UNSET
    media_type: ClassVar[Any] = UNSET
    filename: ClassVar[Any] = UNSET
    generation: ClassVar[Any] = UNSET
    final: ClassVar[Any] = UNSET


class RpcCall(StrictStruct):
    """A request of JSON-RPC; its params are in a derived class."""

    jsonrpc: Literal["2.0"]
    id: Raw
    method: str


class RpcAnswer(StrictStruct):
    """An answer of JSON-RPC; its result is in a derived class."""

    jsonrpc: Literal["2.0"]
    id: Raw


class PlainObjects:
    """Struct types of the objects of one grammar."""

    def __init__(self, grammar: Grammar, members: dict[str, str]) -> None:
        self._grammar = grammar
        self._members = members
        self._made: dict[tuple[str, bool], Any] = {}

    def struct(self, name: str, *, tagged: bool = False) -> Any:
        """Return the type of an object. If `tagged`, it can be in a union, where the member `kind`
        tells it apart."""
        made = self._made.get((name, tagged))
        if made is None:
            made = self._made[name, tagged] = self._make_struct(name, tagged)
        return made

    def _make_struct(self, name: str, tagged: bool) -> Any:
        shape = self._grammar.shapes[name]
        required: list[Any] = []
        optional: list[Any] = []
        for word in self._members[name].split():
            label = word.rstrip("!")
            member = shape.members.get(camel_case(label))
            if member is None:  # of another form
                continue
            if label != word or camel_case(label) in shape.required:
                required.append((label, self._type_of(label, member, required=True)))
            else:
                optional.append(
                    (label, self._type_of(label, member, required=False) | UnsetType, UNSET)
                )
        fields = required + optional
        if not shape.mark:
            return defstruct(name, fields, bases=(StrictStruct,))
        if tagged:
            return defstruct(name, fields, bases=(StrictStruct,), tag_field="kind", tag=shape.mark)
        return defstruct(name, [("kind", _one_of(shape.mark)), *fields], bases=(StrictStruct,))

    def _type_of(self, label: str, member: ShapeMember, *, required: bool) -> Any:
        kind: Any = _TYPES_BY_NAME.get(camel_case(label)) or _TYPES.get(member.kind)
        if member.kind is JsonKind.SHAPE:
            kind = (
                self._part_type() if member.type_name == "Part" else self.struct(member.type_name)
            )
        elif member.kind is JsonKind.ENUM:
            kind = _one_of(*self._grammar.enums[member.type_name][1:])
        if member.is_repeated:
            many: Any = list
            kind = Annotated[many[kind], Meta(min_length=1)] if required else many[kind]
        return kind

    def _part_type(self) -> Any:
        """Return the type of a part. JSON of 0.3 has one for each kind of part; files are not
        plain."""
        if "Part" in self._grammar.shapes:
            return self.struct("Part")
        return self.struct("PartText", tagged=True) | self.struct("PartData", tagged=True)


def _one_of(*values: str) -> Any:
    literal: Any = Literal
    return literal[values]
