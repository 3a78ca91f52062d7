"""The 1.0 JSON form as ProtoJSON of the package `a2a.v1`, which REST and gRPC carry in 0.3 (manual/protocol.md "Fields
of 0.3")."""

from __future__ import annotations

from a2a_proxy.replay.convert.form import FILE_MEMBERS, Json, convert_each, split_push_config, without_members

_FILE_NAMES = {"raw": "fileWithBytes", "url": "fileWithUri", "filename": "name", "mediaType": "mimeType"}


class OldProto:
    """Uses `content` for `parts`, files and data one level deeper, CANCELLED with two L, and resource names."""

    def convert_task(self, value: Json) -> Json:
        """Convert a task."""
        converted = {
            **value,
            **convert_each(value, "artifacts", self.convert_artifact),
            **convert_each(value, "history", self.convert_message),
        }
        if isinstance(value.get("status"), dict):
            converted["status"] = self.convert_status(value["status"])
        return converted

    def convert_status(self, value: Json) -> Json:
        """Convert a status."""
        converted = dict(value)
        if value.get("state") == "TASK_STATE_CANCELED":
            converted["state"] = "TASK_STATE_CANCELLED"
        if isinstance(value.get("message"), dict):
            converted["message"] = self.convert_message(value["message"])
        return converted

    def convert_message(self, value: Json) -> Json:
        """Convert a message."""
        converted = without_members(value, "parts")
        if "parts" in value:
            converted |= {"content": convert_each(value, "parts", self.convert_part)["parts"]}
        return converted

    def convert_part(self, value: Json) -> Json:
        """Convert a part, by its content."""
        if "raw" in value or "url" in value:
            file = {_FILE_NAMES[name]: value[name] for name in FILE_MEMBERS if name in value}
            return {"file": file, **without_members(value, *FILE_MEMBERS)}
        return {**value, "data": {"data": value["data"]}} if "data" in value else value

    def convert_artifact(self, value: Json) -> Json:
        """Convert an artifact."""
        return {**value, **convert_each(value, "parts", self.convert_part)}

    def convert_event(self, value: Json) -> Json:
        """Convert an event, wrapped as in 1.0."""
        converted = dict(value)
        for name, shape in (("task", self.convert_task), ("message", self.convert_message)):
            if isinstance(value.get(name), dict):
                converted[name] = shape(value[name])
        for name, member, inner in (
            ("statusUpdate", "status", self.convert_status),
            ("artifactUpdate", "artifact", self.convert_artifact),
        ):
            update = value.get(name)
            if isinstance(update, dict) and isinstance(update.get(member), dict):
                converted[name] = {**update, member: inner(update[member])}
        return converted

    def convert_push_config(self, value: Json) -> Json:
        """Convert a push configuration, under its resource name."""
        task_id, inner = split_push_config(value)
        return {"name": config_name(task_id, str(inner.get("id", ""))), "pushNotificationConfig": inner}

    def convert_push_member(self, value: Json) -> Json:
        """Convert the configuration without a task id."""
        return split_push_config(value)[1]


def config_name(task_id: str, config_id: str) -> str:
    """Return the resource name of a push configuration."""
    return f"tasks/{task_id}/pushNotificationConfigs/{config_id}"
