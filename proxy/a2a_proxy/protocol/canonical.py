"""Objects of any dialect in the 1.0 JSON form (manual/protocol.md "Canonical form").

Which members hold which objects is read from the shapes of 1.0. Here are only the differences
between dialects: known members are renamed and moved, all others stay as they are.
"""

from collections.abc import Callable
from typing import Any

from a2a_proto.shapes.json_0_3 import FILE_MEMBERS
from a2a_proto.shapes.protobuf_shapes import int64_members, nested_members
from a2a_proxy.model.event import TaskState
from a2a_proxy.protocol.proto_summary import bare_id
from a2a_proxy.protocol.summary import state_number

Json = dict[str, Any]

_ROLES = {"user": "ROLE_USER", "agent": "ROLE_AGENT", 1: "ROLE_USER", 2: "ROLE_AGENT"}
_NEW_FILE_MEMBERS = {old: new for new, names in FILE_MEMBERS.items() for old in names}


def convert_nested(value: Json, shape: str, convert: Callable[[str, Json], Json]) -> Json:
    """Return a copy of an object of 1.0 in which the objects inside are converted; `convert` takes
    the name of a shape and an object. Items of a list that are no objects are left out; a member of
    another type is kept."""
    made = dict(value)
    for name, inner, is_repeated in nested_members(shape):
        found = value.get(name)
        if not is_repeated and isinstance(found, dict):
            made[name] = convert(inner, found)
        elif is_repeated and isinstance(found, list):
            made[name] = [convert(inner, each) for each in found if isinstance(each, dict)]
    return made


class CanonicalForm:
    """Conversion of the objects of one dialect to 1.0."""

    def __init__(self, wraps_data: bool) -> None:
        self._wraps_data = wraps_data
        """Whether a data part has its JSON one level deeper (the 0.3 protobuf form)."""
        self._renaming: dict[str, Callable[[Json], Json]] = {
            "Task": _rename_task,
            "TaskStatus": _rename_status,
            "Message": _rename_message,
            "Part": self._rename_part,
            "Artifact": _rename_artifact,
            "TaskStatusUpdateEvent": _rename_update,
            "TaskArtifactUpdateEvent": _rename_artifact_update,
        }
        """The differences of each object, apart from the objects inside it."""

    def convert(self, shape: str, value: Json) -> Json:
        """Return an object in its 1.0 form; `shape` is the name of its shape."""
        rename = self._renaming.get(shape)
        made = convert_nested(rename(value) if rename is not None else value, shape, self.convert)
        for name in int64_members(shape):  # a string in ProtoJSON
            if isinstance(made.get(name), int):
                made[name] = str(made[name])
        return made

    def _rename_part(self, value: Json) -> Json:
        """A file becomes `raw` or `url` with `filename` and `mediaType`."""
        marked = isinstance(value.get("kind", value.get("type")), str)
        made = (
            without_members(value, "kind", "type", "file")
            if marked
            else without_members(value, "file")
        )
        file = value.get("file")
        if isinstance(file, dict):
            made |= {
                _NEW_FILE_MEMBERS.get(str(name), str(name)): item for name, item in file.items()
            }
        data = value.get("data")
        if self._wraps_data and not marked and isinstance(data, dict) and set(data) <= {"data"}:
            made["data"] = data.get("data", {})
        return made

    def push_config(self, value: Json) -> Json:
        """Convert a push configuration to the flat form of 1.0."""
        made = without_members(
            value,
            "pushNotificationConfig",
            "config",
            "name",
            "parent",
            "configId",
            "authentication",
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
            made.setdefault(
                "taskId", made.pop("id")
            )  # 0.1: the id next to a configuration is the task's
        for inner in ("config", "pushNotificationConfig"):
            if isinstance(value.get(inner), dict):
                made |= {
                    key: item for key, item in self.push_config(value[inner]).items() if item != ""
                }
        return made


def _rename_task(value: Json) -> Json:
    made = without_members(value, "kind", "sessionId")
    if "sessionId" in value:  # 0.1
        made.setdefault("contextId", value["sessionId"])
    return made


def _rename_status(value: Json) -> Json:
    if "state" not in value:
        return value
    state = state_number(value["state"])
    known = state or value["state"] in (0, "unknown", "TASK_STATE_UNSPECIFIED")
    return {**value, "state": f"TASK_STATE_{TaskState(state).name}"} if known else value


def _rename_message(value: Json) -> Json:
    made = without_members(value, "kind", "content")
    role = value.get("role")
    if isinstance(role, (str, int)) and role in _ROLES:
        made["role"] = _ROLES[role]
    if isinstance(value.get("content"), list):  # the parts in the protobuf form of 0.3
        made.setdefault("parts", value["content"])
    return made


def _rename_artifact(value: Json) -> Json:
    made = without_members(value, "index", "append", "lastChunk")
    if not isinstance(value.get("artifactId"), str):  # 0.1 has `index` instead, 0 if it is left out
        made["artifactId"] = str(value.get("index") or 0)
    return made


def _rename_update(value: Json) -> Json:
    """0.1 and the vendor dialect call the task `id`."""
    made = without_members(value, "kind", "id", "sessionId")
    for old, new in (("id", "taskId"), ("sessionId", "contextId")):
        if old in value:
            made.setdefault(new, value[old])
    return made


def _rename_artifact_update(value: Json) -> Json:
    """0.1 has the flags inside the artifact."""
    made = _rename_update(value)
    artifact = value.get("artifact")
    if isinstance(artifact, dict):
        made |= {
            name: artifact[name]
            for name in ("append", "lastChunk")
            if artifact.get(name) is not None
        }
    return made


def _canonical_authentication(value: Json) -> Json:
    """Convert `schemes[0]` to the scheme; 1.0 has no member for further schemes, so `schemes` is
    kept in that case."""
    schemes = value.get("schemes")
    if not isinstance(schemes, list) or not schemes or "scheme" in value:
        return value
    made = {"scheme": schemes[0], **without_members(value, "schemes")}
    return {**made, "schemes": schemes} if len(schemes) > 1 else made


def without_members(value: Json, *names: str) -> Json:
    """Return a copy without these members."""
    return {name: item for name, item in value.items() if name not in names}
