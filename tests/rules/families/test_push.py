"""Rules about push configurations: bindings, older lines, races, owners."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.examples.conversation import (
    fetch_card,
    grpc,
    http,
    rest,
    rest_error,
    rpc,
    rpc_error,
)
from a2a_proxy.rules.examples.objects import card, send, snapshot, task
from a2a_proxy.rules.examples.script import MS, Script, run_together
from support_rules import findings

CREATE, GET, LIST, DELETE = (
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
)
HOOK = {"taskId": "t1", "url": "https://client.example.com/hook"}
STORED = HOOK | {"id": "p1"}
THIS = {"taskId": "t1", "id": "p1"}
CREATED = rpc(CREATE, HOOK, STORED)
DELETED = rpc(DELETE, THIS, {})
SILENT = fetch_card(card(capabilities={}))
ANN: dict[str, str | None] = {"Authorization": "Bearer t0ken-of-ann"}
NOT_FOUND = rpc_error(-32001, "TASK_NOT_FOUND")


def said(script: Script, rule: str) -> list[str]:
    """Severities of what one rule says, with `?` where it is not sure."""
    return [
        each.severity.name + ("?" if each.confidence == "low" else "")
        for each in findings(script)
        if each.rule == f"A2A-PUSH-{rule}"
    ]


def old(method: str, params: Any, result: Any) -> Script:
    """A call of 0.3."""
    return rpc(f"tasks/pushNotificationConfig/{method}", params, result, version="")


class TestConfiguration:
    """001 to 004, 014."""

    @pytest.mark.parametrize(
        "call",
        [
            CREATED,
            DELETED,
            rpc(LIST, {"taskId": "t1"}, {"configs": []}),
            rest("POST", "/tasks/t1/pushNotificationConfigs", HOOK, STORED),
            http("DELETE", "/tasks/t1/pushNotificationConfigs/p1", status=204),
            grpc(GET, THIS, STORED),
            grpc(DELETE, THIS, {}),
            old(
                "set",
                {"taskId": "t1", "pushNotificationConfig": {"url": HOOK["url"]}},
                {"taskId": "t1"},
            ),
        ],
    )
    def test_undeclared(self, call: Script) -> None:
        """All operations and bindings."""
        assert said(SILENT + call, "001") == ["ERROR"]
        assert said(fetch_card() + call, "001") == []
        assert said(call + SILENT, "001") == []

    def test_undeclared_with_a_message(self) -> None:
        """A warning; a message without a configuration is nobody's business."""
        config = send(configuration={"taskPushNotificationConfig": {"url": HOOK["url"]}})
        assert said(SILENT + rpc("SendMessage", config, snapshot()), "001") == ["WARNING"]
        assert said(SILENT + grpc("SendMessage", config, snapshot()), "001") == ["WARNING"]
        assert (
            said(SILENT + rpc("SendMessage", send("see https://example.com"), snapshot()), "001")
            == []
        )

    @pytest.mark.parametrize(
        ("url", "here", "far"),
        [
            ("https://client.example.com/hook", [], []),
            ("http://client.example.com/hook", ["WARNING"], ["WARNING"]),
            ("client.example.com/hook", ["WARNING"], ["WARNING"]),
            ("http://localhost:9000/hook", [], ["WARNING"]),
            ("https://10.0.0.5/hook", [], ["WARNING"]),
            ("https://[fe80::1]/hook", ["WARNING"], ["WARNING"]),
            ("https://169.254.169.254/latest", ["WARNING"], ["WARNING"]),
        ],
    )
    def test_urls(self, url: str, here: list[str], far: list[str]) -> None:
        """For an agent on this machine, and for a public one."""
        config = HOOK | {"url": url}
        assert said(rpc(CREATE, config, STORED), "002") == here
        assert said(rpc(CREATE, config, STORED, upstream="https://agent.example.com"), "002") == far

    def test_urls_of_other_lines_and_places(self) -> None:
        """Of 0.3, in a message, with a token in it."""
        bad = {"url": "http://client.example.com/hook?token=abcdef"}
        asked = {"taskId": "t1", "pushNotificationConfig": bad}
        assert said(old("set", asked, asked), "002") == ["WARNING"]
        config = send(configuration={"taskPushNotificationConfig": bad})
        assert said(rest("POST", "/message:send", config, snapshot()), "002") == ["WARNING"]

    def test_ids(self) -> None:
        """Over gRPC an empty string is none; 0.3 asks for none."""
        assert said(grpc(CREATE, HOOK, HOOK), "003") == ["ERROR"]
        assert said(rest("POST", "/tasks/t1/pushNotificationConfigs", HOOK, HOOK), "003") == [
            "ERROR"
        ]
        asked = {"taskId": "t1", "pushNotificationConfig": {"url": HOOK["url"]}}
        assert said(old("set", asked, asked), "003") == []

    def test_a_task_in_a_message(self) -> None:
        """Over gRPC as well."""
        config = send(configuration={"taskPushNotificationConfig": HOOK})
        assert said(grpc("SendMessage", config, snapshot()), "004") == ["WARNING"]
        assert said(rest("POST", "/message:send", config, snapshot()), "004") == ["WARNING"]
        assert said(CREATED, "004") == []

    def test_secrets_shown(self) -> None:
        """In all answers, without the secret in the finding."""
        secret = STORED | {"authentication": {"scheme": "Bearer", "credentials": "t0ken-of-hook"}}
        for call in (
            rpc(GET, THIS, secret),
            rpc(LIST, {"taskId": "t1"}, {"configs": [STORED, secret]}),
            grpc(GET, THIS, secret),
            rest("GET", "/tasks/t1/pushNotificationConfigs/p1", None, secret),
        ):
            assert said(call, "014") == ["WARNING"]
            assert "t0ken-of-hook" not in repr(findings(call))
        scheme = STORED | {"authentication": {"scheme": "Bearer"}, "token": ""}
        assert said(rpc(GET, THIS, scheme), "014") == []


class TestLifecycle:
    """015 to 017."""

    def test_second_delete(self) -> None:
        """In all bindings; without a first one nothing is known."""
        fault = rest_error(500, "INTERNAL", "INTERNAL_ERROR")
        path = "/tasks/t1/pushNotificationConfigs/p1"
        again = rest("DELETE", path, None, fault, status=500)
        assert said(CREATED + http("DELETE", path, status=204) + again, "015") == ["ERROR"]
        assert said(CREATED + again, "015") == []
        assert said(grpc(DELETE, THIS, {}) + grpc(DELETE, THIS, status=13, text="boom"), "015") == [
            "ERROR"
        ]
        assert said(DELETED + CREATED + again, "015") == [], "it was there again"

    @pytest.mark.parametrize("status", [401, 403])
    def test_second_delete_without_rights(self, status: int) -> None:
        """That is another matter, as is a task that is gone, or a gateway."""
        denied = rest(
            "DELETE", "/tasks/t1/pushNotificationConfigs/p1", None, {"error": "no"}, status=status
        )
        assert said(DELETED + denied, "015") == []
        assert said(DELETED + rpc(DELETE, THIS, error=NOT_FOUND), "015") == []
        assert (
            said(grpc(DELETE, THIS, {}) + grpc(DELETE, THIS, status=14, text="try later"), "015")
            == []
        )

    def test_lists(self) -> None:
        """Pages, owners, tasks that are over; sure where the task is known."""
        empty = rpc(LIST, {"taskId": "t1"}, {"configs": []})
        begun = rpc("SendMessage", send(), snapshot("WORKING"))
        assert said(CREATED + empty, "016") == ["WARNING?"]
        assert said(begun + CREATED + empty, "016") == ["WARNING"]
        over = rpc("GetTask", {"id": "t1"}, task("COMPLETED", second=1))
        assert said(begun + CREATED + over + empty, "016") == []
        page = rpc(LIST, {"taskId": "t1"}, {"configs": [], "nextPageToken": "2"})
        assert said(CREATED + page, "016") == []
        assert said(CREATED + DELETED + empty, "016") == []
        assert (
            said(CREATED + rpc(LIST, {"taskId": "t1"}, {"configs": []}, headers=ANN), "016") == []
        )
        assert said(grpc(CREATE, HOOK, STORED) + grpc(LIST, {"taskId": "t1"}, {}), "016") == [
            "WARNING?"
        ]
        listed = rest("GET", "/tasks/t1/pushNotificationConfigs", None, {"configs": []})
        assert said(CREATED + listed, "016") == ["WARNING?"]

    def test_lists_of_another_tenant(self) -> None:
        """Tenants of one agent have configurations of their own."""

        def made(tenant: str) -> tuple[Script, Script, Script]:
            named = {"tenant": tenant}
            path = "/tasks/t1/pushNotificationConfigs"
            return (
                rpc(CREATE, HOOK | named, STORED),
                grpc(CREATE, HOOK | named, STORED),
                rest("POST", f"/{tenant}{path}", HOOK, STORED),
            )

        def listed(tenant: str) -> tuple[Script, Script, Script]:
            asked = {"taskId": "t1", "tenant": tenant}
            path = "/tasks/t1/pushNotificationConfigs"
            return (
                rpc(LIST, asked, {"configs": []}),
                grpc(LIST, asked, {}),
                rest("GET", f"/{tenant}{path}", None, {"configs": []}),
            )

        for one, same, other in zip(made("a"), listed("a"), listed("b"), strict=True):
            assert said(one + same, "016") == ["WARNING?"]
            assert said(one + other, "016") == []
        deleted = rpc(DELETE, THIS | {"tenant": "a"}, {})
        shown = rpc(GET, THIS | {"tenant": "b"}, STORED)
        assert said(made("a")[0] + deleted + shown, "017") == []

    def test_lists_before_1_0(self) -> None:
        """The same in the form of 0.3; a configuration without an id cannot be found."""
        stored = {"taskId": "t1", "pushNotificationConfig": {"id": "p1", "url": HOOK["url"]}}
        methods = "tasks/pushNotificationConfig/"
        created = rpc(f"{methods}set", stored, stored, version="")
        which = {"id": "t1", "pushNotificationConfigId": "p1"}
        deleted = rpc(f"{methods}delete", which, None, version="")
        empty = rpc(f"{methods}list", {"id": "t1"}, [], version="")
        full = rpc(f"{methods}list", {"id": "t1"}, [stored], version="")
        assert said(created + empty, "016") == ["WARNING?"]
        assert not said(created + full, "016")
        assert not said(created + deleted + empty, "016")
        assert said(created + deleted + full, "017") == ["WARNING"]
        got = rpc(f"{methods}get", which, stored, version="")
        assert said(created + deleted + got, "017") == ["WARNING"]
        assert not said(created + full, "017")
        nameless = stored | {"pushNotificationConfig": {"url": HOOK["url"]}}
        unnamed = rpc(f"{methods}set", nameless, nameless, version="")
        assert not said(unnamed + empty, "016")

    def test_one_configuration_before_1_0(self) -> None:
        """A second one may replace the first there: the call "sets or updates"."""

        def created(ident: str) -> Script:
            config = {"taskId": "t1", "pushNotificationConfig": {"id": ident, "url": HOOK["url"]}}
            return rpc("tasks/pushNotificationConfig/set", config, config, version="")

        name = "tasks/pushNotificationConfig/list"
        second = {"taskId": "t1", "pushNotificationConfig": {"id": "p2", "url": HOOK["url"]}}
        listed = rpc(name, {"id": "t1"}, [second], version="")
        empty = rpc(name, {"id": "t1"}, [], version="")
        assert said(created("p1") + created("p2") + listed, "016") == []
        assert said(created("p1") + created("p2") + empty, "016") == ["WARNING?"]

    def test_a_delete_under_way(self) -> None:
        """The list may be from before or after it."""
        slow = rpc(DELETE, THIS, {}, seconds=0.1)
        empty = rpc(LIST, {"taskId": "t1"}, {"configs": []}, seconds=0.05)
        assert said(CREATED + run_together(slow, empty), "016") == []

    def test_deleted_and_shown(self) -> None:
        """By Get and by List, in all bindings."""
        gone = CREATED + DELETED
        assert said(gone + rpc(LIST, {"taskId": "t1"}, {"configs": [STORED]}), "017") == ["WARNING"]
        assert said(gone + grpc(GET, THIS, STORED), "017") == ["WARNING"]
        got = rest("GET", "/tasks/t1/pushNotificationConfigs/p1", None, STORED)
        assert said(gone + got, "017") == ["WARNING"]
        assert said(gone + CREATED + got, "017") == []
        assert (
            said(gone + rpc(LIST, {"taskId": "t1"}, {"configs": [HOOK | {"id": "p2"}]}), "017")
            == []
        )

    def test_a_create_under_way(self) -> None:
        """It may be there again already."""
        slow = rpc(CREATE, HOOK | {"id": "p1"}, STORED, seconds=0.1)
        got = rpc(GET, THIS, STORED)
        assert said(CREATED + DELETED + run_together(slow, got, after=20 * MS), "017") == []


@pytest.mark.parametrize(
    "delete",
    [
        http(
            "DELETE", "/tasks/t1/pushNotificationConfigs/p1", reply_headers={"Content-Length": "2"}
        ),
        grpc(DELETE, THIS, finish="cut"),
    ],
    ids=["body cut off", "reset"],
)
def test_a_delete_without_a_whole_answer_may_have_happened(delete: Script) -> None:
    """A client need not read the body of the answer, and its connection may end before it."""
    listed = rpc(LIST, {"taskId": "t1"}, {"configs": []})
    assert said(CREATED + listed, "016")
    assert not said(CREATED + delete + listed, "016")
    assert not said(CREATED + delete + rpc(GET, THIS, STORED), "017")
