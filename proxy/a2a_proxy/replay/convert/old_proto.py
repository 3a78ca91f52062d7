"""The 1.0 JSON form as ProtoJSON of the package `a2a.v1`, which REST and gRPC carry in 0.3
(manual/protocol.md "Fields of 0.3")."""

from __future__ import annotations

from a2a_proto.shapes.json_0_3 import FILE_MEMBERS
from a2a_proxy.protocol.canonical import Json, without_members
from a2a_proxy.replay.convert.form import OldForm, split_push_config


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
