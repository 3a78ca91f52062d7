"""The path of a call at an agent whose card names other paths than the recorded card."""

from __future__ import annotations

import pytest

from a2a_proxy.drive.request import CallTarget, DriveRequest
from a2a_proxy.drive.route import DriveRoute, DriveRoutes
from a2a_proxy.model.values import Binding, Dialect

RPC, REST = Binding.JSONRPC, Binding.REST


@pytest.mark.parametrize(
    ("binding", "recorded", "now", "target", "sent"),
    [
        (RPC, "/rpc", "/a2a/v1", "/rpc?tenant=x", "/a2a/v1?tenant=x"),
        (RPC, "", "/rpc/", "/", "/rpc/"),
        (RPC, None, "/rpc", "/old", "/rpc"),
        (RPC, "/rpc", "", "/rpc", "/"),
        (RPC, "/rpc", None, "/rpc", "/rpc"),
        (REST, "", "", "/v1/message:send", "/v1/message:send"),
        (REST, None, "/api", "/v1/message:send", "/api/v1/message:send"),
        (REST, "/old", "/new", "/old/acme/tasks/7?x=1", "/new/acme/tasks/7?x=1"),
        (REST, None, None, "http://agent:80/tasks/7", "/tasks/7"),
    ],
)
def test_only_the_path_of_the_interface_is_changed(
    binding: Binding, recorded: str | None, now: str | None, target: str, sent: str
) -> None:
    method = "POST" if "message" in target else "GET"
    routes = DriveRoutes(
        DriveRoute("a:1", "A"),
        {binding: DriveRoute("b:2", "B", now)},
        {} if recorded is None else {binding: recorded},
    )
    assert routes.http_address(
        CallTarget(binding, Dialect.V1_0, ""), DriveRequest(b"", (), target, method)
    ) == (
        "http://b:2",
        sent,
    )


def test_a_translated_call_goes_to_the_path_of_the_interface() -> None:
    """Whatever the recorded interface of that binding was."""
    routes = DriveRoutes(
        DriveRoute("a:1", "A"), {REST: DriveRoute("b:2", "B", "/api")}, {REST: "/tasks"}
    )
    speech = CallTarget(REST, Dialect.V1_0, "GetTask", is_translated=True)
    assert routes.http_address(speech, DriveRequest(b"", (), "/tasks/7", "GET")) == (
        "http://b:2",
        "/api/tasks/7",
    )


def test_requests_without_a_route_go_to_the_named_agent() -> None:
    asked = DriveRequest(b"", (), "/card", "GET")
    assert DriveRoutes(DriveRoute("a:1", "A")).http_address(
        CallTarget(Binding.CARD, Dialect.V1_0, ""), asked
    ) == (
        "http://a:1",
        "/card",
    )
