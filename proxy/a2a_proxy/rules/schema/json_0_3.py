"""Shapes of the JSON objects of 0.1 to 0.3, which no descriptor has (manual/protocol.md "JSON objects before 1.0")."""

from __future__ import annotations

from functools import cache

import msgspec

from a2a_proxy.rules.schema.protobuf_shapes import json_1_0
from a2a_proxy.rules.schema.shape import Family, Grammar, ObjectShape, written

_PART = "metadata:object"
_SCHEME = "type description in name scheme bearerFormat flows:OldFlows oauth2MetadataUrl openIdConnectUrl"

_ENUMS = {
    "TaskState": (
        "unknown", "submitted", "working", "completed", "failed", "canceled", "input-required", "rejected",
        "auth-required",
    ),
    "Role": ("", "user", "agent"),
}  # fmt: skip
"""In the order of the numbers that the protobuf enums have."""

_CARD = (
    written(
        "AgentCard",
        "protocolVersion! name! description! url! preferredTransport additionalInterfaces*:AgentInterface iconUrl "
        "provider:AgentProvider version! documentationUrl capabilities!:AgentCapabilities "
        "securitySchemes:map.SecurityScheme security*:object defaultInputModes!* defaultOutputModes!* "
        "skills!*:AgentSkill supportsAuthenticatedExtendedCard:bool signatures*:AgentCardSignature",
    ),
    written("AgentInterface", "url! transport!"),
    written("AgentProvider", "organization! url!"),
    written(
        "AgentCapabilities",
        "streaming:bool pushNotifications:bool stateTransitionHistory:bool extensions*:AgentExtension",
    ),
    written("AgentExtension", "uri! description required:bool params:object"),
    written("AgentSkill", "id! name! description! tags!* examples* inputModes* outputModes* security*:object"),
    written("AgentCardSignature", "protected! signature! header:object"),
    written("SecurityScheme", _SCHEME),
    written("OldFlows", "authorizationCode:object clientCredentials:object implicit:object password:object"),
)

_OBJECTS = (
    written(
        "Task", "id! contextId! status!:TaskStatus history*:Message artifacts*:Artifact metadata:object", mark="task"
    ),
    written("TaskStatus", "state!:TaskState message:Message timestamp:stamp"),
    written(
        "Message",
        "role!:Role parts!*:Part messageId! taskId contextId referenceTaskIds* extensions* metadata:object",
        mark="message",
    ),
    written("PartText", f"text! {_PART}", mark="text"),
    written("PartFile", f"file!:File {_PART}", mark="file"),
    written("PartData", f"data!:object {_PART}", mark="data"),
    written("File", "name mimeType bytes:bytes uri fileWithBytes:bytes fileWithUri"),
    written("Artifact", "artifactId! name description parts!*:Part extensions* metadata:object"),
    written("StatusUpdate", "taskId! contextId! status!:TaskStatus final!:bool metadata:object", mark="status-update"),
    written(
        "ArtifactUpdate",
        "taskId! contextId! artifact!:Artifact append:bool lastChunk:bool metadata:object",
        mark="artifact-update",
    ),
    written("PushConfig", "id url! token authentication:PushAuthentication"),
    written("PushAuthentication", "schemes!* credentials"),
    written("TaskPushConfig", "taskId! pushNotificationConfig!:PushConfig"),
    written("SendParams", "message!:Message configuration:SendConfiguration metadata:object"),
    written(
        "SendConfiguration",
        "acceptedOutputModes* historyLength:int pushNotificationConfig:PushConfig blocking:bool",
    ),
    written("QueryParams", "id! historyLength:int metadata:object"),
    written("IdParams", "id! metadata:object"),
    written("PushParams", "id! pushNotificationConfigId metadata:object"),
    written("PushDeleteParams", "id! pushNotificationConfigId! metadata:object"),
)

_OLDEST = (
    written("Task", "id sessionId contextId status:TaskStatus artifacts*:Artifact history*:Message metadata:object"),
    written("TaskStatus", "state:TaskState message:Message timestamp:stamp"),
    written("Message", "role:Role parts*:Part messageId taskId contextId metadata:object"),
    written("Part", "type kind text file:File data:object metadata:object"),
    written("File", "name mimeType bytes:bytes uri"),
    written("Artifact", "artifactId name description parts*:Part index:int append:bool lastChunk:bool metadata:object"),
    written(
        "Event",
        "id taskId sessionId contextId status:TaskStatus artifact:Artifact final:bool append:bool lastChunk:bool "
        "artifacts*:Artifact history*:Message metadata:object",
    ),
    written(
        "SendParams",
        "id sessionId message:Message historyLength:int pushNotification:object configuration:object metadata:object",
    ),
    written("QueryParams", "id historyLength:int metadata:object"),
)


@cache
def json_0_3() -> Grammar:
    """0.2 and 0.3 as JSON-RPC has them."""
    return Grammar(Family.OLD, {shape.name: _exactly(shape) for shape in (*_OBJECTS, *_CARD)}, _ENUMS)


@cache
def json_0_1() -> Grammar:
    """0.1 and the vendor dialect."""
    return Grammar(Family.OLDEST, {shape.name: shape for shape in _OLDEST}, _ENUMS)


@cache
def dual_card() -> Grammar:
    """A 1.0 card that serves 0.x too: the members of both lines."""
    base = json_1_0()
    shapes = dict(base.shapes)
    for old in _CARD:
        new = shapes.get(old.name)
        shapes[old.name] = old if new is None else msgspec.structs.replace(new, members=old.members | new.members)
    shapes["SecurityScheme"] = msgspec.structs.replace(shapes["SecurityScheme"], one_of=())
    return Grammar(base.family, shapes, base.enums)


def _exactly(shape: ObjectShape) -> ObjectShape:
    """Objects with a mark have the member `kind` too."""
    if not shape.mark:
        return shape
    return msgspec.structs.replace(shape, members=written("", "kind").members | shape.members)
