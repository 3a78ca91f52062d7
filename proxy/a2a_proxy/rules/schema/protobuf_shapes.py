"""Shapes of all objects that have a protobuf definition (manual/protocol.md "Messages"), derived from the
descriptors.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from a2a_proto import SchemaSet, message_class
from a2a_proxy.rules.schema.shape import Family, Grammar, JsonKind, ObjectShape, ShapeMember

_TOP: dict[SchemaSet, tuple[str, ...]] = {
    "1.0": (
        "SendMessageRequest", "SendMessageResponse", "StreamResponse", "GetTaskRequest", "ListTasksRequest",
        "ListTasksResponse", "CancelTaskRequest", "SubscribeToTaskRequest", "TaskPushNotificationConfig",
        "GetTaskPushNotificationConfigRequest", "DeleteTaskPushNotificationConfigRequest",
        "ListTaskPushNotificationConfigsRequest", "ListTaskPushNotificationConfigsResponse",
        "GetExtendedAgentCardRequest", "AgentCard",
    ),
    "0.3": (
        "SendMessageRequest", "SendMessageResponse", "StreamResponse", "GetTaskRequest", "ListTasksRequest",
        "ListTasksResponse", "CancelTaskRequest", "TaskSubscriptionRequest", "TaskPushNotificationConfig",
        "CreateTaskPushNotificationConfigRequest", "GetTaskPushNotificationConfigRequest",
        "DeleteTaskPushNotificationConfigRequest", "ListTaskPushNotificationConfigRequest",
        "ListTaskPushNotificationConfigResponse", "GetAgentCardRequest", "AgentCard",
    ),
    "rc": (
        "SendMessageRequest", "SendMessageResponse", "StreamResponse", "GetTaskRequest", "ListTasksRequest",
        "ListTasksResponse", "CancelTaskRequest", "SubscribeToTaskRequest", "TaskPushNotificationConfig",
        "CreateTaskPushNotificationConfigRequest", "GetTaskPushNotificationConfigRequest",
        "DeleteTaskPushNotificationConfigRequest", "ListTaskPushNotificationConfigRequest",
        "ListTaskPushNotificationConfigResponse", "GetExtendedAgentCardRequest", "AgentCard",
    ),
    "live-1975": ("LiveRequest", "LiveResponse", "AgentCard"),
    "live-2153": ("StreamRequest", "StreamResponse", "GetTaskRequest", "ListTasksRequest", "SendMessageRequest"),
}  # fmt: skip
"""Top-level messages; all others are found inside them."""

_REQUIRED = {
    "SendMessageRequest": "message",
    "Task": "id status",
    "TaskStatus": "state",
    "Message": "messageId role parts",
    "Artifact": "artifactId parts",
    "TaskStatusUpdateEvent": "taskId contextId status",
    "TaskArtifactUpdateEvent": "taskId contextId artifact",
    "TaskMessageUpdateEvent": "taskId contextId message",
    "Elicitation": "elicitationId state",
    "MediaFrame": "part",
    "AuthenticationInfo": "scheme",
    "TaskPushNotificationConfig": "url",
    "GetTaskRequest": "id",
    "CancelTaskRequest": "id",
    "SubscribeToTaskRequest": "id",
    "GetTaskPushNotificationConfigRequest": "taskId id",
    "DeleteTaskPushNotificationConfigRequest": "taskId id",
    "ListTaskPushNotificationConfigsRequest": "taskId",
    "ListTasksResponse": "pageSize",
    "AgentCard": "name description supportedInterfaces version capabilities defaultInputModes defaultOutputModes "
    "skills",
    "AgentInterface": "url protocolBinding protocolVersion",
    "AgentProvider": "url organization",
    "AgentSkill": "id name description tags",
    "AgentCardSignature": "protected signature",
    "APIKeySecurityScheme": "location name",
    "HTTPAuthSecurityScheme": "scheme",
    "OAuth2SecurityScheme": "flows",
    "OpenIdConnectSecurityScheme": "openIdConnectUrl",
    "AuthorizationCodeOAuthFlow": "authorizationUrl tokenUrl scopes",
    "ClientCredentialsOAuthFlow": "tokenUrl scopes",
    "DeviceCodeOAuthFlow": "deviceAuthorizationUrl tokenUrl scopes",
}
"""REQUIRED in 1.0 (section 5.7). For the answer to ListTasks only the members that every valid answer has (Q-07)."""
_REQUIRED_0_3 = {"SendMessageRequest": "message", "AgentCardSignature": "protected signature"}
"""REQUIRED in 0.3 (manual/protocol.md "Fields of 0.3"), except members that are in the path."""

_FREE = {
    "google.protobuf.Struct": JsonKind.OBJECT,
    "google.protobuf.Value": JsonKind.ANY,
    "google.protobuf.Timestamp": JsonKind.STAMP,
    "google.protobuf.Duration": JsonKind.TEXT,
}


@cache
def make_grammar(line: SchemaSet, binary: bool) -> Grammar:
    """Return the shapes of a schema set, as protobuf messages or as JSON in the protobuf form."""
    family = {"0.3": Family.OLD_PROTO, "rc": Family.CANDIDATE}.get(line, Family.NEW)
    required = _REQUIRED_0_3 if line == "0.3" else {} if line == "rc" else _REQUIRED
    shapes: dict[str, ObjectShape] = {}
    enums: dict[str, tuple[str, ...]] = {}
    for name in _TOP[line]:
        _collect_shapes(message_class(line, name).DESCRIPTOR, required, shapes, enums)
    return Grammar(family, shapes, enums, binary)


@cache
def json_1_0() -> Grammar:
    """Return 1.0 as JSON, with the members added by drafts of 1.1 and the live proposals, so that they are not
    unknown.
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


def _merge_shapes(one: ObjectShape, other: ObjectShape) -> ObjectShape:
    return msgspec.structs.replace(
        one,
        members=other.members | one.members,
        one_of=one.one_of + tuple(name for name in other.one_of if name not in one.one_of),
        aliases=other.aliases | one.aliases,
    )


def _collect_shapes(
    message: Any, required: dict[str, str], shapes: dict[str, ObjectShape], enums: dict[str, Any]
) -> None:
    """Collect the shape of a message and of all messages inside it."""
    name = message.name
    if name in shapes:
        return
    needed = frozenset(required.get(name, "").split())
    members = {field.json_name: _shape_member(field) for field in message.fields}
    groups = [group for group in message.oneofs if not group.name.startswith("_")]
    shapes[name] = ObjectShape(
        name,
        members,
        required=needed,
        filled=frozenset(each for each in needed if members[each].is_repeated),
        one_of=tuple(field.json_name for group in groups for field in group.fields),
        aliases={field.name: field.json_name for field in message.fields if field.name != field.json_name},
    )
    for field in message.fields:
        _collect_nested(field, required, shapes, enums)


def _collect_nested(
    field: Any, required: dict[str, str], shapes: dict[str, ObjectShape], enums: dict[str, Any]
) -> None:
    if field.enum_type is not None:
        enums[field.enum_type.name] = tuple(value.name for value in field.enum_type.values)
    inner = field.message_type
    if inner is None or inner.full_name in _FREE:
        return
    if inner.GetOptions().map_entry:
        _collect_nested(inner.fields_by_name["value"], required, shapes, enums)
    else:
        _collect_shapes(inner, required, shapes, enums)


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
