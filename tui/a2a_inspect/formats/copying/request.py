"""The parameters of a recorded call, from JSON-RPC, a REST request line and body, or protobuf."""

from __future__ import annotations

from typing import Any

from a2a_inspect.formats.copying.call import CopiedCall, NotOffered
from a2a_proxy.model.exchange import Binding
from a2a_proxy.protocol import rest_path
from a2a_proxy.protocol.rest_path import RestMatch

_BOOLEANS = {"true": True, "false": False}
_TASK_ID_OPERATIONS = (
    "ListTaskPushNotificationConfigs",
    "GetTaskPushNotificationConfig",
    "DeleteTaskPushNotificationConfig",
)
"""Operations that name the task as `taskId`, not as `id`."""


def request_parameters(call: CopiedCall) -> dict[str, Any]:
    """Return the parameters in the form of the call's own dialect and binding.

    Raises:
        NotOffered: they were not recorded as sent.
    """
    if call.exchange.binding is Binding.REST:
        return _rest_parameters(call)
    value = call.request_value() if call.first_request().payload else {}
    if call.exchange.binding in (Binding.JSONRPC, Binding.STDIO):
        value = value.get("params", {}) if isinstance(value, dict) else None
    if not isinstance(value, dict):
        raise NotOffered("its parameters are not an object")
    return value


def rest_match(call: CopiedCall) -> RestMatch:
    """Return the match of the request line; raises NotOffered if it is not a REST operation."""
    found = rest_path.match_request_line(call.exchange.method, call.exchange.target.encode("latin-1", "replace"))
    if found is None:
        raise NotOffered("its path is not an A2A path")
    return found


def _rest_parameters(call: CopiedCall) -> dict[str, Any]:
    found = rest_match(call)
    body = call.request_value() if call.first_request().payload else {}
    if not isinstance(body, dict):
        raise NotOffered("its body is not an object")
    owner = "taskId" if call.exchange.operation in _TASK_ID_OPERATIONS or found.config_id else "id"
    if call.exchange.operation == "CreateTaskPushNotificationConfig":
        owner = "taskId"
    ids = {owner: found.task_id, "id" if owner == "taskId" else "": found.config_id}
    query: dict[str, Any] = {name: _BOOLEANS.get(value, value) for name, value in found.query}
    return {**{name: value for name, value in ids.items() if name and value}, **query, **body}
