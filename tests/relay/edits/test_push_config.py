"""Push configurations in calls and answers of every dialect and binding: found, named and edited,
nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proto import message_class
from a2a_proxy.relay.edits.edit import PushConfig
from a2a_proxy.relay.edits.push_config import (
    HINTS,
    PushCall,
    classify_grpc,
    classify_jsonrpc,
    classify_rest,
    edit_answer,
    edit_request,
    is_failure,
    read_deleted,
)

HOOK, OURS = "http://client.example/hook?x=1", "http://127.0.0.1:9100/" + "ab" * 16


class Urls:
    """Replaces one URL, and keeps the names of the configurations."""

    def __init__(self) -> None:
        self.configs: list[PushConfig] = []

    def replace_url(self, url: str, config: PushConfig) -> str | None:
        self.configs.append(config)
        return OURS if url == HOOK else None

    def restore_url(self, url: str, config: PushConfig) -> str | None:
        self.configs.append(config)
        return HOOK if url == OURS else None

    def keep_request(self, url: str, request: bytes) -> None:
        raise AssertionError(url)

    def discard_url(self, url: str) -> None:
        raise AssertionError(url)

    def forget_config(self, config: PushConfig) -> None:
        raise AssertionError(config)


def rpc(method: str, **params: Any) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, indent=1
    ).encode()


CONFIG = {"id": "hook-1", "url": HOOK, "token": HOOK, "authentication": {"url": HOOK}}
MESSAGE = {
    "messageId": "m",
    "parts": [{"url": HOOK, "data": {"url": HOOK, "pushNotificationConfig": {"url": HOOK}}}],
}
NAMED = PushConfig("t", "hook-1")
UNNAMED = PushConfig("", "hook-1")
CALLS = {
    "1.0 create": (rpc("CreateTaskPushNotificationConfig", taskId="t", **CONFIG), NAMED),
    "0.3 create": (
        rpc("tasks/pushNotificationConfig/set", taskId="t", pushNotificationConfig=CONFIG),
        NAMED,
    ),
    "0.1 create": (
        rpc("tasks/pushNotification/set", id="t", pushNotificationConfig={"url": HOOK}),
        PushConfig("t"),
    ),
    "1.0 send": (
        rpc("SendMessage", message=MESSAGE, configuration={"taskPushNotificationConfig": CONFIG}),
        UNNAMED,
    ),
    "0.3 send": (
        rpc("message/stream", message=MESSAGE, configuration={"pushNotificationConfig": CONFIG}),
        UNNAMED,
    ),
    "0.1 send": (
        rpc("tasks/sendSubscribe", id="t", message=MESSAGE, pushNotification={"url": HOOK}),
        PushConfig("t"),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_jsonrpc_requests(name: str) -> None:
    """Only the configuration's URL changes: not those in parts, tokens and other objects."""
    body, config = CALLS[name]
    call = classify_jsonrpc(body)
    assert call is not None
    assert any(hint in body for hint in HINTS)
    urls = Urls()
    edit = edit_request(call, body, urls)
    assert edit is not None
    assert edit.payload.replace(OURS.encode(), HOOK.encode()) == body
    assert edit.payload.count(OURS.encode()) == 1
    assert edit.urls == ((HOOK, OURS),)
    assert urls.configs == [config]


REST = {
    "1.0 create": (b"/tasks/t/pushNotificationConfigs", CONFIG, NAMED),
    "0.3 create": (
        b"/v1/tasks/t/pushNotificationConfigs",
        {"config": {"pushNotificationConfig": CONFIG}},
        NAMED,
    ),
    "0.3 create, name": (
        b"/v1/tasks/t/pushNotificationConfigs",
        {
            "name": "tasks/t/pushNotificationConfigs/hook-1",
            "push_notification_config": {"url": HOOK},
        },
        NAMED,
    ),
    "1.0 send": (
        b"/message:send",
        {"message": MESSAGE, "configuration": {"taskPushNotificationConfig": CONFIG}},
        UNNAMED,
    ),
    "0.3 send": (
        b"/v1/message:stream",
        {"request": MESSAGE, "configuration": {"push_notification": CONFIG}},
        UNNAMED,
    ),
}


@pytest.mark.parametrize("name", REST)
def test_rest_requests(name: str) -> None:
    target, value, config = REST[name]
    call = classify_rest(b"POST", target)
    assert call is not None
    body, urls = json.dumps(value).encode(), Urls()
    edit = edit_request(call, body, urls)
    assert edit is not None
    assert edit.payload.replace(OURS.encode(), HOOK.encode()) == body
    assert edit.payload.count(OURS.encode()) == 1
    assert urls.configs == [config]


@pytest.mark.parametrize(
    ("line", "target", "kind"),
    [
        (b"POST", b"/message:live", "send"),
        (b"GET", b"/a/v1/tasks/t/pushNotificationConfigs?pageSize=1", "list"),
        (b"GET", b"/tasks/t/pushNotificationConfigs/c", "get"),
        (b"DELETE", b"/tasks/t/pushNotificationConfigs/c", "delete"),
        (b"GET", b"/tasks/t", None),
        (b"POST", b"/", None),
    ],
)
def test_rest_lines(line: bytes, target: bytes, kind: str | None) -> None:
    call = classify_rest(line, target)
    assert (call and call.kind) == kind


OUR_CONFIG = CONFIG | {"url": OURS}
ANSWERS: dict[str, tuple[Any, list[PushConfig]]] = {
    "1.0": ({"taskId": "t", **OUR_CONFIG}, [NAMED]),
    "0.3": ({"taskId": "t", "pushNotificationConfig": OUR_CONFIG}, [NAMED]),
    "0.1": ({"id": "t", "pushNotificationConfig": {"url": OURS}}, [PushConfig("t", "known")]),
    "1.0 list": (
        {"configs": [{"taskId": "t", **OUR_CONFIG}, {"url": "http://x", "id": "y"}]},
        [NAMED],
    ),
    "0.3 list": ([{"taskId": "t", "pushNotificationConfig": OUR_CONFIG}], [NAMED]),
    "0.3 REST": (
        {"name": "tasks/t/pushNotificationConfigs/hook-1", "pushNotificationConfig": OUR_CONFIG},
        [NAMED],
    ),
}


@pytest.mark.parametrize("form", ["json", "jsonrpc"])
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_get_the_client_s_url(name: str, form: str) -> None:
    value, configs = ANSWERS[name]
    body = json.dumps(
        value if form == "json" else {"jsonrpc": "2.0", "id": 1, "result": value}
    ).encode()
    urls = Urls()
    edit = edit_answer(PushCall("get", form, PushConfig("", "known")), body, urls)
    assert edit is not None
    assert edit.payload == body.replace(OURS.encode(), HOOK.encode())
    assert urls.configs[: len(configs)] == configs


def protobuf(line: str, kind: str, url: str) -> bytes:
    """Return a serialized request or answer with one configuration, and an unknown field."""
    if kind == "send":
        message = message_class(line, "SendMessageRequest")()  # type: ignore[arg-type]
        member = {
            "0.3": "push_notification",
            "1.0": "task_push_notification_config",
        }
        config = getattr(message.configuration, member[line])
        config.id, config.url, config.token = "hook-1", url, HOOK
        return bytes(message.SerializeToString()) + b"\xa2\x3f\x01x"
    old = line == "0.3"
    if kind == "create" and old:
        message = message_class(line, "CreateTaskPushNotificationConfigRequest")()  # type: ignore[arg-type]
        entry = message.config
        message.parent, message.config_id = "tasks/t", "hook-1"
    elif kind == "list":
        name = f"ListTaskPushNotificationConfig{'' if old else 's'}Response"
        message = message_class(line, name)()  # type: ignore[arg-type]
        message.configs.add().SetInParent()
        entry = message.configs.add()
    else:
        message = entry = message_class(line, "TaskPushNotificationConfig")()  # type: ignore[arg-type]
    if line == "0.3" and entry is not getattr(message, "config", None):
        entry.name = "tasks/t/pushNotificationConfigs/hook-1"
    elif not old:
        entry.task_id = "t"
    config = entry.push_notification_config if old else entry
    config.id, config.url, config.token = "hook-1", url, HOOK
    return bytes(message.SerializeToString()) + b"\xa2\x3f\x01x"


@pytest.mark.parametrize("line", ["0.3", "1.0"])
@pytest.mark.parametrize("kind", ["send", "create"])
def test_grpc_requests(line: str, kind: str) -> None:
    package = "lf.a2a.v1" if line == "1.0" else "a2a.v1"
    method = {"send": "SendStreamingMessage", "create": "CreateTaskPushNotificationConfig"}[kind]
    call = classify_grpc(f"/{package}.A2AService/{method}".encode())
    assert call is not None
    urls = Urls()
    edit = edit_request(call, protobuf(line, kind, HOOK), urls)
    assert edit is not None
    assert edit.payload == protobuf(line, kind, OURS)
    assert [config.id for config in urls.configs] == ["hook-1"]


@pytest.mark.parametrize("line", ["0.3", "1.0"])
@pytest.mark.parametrize("kind", ["get", "list"])
def test_grpc_answers(line: str, kind: str) -> None:
    package = "lf.a2a.v1" if line == "1.0" else "a2a.v1"
    urls = Urls()
    edit = edit_answer(PushCall(kind, package), protobuf(line, kind, OURS), urls)  # type: ignore[arg-type]
    assert edit is not None
    assert edit.payload == protobuf(line, kind, HOOK)
    assert urls.configs[-1] == NAMED


@pytest.mark.parametrize("line", ["0.3", "1.0"])
def test_grpc_deletions(line: str) -> None:
    package = "lf.a2a.v1" if line == "1.0" else "a2a.v1"
    made = message_class(line, "DeleteTaskPushNotificationConfigRequest")()  # type: ignore[arg-type]
    if line == "0.3":
        made.name = "tasks/t/pushNotificationConfigs/hook-1"
    else:
        made.task_id, made.id = "t", "hook-1"
    assert read_deleted(PushCall("delete", package), made.SerializeToString()) == NAMED


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"method":1}',
        rpc("GetTask", id="t"),
        b"\xff",
        b"[" * 100_000,
        b'{"method":"x"}',
    ],
)
def test_other_requests_are_no_push_call(body: bytes) -> None:
    assert classify_jsonrpc(body) is None


@pytest.mark.parametrize(
    ("status", "payload", "failed"),
    [
        (200, b'{"result":null}', False),
        (200, b'{"error":{"code":1}}', True),
        (404, b"{}", True),
        (200, b"x", True),
    ],
)
def test_failures(status: int, payload: bytes, failed: bool) -> None:
    assert is_failure(PushCall("delete", "jsonrpc"), status, payload) is failed
    assert is_failure(PushCall("delete", "json"), status, payload) is (status == 404)


def test_objects_of_any_depth_do_not_raise() -> None:
    """The parser has a limit of its own, which differs from that of Python functions."""
    for depth in range(800, 1000):
        body = b'{"config":' * depth + b'{"url":"x"}' + b"}" * depth
        assert edit_request(PushCall("create", "json"), body, Urls()) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5) | st.sampled_from([HOOK, OURS]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["url", "configuration", "config", "pushNotificationConfig", "configs", "id", "a"]
            ),
            inner,
        )
    ),
)


@given(VALUES, st.sampled_from(["json", "jsonrpc"]), st.sampled_from(["send", "create"]))
def test_an_edit_of_any_json_is_undone_by_its_inverse(value: Any, form: str, kind: Any) -> None:
    body = json.dumps({"params": value, "result": value} if form == "jsonrpc" else value).encode()
    edit = edit_request(PushCall(kind, form), body, Urls())
    if edit is not None:
        assert edit.payload.replace(OURS.encode(), HOOK.encode()) == body.replace(
            OURS.encode(), HOOK.encode()
        )
        assert json.loads(edit.payload) != json.loads(body)
