"""Shapes of the JSON objects of 0.1 to 0.3, which have no descriptors (manual/protocol.md "JSON
objects before 1.0").
"""

from functools import cache

import msgspec

from a2a_proto.shapes.protobuf_shapes import json_1_0, make_grammar
from a2a_proto.shapes.shape import Family, Grammar, ObjectShape, parse_shape, snake_case

_PART = "metadata:object"
_SCHEME = (
    "type description in name scheme bearerFormat flows:OldFlows oauth2MetadataUrl openIdConnectUrl"
)

EVENT_SHAPES = {
    "task": ("Task", "Task"),
    "message": ("Message", "Message"),
    "status-update": ("StatusUpdate", "TaskStatusUpdateEvent"),
    "artifact-update": ("ArtifactUpdate", "TaskArtifactUpdateEvent"),
}
"""`kind` of an event -> its shape in 0.2 and 0.3, and in 1.0."""
FILE_MEMBERS = {
    "raw": ("bytes", "fileWithBytes"),
    "url": ("uri", "fileWithUri"),
    "filename": ("name", "name"),
    "mediaType": ("mimeType", "mimeType"),
}
"""Members of a part of 1.0 -> the same in the `file` of a part before 1.0, in JSON and in
protobuf."""


@cache
def enum_words() -> dict[str, dict[str, str]]:
    """Return the enums of 1.0, each a map from its values to the words of JSON before 1.0, in the
    order of their numbers."""
    enums = make_grammar("1.0", False).enums
    states = {
        value: value.removeprefix("TASK_STATE_").lower().replace("_", "-")
        for value in enums["TaskState"]
    }
    roles = {value: value.removeprefix("ROLE_").lower() for value in enums["Role"]}
    return {
        "TaskState": states | {"TASK_STATE_UNSPECIFIED": "unknown"},
        "Role": roles | {"ROLE_UNSPECIFIED": ""},
    }


_CARD = (
    parse_shape(
        "AgentCard",
        "protocolVersion! name! description! url! preferredTransport "
        "additionalInterfaces*:AgentInterface iconUrl "
        "provider:AgentProvider version! documentationUrl capabilities!:AgentCapabilities "
        "securitySchemes:map.SecurityScheme security*:object defaultInputModes!* "
        "defaultOutputModes!* "
        "skills!*:AgentSkill supportsAuthenticatedExtendedCard:bool signatures*:AgentCardSignature",
    ),
    parse_shape("AgentInterface", "url! transport!"),
    parse_shape("AgentProvider", "organization! url!"),
    parse_shape(
        "AgentCapabilities",
        "streaming:bool pushNotifications:bool stateTransitionHistory:bool "
        "extensions*:AgentExtension",
    ),
    parse_shape("AgentExtension", "uri! description required:bool params:object"),
    parse_shape(
        "AgentSkill",
        "id! name! description! tags!* examples* inputModes* outputModes* security*:object",
    ),
    parse_shape("AgentCardSignature", "protected! signature! header:object"),
    parse_shape("SecurityScheme", _SCHEME),
    parse_shape(
        "OldFlows",
        "authorizationCode:object clientCredentials:object implicit:object password:object",
    ),
)

_OBJECTS = (
    parse_shape(
        "Task",
        "id! contextId! status!:TaskStatus history*:Message artifacts*:Artifact metadata:object",
        kind_mark="task",
    ),
    parse_shape("TaskStatus", "state!:TaskState message:Message timestamp:stamp"),
    parse_shape(
        "Message",
        "role!:Role parts!*:Part messageId! taskId contextId referenceTaskIds* extensions* "
        "metadata:object",
        kind_mark="message",
    ),
    parse_shape("PartText", f"text! {_PART}", kind_mark="text"),
    parse_shape("PartFile", f"file!:File {_PART}", kind_mark="file"),
    parse_shape("PartData", f"data!:object {_PART}", kind_mark="data"),
    parse_shape("File", "name mimeType bytes:bytes uri fileWithBytes:bytes fileWithUri"),
    parse_shape(
        "Artifact", "artifactId! name description parts!*:Part extensions* metadata:object"
    ),
    parse_shape(
        "StatusUpdate",
        "taskId! contextId! status!:TaskStatus final!:bool metadata:object",
        kind_mark="status-update",
    ),
    parse_shape(
        "ArtifactUpdate",
        "taskId! contextId! artifact!:Artifact append:bool lastChunk:bool metadata:object",
        kind_mark="artifact-update",
    ),
    parse_shape("PushConfig", "id url! token authentication:PushAuthentication"),
    parse_shape("PushAuthentication", "schemes!* credentials"),
    parse_shape("TaskPushConfig", "taskId! pushNotificationConfig!:PushConfig"),
    parse_shape("SendParams", "message!:Message configuration:SendConfiguration metadata:object"),
    parse_shape(
        "SendConfiguration",
        "acceptedOutputModes* historyLength:int pushNotificationConfig:PushConfig blocking:bool",
    ),
    parse_shape("QueryParams", "id! historyLength:int metadata:object"),
    parse_shape("IdParams", "id! metadata:object"),
    parse_shape("PushParams", "id! pushNotificationConfigId metadata:object"),
    parse_shape("PushDeleteParams", "id! pushNotificationConfigId! metadata:object"),
)

_OLDEST = (
    parse_shape(
        "Task",
        "id sessionId contextId status:TaskStatus artifacts*:Artifact history*:Message "
        "metadata:object",
    ),
    parse_shape("TaskStatus", "state:TaskState message:Message timestamp:stamp"),
    parse_shape("Message", "role:Role parts*:Part messageId taskId contextId metadata:object"),
    parse_shape("Part", "type kind text file:File data:object metadata:object"),
    parse_shape("File", "name mimeType bytes:bytes uri"),
    parse_shape(
        "Artifact",
        "artifactId name description parts*:Part index:int append:bool lastChunk:bool "
        "metadata:object",
    ),
    parse_shape(
        "Event",
        "id taskId sessionId contextId status:TaskStatus artifact:Artifact final:bool append:bool "
        "lastChunk:bool "
        "artifacts*:Artifact history*:Message metadata:object",
    ),
    parse_shape(
        "SendParams",
        "id sessionId message:Message historyLength:int pushNotification:object "
        "configuration:object metadata:object",
    ),
    parse_shape("QueryParams", "id historyLength:int metadata:object"),
)


@cache
def json_0_3() -> Grammar:
    """Return the shapes of 0.2 and 0.3 in the JSON-RPC form."""
    return Grammar(
        Family.OLD, {shape.name: _add_kind(shape) for shape in (*_OBJECTS, *_CARD)}, _enums()
    )


@cache
def json_0_1() -> Grammar:
    """Return the shapes of 0.1 and the vendor dialect."""
    return Grammar(Family.OLDEST, {shape.name: shape for shape in _OLDEST}, _enums())


@cache
def json_names() -> dict[str, str]:
    """Return the JSON name of each member that protobuf spells in another way, of all dialects.
    Members of agent cards are left out: other names there are chosen by users."""
    grammars = (
        json_1_0(),
        make_grammar("0.3", False),
        json_0_3(),
        json_0_1(),
    )
    names = {
        name for each in grammars for shape in _shapes_beside_cards(each) for name in shape.members
    }
    return {snake: name for name in names if (snake := snake_case(name)) != name}


def _shapes_beside_cards(grammar: Grammar) -> list[ObjectShape]:
    card = ["AgentCard"]
    for name in card:  # grows on the way
        inside = grammar.shapes[name].members.values() if name in grammar.shapes else ()
        card += [each.type_name for each in inside if each.type_name not in (*card, "")]
    return [shape for name, shape in grammar.shapes.items() if name not in card]


@cache
def dual_card() -> Grammar:
    """Return the shapes of a 1.0 card that also serves 0.x, with the members of both."""
    base = json_1_0()
    shapes = dict(base.shapes)
    for old in _CARD:
        new = shapes.get(old.name)
        shapes[old.name] = (
            old if new is None else msgspec.structs.replace(new, members=old.members | new.members)
        )
    shapes["SecurityScheme"] = msgspec.structs.replace(shapes["SecurityScheme"], one_of=())
    return Grammar(base.family, shapes, base.enums)


def _enums() -> dict[str, tuple[str, ...]]:
    return {name: tuple(words.values()) for name, words in enum_words().items()}


def _add_kind(shape: ObjectShape) -> ObjectShape:
    """Add the member `kind` to a shape with a mark."""
    if not shape.mark:
        return shape
    return msgspec.structs.replace(shape, members=parse_shape("", "kind").members | shape.members)
