"""Answers of an agent, from canonical form to that of a binding and dialect.

Agent cards between JSON and ProtoJSON, because dialects up to 0.3 write security differently in
each (manual/protocol.md "JSON objects before 1.0").

The 1.0 JSON form as 0.1, 0.2, 0.3 and the vendor hybrid write it over JSON-RPC
(manual/protocol.md "JSON objects before 1.0").

The 1.0 JSON form as ProtoJSON of the package `a2a.v1`, which REST and gRPC carry in 0.3
(manual/protocol.md "Fields of 0.3").
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from a2a_proto.shapes.json_0_3 import EVENT_SHAPES, FILE_MEMBERS, enum_words
from a2a_proto.shapes.protobuf_shapes import nested_members
from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, Dialect
from a2a_proxy.protocol.canonical import Json, without_members
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, ResponseKind
from a2a_proxy.protocol.security_schemes import SCHEME_TYPES, SCHEME_WRAPPERS
from a2a_proxy.replay.convert.form import DialectForm, OldForm, split_push_config

OLD_DIALECTS = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.V0_3, Dialect.VENDOR})
"""Dialects whose JSON differs from 1.0."""


_KINDS = {shape: kind for kind, (_, shape) in EVENT_SHAPES.items()}


class OldProto(OldForm):
    """Uses `content` for `parts`, files and data one level deeper, CANCELLED with two L, and
    resource names."""

    def convert_push_config(self, value: Json) -> Json:
        """Convert a push configuration, under its resource name."""
        task_id, inner = split_push_config(value)
        return {
            "name": config_name(task_id, str(inner.get("id", ""))),
            "pushNotificationConfig": inner,
        }

    def _rename(self, shape: str, value: Json) -> Json:
        if shape == "TaskStatus" and value.get("state") == "TASK_STATE_CANCELED":
            return {**value, "state": "TASK_STATE_CANCELLED"}
        if shape == "Message" and "parts" in value:
            return {**without_members(value, "parts"), "content": value["parts"]}
        if shape == "Part" and ("raw" in value or "url" in value):
            file = {old: value[name] for name, (_, old) in FILE_MEMBERS.items() if name in value}
            return {"file": file, **without_members(value, *FILE_MEMBERS)}
        return (
            {**value, "data": {"data": value["data"]}}
            if shape == "Part" and "data" in value
            else value
        )


def config_name(task_id: str, config_id: str) -> str:
    """Return the resource name of a push configuration."""
    return f"tasks/{task_id}/pushNotificationConfigs/{config_id}"


class OldJson(OldForm):
    """Adds `kind` and uses lower-case words; 0.1 has `type`, `sessionId`, and chunk flags inside
    the artifact."""

    def __init__(self, dialect: Dialect) -> None:
        self._is_v0_1 = dialect is Dialect.V0_1
        self._is_vendor = dialect is Dialect.VENDOR
        self._kinds = dialect not in (Dialect.V0_1, Dialect.VENDOR)
        self._renaming = {
            "Task": self._rename_task,
            "TaskStatus": lambda value: _with_word(value, "state", "TaskState"),
            "Message": lambda value: _with_word(value, "role", "Role"),
            "Part": self._rename_part,
            "Artifact": self._rename_artifact,
            "TaskStatusUpdateEvent": self._rename_status_update,
            "TaskArtifactUpdateEvent": self._rename_artifact_update,
        }

    def convert_event(self, value: Json) -> Json:
        """Convert an event, which is not wrapped in these dialects."""
        for name, shape, _ in nested_members("StreamResponse"):
            if isinstance(value.get(name), dict):
                return self.convert(shape, value[name])
        return value

    def convert_push_config(self, value: Json) -> Json:
        """Convert a push configuration, next to its task id."""
        task_id, inner = split_push_config(value)
        return {"id" if self._is_v0_1 else "taskId": task_id, "pushNotificationConfig": inner}

    def _rename(self, shape: str, value: Json) -> Json:
        rename = self._renaming.get(shape)
        converted = rename(value) if rename is not None else value
        return (
            {**converted, "kind": _KINDS[shape]} if self._kinds and shape in _KINDS else converted
        )

    def _rename_task(self, value: Json) -> Json:
        return self._rename_context(without_members(value, "timeline"))

    def _rename_part(self, value: Json) -> Json:
        """Mark a part by its content."""
        mark = "kind" if self._kinds else "type"
        if "text" in value:
            return {mark: "text", **value}
        if "raw" in value or "url" in value:
            file = {old: value[name] for name, (old, _) in FILE_MEMBERS.items() if name in value}
            return {mark: "file", "file": file, **without_members(value, *FILE_MEMBERS)}
        return {mark: "data", **value} if "data" in value else value

    def _rename_artifact(self, value: Json) -> Json:
        """In 0.1 the id of an artifact is its index."""
        identifier = str(value.get("artifactId", ""))
        if self._is_v0_1 and identifier.isascii() and identifier.isdigit():
            return {**without_members(value, "artifactId"), "index": int(identifier)}
        return value

    def _rename_status_update(self, value: Json) -> Json:
        if self._kinds:  # `final` is required there, and absent from the protobuf form
            value = {**value, "final": value.get("final", False)}
        return self._rename_task_id(value)

    def _rename_artifact_update(self, value: Json) -> Json:
        artifact = value.get("artifact")
        if self._is_v0_1 and isinstance(artifact, dict):
            flags = {name: value[name] for name in ("append", "lastChunk") if name in value}
            value = {**without_members(value, *flags), "artifact": artifact | flags}
        return self._rename_task_id(value)

    def _rename_task_id(self, value: Json) -> Json:
        """Rename `taskId` to `id`, as 0.1 and the hybrid call it."""
        if (self._is_v0_1 or self._is_vendor) and "taskId" in value:
            value = {"id": value["taskId"], **without_members(value, "taskId")}
        return self._rename_context(value)

    def _rename_context(self, value: Json) -> Json:
        if not self._is_v0_1 or "contextId" not in value:
            return value
        return {**without_members(value, "contextId"), "sessionId": value["contextId"]}


def _with_word(value: Json, name: str, enum: str) -> Json:
    """Return an object with the word of JSON before 1.0 for an enum's value; an unknown value is
    kept."""
    words, found = enum_words()[enum], value.get(name)
    return {**value, name: words[found]} if isinstance(found, str) and words.get(found) else value


def convert_card(value: Json, binding: Binding) -> Json:
    """Return a card as a binding carries it. Cards of 1.0 are the same on all bindings."""
    if "supportedInterfaces" in value:
        return value
    protobuf = binding in (Binding.GRPC, Binding.REST)
    scheme, requirement = (
        (_wrap_scheme, _wrap_requirements) if protobuf else (_unwrap_scheme, _unwrap_requirements)
    )
    converted = _convert_security(value, scheme, requirement)
    if isinstance(value.get("skills"), list):
        converted["skills"] = [
            _convert_security(one, scheme, requirement)
            for one in value["skills"]
            if isinstance(one, dict)
        ]
    return converted


def _convert_security(
    value: Json, scheme: Callable[[Json], Json], requirement: Callable[[Json], Json]
) -> Json:
    converted = dict(value)
    if isinstance(value.get("securitySchemes"), dict):
        found = value["securitySchemes"].items()
        converted["securitySchemes"] = {
            name: scheme(one) if isinstance(one, dict) else one for name, one in found
        }
    if isinstance(value.get("security"), list):
        converted["security"] = [
            requirement(one) for one in value["security"] if isinstance(one, dict)
        ]
    return converted


def _wrap_scheme(value: Json) -> Json:
    member = SCHEME_WRAPPERS.get(str(value.get("type")))
    if member is None:
        return value
    inner = without_members(value, "type", "in")
    return {member: inner | {"location": value["in"]} if "in" in value else inner}


def _unwrap_scheme(value: Json) -> Json:
    member = next((name for name in value if name in SCHEME_TYPES), None)
    if member is None or not isinstance(value[member], dict):
        return value
    inner: Json = {"type": SCHEME_TYPES[member], **without_members(value[member], "location")}
    return inner | {"in": value[member]["location"]} if "location" in value[member] else inner


def _wrap_requirements(value: Json) -> Json:
    """Return `{"key": [...]}` as `{"schemes": {"key": {"list": [...]}}}`."""
    if set(value) == {"schemes"} and isinstance(value["schemes"], dict):
        return value
    return {"schemes": {name: {"list": scopes} if scopes else {} for name, scopes in value.items()}}


def _unwrap_requirements(value: Json) -> Json:
    found: Any = value.get("schemes")
    if set(value) != {"schemes"} or not isinstance(found, dict):
        return value
    return {
        name: one.get("list", []) if isinstance(one, dict) else one for name, one in found.items()
    }


def form_of(dialect: Dialect, binding: Binding) -> DialectForm:
    """Return the form of a dialect on a binding: before 1.0 REST and gRPC carry the protobuf
    form."""
    if dialect not in OLD_DIALECTS:
        return DialectForm()
    return OldJson(dialect) if binding in (*JSONRPC_BINDINGS, Binding.WEBHOOK) else OldProto()


def convert_answer(value: Any, operation: str, dialect: Dialect, binding: Binding) -> Any:
    """Convert one event or answer to plain JSON of the dialect: the `result` of JSON-RPC, the body
    of REST, ProtoJSON."""
    if not isinstance(value, dict):
        return value
    form, row = form_of(dialect, binding), OPERATION_BY_NAME.get(operation)
    expected = row.answer if row is not None else ResponseKind.STREAM
    if expected is ResponseKind.TASK:
        return form.convert("Task", value["task"]) if isinstance(value.get("task"), dict) else value
    if expected is ResponseKind.TASKS:
        return _convert_list(value, "tasks", partial(form.convert, "Task"))
    if expected is ResponseKind.PUSH_CONFIG:
        return form.convert_push_config(value)
    if expected is ResponseKind.PUSH_CONFIGS:
        converted = _convert_list(value, "configs", form.convert_push_config)
        return (
            converted.get("configs", [])
            if dialect in OLD_DIALECTS and binding in JSONRPC_BINDINGS
            else converted
        )
    if expected is ResponseKind.CARD:
        return convert_card(value, binding)
    if expected is ResponseKind.EMPTY:
        return None if binding in JSONRPC_BINDINGS and dialect in OLD_DIALECTS else value
    return form.convert_event(value)


def _convert_list(value: Json, name: str, convert: Callable[[Json], Json]) -> Json:
    """Convert the objects in one member of an answer, a list."""
    found = value.get(name)
    if not isinstance(found, list):
        return value
    return {**value, name: [convert(each) if isinstance(each, dict) else each for each in found]}


def convert_notification(value: Json, dialect: Dialect) -> Json:
    """Convert the body of a webhook."""
    return form_of(dialect, Binding.WEBHOOK).convert_event(value)
