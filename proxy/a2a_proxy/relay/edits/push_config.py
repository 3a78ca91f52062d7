"""Find push notification configurations in calls and their answers, and replace their URLs with
every other byte unchanged.

Covers JSON-RPC, REST and gRPC in all dialects (manual/protocol.md "Operations"). Knows neither
where a URL leads nor what replaces it: `WebhookUrls` does.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from a2a_proxy.protocol.operations import GRPC_METHODS, JSONRPC_METHODS, SENDING_OPERATIONS
from a2a_proxy.protocol.rest_path import match_request_line
from a2a_proxy.relay.edits.edit import PushConfig, WebhookUrls
from a2a_proxy.relay.edits.json_strings import ITEM, replace_strings
from a2a_proxy.relay.edits.protobuf_strings import Path, read_string, replace_fields

HINTS = (b"ushNotification", b"push_notification")
"""Part of all names of methods and members in JSON that concern push notifications, in each
spelling."""

_OLD_PACKAGE, _PACKAGE = "a2a.v1", "lf.a2a.v1"

_CONFIG_MEMBERS = (
    "taskPushNotificationConfig",
    "pushNotificationConfig",
    "pushNotification",
    "task_push_notification_config",
    "push_notification_config",
    "push_notification",
)
_URL, _CONFIG = "url", "config"
_SEND_PATHS = [
    *(["configuration", member, _URL] for member in _CONFIG_MEMBERS),
    *([member, _URL] for member in _CONFIG_MEMBERS),
]
_ENTRY_PATHS = [
    [_URL],
    [_CONFIG, _URL],
    *([member, _URL] for member in _CONFIG_MEMBERS),
    *([_CONFIG, member, _URL] for member in _CONFIG_MEMBERS),
]
_ANSWER_PATHS = [
    *_ENTRY_PATHS,
    *([ITEM, *path] for path in _ENTRY_PATHS),
    *(["configs", ITEM, *path] for path in _ENTRY_PATHS),
]

Kind = Literal["send", "create", "get", "list", "delete"]
ReplaceUrl = Callable[[str, PushConfig], str | None]


class PushCall(msgspec.Struct, frozen=True):
    """A call that may carry a push configuration, or names one."""

    kind: Kind
    form: str
    """Form of its payloads: `json`, `jsonrpc`, else the protobuf package of the service."""
    config: PushConfig = PushConfig()
    """The configuration, as far as the request line or the parameters name it."""


class UrlEdit(msgspec.Struct, frozen=True):
    """A payload with other URLs."""

    payload: bytes
    urls: tuple[tuple[str, str], ...]
    """Each changed URL, before and after."""


class _RpcCall(msgspec.Struct):
    method: str = ""
    params: Any = None


class _ProtobufShape(msgspec.Struct, frozen=True):
    """Where a message has a push configuration."""

    entry: Path
    """The message around it, of which there may be several."""
    url: Path
    id: Path
    task: Path = ()
    """Its task in the entry; empty if it is not there."""
    name: Path = ()
    """Its resource name in the entry, `tasks/{id}/pushNotificationConfigs/{id}`; empty if it has
    none."""


_NEW_ENTRY = _ProtobufShape((), (4,), (2,), (3,))
_OLD_ENTRY = _ProtobufShape((), (2, 2), (2, 1), (3,), (1,))
_SHAPES: dict[tuple[str, Kind], _ProtobufShape] = {
    (_PACKAGE, "send"): _ProtobufShape((3, 2), (4,), (2,)),
    (_PACKAGE, "create"): _NEW_ENTRY,
    (_OLD_PACKAGE, "send"): _ProtobufShape((2, 2), (2,), (1,)),
    (_OLD_PACKAGE, "create"): _ProtobufShape((), (3, 2, 2), (2,), (), (1,)),
}
"""Shapes of requests."""
_ANSWER_SHAPES = {
    _PACKAGE: _NEW_ENTRY,
    _OLD_PACKAGE: _OLD_ENTRY,
}
"""Shapes of answers, of which a list has several in its field 1."""
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(SENDING_OPERATIONS, "send"),
    "CreateTaskPushNotificationConfig": "create",
    "GetTaskPushNotificationConfig": "get",
    "ListTaskPushNotificationConfigs": "list",
    "DeleteTaskPushNotificationConfig": "delete",
}
_ANSWERS_WITH_URL = ("create", "get", "list")


def classify_rest(method: bytes, target: bytes) -> PushCall | None:
    """Return the call of a REST request line, or None if it is another one."""
    found = match_request_line(method.decode("latin-1"), target)
    kind = _KINDS.get(found.operation.name) if found is not None else None
    if found is None or kind is None:
        return None
    return PushCall(kind, "json", PushConfig(found.task_id, found.config_id))


def classify_jsonrpc(body: bytes) -> PushCall | None:
    """Return the call of a JSON-RPC request, or None if it is another one."""
    try:
        call = msgspec.json.decode(body, type=_RpcCall)
    except (ValueError, RecursionError):
        return None
    found = JSONRPC_METHODS.get(call.method)
    kind = _KINDS.get(found[0].name) if found is not None else None
    if kind is None:
        return None
    params = (
        call.params if isinstance(call.params, dict) and kind in ("get", "list", "delete") else {}
    )
    task, named = _text(params, "taskId"), _text(params, "id")  # before 1.0 `id` is the task
    config = _text(params, "pushNotificationConfigId") or (named if task else "")
    return PushCall(kind, "jsonrpc", PushConfig(task or named, config))


def classify_grpc(path: bytes) -> PushCall | None:
    """Return the call of a gRPC path, or None if it is another one."""
    found = GRPC_METHODS.get(path.decode("latin-1"))
    kind = _KINDS.get(found[0].name) if found is not None else None
    return None if kind is None else PushCall(kind, path[1:].rpartition(b".")[0].decode("latin-1"))


def read_deleted(call: PushCall, payload: bytes) -> PushConfig:
    """Return the configuration that a gRPC request deletes, as far as the message names it."""
    try:
        if call.form == _PACKAGE:
            return PushConfig(read_string(payload, (2,)), read_string(payload, (3,)))
        task, name = read_string(payload, (3,)), read_string(payload, (1,))
        return PushConfig(task, name) if task else _config_of_name(name)
    except ValueError:
        return PushConfig()


def edit_request(call: PushCall, payload: bytes, urls: WebhookUrls) -> UrlEdit | None:
    """Return the request with the proxy's URLs in place of those of the client, or None if nothing
    changes."""
    if call.form in ("json", "jsonrpc"):
        if call.kind not in ("send", "create"):
            return None
        paths = _SEND_PATHS if call.kind == "send" else _ENTRY_PATHS
        root = ["params"] if call.form == "jsonrpc" else []
        return _edit_json(payload, root, paths, call.config, urls.replace_url)
    shape = _SHAPES.get((call.form, call.kind))
    return _edit_protobuf(payload, shape, urls.replace_url) if shape is not None else None


def edit_answer(call: PushCall, payload: bytes, urls: WebhookUrls) -> UrlEdit | None:
    """Return the answer with the client's URLs in place of those of the proxy, or None if nothing
    changes."""
    if call.kind not in _ANSWERS_WITH_URL:
        return None
    if call.form in ("json", "jsonrpc"):
        root = ["result"] if call.form == "jsonrpc" else []
        return _edit_json(payload, root, _ANSWER_PATHS, call.config, urls.restore_url)
    shape = _ANSWER_SHAPES[call.form]
    if call.kind == "list":
        shape = msgspec.structs.replace(shape, entry=(1,))
    return _edit_protobuf(payload, shape, urls.restore_url)


def is_failure(call: PushCall, status: int, payload: bytes) -> bool:
    """Return whether the agent refused the call, by the HTTP status and the whole answer."""
    if status >= 300:
        return True
    if call.form != "jsonrpc":
        return False
    try:
        answer = msgspec.json.decode(payload)
    except (ValueError, RecursionError):
        return True
    return not isinstance(answer, dict) or answer.get("error") is not None


def _edit_json(
    payload: bytes, root: list[str], paths: list[list[str]], known: PushConfig, replace: ReplaceUrl
) -> UrlEdit | None:
    try:
        value = msgspec.json.decode(payload)
    except (ValueError, RecursionError):
        return None
    for name in root:
        value = value.get(name) if isinstance(value, dict) else None
    configs = dict(_configs_in(value))
    changed: dict[str, str] = {}

    def change(url: str) -> str | None:
        if url not in changed:
            found = configs.get(url, PushConfig())
            named = PushConfig(found.task_id or known.task_id, found.id or known.id)
            if (after := replace(url, named)) is None:
                return None
            changed[url] = after
        return changed[url]

    edited = replace_strings(payload, [[*root, *path] for path in paths], change)
    return None if edited is None else UrlEdit(edited, tuple(changed.items()))


def _configs_in(value: Any) -> Iterator[tuple[str, PushConfig]]:
    """Yield the URL and the name of each configuration in decoded parameters or an answer."""
    if isinstance(value, dict) and isinstance(value.get("configs"), list):
        value = value["configs"]
    for entry in value if isinstance(value, list) else [value]:
        if not isinstance(entry, dict):
            continue
        sent = entry.get("configuration")
        outer = sent if isinstance(sent, dict) else entry
        inner = _inner_config(outer)
        if isinstance(url := inner.get(_URL), str):
            yield url, _name_config(entry if outer is entry else {}, inner)


def _inner_config(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the object with the URL: the entry itself, or one of its members."""
    inner: dict[str, Any] | None = entry
    while inner is not None:  # a recursion could exceed its limit, which a client decides
        entry = inner
        members = (entry.get(name) for name in (_CONFIG, *_CONFIG_MEMBERS))
        inner = next((member for member in members if isinstance(member, dict)), None)
    return entry


def _name_config(entry: dict[str, Any], inner: dict[str, Any]) -> PushConfig:
    named = _config_of_name(_text(entry, "name") or _text(entry, "parent"))
    task = _text(entry, "taskId") or named.task_id
    if inner is entry:
        return PushConfig(task, _text(entry, "id"))
    outer_id = _text(entry, "id")
    config = _text(inner, "id") or _text(entry, "configId") or named.id
    return PushConfig(task or outer_id, config or (outer_id if task else ""))


def _config_of_name(name: str) -> PushConfig:
    """Return the configuration of a resource name, `tasks/{id}/pushNotificationConfigs/{id}` or a
    part of it."""
    task, _, config = name.removeprefix("tasks/").partition("/pushNotificationConfigs/")
    return PushConfig(task, config) if name.startswith("tasks/") else PushConfig()


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _edit_protobuf(payload: bytes, shape: _ProtobufShape, replace: ReplaceUrl) -> UrlEdit | None:
    changed: dict[str, str] = {}

    def edit_entry(entry: bytes) -> bytes:
        config = _name_protobuf_config(entry, shape)

        def change(url: bytes) -> bytes:
            text = url.decode()
            after = replace(text, config) if text not in changed else changed[text]
            if after is None:
                return url
            changed[text] = after
            return after.encode()

        return replace_fields(entry, shape.url, change)

    try:
        edited = replace_fields(payload, shape.entry, edit_entry)
    except ValueError:
        return None
    return UrlEdit(edited, tuple(changed.items())) if edited != payload else None


def _name_protobuf_config(entry: bytes, shape: _ProtobufShape) -> PushConfig:
    named = _config_of_name(read_string(entry, shape.name)) if shape.name else PushConfig()
    task = read_string(entry, shape.task) if shape.task else ""
    return PushConfig(task or named.task_id, read_string(entry, shape.id) or named.id)
