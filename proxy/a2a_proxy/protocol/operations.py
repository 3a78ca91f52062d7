"""The operation table: operation x dialect x binding (manual/protocol.md "Operations"). Reads no
payloads.

Every operation is identified by its 1.0 name. REST paths are in `rest_path`.
"""

from enum import Enum

import msgspec

from a2a_proxy.model.values import Dialect


class ResponseKind(Enum):
    """Kind of the response to a successful call."""

    SEND = "send"
    """A Task or a Message: wrapped in 1.0, bare before."""
    STREAM = "stream"
    """Events."""
    TASK = "task"
    TASKS = "tasks"
    PUSH_CONFIG = "push"
    PUSH_CONFIGS = "pushes"
    CARD = "card"
    EMPTY = "empty"


class Operation(msgspec.Struct, frozen=True):
    """One row of the operation table."""

    name: str
    """The 1.0 name; also the JSON-RPC 1.0 and gRPC 1.0 method."""
    answer: ResponseKind
    rpc_v0: tuple[tuple[str, Dialect], ...] = ()
    """JSON-RPC methods before 1.0, each with the only dialect that has it, or UNKNOWN if several
    have it."""
    grpc_v0: tuple[tuple[str, Dialect], ...] = ()
    """gRPC methods of the package `a2a.v1`, each with the dialect it proves."""
    request: str = ""
    """Protobuf request message in 1.0, without package; `OLD_MESSAGES` has the names that differ in
    older dialects."""
    response: str = ""

    @property
    def is_streaming(self) -> bool:
        """Whether the response is a stream of events."""
        return self.answer is ResponseKind.STREAM


_0_1, _0_2, _0_3, _ANY = Dialect.V0_1, Dialect.V0_2, Dialect.V0_3, Dialect.UNKNOWN
_PUSH_CONFIG_NAME = "TaskPushNotificationConfig"

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "SendMessage",
        ResponseKind.SEND,
        (("tasks/send", _0_1), ("message/send", _ANY)),
        (("SendMessage", _0_3),),
        "SendMessageRequest",
        "SendMessageResponse",
    ),
    Operation(
        "SendStreamingMessage",
        ResponseKind.STREAM,
        (("tasks/sendSubscribe", _0_1), ("message/stream", _ANY)),
        (("SendStreamingMessage", _0_3),),
        "SendMessageRequest",
        "StreamResponse",
    ),
    Operation(
        "GetTask",
        ResponseKind.TASK,
        (("tasks/get", _ANY),),
        (("GetTask", _0_3),),
        "GetTaskRequest",
        "Task",
    ),
    Operation(
        "ListTasks",
        ResponseKind.TASKS,
        (("tasks/list", _0_3),),
        (("ListTasks", _0_3),),
        "ListTasksRequest",
        "ListTasksResponse",
    ),
    Operation(
        "CancelTask",
        ResponseKind.TASK,
        (("tasks/cancel", _ANY),),
        (("CancelTask", _0_3),),
        "CancelTaskRequest",
        "Task",
    ),
    Operation(
        "SubscribeToTask",
        ResponseKind.STREAM,
        (("tasks/resubscribe", _ANY),),
        (("TaskSubscription", _0_3),),
        "SubscribeToTaskRequest",
        "StreamResponse",
    ),
    Operation(
        "CreateTaskPushNotificationConfig",
        ResponseKind.PUSH_CONFIG,
        (("tasks/pushNotification/set", _0_1), ("tasks/pushNotificationConfig/set", _ANY)),
        (("CreateTaskPushNotificationConfig", _0_3), ("CreateTaskPushNotification", _0_2)),
        _PUSH_CONFIG_NAME,
        _PUSH_CONFIG_NAME,
    ),
    Operation(
        "GetTaskPushNotificationConfig",
        ResponseKind.PUSH_CONFIG,
        (("tasks/pushNotification/get", _0_1), ("tasks/pushNotificationConfig/get", _ANY)),
        (("GetTaskPushNotificationConfig", _0_3), ("GetTaskPushNotification", _0_2)),
        "GetTaskPushNotificationConfigRequest",
        _PUSH_CONFIG_NAME,
    ),
    Operation(
        "ListTaskPushNotificationConfigs",
        ResponseKind.PUSH_CONFIGS,
        (("tasks/pushNotificationConfig/list", _ANY),),
        (("ListTaskPushNotificationConfig", _0_3), ("ListTaskPushNotification", _0_2)),
        "ListTaskPushNotificationConfigsRequest",
        "ListTaskPushNotificationConfigsResponse",
    ),
    Operation(
        "DeleteTaskPushNotificationConfig",
        ResponseKind.EMPTY,
        (("tasks/pushNotificationConfig/delete", _ANY),),
        (("DeleteTaskPushNotificationConfig", _0_3),),
        "DeleteTaskPushNotificationConfigRequest",
        "google.protobuf.Empty",
    ),
    Operation(
        "GetExtendedAgentCard",
        ResponseKind.CARD,
        (("agent/getAuthenticatedExtendedCard", _0_3),),
        (("GetAgentCard", _0_3),),
        "GetExtendedAgentCardRequest",
        "AgentCard",
    ),
    Operation(
        "SendLiveMessage",
        ResponseKind.STREAM,
        request="SendMessageRequest",
        response="StreamResponse",
    ),
    Operation(
        "ReconnectToTask",
        ResponseKind.STREAM,
        request="SendMessageRequest",
        response="StreamResponse",
    ),
)

CARD_OPERATION = Operation("GetAgentCard", ResponseKind.CARD)
"""The well-known agent card, fetched by a plain GET; the RPC bindings have no such operation."""

STREAMING_OPERATIONS = frozenset(each.name for each in OPERATIONS if each.is_streaming)
"""Operations whose response is a stream of events."""
LIVE_OPERATIONS = frozenset({"SendLiveMessage", "ReconnectToTask"})
"""Operations with a stream in each direction."""
SENDING_OPERATIONS = frozenset({"SendMessage", "SendStreamingMessage", "SendLiveMessage"})
"""Operations by which a client sends a message to an agent."""
CARD_OPERATIONS = tuple(
    each.name for each in (CARD_OPERATION, *OPERATIONS) if each.answer is ResponseKind.CARD
)
"""Operations that return an agent card."""
OPERATION_BY_NAME: dict[str, Operation] = {
    operation.name: operation for operation in (*OPERATIONS, CARD_OPERATION)
}

_V1_METHODS = {operation.name: (operation, Dialect.V1_0) for operation in OPERATIONS}

JSONRPC_METHODS: dict[str, tuple[Operation, Dialect]] = _V1_METHODS | {
    method: (operation, dialect) for operation in OPERATIONS for method, dialect in operation.rpc_v0
}
"""JSON-RPC method -> operation and the dialect it proves (UNKNOWN: one of the 0.x dialects)."""

GRPC_METHODS: dict[str, tuple[Operation, Dialect]] = {
    f"/lf.a2a.v1.A2AService/{name}": row for name, row in _V1_METHODS.items()
} | {
    f"/a2a.v1.A2AService/{method}": (operation, dialect)
    for operation in OPERATIONS
    for method, dialect in operation.grpc_v0
}
"""gRPC path -> operation and the dialect it proves."""

OLD_MESSAGES: dict[tuple[str, Dialect], tuple[str, str]] = {
    ("SubscribeToTask", _0_3): ("TaskSubscriptionRequest", "StreamResponse"),
    ("CreateTaskPushNotificationConfig", _0_3): (
        "CreateTaskPushNotificationConfigRequest",
        _PUSH_CONFIG_NAME,
    ),
    ("ListTaskPushNotificationConfigs", _0_3): (
        "ListTaskPushNotificationConfigRequest",
        "ListTaskPushNotificationConfigResponse",
    ),
    ("GetExtendedAgentCard", _0_3): ("GetAgentCardRequest", "AgentCard"),
}
"""(operation, dialect) -> request and response message, if the package `a2a.v1` has other names."""


def message_names(operation: Operation, dialect: Dialect) -> tuple[str, str]:
    """Return the names of the protobuf request and response message, without package (except
    `google.protobuf.Empty`)."""
    line = _0_3 if dialect in (_0_1, _0_2) else dialect
    return OLD_MESSAGES.get((operation.name, line), (operation.request, operation.response))
