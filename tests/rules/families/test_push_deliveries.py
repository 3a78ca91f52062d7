"""Rules about webhook deliveries: credentials and bodies, configurations of all bindings and of messages, races."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.finding import Finding
from a2a_proxy.rules.examples.conversation import WEBHOOK_URL, deliver, fetch_card, grpc, rest, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import Json, card, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script, run_together
from support_rules import findings

CREATE, GET, LIST, DELETE = (
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
)
HOOK: Json = {"taskId": "t1", "url": WEBHOOK_URL}
STORED = HOOK | {"id": "p1"}
BEARER = {"authentication": {"scheme": "Bearer", "credentials": "cr3dentials-of-hook"}}
TOKEN = {"token": "t0ken-of-hook"}
GOOD: dict[str, str | None] = {
    "Authorization": "Bearer cr3dentials-of-hook",
    "X-A2A-Notification-Token": "t0ken-of-hook",
}
WORKING = deliver(status("WORKING"))


def of_rule(script: Script, rule: str) -> list[Finding]:
    """The findings of one rule."""
    return [each for each in findings(script) if each.rule == f"A2A-{rule}"]


def said(script: Script, rule: str) -> list[str]:
    """Severities of what one rule says, with `?` where it is not sure."""
    return [each.severity.name + ("?" if each.confidence == "low" else "") for each in of_rule(script, rule)]


def created(**members: Any) -> Script:
    """A configuration is created."""
    return rpc(CREATE, HOOK | members, STORED)


def sending(**members: Any) -> Json:
    """The parameters of a message with a configuration."""
    return send(configuration={"taskPushNotificationConfig": {"url": WEBHOOK_URL} | members})


class TestCredentials:
    """005 and 006."""

    @pytest.mark.parametrize(
        "call",
        [
            created(**BEARER, **TOKEN),
            rest("POST", "/tasks/t1/pushNotificationConfigs", HOOK | BEARER | TOKEN, STORED),
            grpc(CREATE, HOOK | BEARER | TOKEN, STORED),
            rpc("SendMessage", sending(**BEARER, **TOKEN), snapshot("WORKING")),
            rpc_stream("SendStreamingMessage", sending(**BEARER, **TOKEN), snapshot("WORKING"), finish="open"),
            grpc("SendMessage", sending(**BEARER, **TOKEN), snapshot("WORKING")),
            rpc(
                "tasks/pushNotificationConfig/set",
                {
                    "taskId": "t1",
                    "pushNotificationConfig": {
                        "url": WEBHOOK_URL,
                        "authentication": {"schemes": ["Bearer"], "credentials": "cr3dentials-of-hook"},
                    }
                    | TOKEN,
                },
                {"taskId": "t1", "pushNotificationConfig": {"url": WEBHOOK_URL}},
                version="",
            ),
        ],
    )
    def test_of_all_bindings(self, call: Script) -> None:
        """Wherever the configuration came from."""
        assert said(call + WORKING, "PUSH-005") in (["ERROR"], ["ERROR?"])
        assert said(call + WORKING, "PUSH-006") in (["WARNING"], ["WARNING?"])
        good = call + deliver(status("WORKING"), headers=GOOD)
        assert said(good, "PUSH-005") == said(good, "PUSH-006") == []

    @pytest.mark.parametrize(
        ("authentication", "field", "expected"),
        [
            ({"scheme": "Bearer", "credentials": "cr3dentials-of-hook"}, "bearer cr3dentials-of-hook", []),
            ({"scheme": "Bearer", "credentials": "cr3dentials-of-hook"}, "Bearer cr3dentials-of-him", ["ERROR"]),
            ({"scheme": "Bearer", "credentials": "cr3dentials-of-hook"}, "Basic dXNlcjpwYXNzd29yZA==", ["ERROR"]),
            ({"scheme": "Basic", "credentials": "user:password"}, "Basic dXNlcjpwYXNzd29yZA==", []),
            ({"scheme": "Bearer"}, "Bearer anything-0123", []),
            ({"scheme": "Bearer"}, None, ["WARNING"]),
            ({"scheme": "Digest", "credentials": "cr3dentials-of-hook"}, None, []),
            ({"scheme": "ApiKey", "credentials": "cr3dentials-of-hook"}, None, ["ERROR"]),
            ({}, None, []),
        ],
    )
    def test_schemes(self, authentication: Json, field: str | None, expected: list[str]) -> None:
        """The case of a scheme does not matter; Basic credentials have two forms; Digest answers a challenge."""
        begun = rpc("SendMessage", send(), snapshot("WORKING"))
        sent = deliver(status("WORKING"), headers={"Authorization": field} if field else None)
        assert said(begun + created(authentication=authentication) + sent, "PUSH-005") == expected

    def test_api_key(self) -> None:
        """Where its scheme puts it is not defined."""
        asked = created(authentication={"scheme": "ApiKey", "credentials": "cr3dentials-of-hook"})
        assert said(asked + deliver(status("WORKING"), headers={"X-API-Key": "cr3dentials-of-hook"}), "PUSH-005") == []

    def test_several_schemes(self) -> None:
        """One of them is enough in 0.3."""
        config = {"url": WEBHOOK_URL, "authentication": {"schemes": ["Basic", "Bearer"]}}
        asked = rpc(
            "tasks/pushNotificationConfig/set",
            {"taskId": "t1", "pushNotificationConfig": config},
            {"taskId": "t1", "pushNotificationConfig": config},
            version="",
        )
        assert said(asked + deliver(status("WORKING"), headers=GOOD), "PUSH-005") == []
        assert said(asked + WORKING, "PUSH-005") == ["WARNING?"]

    def test_tokens(self) -> None:
        """In another field, as the bearer, replaced by the credentials, of one of several configurations."""
        for name, value in (("X-Hook", "t0ken-of-hook"), ("Authorization", "Bearer t0ken-of-hook")):
            assert said(created(**TOKEN) + deliver(status("WORKING"), headers={name: value}), "PUSH-006") == []
        only_credentials: dict[str, str | None] = {"Authorization": GOOD["Authorization"]}
        both = created(**TOKEN, **BEARER)
        assert said(both + deliver(status("WORKING"), headers=only_credentials), "PUSH-006") == ["INFO?"]
        assert said(both + WORKING, "PUSH-006") == ["WARNING?"]
        second = rpc(CREATE, HOOK | {"token": "s3cond-token"}, STORED | {"id": "p2"})
        other = deliver(status("WORKING"), headers={"X-A2A-Notification-Token": "s3cond-token"})
        assert said(created(**TOKEN) + second + other, "PUSH-006") == []

    def test_secrets_are_not_shown(self) -> None:
        """Neither the expected nor the sent one."""
        sent = deliver(status("WORKING"), headers={"Authorization": "Bearer cr3dentials-of-him"})
        told = repr(findings(created(**BEARER, **TOKEN) + sent))
        assert "A2A-PUSH-005" in told
        assert not {"cr3dentials-of-hook", "cr3dentials-of-him", "t0ken-of-hook"} & set(told.replace("'", " ").split())

    def test_delivery_before_the_task_is_known(self) -> None:
        """The agent delivers before it answers: judged with the answer, as the delivery."""
        call = rpc("SendMessage", sending(**BEARER), snapshot("COMPLETED", second=1), seconds=1)
        (found,) = of_rule(run_together(call, WORKING, after=300 * MS), "PUSH-005")
        assert (found.exchange, found.confidence, found.evidence["actor"]) == (2, "high", "agent")
        good = deliver(status("WORKING"), headers=GOOD)
        assert said(run_together(call, good, after=300 * MS), "PUSH-005") == []

    def test_delivery_before_the_configuration(self) -> None:
        """It was for one that did not pass here."""
        assert said(WORKING + created(**BEARER), "PUSH-005") == []
        assert said(WORKING + rpc("SendMessage", sending(**BEARER), snapshot("WORKING")), "PUSH-005") == []

    def test_other_receivers(self) -> None:
        """Of another task or URL, refused, deleted, replaced, or set by somebody else too."""
        assert said(created(**BEARER) + deliver(status("WORKING", taskId="t2")), "PUSH-005") == []
        assert said(rpc(CREATE, HOOK | BEARER | {"url": f"{WEBHOOK_URL}/2"}, STORED) + WORKING, "PUSH-005") == []
        refused = rpc(CREATE, HOOK | BEARER, error={"code": -32602, "message": "no"})
        assert said(refused + WORKING, "PUSH-005") == []
        gone = rpc(DELETE, {"taskId": "t1", "id": "p1"}, {})
        assert said(created(**BEARER) + gone + WORKING, "PUSH-005") == []
        assert said(created(**BEARER) + created() + WORKING, "PUSH-005") == []
        theirs = rpc(LIST, {"taskId": "t1"}, {"configs": [STORED | {"id": "p9"}]})
        assert said(created(**BEARER) + theirs + WORKING, "PUSH-005") == []

    def test_the_same_configuration_with_each_message(self) -> None:
        """It stays known."""
        again = sending(**BEARER)
        again["message"]["taskId"] = "t1"
        talk = rpc("SendMessage", sending(**BEARER), snapshot("WORKING"))
        talk += rpc("SendMessage", again, snapshot("WORKING"), id=2)
        assert said(talk + WORKING, "PUSH-005") == ["ERROR"]

    def test_through_a_forward_proxy(self) -> None:
        """The target is the whole URL, with another host in any case and its default port."""
        absolute = rpc(CREATE, HOOK | BEARER | {"url": "http://Client.Example.com:80/hook"}, STORED)
        proxied = deliver(status("WORKING"), host="127.0.0.1:9000", target="http://client.example.com/hook")
        assert said(absolute + proxied, "PUSH-005") == ["ERROR?"]


class TestBody:
    """007 and 008."""

    def test_bodies(self) -> None:
        """Bare, two objects, none; with another sign that it is a delivery."""
        signed: dict[str, str | None] = {"X-A2A-Notification-Token": "t0ken-of-hook"}
        for body, word in (
            (task("WORKING"), "bare Task"),
            (snapshot("WORKING") | status("WORKING"), "`task` and `statusUpdate`"),
            ({"event": "task.updated"}, "no `task`"),
        ):
            (found,) = of_rule(created(**TOKEN) + deliver(body, headers=signed), "PUSH-007")
            assert word in found.summary
        assert of_rule(created(**TOKEN) + deliver({"event": "task.updated"}), "PUSH-007") == []
        assert of_rule(created() + deliver("[1]", headers=signed), "PUSH-007") == []

    def test_older_lines(self) -> None:
        """A configuration of 0.3 does not define the body; without any nothing is known."""
        bare = deliver(task("WORKING") | {"kind": "task"}, headers=GOOD)
        config = {"taskId": "t1", "pushNotificationConfig": {"url": WEBHOOK_URL}}
        old = rpc("tasks/pushNotificationConfig/set", config, config, version="")
        assert said(old + bare, "PUSH-007") == []
        assert said(old + created() + bare, "PUSH-007") == []
        assert said(bare, "PUSH-007") == []
        assert said(created() + bare, "PUSH-007") != []

    @pytest.mark.parametrize(
        ("media", "expected"),
        [
            ("application/a2a+json; charset=utf-8", []),
            ("application/json", ["INFO"]),
            ("text/plain", ["WARNING"]),
            (None, ["WARNING"]),
        ],
    )
    def test_content_types(self, media: str | None, expected: list[str]) -> None:
        """Parameters do not matter."""
        assert said(deliver(status("WORKING"), headers={"Content-Type": media}), "PUSH-008") == expected

    def test_content_type_of_0_3(self) -> None:
        """It is not defined."""
        assert said(deliver(task("WORKING") | {"kind": "task"}, media="application/json"), "PUSH-008") == []


def test_a_card_changes_nothing() -> None:
    """The receiver is not an agent."""
    talk = fetch_card(card()) + created(**BEARER) + deliver(status("WORKING"), headers=GOOD)
    assert [each.rule for each in findings(talk)] == []
