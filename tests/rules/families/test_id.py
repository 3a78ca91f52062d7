"""Rules about identifiers: what must be found on every binding, and what must not."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.examples.conversation import (
    fetch_card,
    grpc,
    rest,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    agent_reply,
    card,
    input_required,
    message,
    reply,
    send,
    snapshot,
    state,
    status,
    task,
)
from a2a_proxy.rules.examples.script import MS, Script
from support_rules import findings

EVERY = pytest.mark.parametrize("binding", ["jsonrpc", "rest", "grpc"])
AT_ONCE = {"returnImmediately": True}
ASKS = rpc("SendMessage", send(), snapshot("INPUT_REQUIRED", status=input_required()))


def verdicts(script: Script, number: str) -> list[str]:
    """Severities of what one rule says, with `?` where it is not sure."""
    return [
        each.severity.name + ("?" if each.confidence == "low" else "")
        for each in findings(script)
        if each.rule == f"A2A-ID-{number}"
    ]


def call(binding: str, params: Any, answer: Any) -> Script:
    """SendMessage on any binding."""
    if binding == "grpc":
        return grpc("SendMessage", params, answer)
    return (
        rest("POST", "/message:send", params, answer)
        if binding == "rest"
        else rpc("SendMessage", params, answer)
    )


def stream(binding: str, *events: Any) -> Script:
    """SendStreamingMessage on any binding."""
    if binding == "grpc":
        return grpc("SendStreamingMessage", send(), *events)
    if binding == "rest":
        return rest_stream("POST", "/message:stream", send(), *events)
    return rpc_stream("SendStreamingMessage", send(), *events)


@EVERY
def test_ids_that_differ_from_the_request_are_flagged(binding: str) -> None:
    """Between a message and its answer."""
    other = send(id="m2", taskId="t1")
    assert verdicts(ASKS + call(binding, other, snapshot("COMPLETED", id="t2")), "002") == ["ERROR"]
    assert verdicts(call(binding, send(contextId="c7"), snapshot("COMPLETED")), "005") == ["ERROR"]
    bare = {"message": message(role="ROLE_AGENT")}
    assert verdicts(call(binding, send(contextId="c7"), bare), "006") == ["INFO"], (
        "the member is optional there"
    )
    created = snapshot("COMPLETED", contextId="")
    assert verdicts(call(binding, send(contextId="c7"), created), "006") == ["ERROR"]
    assert verdicts(call(binding, send(), created), "006") == ["WARNING"]


@EVERY
def test_stray_events_are_flagged(binding: str) -> None:
    """On a stream: of another task, and in another context."""
    foreign = {"statusUpdate": status("WORKING")["statusUpdate"] | {"taskId": "t2"}}
    assert verdicts(stream(binding, snapshot(), foreign, status("COMPLETED")), "007") == ["ERROR"]
    astray = {"statusUpdate": status("COMPLETED")["statusUpdate"] | {"contextId": "c2"}}
    script = stream(binding, snapshot(), astray)
    assert verdicts(script, "008") == ["ERROR"]
    assert not verdicts(script, "004"), "one change, one finding"


def test_a_subscription_that_shows_another_task_is_flagged() -> None:
    """The first event tells it, the others of that task are no news."""
    other = rpc_stream("SubscribeToTask", {"id": "t9"}, snapshot("WORKING"), status("COMPLETED"))
    assert verdicts(other, "007") == ["ERROR"]


def test_a_changed_context_is_reported_once_per_exchange() -> None:
    """However many events say it."""
    moved = [
        {"statusUpdate": status(name)["statusUpdate"] | {"contextId": "c2"}}
        for name in ("WORKING", "COMPLETED")
    ]
    begin = rpc("SendMessage", send(configuration=AT_ONCE), snapshot("WORKING"))
    followed = rpc_stream(
        "SubscribeToTask", {"id": "t1"}, snapshot("WORKING", contextId="c2"), *moved
    )
    assert verdicts(begin + followed, "004") == ["ERROR"]
    assert not verdicts(begin + followed, "008"), "the stream itself is of one mind"


def test_an_unseen_task_id_is_less_severe_if_the_task_continues() -> None:
    """A continued task began before the recording; the id of a new one was invented by the
    client."""
    goes_on = rpc("SendMessage", send(taskId="t1"), snapshot("COMPLETED"))
    assert verdicts(goes_on, "001") == ["INFO?"]
    made_up = rpc_stream("SendStreamingMessage", send(taskId="t1"), snapshot(), status("COMPLETED"))
    assert verdicts(made_up, "001") == ["ERROR?"]
    listed = rpc(
        "ListTasks", {}, {"tasks": [task("INPUT_REQUIRED")], "totalSize": 1, "pageSize": 50}
    )
    assert not verdicts(listed + goes_on, "001"), "the client has it from a list"
    message = rpc("SendMessage", send(taskId="t1"), agent_reply())
    assert verdicts(message, "001") == ["INFO?"], "the agent ignores the id"
    assert not verdicts(listed + message, "001")
    assert not verdicts(rpc("SendMessage", send(taskId="t1"), agent_reply(taskId="t2")), "001")


def test_an_accepted_mismatched_pair_is_blamed_on_the_agent() -> None:
    """And not when it refuses; ids that were never returned prove nothing."""
    pair = send(id="m2", taskId="t1", contextId="c2")
    assert verdicts(ASKS + rpc("SendMessage", pair, snapshot("COMPLETED")), "003") == ["ERROR"]
    assert not verdicts(ASKS + rpc("SendMessage", pair, error=rpc_error(-32602, text="no")), "003")
    assert not verdicts(rpc("SendMessage", pair, snapshot("COMPLETED")), "003")


def test_a_context_is_optional_in_messages_of_old() -> None:
    """0.3 does not ask for it."""
    old = {
        "kind": "message",
        "messageId": "r1",
        "role": "agent",
        "parts": [{"kind": "text", "text": "hi"}],
    }
    asked = {
        "message": {
            "kind": "message",
            "messageId": "m",
            "role": "user",
            "parts": [{"kind": "text", "text": "hi"}],
        }
    }
    assert verdicts(rpc("message/send", asked, old, version=""), "006") == ["INFO"]


@EVERY
def test_messages_in_a_task_that_name_another(binding: str) -> None:
    """In its status, and in its history."""
    stray = reply(taskId="t2")
    assert verdicts(
        call(binding, send(), snapshot(status=state("COMPLETED", message=stray))), "010"
    ) == ["WARNING"]
    assert verdicts(
        call(binding, send(), snapshot("COMPLETED", history=[message(), stray])), "010"
    ) == ["WARNING"]
    before = [message(id="m0"), message()]
    assert not verdicts(call(binding, send(), snapshot("COMPLETED", history=before)), "010"), (
        "ids left out"
    )


def test_reused_task_ids_are_flagged() -> None:
    """A retry and a continued conversation are no new task."""
    first = rpc("SendMessage", send(), snapshot("COMPLETED"))
    assert verdicts(first + rpc("SendMessage", send(id="m2"), snapshot("COMPLETED")), "011") == [
        "ERROR"
    ]
    assert not verdicts(first + rpc("SendMessage", send(), snapshot("COMPLETED")), "011"), (
        "the same message"
    )
    same = send(id="m2", contextId="c1")
    assert not verdicts(ASKS + rpc("SendMessage", same, snapshot("COMPLETED")), "011"), (
        "found by its context"
    )
    assert verdicts(
        ASKS + rpc_stream("SendStreamingMessage", same, snapshot(), status("COMPLETED")), "011"
    ) == ["ERROR"]


def test_a_reused_task_id_is_the_only_finding() -> None:
    """Only the reuse of the id is reported."""
    first = rpc("SendMessage", send(), snapshot("COMPLETED"))
    again = rpc_stream(
        "SendStreamingMessage", send(id="m2"), snapshot(), status("WORKING"), status("COMPLETED")
    )
    told = {each.rule for each in findings(first + again)}
    assert told == {"A2A-ID-011"}


def test_repeated_messages_are_judged_by_content() -> None:
    """A retry is information, other content a warning; a refused message may be sent again."""
    first = rpc("SendMessage", send("hello"), agent_reply())
    assert verdicts(first + rpc("SendMessage", send("hello"), agent_reply(id="r2")), "009") == [
        "INFO"
    ]
    assert verdicts(first + rpc("SendMessage", send("bye"), agent_reply(id="r2")), "009") == [
        "WARNING?"
    ]
    assert verdicts(first + grpc("SendMessage", send("hello"), agent_reply(id="r2")), "009") == [
        "INFO"
    ], "on any binding"
    refused = rpc("SendMessage", send("hello"), error=rpc_error(-32602, text="no"))
    assert not verdicts(refused + rpc("SendMessage", send("bye"), agent_reply()), "009")
    elsewhere = rpc("SendMessage", send("bye"), agent_reply(id="r2"), client="192.0.2.7")
    assert not verdicts(first + elsewhere, "009"), "two senders"


def test_a_retry_that_creates_a_second_task_is_flagged() -> None:
    """The agent did not know the message again."""
    first = rpc("SendMessage", send(), snapshot("COMPLETED"))
    found = findings(first + rpc("SendMessage", send(), snapshot("COMPLETED", id="t2")))
    assert any("second task" in each.summary for each in found if each.rule == "A2A-ID-009")


@EVERY
def test_reused_agent_message_ids_are_flagged(binding: str) -> None:
    """Growing text is information; another message or the same content is nothing."""

    def said_twice(first: str, second: str, ident: str = "r5") -> Script:
        one = status("WORKING", second=1, message=reply(first, id="r5", taskId="t1"))
        two = status("WORKING", second=2, message=reply(second, id=ident, taskId="t1"))
        return stream(binding, snapshot(), one, two, status("COMPLETED", second=3))

    assert verdicts(said_twice("one", "two"), "015") == ["WARNING"]
    assert verdicts(said_twice("one", "one and more"), "015") == ["INFO"]
    assert not verdicts(said_twice("one", "one"), "015")
    assert not verdicts(said_twice("one", "two", "r6"), "015")


def test_reserialized_messages_are_equal() -> None:
    """Spaces, the order of members, and of a map in protobuf, are not what a message says."""
    data = {"to": "Porto", "nights": 2}
    turned = {"nights": 2, "to": "Porto"}

    def told(said_first: Any, said_later: Any) -> Script:
        one = status("WORKING", second=1, message=reply(id="r5") | {"parts": [said_first]})
        kept = snapshot("WORKING", second=1)
        kept["task"]["status"]["message"] = reply(id="r5") | {"parts": [said_later]}
        return rpc_stream(
            "SendStreamingMessage", send(), snapshot(), one, kept, status("COMPLETED", second=3)
        )

    first = {"data": data, "mediaType": "application/json"}
    assert not verdicts(told(first, {"mediaType": "application/json", "data": turned}), "015")
    assert verdicts(told(first, first | {"data": data | {"nights": 3}}), "015") == ["WARNING"]
    assert verdicts(told({"url": "http://a.example/"}, {"url": "http://b.example/"}), "015") == [
        "WARNING"
    ]


def test_tenants_of_interfaces() -> None:
    """Any interface of the binding will do; without a card nothing is known."""
    one = {"url": "http://localhost:8000/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    free = fetch_card(card(supportedInterfaces=[one]))
    both = fetch_card(card(supportedInterfaces=[one, one | {"tenant": "a"}]))
    with_tenant = rpc("GetTask", {"id": "t1", "tenant": "a"}, task())
    assert verdicts(free + with_tenant, "013") == ["ERROR"]
    assert not verdicts(both + with_tenant, "013")
    assert not verdicts(both + rpc("GetTask", {"id": "t1"}, task()), "013")
    assert not verdicts(with_tenant, "013")
    on_grpc = fetch_card(
        card(supportedInterfaces=[one | {"url": "localhost:8000", "protocolBinding": "GRPC"}])
    )
    assert verdicts(on_grpc + grpc("GetTask", {"id": "t1", "tenant": "a"}, task()), "013") == [
        "ERROR"
    ]


def test_tenants_in_paths() -> None:
    """REST has the tenant before the suffix."""
    offer = {
        "url": "http://localhost:8000",
        "protocolBinding": "HTTP+JSON",
        "protocolVersion": "1.0",
        "tenant": "a",
    }
    seen = fetch_card(card(supportedInterfaces=[offer]))
    assert not verdicts(seen + rest("GET", "/a/tasks/t1", None, task()), "013")
    assert verdicts(seen + rest("GET", "/tasks/t1", None, task()), "013") == ["ERROR"]
    assert verdicts(seen + rest("GET", "/b/tasks/t1", None, task()), "013") == ["ERROR"]


@EVERY
def test_a_response_with_another_task_is_flagged(binding: str) -> None:
    """GetTask and CancelTask."""
    if binding == "grpc":
        script = grpc("GetTask", {"id": "t1"}, task(id="t2"))
    elif binding == "rest":
        script = rest("GET", "/tasks/t1", None, task(id="t2"))
    else:
        script = rpc("CancelTask", {"id": "t1"}, task("CANCELED", id="t2"))
    assert verdicts(script, "014") == ["ERROR"]


def test_labels_of_the_redaction_are_no_ids() -> None:
    """A secret that stands for an id cannot be compared."""
    label = "redacted-0123456789ab"
    assert not verdicts(rpc("GetTask", {"id": "t1"}, task(id=label)), "014")
    assert not verdicts(rpc("SendMessage", send(contextId=label), snapshot("COMPLETED")), "005")


def test_ids_returned_meanwhile_are_not_held_against_the_client() -> None:
    """A context that the agent returned while the message was in flight."""
    late = rpc("SendMessage", send(id="m2", taskId="t1", contextId="c2"), snapshot("COMPLETED"))
    assert not verdicts(late.then(ASKS, MS), "003")


@EVERY
def test_a_stray_event_is_the_only_finding(binding: str) -> None:
    """Neither the context of the task that it names, nor that task's own stream is blamed."""
    foreign = {"statusUpdate": status("WORKING")["statusUpdate"] | {"taskId": "t2"}}
    strays = stream(binding, snapshot(), foreign, status("COMPLETED", second=1))
    of_t2 = snapshot("COMPLETED", id="t2", contextId="c2")
    after = rpc("SendMessage", send(id="m2"), of_t2)
    assert [each.rule for each in findings(strays + after)] == ["A2A-ID-007"]
    assert [each.rule for each in findings(after + strays)] == ["A2A-ID-007"]


HOOK = {"taskId": "t1", "url": "https://client.example.com/hook"}
STORED = HOOK | {"id": "p1"}
WHICH = {"taskId": "t1", "id": "p1"}
OLD_STORED = {"taskId": "t1", "pushNotificationConfig": {"id": "p1", "url": HOOK["url"]}}
OLD_WHICH = {"id": "t1", "pushNotificationConfigId": "p1"}


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, []),
        ({"taskId": "t2"}, ["ERROR"]),
        ({"id": "p2"}, ["ERROR"]),
        ({"url": "http://a/"}, []),
    ],
    ids=["requested", "another task", "another configuration", "another url"],
)
def test_push_configurations_of_another_task(more: dict[str, str], found: list[str]) -> None:
    """On every binding and in 0.3; a new configuration may get an id of the agent."""
    answer = STORED | more
    get, path = "GetTaskPushNotificationConfig", "/tasks/t1/pushNotificationConfigs"
    inner = OLD_STORED["pushNotificationConfig"] | ({"id": more["id"]} if "id" in more else {})
    old = {"taskId": answer["taskId"], "pushNotificationConfig": inner}
    for script in (
        rpc(get, WHICH, answer),
        grpc(get, WHICH, answer),
        rest("GET", f"{path}/p1", None, answer),
        rpc("tasks/pushNotificationConfig/get", OLD_WHICH, old, version=""),
    ):
        assert verdicts(script, "014") == found
    only_task = found if "taskId" in more else []
    for script in (
        rpc("CreateTaskPushNotificationConfig", HOOK | {"id": "p1"}, answer),
        rpc("ListTaskPushNotificationConfigs", {"taskId": "t1"}, {"configs": [answer]}),
        rest("GET", path, None, {"configs": [answer]}),
        rpc("tasks/pushNotificationConfig/list", {"id": "t1"}, [old], version=""),
    ):
        assert verdicts(script, "014") == only_task


@pytest.mark.parametrize(
    ("text", "members", "found"),
    [
        ("good bye", {}, ["WARNING"]),
        ("hello", {}, []),
        (" hello\n", {}, []),
        ("good bye", {"messageId": "m9"}, []),
        ("good bye", {"parts": [{"url": "https://example.com/a.png"}]}, []),
    ],
    ids=["another text", "the text", "with white space", "another id", "no text"],
)
@EVERY
def test_the_sent_message_in_the_history(
    binding: str, text: str, members: dict[str, Any], found: list[str]
) -> None:
    echo = message(text, taskId="t1", contextId="c1") | members
    answer = {"task": task(history=[message("before", id="m0"), echo])}
    if binding == "grpc":
        script = grpc("SendMessage", send(), answer)
    elif binding == "rest":
        script = rest("POST", "/message:send", send(), answer)
    else:
        script = rpc("SendMessage", send(), answer)
    assert verdicts(script, "016") == found
    old = {"kind": "message", "messageId": "m1", "role": "user"}
    said = {"message": old | {"parts": [{"kind": "text", "text": "hello"}]}}
    kept = old | {"parts": [{"kind": "text", "text": text}]} | {"messageId": echo["messageId"]}
    done = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}
    if "parts" not in members:
        call = rpc("message/send", said, done | {"history": [kept]}, version="")
        assert verdicts(call, "016") == found


@EVERY
def test_messages_that_are_not_the_sent_one(binding: str) -> None:
    """Agents count their messages too; a client may reuse an id; characters have several forms."""

    def call(text: str, *history: dict[str, Any], **members: Any) -> Script:
        answer = {"task": task(second=1, history=list(history))}
        if binding == "grpc":
            return grpc("SendMessage", send(text, **members), answer)
        if binding == "rest":
            return rest("POST", "/message:send", send(text, **members), answer)
        return rpc("SendMessage", send(text, **members), answer)

    names = {"taskId": "t1", "contextId": "c1"}
    own, other = message(**names), reply("Good morning.", id="m1", **names)
    assert not verdicts(call("hello", own, other), "016")
    reused = call("Oslo", own, message("Oslo", **names), taskId="t1")
    assert not verdicts(ASKS + reused, "016")
    assert not verdicts(ASKS + call("Oslo", own, taskId="t1"), "016")
    composed = message("Bogot\u00e1", **names)
    assert not verdicts(call("\ufeffBogota\u0301", composed), "016")
    assert verdicts(call("Bogot\u00e1", message("Bogota", **names)), "016") == ["WARNING"]
    for ident in ('m"1', "m\u00e91"):  # an encoder of JSON may escape them
        odd = call("hello", message("goodbye", **names | {"id": ident}), id=ident)
        assert verdicts(odd, "016") == ["WARNING"]
