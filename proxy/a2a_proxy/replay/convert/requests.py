"""Requests of a client, from canonical form to that of a binding and dialect: parameters, method,
path, query."""

from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.protocol.canonical import Json, without_members
from a2a_proxy.protocol.operations import OPERATION_BY_NAME
from a2a_proxy.replay.convert.form import DialectForm, split_push_config
from a2a_proxy.replay.convert.responses import OLD_DIALECTS, config_name, form_of

_BY_CONFIG = frozenset({"GetTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"})
_CREATE_CONFIG, _LIST_CONFIGS = (
    "CreateTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
)


class RestCall(msgspec.Struct, frozen=True):
    """A REST request, relative to the interface's URL."""

    method: str
    target: str
    """Path and query."""
    body: Json | None
    """None: without a body."""


def convert_request(value: Any, operation: str, dialect: Dialect, binding: Binding) -> Any:
    """Convert the parameters of a call: `params` of JSON-RPC, or ProtoJSON of gRPC and REST
    including the path parameters."""
    if not isinstance(value, dict) or dialect not in OLD_DIALECTS:
        return value
    form, protobuf = form_of(dialect, binding), binding in (Binding.GRPC, Binding.REST)
    if isinstance(value.get("message"), dict):
        return _convert_send(form, value, dialect, protobuf)
    if operation == _CREATE_CONFIG:
        return (
            _convert_create(value) | form.convert_push_config(value)
            if not protobuf
            else _convert_create_protobuf(form, value)
        )
    if operation in _BY_CONFIG:
        return _convert_config_request(value, protobuf)
    if operation == _LIST_CONFIGS:
        task_id = str(value.get("taskId", ""))
        rest = without_members(value, "taskId")
        return {**rest, "parent": f"tasks/{task_id}"} if protobuf else {**rest, "id": task_id}
    if protobuf and "id" in value and operation != "ListTasks":
        return {"name": f"tasks/{value['id']}", **without_members(value, "id")}
    return value


def rpc_method(operation: str, dialect: Dialect) -> str:
    """Return the JSON-RPC method. Raises KeyError if the dialect has none."""
    row = OPERATION_BY_NAME[operation]
    if dialect not in OLD_DIALECTS:
        return operation
    named = [method for method, line in row.rpc_v0 if line is Dialect.V0_1]
    later = [method for method, line in row.rpc_v0 if line is not Dialect.V0_1]
    found = (named or later) if dialect is Dialect.V0_1 else later
    if not found:
        raise KeyError(operation)
    return found[0]


def grpc_path(operation: str, dialect: Dialect) -> str:
    """Return the path of a gRPC call. Raises KeyError if the dialect has none."""
    row = OPERATION_BY_NAME[operation]
    if dialect not in OLD_DIALECTS:
        return f"/lf.a2a.v1.A2AService/{operation}"
    found = [method for method, line in row.grpc_v0 if line is Dialect.V0_3]
    if not found:
        raise KeyError(operation)
    return f"/a2a.v1.A2AService/{found[0]}"


_REST_PATHS: dict[str, tuple[str, str]] = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "SendLiveMessage": ("POST", "/message:live"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
    "ReconnectToTask": ("POST", "/tasks/{id}:reconnect"),
    _CREATE_CONFIG: ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
    _LIST_CONFIGS: ("GET", "/tasks/{taskId}/pushNotificationConfigs"),
    "GetTaskPushNotificationConfig": ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "DeleteTaskPushNotificationConfig": ("DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
}


def rest_call(value: Any, operation: str, dialect: Dialect) -> RestCall:
    """Return the REST request (A2A 1.0 section 11.3). Raises LookupError if REST cannot express
    it."""
    method, path = _REST_PATHS[operation]
    members: Json = dict(value) if isinstance(value, dict) else {}
    tenant = (
        members.pop("tenant", "")
        if method != "POST" or "message" not in members
        else members.get("tenant", "")
    )
    old = dialect in OLD_DIALECTS
    if old and operation == "GetExtendedAgentCard":
        path = "/card"
    if old and operation == "SubscribeToTask":
        method = "GET"  # as in the protobuf of 0.3
    named = {name: str(members.get(name, "")) for name in ("id", "taskId") if f"{{{name}}}" in path}
    if "" in named.values():
        raise LookupError(f"the REST path of {operation} needs an id, and the request has none")
    path = path.format(**{name: quote(item, safe="") for name, item in named.items()})
    prefix = "/v1" if old else f"/{quote(str(tenant), safe='')}" if tenant else ""
    if method == "POST":
        body_value = (
            value
            if old or operation == _CREATE_CONFIG or "message" in members
            else without_members(members, *named)
        )
        body = (
            convert_request(body_value, operation, dialect, Binding.REST)
            if isinstance(body_value, dict)
            else {}
        )
        return RestCall(
            method,
            prefix + path,
            without_members(body, "name") if old and operation != _CREATE_CONFIG else body,
        )
    query = urlencode(
        [
            (name, str(item).lower() if isinstance(item, bool) else str(item))
            for name, item in without_members(members, *named).items()
            if isinstance(item, (str, int, float, bool))
        ]
    )
    return RestCall(method, f"{prefix}{path}?{query}" if query else prefix + path, None)


def _convert_send(form: DialectForm, value: Json, dialect: Dialect, protobuf: bool) -> Json:
    converted = {**value, "message": form.convert("Message", value["message"])}
    settings = value.get("configuration")
    if isinstance(settings, dict):
        converted["configuration"] = _convert_configuration(
            form, settings, protobuf or dialect is Dialect.V0_1
        )
    if dialect is not Dialect.V0_1:
        return converted
    # In 0.1 the client chooses the task id and sends it next to the message, with the configuration
    # of the call.
    message: Json = converted["message"]
    for inner, outer in (("taskId", "id"), ("contextId", "sessionId")):
        if inner in message:
            converted[outer] = message.pop(inner)
    configuration: Json = converted.pop("configuration", {})
    return {**converted, **configuration}


def _convert_configuration(form: DialectForm, value: Json, short: bool) -> Json:
    converted = without_members(value, "returnImmediately", "taskPushNotificationConfig")
    if isinstance(value.get("returnImmediately"), bool):
        converted["blocking"] = not value["returnImmediately"]
    push = value.get("taskPushNotificationConfig")
    if isinstance(push, dict):
        converted["pushNotification" if short else "pushNotificationConfig"] = (
            form.convert_push_member(push)
        )
    return converted


def _convert_create(value: Json) -> Json:
    return {"metadata": value["metadata"]} if "metadata" in value else {}


def _convert_create_protobuf(form: DialectForm, value: Json) -> Json:
    task_id, inner = split_push_config(value)
    identifier = str(inner.get("id", ""))
    return {
        "parent": f"tasks/{task_id}",
        "configId": identifier,
        "config": form.convert_push_config(value),
    }


def _convert_config_request(value: Json, protobuf: bool) -> Json:
    task_id, rest = str(value.get("taskId", "")), without_members(value, "taskId", "id")
    if protobuf:
        return {"name": config_name(task_id, str(value.get("id", ""))), **rest}
    return {"id": task_id, **rest} | (
        {"pushNotificationConfigId": value["id"]} if "id" in value else {}
    )
