"""Schema faults of a frame: selects the shape the payload must have and walks it, once for each
frame."""

import re
from collections.abc import Iterable
from typing import Any

from a2a_proto.shapes.json_0_3 import dual_card, json_0_1, json_0_3
from a2a_proto.shapes.protobuf_shapes import json_1_0, make_grammar
from a2a_proto.shapes.shape import Family, Grammar, JsonKind
from a2a_proxy.model.values import Binding, Dialect, EventKind, Exchange, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.operations import (
    LIVE_OPERATIONS,
    OPERATION_BY_NAME,
    SENDING_OPERATIONS,
    ResponseKind,
    message_names,
)
from a2a_proxy.protocol.schema import is_protobuf, split_schema
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.schema.body_dialect import client_dialect, foreign_dialect
from a2a_proxy.rules.schema.fault import FaultKind, SchemaFault
from a2a_proxy.rules.schema.protobuf_times import time_faults
from a2a_proxy.rules.schema.walk import EVENTS_0_3, SchemaWalk

_FAULTS_NOTE = "schema"
_DIALECT_NOTE = "schema.asker"
_PARAMS_0_3 = {
    "SendMessage": "SendParams",
    "SendStreamingMessage": "SendParams",
    "GetTask": "QueryParams",
    "CancelTask": "IdParams",
    "SubscribeToTask": "IdParams",
    "CreateTaskPushNotificationConfig": "TaskPushConfig",
    "GetTaskPushNotificationConfig": "PushParams",
    "ListTaskPushNotificationConfigs": "IdParams",
    "DeleteTaskPushNotificationConfig": "PushDeleteParams",
}
_ANSWERS_0_3 = {
    ResponseKind.TASK: "Task",
    ResponseKind.PUSH_CONFIG: "TaskPushConfig",
    ResponseKind.PUSH_CONFIGS: "TaskPushConfig",
}
_PATH_MEMBERS = frozenset(("id", "taskId"))
_INTEGER_TEXT = re.compile(r"-?[0-9]{1,19}")
_OLD_CARD = frozenset(("url", "preferredTransport", "additionalInterfaces", "protocolVersion"))


def findings_of_kinds(context: RuleContext, wrong: FaultKind) -> Iterable[RuleFinding]:
    """Return the findings of a rule about this kind of fault."""
    found = schema_faults(context)
    root = "" if is_protobuf(context.frame.schema) else context.root
    return [_to_finding(fault, root) for fault in found if fault.wrong is wrong] if found else ()


def _to_finding(fault: SchemaFault, root: str) -> RuleFinding:
    path = root + fault.path if fault.path else root.rstrip(".")
    return RuleFinding(
        summary=_with_full_path(fault, root), path=path, value=fault.value, severity=fault.severity
    )


def _with_full_path(fault: SchemaFault, root: str) -> str:
    """Return the fault's message with the full path."""
    return (
        fault.told.replace(f"`{fault.path}", f"`{root}{fault.path}", 1)
        if root and fault.path
        else fault.told
    )


def schema_faults(context: RuleContext) -> list[SchemaFault]:
    """Return all schema faults of the frame's payload, computed once."""
    found: list[SchemaFault] | None = context.cache.get(_FAULTS_NOTE)
    if found is None:
        found = context.cache[_FAULTS_NOTE] = _find_faults(context)
    return found


def _find_faults(context: RuleContext) -> list[SchemaFault]:
    frame = context.frame
    if is_protobuf(frame.schema):
        return _protobuf_faults(context)
    if context.binding is Binding.CARD:
        return _card_faults(context.value, fetched=True) if frame.event is EventKind.CARD else []
    if context.binding is Binding.WEBHOOK:
        return _push_faults(context)
    if frame.kind is FrameKind.REQUEST:
        return _request_faults(context)
    if frame.kind in (FrameKind.RESPONSE, FrameKind.EVENT) and frame.payload:
        return _answer_faults(context)
    return []


def _protobuf_faults(context: RuleContext) -> list[SchemaFault]:
    line, full = split_schema(context.frame.schema)
    value = context.value
    if value is None:
        return time_faults(line, full.rpartition(".")[2], context.frame.payload)
    if not value:  # nothing known: an event kind of a later version, or no fields
        return []
    request = context.frame.direction is Direction.TO_AGENT
    live = context.operation in LIVE_OPERATIONS
    walk = SchemaWalk(make_grammar(line, True), "user" if request else "agent", live=live)
    walk.walk_object(full.rpartition(".")[2], value, "")
    return walk.faults


def _card_faults(value: Any, *, fetched: bool) -> list[SchemaFault]:
    """Check a card by the dialect of its declared interfaces; a 1.0 card may serve both
    dialects."""
    if not isinstance(value, dict) or "authentication" in value:
        return []
    shapes = json_0_3()
    if "supportedInterfaces" in value or not _OLD_CARD & value.keys():
        shapes = dual_card() if _OLD_CARD & value.keys() else json_1_0()
    return _walk_shape(shapes, "AgentCard", value, fetched_card=fetched)


def _walk_shape(
    shapes: Grammar, name: str, value: Any, speaker: str = "agent", **options: Any
) -> list[SchemaFault]:
    walk = SchemaWalk(shapes, speaker, **options)
    walk.walk_object(name, value, "")
    return walk.faults


# --- requests


def _request_faults(context: RuleContext) -> list[SchemaFault]:
    operation = OPERATION_BY_NAME.get(context.operation)
    if operation is None:
        return []
    body = context.body
    family = client_dialect(context.exchange, body)
    if context.binding is Binding.REST:
        return _rest_request_faults(context, family)
    if not isinstance(body, dict):  # reported by a rule about the envelope
        return []
    if family is Family.OLD:
        name = _PARAMS_0_3.get(operation.name, "")
        return _walk_shape(json_0_3(), name, body, "user") if name else []
    if family is Family.OLDEST:
        return _walk_shape(
            json_0_1(), "SendParams" if "message" in body else "QueryParams", body, "user"
        )
    name = message_names(operation, Dialect.V1_0)[0]
    return _walk_shape(
        json_1_0(),
        _live_shape_name(operation.name, name, body),
        body,
        "user",
        live=operation.name in LIVE_OPERATIONS,
    )


def _live_shape_name(operation: str, name: str, body: dict[str, Any]) -> str:
    """Return the shape of a live request; one live proposal lets the client send artifacts
    (manual/protocol.md "Live proposals").
    """
    return "StreamRequest" if operation in LIVE_OPERATIONS and "artifactUpdate" in body else name


def _rest_request_faults(context: RuleContext, family: Family | None) -> list[SchemaFault]:
    """Check a REST request. The members of GET and DELETE are in path and query (A2A 1.0 section
    11.5)."""
    path, operation, body = context.rest_match, OPERATION_BY_NAME[context.operation], context.value
    if body is not None and (
        not isinstance(body, dict) or "jsonrpc" in body
    ):  # A2A-HTTP-020 reports the latter
        return []
    if body is None and context.frame.payload:  # unreadable, reported by A2A-RPC-001
        return []
    if family is not Family.NEW:
        shapes = {Family.OLD: json_0_3(), Family.OLDEST: json_0_1()}.get(
            family or Family.NEW, make_grammar("0.3", False)
        )
        name = "SendMessageRequest" if shapes.family is Family.OLD_PROTO else "SendParams"
        sends = (
            isinstance(body, dict) and operation.name in SENDING_OPERATIONS and family is not None
        )
        return _walk_shape(shapes, name, body, "user") if sends else []
    name = message_names(operation, Dialect.V1_0)[0]
    shape = json_1_0().shapes.get(name)
    if path is None or shape is None:
        return []
    made: dict[str, Any] = {}
    for label, text in path.query:
        member = shape.members.get(label)
        number = (
            member is not None
            and member.kind is JsonKind.INT32
            and _INTEGER_TEXT.fullmatch(text) is not None
        )
        if number or (member is not None and member.kind is JsonKind.TEXT):
            made[label] = text  # A2A-HTTP-012 checks the value's notation
    made |= body or {}
    name = _live_shape_name(operation.name, name, made)
    return _walk_shape(
        json_1_0(), name, made, "user", bound=_PATH_MEMBERS, live=operation.name in LIVE_OPERATIONS
    )


# --- answers


def _answer_faults(context: RuleContext) -> list[SchemaFault]:
    operation, value = OPERATION_BY_NAME.get(context.operation), context.body
    if operation is None or operation.answer is ResponseKind.EMPTY or value is None:
        return []
    if context.binding is Binding.REST and isinstance(value, dict) and "error" in value:
        return []  # A2A-HTTP-010 reports an error with a success status
    family = request_dialect(context)
    wanted = (
        list if family is Family.OLD and operation.answer is ResponseKind.PUSH_CONFIGS else dict
    )
    if context.is_enveloped and not isinstance(value, wanted):
        return []  # reported by a rule about the result
    answered = foreign_dialect(context.exchange, family, value)
    if answered is not None and family is not None:
        told = (
            f"the request uses {family.value} (`{context.exchange.method}`), but the answer has "
            f"the form of "
            f"{answered.value}"
        )
        return [SchemaFault(FaultKind.FOREIGN, "", told)]
    streaming = context.frame.kind is FrameKind.EVENT
    if operation.answer is ResponseKind.CARD:
        return _card_faults(value, fetched=False)
    if family is Family.NEW:
        name = "StreamResponse" if streaming else message_names(operation, Dialect.V1_0)[1]
        return _walk_shape(json_1_0(), name, value)
    if family is Family.OLD and _is_maybe_0_1(context.exchange, value):
        family = Family.OLDEST
    return _old_answer_faults(family, operation.answer, value, streaming)


def _is_maybe_0_1(exchange: Exchange, value: Any) -> bool:
    """Whether the task may be a 0.1 one: 0.1 shares `tasks/get` and `tasks/cancel`, but has neither
    `kind` nor `contextId`.
    """
    bare = isinstance(value, dict) and "kind" not in value and "contextId" not in value
    return bare and exchange.method.startswith("tasks/") and not exchange.version_header


def request_dialect(context: RuleContext) -> Family | None:
    """Return the dialect family of the exchange's first request."""
    known = context.record.writable_notes()
    name = known.get(_DIALECT_NOTE)
    if name is None:
        request = context.request
        params = (
            decode_payload(request.payload, request.schema)
            if request is not None and request.payload
            else None
        )
        if context.is_enveloped and isinstance(params, dict):
            params = params.get("params")
        found = client_dialect(context.exchange, params)
        name = known[_DIALECT_NOTE] = found.name if found is not None else ""
    return Family[name] if name else None


def _old_answer_faults(
    family: Family | None, expected: ResponseKind, value: Any, streaming: bool
) -> list[SchemaFault]:
    marked = isinstance(value, dict) and isinstance(value.get("kind"), str)
    if family is Family.OLDEST:
        return _walk_shape(json_0_1(), "Event", value) if isinstance(value, dict) else []
    if family is Family.OLD_PROTO and not marked:
        name = {
            ResponseKind.TASK: "Task",
            ResponseKind.SEND: "SendMessageResponse",
            ResponseKind.STREAM: "StreamResponse",
        }.get(expected)
        return _walk_shape(make_grammar("0.3", False), name, value) if name else []
    if family is None or expected is ResponseKind.TASKS:
        return []
    if isinstance(value, list):
        return [
            fault
            for each in value
            for fault in _walk_shape(json_0_3(), _ANSWERS_0_3.get(expected, ""), each)
        ]
    name = _ANSWERS_0_3.get(expected) or _event_shape_name(value, streaming)
    return _walk_shape(json_0_3(), name, value)


def _event_shape_name(value: Any, streaming: bool) -> str:
    """Return the shape of a 0.3 result; without `kind` its members decide."""
    if not isinstance(value, dict):
        return "Task"
    kind = value.get("kind")
    if isinstance(kind, str) and kind in EVENTS_0_3:
        return EVENTS_0_3[kind]
    if "artifact" in value:
        return "ArtifactUpdate"
    if "final" in value or (streaming and "status" in value and "id" not in value):
        return "StatusUpdate"
    return "Message" if "parts" in value or "messageId" in value else "Task"


def _push_faults(context: RuleContext) -> list[SchemaFault]:
    """Check a push notification: the wrapper of 1.0, or the objects posted by 0.x (Q-26)."""
    if context.frame.kind is not FrameKind.EVENT:
        return []
    value, dialect = context.value, context.exchange.dialect
    if dialect in (Dialect.V1_0, Dialect.V1_1):
        return _walk_shape(json_1_0(), "StreamResponse", value)
    marked = isinstance(value, dict) and isinstance(value.get("kind"), str)
    return _walk_shape(json_0_3(), _event_shape_name(value, True), value) if marked else []
