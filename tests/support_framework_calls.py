"""What the tests send to the agent of each framework, and which operation each call is."""

from __future__ import annotations

from typing import Any

from support_frameworks import Call

CARD = "/.well-known/agent-card.json"
VERSION = {"A2A-Version": "1.0"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def rpc(operation: str, method: str, params: Any, *, path: str = "/", **more: Any) -> Call:
    """A call by JSON-RPC."""
    return Call(operation, path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, **more)


def rpc1(method: str, params: Any, **more: Any) -> Call:
    """A call of A2A 1.0 by JSON-RPC, where the method has the name of the operation."""
    return rpc(method, method, params, headers=VERSION, **more)


def message1(*parts: dict[str, Any], **ids: str) -> dict[str, Any]:
    """Parameters of 1.0: a message with these parts."""
    return {"message": {"messageId": "$message", "role": "ROLE_USER", "parts": list(parts), **ids}}


def message03(*parts: dict[str, Any], **ids: str) -> dict[str, Any]:
    """Parameters of 0.3: a message with these parts."""
    return {"message": {"kind": "message", "messageId": "$message", "role": "user", "parts": list(parts), **ids}}


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
    rpc("GetTaskPushNotificationConfig", "tasks/pushNotification/get", {"id": "hook", "taskId": "$task"}),
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
        meanwhile=(rpc1("CancelTask", {"id": "$long"}),),
    ),
    rpc1("ListTasks", {"contextId": "$context"}),
    rpc1("GetTask", {"id": UNKNOWN}),
    rpc("", "NoSuchMethod", {}),
    rpc("SendMessage", "message/send", message03(HELLO03)),
    rpc("GetTask", "tasks/get", {"id": "$task"}),
)
