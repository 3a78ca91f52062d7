from __future__ import annotations

import pytest

from a2a_proxy.model.values import Dialect
from a2a_proxy.protocol.operations import (
    CARD_OPERATION,
    GRPC_METHODS,
    JSONRPC_METHODS,
    OPERATIONS,
    Operation,
    message_names,
)
from a2a_proxy.protocol.schema import decoder_for, schema_of, schema_set_of


@pytest.mark.parametrize(
    ("method", "name", "dialect"),
    [
        ("tasks/send", "SendMessage", Dialect.V0_1),
        ("tasks/sendSubscribe", "SendStreamingMessage", Dialect.V0_1),
        ("tasks/pushNotification/set", "CreateTaskPushNotificationConfig", Dialect.V0_1),
        ("tasks/pushNotification/get", "GetTaskPushNotificationConfig", Dialect.V0_1),
        ("message/send", "SendMessage", Dialect.UNKNOWN),
        ("message/stream", "SendStreamingMessage", Dialect.UNKNOWN),
        ("tasks/get", "GetTask", Dialect.UNKNOWN),
        ("tasks/cancel", "CancelTask", Dialect.UNKNOWN),
        ("tasks/resubscribe", "SubscribeToTask", Dialect.UNKNOWN),
        ("tasks/list", "ListTasks", Dialect.V0_3),
        ("tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig", Dialect.UNKNOWN),
        ("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig", Dialect.UNKNOWN),
        ("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs", Dialect.UNKNOWN),
        (
            "tasks/pushNotificationConfig/delete",
            "DeleteTaskPushNotificationConfig",
            Dialect.UNKNOWN,
        ),
        ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard", Dialect.V0_3),
        ("SendMessage", "SendMessage", Dialect.V1_0),
        ("SubscribeToTask", "SubscribeToTask", Dialect.V1_0),
        ("SendLiveMessage", "SendLiveMessage", Dialect.V1_0),
        ("ReconnectToTask", "ReconnectToTask", Dialect.V1_0),
    ],
)
def test_jsonrpc_methods(method: str, name: str, dialect: Dialect) -> None:
    """Every JSON-RPC name of 3.1 leads to its operation and says what it proves of the dialect."""
    operation, proved = JSONRPC_METHODS[method]

    assert (operation.name, proved) == (name, dialect)


@pytest.mark.parametrize(
    ("path", "name", "dialect"),
    [
        (
            "/lf.a2a.v1.A2AService/ListTaskPushNotificationConfigs",
            "ListTaskPushNotificationConfigs",
            Dialect.V1_0,
        ),
        ("/a2a.v1.A2AService/TaskSubscription", "SubscribeToTask", Dialect.V0_3),
        ("/a2a.v1.A2AService/GetAgentCard", "GetExtendedAgentCard", Dialect.V0_3),
        ("/a2a.v1.A2AService/ListTasks", "ListTasks", Dialect.V0_3),
        ("/a2a.v1.A2AService/SendMessage", "SendMessage", Dialect.V0_3),
        (
            "/a2a.v1.A2AService/CreateTaskPushNotification",
            "CreateTaskPushNotificationConfig",
            Dialect.V0_2,
        ),
        (
            "/a2a.v1.A2AService/ListTaskPushNotification",
            "ListTaskPushNotificationConfigs",
            Dialect.V0_2,
        ),
    ],
)
def test_grpc_paths(path: str, name: str, dialect: Dialect) -> None:
    """Both packages and the 0.2.x names are known (manual/protocol.md "gRPC fingerprints")."""
    operation, proved = GRPC_METHODS[path]

    assert (operation.name, proved) == (name, dialect)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("dialect", [Dialect.V0_2, Dialect.V0_3, Dialect.V1_0, Dialect.V1_1])
def test_messages_exist(operation: Operation, dialect: Dialect) -> None:
    """Request and response of every gRPC operation have a message in the descriptors of each line
    that has it."""
    paths = {
        path
        for path, (row, proof) in GRPC_METHODS.items()
        if row is operation and proof in (dialect, Dialect.UNKNOWN)
    }
    if not paths and dialect not in (Dialect.V1_0, Dialect.V1_1):
        return
    for name in message_names(operation, dialect):
        assert decoder_for(schema_of(schema_set_of(dialect), name)).schema


def test_card_is_no_rpc() -> None:
    """The well-known card has a name of its own and no method in the RPC bindings."""
    assert CARD_OPERATION.name == "GetAgentCard"
    assert CARD_OPERATION not in OPERATIONS
