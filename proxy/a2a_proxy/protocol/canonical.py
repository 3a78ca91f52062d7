"""Objects of any dialect in the 1.0 JSON form: task, message, part, artifact, updates, push configuration.

The mapping is described in manual/protocol.md "Canonical form".

Every method converts the known members and copies the others.
"""

from __future__ import annotations

from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.protocol.proto_summary import bare_id
from a2a_proxy.protocol.summary import state_number

Json = dict[str, Any]

_ROLES = {"user": "ROLE_USER", "agent": "ROLE_AGENT", 1: "ROLE_USER", 2: "ROLE_AGENT"}
_FILE_MEMBERS = {
    "bytes": "raw",
    "fileWithBytes": "raw",
    "uri": "url",
    "fileWithUri": "url",
    "name": "filename",
    "mimeType": "mediaType",
}


class CanonicalForm:
    """Conversion of the objects of one dialect to 1.0."""

    def __init__(self, wraps_data: bool) -> None:
        self._wraps_data = wraps_data
        """Whether a data part has its JSON one level deeper (the 0.3 protobuf form)."""

    def convert_task(self, value: Json) -> Json:
        """Convert a task; `sessionId` of 0.1 becomes the context."""
        made = _without_members(value, "kind", "sessionId", "status", "artifacts", "history", "timeline")
        if "sessionId" in value:
            made.setdefault("contextId", value["sessionId"])
        if "status" in value:
            made["status"] = self.convert_status(value["status"])
        for name, shape in (
            ("artifacts", self.convert_artifact),
            ("history", self.convert_message),
            ("timeline", self.timeline_entry),
        ):
            if isinstance(value.get(name), list):
                made[name] = [shape(each) for each in value[name] if isinstance(each, dict)]
        return _with_text_generation(made)

    def timeline_entry(self, value: Json) -> Json:
        """Convert an entry of a timeline; an entry of an unknown kind is kept."""
        made = dict(value)
        if isinstance(value.get("message"), dict):
            made["message"] = self.convert_message(value["message"])
        if "status" in value:
            made["status"] = self.convert_status(value["status"])
        return _with_text_generation(made)

    def convert_status(self, value: Any) -> Any:
        """Convert a status; `progress` of the vendor dialect is kept."""
        if not isinstance(value, dict):
            return value
        made = dict(value)
        if "state" in value:
            state = state_number(value["state"])
            known = state or value["state"] in (0, "unknown", "TASK_STATE_UNSPECIFIED")
            made["state"] = f"TASK_STATE_{TaskState(state).name}" if known else value["state"]
        if isinstance(value.get("message"), dict):
            made["message"] = self.convert_message(value["message"])
        return made

    def convert_message(self, value: Json) -> Json:
        """Convert a message; the 0.3 protobuf form calls its parts `content`."""
        made = _without_members(value, "kind", "content")
        role = value.get("role")
        if isinstance(role, (str, int)) and role in _ROLES:
            made["role"] = _ROLES[role]
        parts = value.get("parts", value.get("content"))
        if isinstance(parts, list):
            made["parts"] = [self.convert_part(part) for part in parts if isinstance(part, dict)]
        return made

    def convert_part(self, value: Json) -> Json:
        """Convert a part; a file becomes `raw` or `url` with `filename` and `mediaType`."""
        marked = isinstance(value.get("kind", value.get("type")), str)
        made = _without_members(value, "kind", "type", "file") if marked else _without_members(value, "file")
        file = value.get("file")
        if isinstance(file, dict):
            made |= {_FILE_MEMBERS.get(str(name), str(name)): item for name, item in file.items()}
        data = value.get("data")
        if self._wraps_data and not marked and isinstance(data, dict) and set(data) <= {"data"}:
            made["data"] = data.get("data", {})
        return made

    def convert_artifact(self, value: Json) -> Json:
        """Convert an artifact; 0.1 has `index` instead of an id, 0 if it is left out."""
        made = _without_members(value, "index", "append", "lastChunk")
        if not isinstance(value.get("artifactId"), str):
            made["artifactId"] = str(value.get("index") or 0)
        if isinstance(value.get("parts"), list):
            made["parts"] = [self.convert_part(part) for part in value["parts"] if isinstance(part, dict)]
        return made

    def status_update(self, value: Json) -> Json:
        """Convert a status update; `final` is kept as an annotation."""
        made = _canonical_update(value)
        if "status" in value:
            made["status"] = self.convert_status(value["status"])
        return _with_text_generation(made)

    def artifact_update(self, value: Json) -> Json:
        """Convert an artifact update; 0.1 has its flags inside the artifact."""
        made = _canonical_update(value)
        artifact = value.get("artifact")
        if isinstance(artifact, dict):
            made["artifact"] = self.convert_artifact(artifact)
            made |= {name: artifact[name] for name in ("append", "lastChunk") if artifact.get(name) is not None}
        return _with_text_generation(made)

    def push_config(self, value: Json) -> Json:
        """Convert a push configuration to the flat form of 1.0."""
        made = _without_members(
            value, "pushNotificationConfig", "config", "name", "parent", "configId", "authentication"
        )
        name = value.get("name") or value.get("parent")
        if isinstance(name, str):
            made["taskId"] = bare_id(name)
            if "/pushNotificationConfigs/" in name:
                made.setdefault("id", name.rpartition("/")[2])
        if isinstance(value.get("configId"), str):
            made.setdefault("id", value["configId"])
        if isinstance(value.get("authentication"), dict):
            made["authentication"] = _canonical_authentication(value["authentication"])
        if "pushNotificationConfig" in value and "id" in made:
            made.setdefault("taskId", made.pop("id"))  # 0.1: the id next to a configuration is the task's
        for inner in ("config", "pushNotificationConfig"):
            if isinstance(value.get(inner), dict):
                made |= {key: item for key, item in self.push_config(value[inner]).items() if item != ""}
        return made


def _canonical_update(value: Json) -> Json:
    """Convert the members that both updates have; 0.1 and the vendor dialect name the task `id`."""
    made = _without_members(value, "kind", "id", "sessionId")
    if "id" in value:
        made.setdefault("taskId", value["id"])
    if "sessionId" in value:
        made.setdefault("contextId", value["sessionId"])
    return made


def _with_text_generation(value: Json) -> Json:
    """Write the generation as a string, because an int64 is a string in ProtoJSON (Q-31)."""
    number = value.get("generation")
    return {**value, "generation": str(number)} if isinstance(number, int) else value


def _canonical_authentication(value: Json) -> Json:
    """Convert `schemes[0]` to the scheme; 1.0 has no member for further schemes, so `schemes` is kept in that case."""
    schemes = value.get("schemes")
    if not isinstance(schemes, list) or not schemes or "scheme" in value:
        return value
    made = {"scheme": schemes[0], **_without_members(value, "schemes")}
    return {**made, "schemes": schemes} if len(schemes) > 1 else made


def _without_members(value: Json, *names: str) -> Json:
    return {name: item for name, item in value.items() if name not in names}
