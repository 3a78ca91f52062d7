"""What the tests send to the agent of each framework, and which operation each call is."""

from __future__ import annotations

from typing import Any

from support_frameworks import Call

CARD = "/.well-known/agent-card.json"
VERSION = {"A2A-Version": "1.0"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def rpc(operation: str, method: str, params: Any, *, path: str = "/", **more: Any) -> Call:
    """A call by JSON-RPC."""
    return Call(
        operation, path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, **more
    )


def rpc1(method: str, params: Any, **more: Any) -> Call:
    """A call of A2A 1.0 by JSON-RPC, where the method has the name of the operation."""
    return rpc(method, method, params, headers=VERSION, **more)


def message1(*parts: dict[str, Any], **ids: str) -> dict[str, Any]:
    """Parameters of 1.0: a message with these parts."""
    return {"message": {"messageId": "$message", "role": "ROLE_USER", "parts": list(parts), **ids}}


def message03(*parts: dict[str, Any], **ids: str) -> dict[str, Any]:
    """Parameters of 0.3: a message with these parts."""
    return {
        "message": {
            "kind": "message",
            "messageId": "$message",
            "role": "user",
            "parts": list(parts),
            **ids,
        }
    }


def said03(text: str, **ids: str) -> dict[str, Any]:
    """Parameters of 0.3: a message with this text."""
    return message03({"kind": "text", "text": text}, **ids)


def said01(text: str) -> dict[str, Any]:
    """A message of 0.1."""
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


TASK = {"task": "result.task.id", "context": "result.task.contextId"}
HELLO1, HELLO03 = {"text": "hello"}, {"kind": "text", "text": "hello"}

FASTA2A = (
    Call("GetAgentCard", CARD),
    rpc1("SendStreamingMessage", message1(HELLO1), keep=TASK),
    rpc1("GetTask", {"id": "$task"}),
    rpc1("CancelTask", {"id": "$task"}),
    rpc1("SubscribeToTask", {"id": "$task"}),
    rpc1("SendMessage", message1(HELLO1)),
    rpc1("SendStreamingMessage", message1({"data": {"a": 1}})),
    rpc1("ListTasks", {}),
    rpc1("GetTask", {"id": UNKNOWN}),
    rpc1("CancelTask", {"id": UNKNOWN}),
    rpc1("SubscribeToTask", {"id": UNKNOWN}),
    rpc("", "NoSuchMethod", {}),
    # The same by the names of 0.3, which it answers with objects of 1.0.
    rpc("SendStreamingMessage", "message/stream", message03(HELLO1), keep=TASK),
    rpc("GetTask", "tasks/get", {"id": "$task"}),
    rpc("CancelTask", "tasks/cancel", {"id": "$task"}),
    rpc("SubscribeToTask", "tasks/resubscribe", {"id": "$task"}),
    rpc("SendMessage", "message/send", message03(HELLO1)),
    rpc("ListTasks", "tasks/list", {}),
    rpc(
        "GetTaskPushNotificationConfig",
        "tasks/pushNotification/get",
        {"id": "hook", "taskId": "$task"},
    ),
    rpc("GetTask", "tasks/get", {"id": UNKNOWN}),
)

ADK = (
    Call("GetAgentCard", CARD),
    rpc1("SendStreamingMessage", message1(HELLO1), keep=TASK),
    rpc1("GetTask", {"id": "$task"}),
    rpc1("CancelTask", {"id": "$task"}),
    rpc1("SubscribeToTask", {"id": "$task"}),
    rpc1("SendMessage", message1(HELLO1)),
    rpc1("SendMessage", message1({"text": "fail"})),
    rpc1(
        "SendStreamingMessage",
        message1({"text": "wait"}),
        keep={"long": "result.task.id"},
        after=2,
        meanwhile=(rpc1("CancelTask", {"id": "$long"}),),
    ),
    rpc1("ListTasks", {"contextId": "$context"}),
    rpc1("GetTask", {"id": UNKNOWN}),
    rpc("", "NoSuchMethod", {}),
    rpc("SendMessage", "message/send", message03(HELLO03)),
    rpc("GetTask", "tasks/get", {"id": "$task"}),
)


_HOOK = {"url": "http://127.0.0.1:9/hook", "id": "hook-1"}
A2AKIT = (
    Call("GetAgentCard", CARD),
    rpc(
        "SendStreamingMessage",
        "message/stream",
        said03("hello"),
        keep={"task": "result.id", "context": "result.contextId"},
    ),
    rpc("GetTask", "tasks/get", {"id": "$task"}),
    rpc("CancelTask", "tasks/cancel", {"id": "$task"}),
    rpc("SubscribeToTask", "tasks/resubscribe", {"id": "$task"}),
    rpc("SendMessage", "message/send", said03("hello") | {"configuration": {"blocking": True}}),
    rpc("SendMessage", "message/send", said03("fail") | {"configuration": {"blocking": True}}),
    rpc("SendMessage", "message/send", said03("direct") | {"configuration": {"blocking": True}}),
    rpc(
        "SendMessage",
        "message/send",
        said03("ask") | {"configuration": {"blocking": True}},
        keep={"asked": "result.id", "where": "result.contextId"},
    ),
    rpc(
        "SendStreamingMessage",
        "message/stream",
        said03("hello", taskId="$asked", contextId="$where"),
    ),
    rpc(
        "SendStreamingMessage",
        "message/stream",
        said03("wait"),
        keep={"long": "result.id"},
        after=3,
        meanwhile=(rpc("CancelTask", "tasks/cancel", {"id": "$long"}),),
    ),
    rpc("ListTasks", "tasks/list", {"contextId": "$context"}),
    rpc(
        "CreateTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/set",
        {"taskId": "$task", "pushNotificationConfig": _HOOK},
    ),
    rpc(
        "GetTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/get",
        {"id": "$task", "pushNotificationConfigId": "hook-1"},
    ),
    rpc("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list", {"id": "$task"}),
    rpc(
        "DeleteTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/delete",
        {"id": "$task", "pushNotificationConfigId": "hook-1"},
    ),
    rpc("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", {}),
    rpc("SendMessage", "message/send", said03("hello", taskId="$task")),
    rpc("GetTask", "tasks/get", {"id": UNKNOWN}),
    rpc("", "health", {}),
    rpc("", "NoSuchMethod", {}),
)
A2AKIT_REST = (
    Call("GetAgentCard", CARD),
    Call(
        "SendStreamingMessage",
        "/v1/message:stream",
        said03("hello"),
        keep={"task": "id", "context": "contextId"},
    ),
    Call("GetTask", "/v1/tasks/$task"),
    Call("CancelTask", "/v1/tasks/$task:cancel", {}),
    Call("SubscribeToTask", "/v1/tasks/$task:subscribe", {}),
    Call(
        "SendMessage", "/v1/message:send", said03("hello") | {"configuration": {"blocking": True}}
    ),
    Call("ListTasks", "/v1/tasks?contextId=$context"),
    Call("CreateTaskPushNotificationConfig", "/v1/tasks/$task/pushNotificationConfigs", _HOOK),
    Call("GetTaskPushNotificationConfig", "/v1/tasks/$task/pushNotificationConfigs/hook-1"),
    Call("ListTaskPushNotificationConfigs", "/v1/tasks/$task/pushNotificationConfigs"),
    Call(
        "DeleteTaskPushNotificationConfig",
        "/v1/tasks/$task/pushNotificationConfigs/hook-1",
        method="DELETE",
    ),
    Call("GetExtendedAgentCard", "/v1/card"),
    Call("GetTask", f"/v1/tasks/{UNKNOWN}"),
    Call("", "/v1/health"),
)


_ID = "5d1f4f2a-6f4e-4a8e-9a42-0d3b5c1e7f01"
PYTHONA2A = (
    Call("GetAgentCard", "/.well-known/agent.json"),
    Call("GetAgentCard", "/agent.json"),
    rpc("SendMessage", "tasks/send", {"id": _ID, "message": said01("hello")}, path="/tasks/send"),
    rpc("GetTask", "tasks/get", {"id": _ID}, path="/tasks/get"),
    rpc(
        "SendStreamingMessage",
        "tasks/sendSubscribe",
        {"id": _ID, "message": said01("hello")},
        path="/tasks/stream",
    ),
    rpc("SubscribeToTask", "tasks/resubscribe", {"id": _ID}, path="/tasks/stream"),
    rpc("CancelTask", "tasks/cancel", {"id": _ID}, path="/tasks/cancel"),
    rpc("SendMessage", "tasks/send", {"id": _ID, "message": said01("fail")}, path="/tasks/send"),
    rpc("GetTask", "tasks/get", {"id": UNKNOWN}, path="/tasks/get"),
    rpc("CancelTask", "tasks/cancel", {"id": UNKNOWN}, path="/tasks/cancel"),
    Call("", "/", said01("hello")),
)

_AGNO = "/a2a/agents/answering"
AGNO = (
    Call("GetAgentCard", f"{_AGNO}/.well-known/agent-card.json"),
    rpc(
        "SendMessage",
        "message/send",
        said03("hello"),
        path=f"{_AGNO}/v1/message:send",
        keep={"task": "result.id", "context": "result.contextId"},
    ),
    rpc(
        "GetTask",
        "tasks/get",
        {"id": "$task", "contextId": "$context"},
        path=f"{_AGNO}/v1/tasks:get",
    ),
    rpc(
        "CancelTask",
        "tasks/cancel",
        {"id": "$task", "contextId": "$context"},
        path=f"{_AGNO}/v1/tasks:cancel",
    ),
    rpc(
        "SendStreamingMessage", "message/stream", said03("hello"), path=f"{_AGNO}/v1/message:stream"
    ),
    rpc("SendMessage", "message/send", said03("fail"), path=f"{_AGNO}/v1/message:send"),
    rpc(
        "SendStreamingMessage", "message/stream", said03("fail"), path=f"{_AGNO}/v1/message:stream"
    ),
    rpc(
        "GetTask",
        "tasks/get",
        {"id": UNKNOWN, "contextId": "$context"},
        path=f"{_AGNO}/v1/tasks:get",
    ),
    Call("SendMessage", "/a2a/agents/none/v1/message:send", said03("hello")),
)


_ASSISTANT = "f6656b99-8bed-5a18-803c-1fe67bf265ce"
"""LangGraph makes it of the name of the graph."""


def langgraph(operation: str, method: str, params: Any, **more: Any) -> Call:
    """A call to the assistant."""
    return rpc(operation, method, params, path=f"/a2a/{_ASSISTANT}", **more)


def langgraph1(method: str, params: Any, **more: Any) -> Call:
    """A call of 1.0 to the assistant."""
    return langgraph(method, method, params, headers=VERSION, **more)


LANGGRAPH = (
    Call("GetAgentCard", f"{CARD}?assistant_id={_ASSISTANT}"),
    langgraph1("SendStreamingMessage", message1(HELLO1), keep=TASK),
    langgraph1("SendMessage", message1(HELLO1), keep=TASK),
    langgraph1("GetTask", {"id": "$task", "contextId": "$context"}),
    langgraph1("SendMessage", message1({"text": "again"}, contextId="$context")),
    langgraph1("SendMessage", message1({"text": "fail"})),
    langgraph1("SendStreamingMessage", message1({"text": "fail"})),
    langgraph1("CancelTask", {"id": "$task"}),
    langgraph1("ListTasks", {"contextId": "$context"}),
    langgraph1("GetTask", {"id": f"{UNKNOWN}:{UNKNOWN}"}),
    langgraph1("GetExtendedAgentCard", {}),
    langgraph("", "NoSuchMethod", {}),
    langgraph("SendStreamingMessage", "message/stream", said03("hello")),
    langgraph(
        "SendMessage",
        "message/send",
        said03("hello"),
        keep={"old": "result.id", "context": "result.contextId"},
    ),
    langgraph("GetTask", "tasks/get", {"id": "$old", "contextId": "$context"}),
    langgraph("CancelTask", "tasks/cancel", {"id": "$old"}),
)

_JS03_RPC, _JS03_REST = "/a2a/jsonrpc", "/a2a/rest/v1"
JS03 = (
    Call("GetAgentCard", CARD),
    rpc("SendMessage", "message/send", said03("hello"), path=_JS03_RPC, keep={"task": "result.id"}),
    Call("GetTask", f"{_JS03_REST}/tasks/$task"),
    Call("SubscribeToTask", f"{_JS03_REST}/tasks/$task:subscribe", method="POST"),
    Call("CancelTask", f"{_JS03_REST}/tasks/$task:cancel", method="POST"),
    Call("SendMessage", f"{_JS03_REST}/message:send", said03("direct")),
    Call("GetExtendedAgentCard", f"{_JS03_REST}/card"),
    rpc("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", {}, path=_JS03_RPC),
    rpc("", "NoSuchMethod", {}, path=_JS03_RPC),
)

BEEAI = (
    Call("GetAgentCard", CARD),
    rpc("SendStreamingMessage", "message/stream", said03("hello")),
    rpc("SendMessage", "message/send", said03("hello")),
    rpc("SendMessage", "message/send", said03("fail")),
    rpc("GetTask", "tasks/get", {"id": UNKNOWN}),
    rpc("CancelTask", "tasks/cancel", {"id": UNKNOWN}),
    rpc("SubscribeToTask", "tasks/resubscribe", {"id": UNKNOWN}),
    rpc("", "NoSuchMethod", {}),
    Call("", "/health"),
)
