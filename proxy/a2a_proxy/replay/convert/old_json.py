"""The 1.0 JSON form as 0.1, 0.2, 0.3 and the vendor hybrid write it over JSON-RPC
(manual/protocol.md "JSON objects before 1.0")."""

from __future__ import annotations

from a2a_proto.shapes.json_0_3 import EVENT_SHAPES, FILE_MEMBERS, enum_words
from a2a_proto.shapes.protobuf_shapes import nested_members
from a2a_proxy.model.values import Dialect
from a2a_proxy.protocol.canonical import Json, without_members
from a2a_proxy.replay.convert.form import OldForm, split_push_config

_KINDS = {shape: kind for kind, (_, shape) in EVENT_SHAPES.items()}


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
