"""Rules about webhook deliveries: credentials and bodies, configurations of all bindings and of
messages, races."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from a2a_proxy.model.values import Finding, Frame, Observation
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.conditions import ANY_EVENT, WEBHOOK, FrameFlag, HookPoint
from a2a_proxy.rules.examples.conversation import (
    WEBHOOK_URL,
    deliver,
    fetch_card,
    grpc,
    rest,
    rpc,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    Json,
    agent_reply,
    card,
    chunk,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.script import MS, Script, run_together
from a2a_proxy.rules.run.engine import Engine, RuleDataSource
from support_rules import KEY, findings

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
    return [
        each.severity.name + ("?" if each.confidence == "low" else "")
        for each in of_rule(script, rule)
    ]


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
            rpc_stream(
                "SendStreamingMessage",
                sending(**BEARER, **TOKEN),
                snapshot("WORKING"),
                finish="open",
            ),
            grpc("SendMessage", sending(**BEARER, **TOKEN), snapshot("WORKING")),
            rpc(
                "tasks/pushNotificationConfig/set",
                {
                    "taskId": "t1",
                    "pushNotificationConfig": {
                        "url": WEBHOOK_URL,
                        "authentication": {
                            "schemes": ["Bearer"],
                            "credentials": "cr3dentials-of-hook",
                        },
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
            (
                {"scheme": "Bearer", "credentials": "cr3dentials-of-hook"},
                "bearer cr3dentials-of-hook",
                [],
            ),
            (
                {"scheme": "Bearer", "credentials": "cr3dentials-of-hook"},
                "Bearer cr3dentials-of-him",
                ["ERROR"],
            ),
            (
                {"scheme": "Bearer", "credentials": "cr3dentials-of-hook"},
                "Basic dXNlcjpwYXNzd29yZA==",
                ["ERROR"],
            ),
            ({"scheme": "Basic", "credentials": "user:password"}, "Basic dXNlcjpwYXNzd29yZA==", []),
            ({"scheme": "Bearer"}, "Bearer anything-0123", []),
            ({"scheme": "Bearer"}, None, ["WARNING"]),
            ({"scheme": "Digest", "credentials": "cr3dentials-of-hook"}, None, []),
            ({"scheme": "ApiKey", "credentials": "cr3dentials-of-hook"}, None, ["ERROR"]),
            ({}, None, []),
        ],
    )
    def test_schemes(self, authentication: Json, field: str | None, expected: list[str]) -> None:
        """The case of a scheme does not matter; Basic credentials have two forms; Digest answers a
        challenge."""
        begun = rpc("SendMessage", send(), snapshot("WORKING"))
        sent = deliver(status("WORKING"), headers={"Authorization": field} if field else None)
        assert said(begun + created(authentication=authentication) + sent, "PUSH-005") == expected

    def test_api_key(self) -> None:
        """Where its scheme puts it is not defined."""
        asked = created(authentication={"scheme": "ApiKey", "credentials": "cr3dentials-of-hook"})
        assert (
            said(
                asked + deliver(status("WORKING"), headers={"X-API-Key": "cr3dentials-of-hook"}),
                "PUSH-005",
            )
            == []
        )

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
        """In another field, as the bearer, replaced by the credentials, of one of several
        configurations."""
        for name, value in (("X-Hook", "t0ken-of-hook"), ("Authorization", "Bearer t0ken-of-hook")):
            assert (
                said(
                    created(**TOKEN) + deliver(status("WORKING"), headers={name: value}), "PUSH-006"
                )
                == []
            )
        only_credentials: dict[str, str | None] = {"Authorization": GOOD["Authorization"]}
        both = created(**TOKEN, **BEARER)
        assert said(both + deliver(status("WORKING"), headers=only_credentials), "PUSH-006") == [
            "INFO?"
        ]
        assert said(both + WORKING, "PUSH-006") == ["WARNING?"]
        second = rpc(CREATE, HOOK | {"token": "s3cond-token"}, STORED | {"id": "p2"})
        other = deliver(status("WORKING"), headers={"X-A2A-Notification-Token": "s3cond-token"})
        assert said(created(**TOKEN) + second + other, "PUSH-006") == []

    def test_secrets_are_not_shown(self) -> None:
        """Neither the expected nor the sent one."""
        sent = deliver(status("WORKING"), headers={"Authorization": "Bearer cr3dentials-of-him"})
        told = repr(findings(created(**BEARER, **TOKEN) + sent))
        assert "A2A-PUSH-005" in told
        assert not {"cr3dentials-of-hook", "cr3dentials-of-him", "t0ken-of-hook"} & set(
            told.replace("'", " ").split()
        )

    def test_delivery_before_the_task_is_known(self) -> None:
        """The agent delivers before it answers: judged with the answer, as the delivery."""
        call = rpc("SendMessage", sending(**BEARER), snapshot("COMPLETED", second=1), seconds=1)
        (found,) = of_rule(run_together(call, WORKING, after=300 * MS), "PUSH-005")
        assert (found.exchange, found.confidence, found.evidence["actor"]) == (2, "high", "agent")
        good = deliver(status("WORKING"), headers=GOOD)
        assert said(run_together(call, good, after=300 * MS), "PUSH-005") == []

    def test_only_deliveries_that_may_be_explained_are_kept(self) -> None:
        """Others would take memory until the end of the session."""
        engine = Engine()
        observer = Observer(Redactor(KEY), rules=engine)
        for each in (BEGUN + AGAIN + AGAIN).make_chunks():
            observer.feed(each, [])
        assert "push deliveries held" not in engine.session.notes

    def test_delivery_before_the_configuration(self) -> None:
        """It was for one that did not pass here."""
        assert said(WORKING + created(**BEARER), "PUSH-005") == []
        assert (
            said(WORKING + rpc("SendMessage", sending(**BEARER), snapshot("WORKING")), "PUSH-005")
            == []
        )

    def test_other_receivers(self) -> None:
        """Of another task or URL, refused, deleted, replaced, or set by somebody else too."""
        assert said(created(**BEARER) + deliver(status("WORKING", taskId="t2")), "PUSH-005") == []
        assert (
            said(
                rpc(CREATE, HOOK | BEARER | {"url": f"{WEBHOOK_URL}/2"}, STORED) + WORKING,
                "PUSH-005",
            )
            == []
        )
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
        proxied = deliver(
            status("WORKING"), host="127.0.0.1:9000", target="http://client.example.com/hook"
        )
        assert said(absolute + proxied, "PUSH-005") == ["ERROR?"]


class TestBody:
    """007 and 008."""

    def test_bodies(self) -> None:
        """Bare, two objects, none; with another sign that it is a delivery."""
        signed: dict[str, str | None] = {"X-A2A-Notification-Token": "t0ken-of-hook"}
        for body, word in (
            (task("WORKING"), "is a Task without a wrapper"),
            (snapshot("WORKING") | status("WORKING"), "`task` and `statusUpdate`"),
            ({"event": "task.updated"}, "no `task`"),
        ):
            (found,) = of_rule(created(**TOKEN) + deliver(body, headers=signed), "PUSH-007")
            assert word in found.summary
        assert of_rule(created(**TOKEN) + deliver({"event": "task.updated"}), "PUSH-007") == []
        assert of_rule(created() + deliver("[1]", headers=signed), "PUSH-007") == []

    def test_a_body_that_was_cut_off(self) -> None:
        """A payload may be cut off in a recording, so its members are not known."""

        class CuttingEngine(Engine):
            def on_frame(
                self, frame: Frame, source: RuleDataSource, out: list[Observation]
            ) -> None:
                if b"statusUpdate" in frame.payload:
                    frame = msgspec.structs.replace(
                        frame, payload=frame.payload[:20], truncated=True
                    )
                super().on_frame(frame, source, out)

        observer = Observer(Redactor(KEY), rules=CuttingEngine())
        out: list[Observation] = []
        for each in (created(**TOKEN) + deliver(status("WORKING"), headers=GOOD)).make_chunks():
            observer.feed(each, out)
        assert "A2A-PUSH-007" not in {each.rule for each in out if type(each) is Finding}

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
        assert (
            said(deliver(status("WORKING"), headers={"Content-Type": media}), "PUSH-008")
            == expected
        )

    def test_content_type_of_0_3(self) -> None:
        """It is not defined."""
        assert (
            said(deliver(task("WORKING") | {"kind": "task"}, media="application/json"), "PUSH-008")
            == []
        )


@pytest.mark.parametrize("number", [*range(5, 14), 19])
def test_other_frames_cost_nothing(number: int) -> None:
    """No rule runs on the frames of a plain message, of its answer or of a stream."""
    rule = all_rules()[f"A2A-PUSH-{number:03}"]
    usual = (
        ANY_EVENT
        | FrameFlag.FIRST
        | FrameFlag.ASKS
        | FrameFlag.CARD_KNOWN
        | FrameFlag.NAMES
        | FrameFlag.TERMINAL
    )
    assert rule.bindings == WEBHOOK or (
        rule.required_flags is not None and not rule.required_flags & usual
    )
    assert rule.bindings == WEBHOOK or HookPoint.CLOSED not in rule.hook_points


def test_a_card_changes_nothing() -> None:
    """The receiver is not an agent."""
    talk = fetch_card(card()) + created(**BEARER) + deliver(status("WORKING"), headers=GOOD)
    assert [each.rule for each in findings(talk)] == []


FAILED, AGAIN = deliver(status("WORKING"), 500), deliver(status("WORKING"))
SECOND = 1000 * MS


class TestAttempts:
    """010, 013 and 018."""

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [(200, []), (204, []), (299, []), (302, ["ERROR"]), (404, ["ERROR"]), (500, ["ERROR"])],
    )
    def test_statuses(self, answer: int, expected: list[str]) -> None:
        """After a minute without another attempt."""
        later = deliver(status("WORKING", taskId="t2"))
        assert said(deliver(status("WORKING"), answer).then(later, 61 * SECOND), "PUSH-010") in (
            expected,
            [f"{each}?" for each in expected],
        )

    def test_last_attempt(self) -> None:
        """Only it is judged, on its own exchange."""
        assert said(FAILED + AGAIN, "PUSH-010") == []
        (found,) = of_rule(FAILED.then(deliver(status("WORKING"), 503), 5 * SECOND), "PUSH-010")
        assert (found.exchange, found.summary) == (
            2,
            "the receiver answers 503 to the last of 2 attempts",
        )
        assert (found.confidence, found.evidence["actor"]) == ("low", "client"), (
            "the session ends before the next one"
        )

    def test_redirections(self) -> None:
        """Judged if the agent does not follow."""
        moved = deliver(status("WORKING"), 307)
        assert said(moved + deliver(status("WORKING"), target="/moved"), "PUSH-010") == []
        assert said(moved + deliver(status("COMPLETED"), target="/moved"), "PUSH-010") == ["ERROR?"]

    def test_attempts_with_long_pauses(self) -> None:
        """The next one is awaited four times as long as the last pause."""
        slow = FAILED.then(FAILED, 59 * SECOND).then(FAILED, 118 * SECOND).then(AGAIN, 236 * SECOND)
        assert said(slow, "PUSH-010") == []

    def test_no_answer(self) -> None:
        """The receiver closes, or the agent leaves."""
        assert said(deliver(status("WORKING"), None), "PUSH-010") == [], "the proxy ended first"
        closed = deliver(status("WORKING"), None, finish="cut")
        (found,) = of_rule(closed, "PUSH-010")
        assert (found.severity.name, found.summary) == (
            "ERROR",
            "the receiver closes the connection without an answer",
        )
        (found,) = of_rule(deliver(status("WORKING"), None, finish="leave", seconds=5), "PUSH-010")
        assert found.severity.name == "WARNING"
        assert found.summary.startswith("the agent ends the delivery after 5.")

    def test_delivered_twice(self) -> None:
        """After a failure, to another URL, of another task it is not twice."""
        assert said(AGAIN + AGAIN, "PUSH-013") == ["INFO?"]
        assert said(FAILED + AGAIN, "PUSH-013") == []
        assert said(AGAIN + deliver(status("WORKING"), target="/other"), "PUSH-013") == []
        assert said(AGAIN + deliver(status("WORKING", taskId="t2")), "PUSH-013") == []
        assert said(run_together(AGAIN, AGAIN, after=MS), "PUSH-013") == [], (
            "the first is not answered yet"
        )

    def test_two_configurations_with_one_url(self) -> None:
        """The client set both."""
        second = rpc(CREATE, HOOK, STORED | {"id": "p2"})
        (found,) = of_rule(created() + second + AGAIN + AGAIN, "PUSH-013")
        assert found.evidence["actor"] == "client"
        assert found.summary.endswith("the task has 2 push configurations with this URL")


class TestOrder:
    """012 and 019."""

    @pytest.mark.parametrize(
        ("first", "then", "expected"),
        [
            (status("COMPLETED"), status("WORKING"), ["WARNING"]),
            (status("WORKING", second=5), status("WORKING", second=2), ["WARNING"]),
            (status("WORKING", generation="3"), status("WORKING", generation="2"), ["WARNING"]),
            (snapshot("WORKING", second=5), snapshot("SUBMITTED", second=2), ["WARNING"]),
            (status("WORKING", second=2), status("INPUT_REQUIRED", second=2), []),
            (status("INPUT_REQUIRED", second=2), status("WORKING", second=2), []),
            (status("COMPLETED"), snapshot("COMPLETED"), []),
            (status("COMPLETED", taskId="t2"), status("WORKING"), []),
        ],
    )
    def test_order(self, first: Json, then: Json, expected: list[str]) -> None:
        """By generation, state and timestamp."""
        assert [
            each.rstrip("?") for each in said(deliver(first) + deliver(then), "PUSH-012")
        ] == expected

    def test_submitted_without_a_timestamp(self) -> None:
        """A task begins in it; after itself it is a repetition."""

        def event(state: str) -> Script:
            update = {"taskId": "t1", "contextId": "c1", "status": {"state": f"TASK_STATE_{state}"}}
            return deliver({"statusUpdate": update | {"metadata": {"at": state}}})

        assert said(event("WORKING") + event("SUBMITTED"), "PUSH-012") == ["WARNING?"]
        assert said(event("SUBMITTED") + event("WORKING"), "PUSH-012") == []
        assert said(event("INPUT_REQUIRED") + event("WORKING"), "PUSH-012") == []
        assert said(deliver(chunk()) + event("SUBMITTED"), "PUSH-012") == []
        # the client has answered in between: A2A-STATE-002 judges the state
        assert said(event("INPUT_REQUIRED") + event("SUBMITTED"), "PUSH-012") == []

    def test_deliveries_at_once(self) -> None:
        """Their order is that of the network, unless one begins much later."""
        slow = deliver(status("COMPLETED"), seconds=3)
        assert said(run_together(slow, AGAIN, after=300 * MS), "PUSH-012") == []
        assert said(run_together(slow, AGAIN, after=1500 * MS), "PUSH-012") == ["WARNING?"]

    def test_other_bodies(self) -> None:
        """A body that is no event has no order, nor has a Message."""
        ended = created(**TOKEN) + deliver(status("COMPLETED"), headers=GOOD)
        assert said(ended + deliver({"event": "task.updated"}, headers=GOOD), "PUSH-012") == []
        assert (
            said(
                ended + deliver(agent_reply(taskId="t1", contextId="c1"), headers=GOOD), "PUSH-012"
            )
            == []
        )

    def test_a_task_that_goes_on_after_its_end(self) -> None:
        """That is another fault."""
        again = rpc("SendMessage", send(taskId="t1"), snapshot("WORKING", second=9), id=5)
        assert said(BEGUN + deliver(status("COMPLETED")) + again + AGAIN, "PUSH-012") == []

    def test_attempts_out_of_order(self) -> None:
        """A retry is information, a duplicate is another rule."""
        assert said(FAILED + deliver(status("COMPLETED")) + AGAIN, "PUSH-012") == ["INFO?"]
        assert said(AGAIN + deliver(status("COMPLETED")) + AGAIN, "PUSH-012") == []

    def test_old_events(self) -> None:
        """Acknowledged long ago; a retry is not judged."""
        assert said(AGAIN.then(AGAIN, 601 * SECOND), "PUSH-019") == ["WARNING?"]
        assert said(AGAIN.then(AGAIN, 599 * SECOND), "PUSH-019") == []
        assert said(FAILED.then(AGAIN, 601 * SECOND), "PUSH-019") == []

    def test_old_status(self) -> None:
        """It is old by the agent's own clock, if that is right."""
        begun = rpc("SendMessage", send(), snapshot("WORKING"))
        at_ten = {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-01T00:11:00.000Z"}
        now = rpc("GetTask", {"id": "t1"}, task("COMPLETED", status=at_ten), id=2)
        assert said(begun.then(now, 660 * SECOND) + AGAIN, "PUSH-019") == ["WARNING"]
        assert said(begun.then(AGAIN, 660 * SECOND), "PUSH-019") == [], (
            "nothing shows that the clock is right"
        )
        fast = {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-01T01:11:00.000Z"}
        assert (
            said(begun + rpc("GetTask", {"id": "t1"}, task(status=fast), id=2) + AGAIN, "PUSH-019")
            == []
        )

    def test_sources(self) -> None:
        """The first address of an agent with a name is its own."""
        begun = rpc("SendMessage", send(), snapshot("WORKING"))
        there = deliver(status("WORKING", second=1), client="192.0.2.7")
        assert said(begun + AGAIN + there + there, "PUSH-019") == ["INFO"]
        named = rpc(
            "SendMessage", send(), snapshot("WORKING"), upstream="https://agent.example.com"
        )
        assert said(named + there, "PUSH-019") == []
        assert said(
            named + there + deliver(status("WORKING", second=2), client="192.0.2.8"), "PUSH-019"
        ) == ["INFO"]
        assert said(there, "PUSH-019") == [], "the agent is not known"


BEGUN = rpc("SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING"))
GONE = rpc(DELETE, {"taskId": "t1", "id": "p1"}, {}, id=3)
LATER = rpc("GetTask", {"id": "t1"}, task("WORKING"), id=9)
ENDED = rpc("GetTask", {"id": "t1"}, task("COMPLETED", second=1), id=4)


def after(script: Script, seconds: int, other: Script = LATER) -> Script:
    """The session goes on after a pause."""
    return script.then(other, seconds * SECOND)


class TestAskedFor:
    """009."""

    def test_deleted(self) -> None:
        """Ten seconds are allowed; a configuration that is set again counts."""
        assert said(after(after(BEGUN + created() + GONE, 9, AGAIN), 60), "PUSH-009") == []
        late = after(after(BEGUN + created() + GONE, 11, AGAIN), 11)
        (found,) = of_rule(late, "PUSH-009")
        assert (found.exchange, found.confidence) == (4, "high")
        assert found.summary == "the push configuration was deleted 11 s before the delivery"
        assert (
            said(after(after(BEGUN + created() + GONE + created(), 11, AGAIN), 11), "PUSH-009")
            == []
        )

    def test_unknown(self) -> None:
        """Of the task or the URL; not judged where the facts are not complete."""
        assert said(after(BEGUN + AGAIN, 11), "PUSH-009") == ["WARNING"]
        assert said(after(BEGUN + AGAIN, 9), "PUSH-009") == [], "the session ends before"
        assert said(after(created() + AGAIN, 11), "PUSH-009") == []
        assert said(after(AGAIN, 11), "PUSH-009") == [], "the beginning of the task was not seen"
        other = rpc(CREATE, HOOK | {"url": "https://client.example.com/other"}, STORED)
        assert said(after(BEGUN + other + AGAIN, 11), "PUSH-009") == ["WARNING"]
        gateway = rpc(CREATE, HOOK | {"url": "https://gateway.example.com/hook"}, STORED)
        assert said(after(BEGUN + gateway + AGAIN, 11), "PUSH-009") == [], (
            "a gateway may have replaced the host"
        )

    @pytest.mark.parametrize(
        "config",
        [
            rest("POST", "/tasks/t1/pushNotificationConfigs", HOOK, STORED),
            grpc(CREATE, HOOK, STORED, upstream="http://localhost:50051"),
            rpc(GET, {"taskId": "t1", "id": "p1"}, STORED),
            rpc(CREATE, HOOK, error={"code": -32603, "message": "it failed, perhaps too late"}),
            rpc(LIST, {"taskId": "t1"}, {"configs": [STORED]}),
        ],
    )
    def test_asked_for_in_any_way(self, config: Script) -> None:
        """Also at another address of the agent, by another client, or with an answer that says
        nothing."""
        assert said(after(BEGUN + config + AGAIN, 11), "PUSH-009") == []

    def test_asked_for_with_a_message(self) -> None:
        """Before and after its answer."""
        first = rpc("SendMessage", sending(), snapshot("COMPLETED", second=1), seconds=30)
        assert said(after(run_together(first, AGAIN, after=SECOND), 60), "PUSH-009") == []
        more = sending()
        more["message"]["taskId"] = "t1"
        second = rpc("SendMessage", more, snapshot("COMPLETED", second=1), seconds=30, id=5)
        assert said(after(BEGUN + run_together(second, AGAIN, after=SECOND), 60), "PUSH-009") == []

    def test_delivery_before_the_task_is_known(self) -> None:
        """Judged when the message is answered."""
        first = rpc("SendMessage", send(), snapshot("COMPLETED", second=1), seconds=30)
        (found,) = of_rule(after(run_together(first, AGAIN, after=SECOND), 60), "PUSH-009")
        assert found.exchange == 2

    def test_copies(self) -> None:
        """A receiver may post the notification on to another URL."""
        onward = deliver(status("WORKING"), target="/onward", host="inner.example.com")
        assert said(after(BEGUN + created() + AGAIN + onward, 11), "PUSH-009") == []

    def test_tokens_in_the_url(self) -> None:
        """They are redacted in both places."""
        config = rpc(CREATE, HOOK | {"url": f"{WEBHOOK_URL}?token=abcdefgh"}, STORED)
        assert (
            said(
                after(
                    BEGUN + config + deliver(status("WORKING"), target="/hook?token=abcdefgh"), 11
                ),
                "PUSH-009",
            )
            == []
        )


class TestMissing:
    """011."""

    def test_states(self) -> None:
        """Terminal and interrupted ones."""
        begun = BEGUN + created() + AGAIN
        question = {"state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "2026-01-01T00:00:01.000Z"}
        asked = rpc("GetTask", {"id": "t1"}, task("INPUT_REQUIRED", status=question), id=4)
        assert said(after(begun + ENDED, 31), "PUSH-011") == ["WARNING"]
        assert said(after(begun + asked, 31), "PUSH-011") == ["WARNING"]
        assert said(after(begun + LATER, 31), "PUSH-011") == []
        assert said(after(begun + ENDED, 29), "PUSH-011") == []
        assert (
            said(
                after(
                    begun + asked + deliver({"statusUpdate": {"taskId": "t1", "status": question}}),
                    31,
                ),
                "PUSH-011",
            )
            == []
        )

    def test_delivered(self) -> None:
        """Before or after the proxy has seen the state, as a Task or an update."""
        begun = BEGUN + created() + AGAIN
        for event in (status("COMPLETED", second=1), {"task": task("COMPLETED", second=1)}):
            assert said(after(begun + ENDED + deliver(event), 31), "PUSH-011") == []
            assert said(after(begun + deliver(event) + ENDED, 31), "PUSH-011") == []
        late = after(after(begun + ENDED, 29, deliver(status("COMPLETED", second=1))), 31)
        assert said(late, "PUSH-011") == []

    def test_long_tasks(self) -> None:
        """The task is examined again and again, at longer intervals."""
        begun = after(BEGUN + created() + AGAIN, 4000, ENDED)
        (found,) = of_rule(after(begun, 2000), "PUSH-011")
        assert found.summary.startswith("the task has been completed for ")
        assert 30 <= int(found.summary.split()[6]) <= 1030

    def test_not_judged(self) -> None:
        """No delivery passed here, the receiver failed, or the configuration is gone."""
        assert said(after(BEGUN + created() + ENDED, 31), "PUSH-011") == []
        assert said(after(BEGUN + created() + FAILED + ENDED, 31), "PUSH-011") == []
        assert said(after(BEGUN + created() + AGAIN + GONE + ENDED, 31), "PUSH-011") == []
        assert said(after(BEGUN + AGAIN + ENDED, 31), "PUSH-011") == []

    def test_nothing_delivered_at_all(self) -> None:
        """A warning only if the receiver gets events of another task of the agent here, and if the
        task ended after its configuration was set."""
        working = {"taskId": "t0", "contextId": "c1", "status": {"state": "TASK_STATE_WORKING"}}
        other = rpc("SendMessage", sending(), snapshot("WORKING", id="t0"), id=8)
        served = other + deliver({"statusUpdate": working})
        failed = other + deliver({"statusUpdate": working}, 500)
        begun = BEGUN + created()
        assert said(after(served + begun + ENDED, 31), "PUSH-011") == ["WARNING?"]
        assert said(after(begun + served + ENDED, 31), "PUSH-011") == ["WARNING?"]
        assert said(after(after(served + begun, 300, ENDED), 2000), "PUSH-011") == ["WARNING?"]
        assert said(after(served + begun + ENDED, 29), "PUSH-011") == []
        assert said(after(served + begun, 300), "PUSH-011") == []
        assert said(after(failed + begun + ENDED, 31), "PUSH-011") == []
        assert said(after(other + begun + ENDED, 31), "PUSH-011") == []
        assert said(after(served + begun + GONE + ENDED, 31), "PUSH-011") == []
        delivered = deliver(status("COMPLETED", second=1))
        assert said(after(served + begun + ENDED + delivered, 31), "PUSH-011") == []
        at_once = rpc("SendMessage", sending(), snapshot("COMPLETED"))
        assert said(after(served + at_once, 31), "PUSH-011") == []

    @pytest.mark.parametrize("ident", ["new:", "new: 1 x", "watched:", " ", "a b"])
    def test_any_task_id(self, ident: str) -> None:
        """Text in an id changes nothing."""
        names = {"taskId": ident, "contextId": "c1"}
        hook = {"taskId": ident, "url": WEBHOOK_URL}
        begun = rpc("SendMessage", sending(), snapshot("WORKING", id=ident))
        begun += rpc(CREATE, hook, hook | {"id": "p1"}, id=2)
        working = names | {"status": {"state": "TASK_STATE_WORKING"}}
        ended = rpc("GetTask", {"id": ident}, task("COMPLETED", id=ident, second=1), id=4)
        script = begun + deliver({"statusUpdate": working}) + ended
        found = findings(script.then(ended, 31 * SECOND))
        assert not [each for each in found if each.rule == "RULES"]
        assert [each.rule for each in found].count("A2A-PUSH-011") == 1

    def test_delivery_before_the_task_is_known(self) -> None:
        """The first delivery came before the answer, and no other."""
        first = rpc("SendMessage", sending(), snapshot("COMPLETED", second=1), seconds=3)
        assert said(after(run_together(first, AGAIN, after=SECOND), 60), "PUSH-011") == ["WARNING"]
