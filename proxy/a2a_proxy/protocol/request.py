"""Requests of any dialect in the 1.0 JSON form (manual/protocol.md "Canonical form")."""

from typing import Any

from a2a_proxy.protocol.canonical import CanonicalForm, Json
from a2a_proxy.protocol.proto_summary import bare_id

_PUSH_NAMES = ("taskPushNotificationConfig", "pushNotificationConfig", "pushNotification")
_CONFIG_OPERATIONS = frozenset(
    {"GetTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"}
)


def canonical_request(form: CanonicalForm, value: Json, operation: str) -> Json:
    """Convert the parameters of a call; unknown members are kept."""
    message = value.get("message", value.get("request"))
    if isinstance(message, dict):
        return _canonical_send(form, value, message)
    if operation == "CreateTaskPushNotificationConfig":
        return form.push_config(value)
    if operation == "ListTaskPushNotificationConfigs":
        return _canonical_push_reference(value, keeps_id=False)
    return (
        _canonical_push_reference(value, keeps_id=True)
        if operation in _CONFIG_OPERATIONS
        else _canonical_task_reference(value)
    )


def _canonical_send(form: CanonicalForm, value: Json, message_value: Json) -> Json:
    moved = ("message", "request", "configuration", "historyLength", "pushNotification")
    made = {name: item for name, item in value.items() if name not in moved}
    message = form.convert("Message", message_value)
    # 0.1: the client chooses the task's id and puts it next to the message.
    for outer, inner in (("id", "taskId"), ("sessionId", "contextId")):
        if isinstance(made.get(outer), str):
            message.setdefault(inner, made.pop(outer))
    given = value.get("configuration")
    configuration: Json = dict(given) if isinstance(given, dict) else {}
    configuration |= {
        name: value[name] for name in ("historyLength", "pushNotification") if name in value
    }
    made["message"] = message
    if configuration:
        made["configuration"] = _canonical_configuration(form, configuration)
    return made


def _canonical_configuration(form: CanonicalForm, value: Json) -> Json:
    made: Json = {
        name: item for name, item in value.items() if name not in (*_PUSH_NAMES, "blocking")
    }
    if isinstance(value.get("blocking"), bool):
        made["returnImmediately"] = not value["blocking"]
    push = next((value[name] for name in _PUSH_NAMES if isinstance(value.get(name), dict)), None)
    if push is not None:
        made["taskPushNotificationConfig"] = form.push_config(push)
    return made


def _canonical_task_reference(value: Json) -> Json:
    """Convert a reference to a task, which 0.3 writes as `tasks/{id}`."""
    name = value.get("name")
    if not isinstance(name, str) or "id" in value:
        return value
    return {"id": bare_id(name), **{key: item for key, item in value.items() if key != "name"}}


def _canonical_push_reference(value: Json, keeps_id: bool) -> Json:
    """Convert a reference to a task and one of its configurations: 0.x calls the task `id`, or has
    a resource name."""
    made: dict[str, Any] = dict(value)
    name = made.pop("name", None) or made.pop("parent", None)
    if isinstance(name, str):
        made["taskId"] = bare_id(name)
        if keeps_id and "/pushNotificationConfigs/" in name:
            made["id"] = name.rpartition("/")[2]
    if "taskId" not in made and "id" in made:
        made["taskId"] = made.pop("id")
    config = made.pop("pushNotificationConfigId", None)
    return {**made, "id": config} if keeps_id and config is not None else made
