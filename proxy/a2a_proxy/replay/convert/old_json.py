"""The 1.0 JSON form as 0.1, 0.2, 0.3 and the vendor hybrid write it over JSON-RPC (manual/protocol.md "JSON objects
before 1.0")."""

from __future__ import annotations

from typing import Any

from a2a_proxy.model.exchange import Dialect
from a2a_proxy.replay.convert.form import FILE_MEMBERS, Json, convert_each, split_push_config, without_members

_STATE, _ROLE = "TASK_STATE_", "ROLE_"
_FILE_NAMES = {"raw": "bytes", "url": "uri", "filename": "name", "mediaType": "mimeType"}


class OldJson:
    """Adds `kind` and uses lower-case words; 0.1 has `type`, `sessionId`, and chunk flags inside the artifact."""

    def __init__(self, dialect: Dialect) -> None:
        self._is_v0_1 = dialect is Dialect.V0_1
        self._is_vendor = dialect is Dialect.VENDOR
        self._kinds = dialect not in (Dialect.V0_1, Dialect.VENDOR)

    def convert_task(self, value: Json) -> Json:
        """Convert a task."""
        converted = without_members(value, "status", "artifacts", "history", "timeline")
        if isinstance(value.get("status"), dict):
            converted["status"] = self.convert_status(value["status"])
        converted |= convert_each(value, "artifacts", self.convert_artifact)
        converted |= convert_each(value, "history", self.convert_message)
        return self._with_kind("task", self._convert_context(converted))

    def convert_status(self, value: Json) -> Json:
        """Convert a status."""
        converted = dict(value)
        if isinstance(value.get("state"), str):
            converted["state"] = _state_word(value["state"])
        if isinstance(value.get("message"), dict):
            converted["message"] = self.convert_message(value["message"])
        return converted

    def convert_message(self, value: Json) -> Json:
        """Convert a message."""
        converted = {**value, **convert_each(value, "parts", self.convert_part)}
        role = value.get("role")
        if isinstance(role, str) and role.startswith(_ROLE):
            converted["role"] = role.removeprefix(_ROLE).lower()
        return self._with_kind("message", converted)

    def convert_part(self, value: Json) -> Json:
        """Convert a part, by its content."""
        mark = "kind" if self._kinds else "type"
        if "text" in value:
            return {mark: "text", **value}
        if "raw" in value or "url" in value:
            file = {_FILE_NAMES[name]: value[name] for name in FILE_MEMBERS if name in value}
            return {mark: "file", "file": file, **without_members(value, *FILE_MEMBERS)}
        return {mark: "data", **value} if "data" in value else value

    def convert_artifact(self, value: Json) -> Json:
        """Convert an artifact; in 0.1 its id is its index."""
        converted = {**value, **convert_each(value, "parts", self.convert_part)}
        identifier = str(value.get("artifactId", ""))
        if self._is_v0_1 and identifier.isascii() and identifier.isdigit():
            return {**without_members(converted, "artifactId"), "index": int(identifier)}
        return converted

    def convert_event(self, value: Json) -> Json:
        """Convert an event, which is not wrapped in these dialects."""
        shapes = {
            "task": self.convert_task,
            "message": self.convert_message,
            "statusUpdate": self._convert_status_update,
            "artifactUpdate": self._convert_artifact_update,
        }
        for name, shape in shapes.items():
            if isinstance(value.get(name), dict):
                return shape(value[name])
        return value

    def convert_push_config(self, value: Json) -> Json:
        """Convert a push configuration, next to its task id."""
        task_id, inner = split_push_config(value)
        return {"id" if self._is_v0_1 else "taskId": task_id, "pushNotificationConfig": inner}

    def convert_push_member(self, value: Json) -> Json:
        """Convert the configuration without a task id."""
        return split_push_config(value)[1]

    def _convert_status_update(self, value: Json) -> Json:
        converted = dict(value)
        if isinstance(value.get("status"), dict):
            converted["status"] = self.convert_status(value["status"])
        if self._kinds:
            converted.setdefault("final", False)  # required there, and absent from the protobuf form
        return self._with_kind("status-update", self._rename_task_id(converted))

    def _convert_artifact_update(self, value: Json) -> Json:
        converted = dict(value)
        if isinstance(value.get("artifact"), dict):
            converted["artifact"] = self.convert_artifact(value["artifact"])
            if self._is_v0_1:
                flags = {name: converted.pop(name) for name in ("append", "lastChunk") if name in converted}
                converted["artifact"] = {**converted["artifact"], **flags}
        return self._with_kind("artifact-update", self._rename_task_id(converted))

    def _rename_task_id(self, value: Json) -> Json:
        """Rename `taskId` to `id`, as 0.1 and the hybrid call it."""
        if (self._is_v0_1 or self._is_vendor) and "taskId" in value:
            value = {"id": value["taskId"], **without_members(value, "taskId")}
        return self._convert_context(value)

    def _convert_context(self, value: Json) -> Json:
        if not self._is_v0_1 or "contextId" not in value:
            return value
        return {**without_members(value, "contextId"), "sessionId": value["contextId"]}

    def _with_kind(self, kind: str, value: Json) -> Json:
        return {**value, "kind": kind} if self._kinds else value


def _state_word(state: str) -> Any:
    if not state.startswith(_STATE):
        return state
    word = state.removeprefix(_STATE).lower().replace("_", "-")
    return "unknown" if word == "unspecified" else word
