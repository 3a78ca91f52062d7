"""Method and path of a request, by binding and dialect."""

from __future__ import annotations

import pytest

from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.replay.convert.requests import grpc_path, rest_call, rpc_method
from a2a_proxy.replay.convert.responses import convert_card

NEW, OLD, FIRST = Dialect.V1_0, Dialect.V0_3, Dialect.V0_1


def test_methods_are_named_by_dialect() -> None:
    """As the operation table has them."""
    methods = [rpc_method("SendMessage", each) for each in (NEW, OLD, FIRST)]
    assert methods == ["SendMessage", "message/send", "tasks/send"]
    assert rpc_method("SubscribeToTask", OLD) == "tasks/resubscribe"
    assert grpc_path("SubscribeToTask", OLD) == "/a2a.v1.A2AService/TaskSubscription"
    assert grpc_path("GetTask", NEW) == "/lf.a2a.v1.A2AService/GetTask"
    with pytest.raises(LookupError):
        rpc_method("SendLiveMessage", OLD)
    with pytest.raises(LookupError):
        grpc_path("SendLiveMessage", OLD)


def test_rest_paths() -> None:
    """Ids are escaped, the rest is query or body; 0.3 stands under /v1."""
    got = rest_call({"id": "a/b:c", "historyLength": 3, "tenant": "t"}, "GetTask", NEW)
    assert (got.method, got.target, got.body) == ("GET", "/t/tasks/a%2Fb%3Ac?historyLength=3", None)
    assert rest_call({"id": "x"}, "GetTask", OLD).target == "/v1/tasks/x"
    assert (
        rest_call({"includeArtifacts": True}, "ListTasks", NEW).target
        == "/tasks?includeArtifacts=true"
    )
    cancel = rest_call({"id": "x", "metadata": {"a": 1}}, "CancelTask", NEW)
    assert (cancel.method, cancel.target, cancel.body) == (
        "POST",
        "/tasks/x:cancel",
        {"metadata": {"a": 1}},
    )
    assert rest_call({"id": "x"}, "SubscribeToTask", OLD).method == "GET"
    with pytest.raises(LookupError):
        rest_call({"taskId": "x"}, "GetTaskPushNotificationConfig", NEW)


def test_security_of_an_old_card_round_trips() -> None:
    """JSON names the type, protobuf wraps by it."""
    converted = {
        "name": "a",
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "x-key"},
            "odd": {"type": "new"},
        },
        "security": [{"key": []}, {"other": ["read"]}],
        "skills": [{"id": "s", "security": [{"key": ["x"]}]}],
    }
    wrapped = convert_card(converted, Binding.GRPC)
    key = {"apiKeySecurityScheme": {"location": "header", "name": "x-key"}}
    assert wrapped["securitySchemes"] == {"key": key, "odd": {"type": "new"}}
    assert wrapped["security"] == [
        {"schemes": {"key": {}}},
        {"schemes": {"other": {"list": ["read"]}}},
    ]
    assert convert_card(wrapped, Binding.JSONRPC) == converted
    assert (
        convert_card({"supportedInterfaces": [], **converted}, Binding.GRPC)["security"]
        == converted["security"]
    )
