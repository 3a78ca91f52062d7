"""A2A-EXT beyond its examples: all bindings, declarations known later, near misses."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.rules.examples.conversation import fetch_card, grpc, rest, rpc, rpc_error
from a2a_proxy.rules.examples.objects import (
    agent_reply,
    artifact,
    card,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.script import Script
from support_rules import findings

A, A2, B = (
    "https://example.com/ext/a/v1",
    "https://example.com/ext/a/v2",
    "https://example.com/ext/b/v1",
)
TASK = {"task": task()}


def ours(script: Script) -> list[Finding]:
    """What the family says."""
    return [each for each in findings(script) if each.rule.startswith("A2A-EXT-")]


def told(script: Script) -> list[str]:
    """The family's rules that find something, by number."""
    return [each.rule[-3:] for each in ours(script)]


def asks(*uris: str) -> dict[str, Any]:
    """Header fields of the request."""
    return {"A2A-Extensions": ", ".join(uris)}


def with_card(*uris: str, required: bool = False, **capabilities: Any) -> Script:
    """A card that declares extensions passes."""
    listed = [{"uri": uri, "required": required} for uri in uris]
    return fetch_card(card(capabilities={"streaming": True, "extensions": listed} | capabilities))


def sent(request: list[str], response: list[str], result: Any = None, **members: Any) -> Script:
    """A message with these extensions asked for and activated."""
    params, answer = send(**members), TASK if result is None else result
    headers = asks(*request) if request else None
    return rpc(
        "SendMessage",
        params,
        answer,
        headers=headers,
        reply_headers=asks(*response) if response else None,
    )


def test_a_required_extension_over_every_binding() -> None:
    """The client's omission is a warning, the agent's acceptance an error."""
    known = with_card(A, required=True)
    for call in (
        rpc("SendMessage", send(), TASK),
        rest("POST", "/message:send", send(), TASK),
        grpc("SendMessage", send(), TASK),
    ):
        found = ours(known + call)
        assert [(each.rule, each.severity) for each in found] == [
            ("A2A-EXT-001", Severity.WARNING),
            ("A2A-EXT-001", Severity.ERROR),
        ]


def test_a_required_extension_that_the_agent_enforces() -> None:
    """Any error is no acceptance."""
    call = rpc("SendMessage", send(), error=rpc_error(-32008, "EXTENSION_SUPPORT_REQUIRED"))
    (found,) = ours(with_card(A, required=True) + call)
    assert found.severity is Severity.WARNING


def test_an_unknown_requirement_is_not_flagged() -> None:
    """No card, a card that came later, an extension that is optional, a call that is no message."""
    call = rpc("SendMessage", send(), TASK)
    assert told(call) == told(call + with_card(A, required=True)) == told(with_card(A) + call) == []
    assert told(with_card(A, required=True) + rpc("GetTask", {"id": "t1"}, task())) == []


def test_a_required_extension_that_is_named_in_the_message() -> None:
    """The header is missing; the client supports the extension all the same."""
    assert told(with_card(A, required=True) + sent([], [], extensions=[A])) == ["006"]


def test_undeclared_extensions() -> None:
    """Less sure where an extended card was not seen; silent without a card."""
    (found,) = ours(with_card(A) + sent([B], [B]))
    assert (found.rule, found.confidence) == ("A2A-EXT-002", "high")
    (found,) = ours(with_card(A, extendedAgentCard=True) + sent([B], [B]))
    assert (found.rule, found.confidence) == ("A2A-EXT-002", "low")
    assert told(sent([B], [B])) == []


def test_activated_in_grpc_trailers() -> None:
    """Agents may name what is active there."""
    call = grpc(
        "SendMessage",
        send(),
        TASK,
        headers={"a2a-extensions": A},
        trailers={"a2a-extensions": f"{A},{B}"},
    )
    assert told(call) == ["003"]
    call = grpc(
        "SendMessage", send(), TASK, headers={"a2a-extensions": A2}, trailers={"a2a-extensions": A}
    )
    assert told(call) == ["007"]


def test_activated_in_a_response_of_headers_only() -> None:
    """That block is reported once."""
    call = grpc("SendMessage", send(), status=13, text="no", reply_headers={"a2a-extensions": B})
    assert told(call) == ["003"]


@pytest.mark.parametrize(
    ("wanted", "got", "rule"),
    [
        ("https://example.com/ext/v2", "https://example.com/ext/v1", "007"),
        ("https://example.com/ext/2.1", "https://example.com/ext/1.0/", "007"),
        ("urn:example:ext:2", "urn:example:ext:1", "007"),
        ("https://example.com/ext1", "https://example.com/ext2", "003"),
        ("https://example.com/a/v1", "https://example.com/b/v1", "003"),
    ],
)
def test_another_version(wanted: str, got: str, rule: str) -> None:
    """Only the end may differ, and it must look like a version."""
    assert told(sent([wanted], [got])) == [rule]


def test_lists() -> None:
    """Absolute URIs of any scheme; in several fields over HTTP, one list with an info."""
    assert told(sent(["urn:example:a", "https://example.com/ext?x=1#y"], ["urn:example:a"])) == []
    assert told(sent(["/ext/v1"], [])) == ["004"]
    (found,) = ours(rpc("SendMessage", send(), TASK, headers={"A2A-Extensions": f"{A}\0{B}"}))
    assert (found.rule, found.severity) == ("A2A-EXT-004", Severity.INFO)


def test_names_of_the_header() -> None:
    """Both at once are fine; 0.3 has the other name."""
    both = asks(A) | {"X-A2A-Extensions": A}
    assert told(rpc("SendMessage", send(), TASK, headers=both)) == []
    assert told(
        rpc("SendMessage", send(), TASK, headers=asks(A), reply_headers={"X-A2A-Extensions": A})
    ) == ["005"]
    old = {
        "message": {
            "kind": "message",
            "messageId": "m1",
            "role": "user",
            "parts": [{"kind": "text", "text": "x"}],
        }
    }
    bare = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}
    assert told(rpc("message/send", old, bare, headers={"X-A2A-Extensions": A}, version="")) == []
    assert told(rpc("message/send", old, bare, headers=asks(A), version="")) == ["005"]


def test_inactive_extensions_of_the_client() -> None:
    """Over every binding, with the place."""
    (found,) = ours(sent([], [], extensions=[A, B]))[:1]
    assert found.evidence["path"] == "params.message.extensions[0]"
    assert found.seq == 0
    assert told(rest("POST", "/message:send", send(extensions=[A]), TASK)) == ["006"]
    assert told(grpc("SendMessage", send(extensions=[A]), TASK)) == ["006"]


@pytest.mark.parametrize(
    "result",
    [
        {"task": task(artifacts=[artifact(extensions=[A])])},
        {
            "task": task(
                status={
                    "state": "TASK_STATE_COMPLETED",
                    "message": agent_reply(extensions=[A])["message"],
                }
            )
        },
        agent_reply(extensions=[A]),
    ],
    ids=["artifact", "status", "message"],
)
def test_inactive_extensions_of_the_agent(result: dict[str, Any]) -> None:
    """Wherever an agent can name one; active ones are fine."""
    assert told(sent([], [], result)) == ["006"]
    assert told(sent([A], [A], result)) == []
    assert told(sent([A, B], [B], result)) == ["006"]
    assert told(sent([A], [], result)) == []
    call = grpc("SendMessage", send(), result)
    assert told(call) == ["006"]


def test_inactive_extensions_before_1_0() -> None:
    """The place is that of the version: no wrapper is around the message."""
    params = {
        "message": {
            "kind": "message",
            "messageId": "m1",
            "role": "user",
            "parts": [{"kind": "text", "text": "x"}],
        }
    }
    bare = params["message"] | {
        "role": "agent",
        "messageId": "r1",
        "contextId": "c1",
        "extensions": [A],
    }
    (found,) = ours(rpc("message/send", params, bare, version=""))
    assert (found.rule, found.evidence["path"]) == ("A2A-EXT-006", "result.extensions[0]")


def test_extensions_of_an_older_task() -> None:
    """What it has from before was active then."""
    result = {"task": task(artifacts=[artifact(extensions=[A])])}
    first = sent([A], [A], {"task": task("INPUT_REQUIRED", artifacts=[artifact(extensions=[A])])})
    assert told(first + sent([], [], result, taskId="t1", contextId="c1", id="m2")) == []


def test_an_unconfirmed_extension_is_reported_once_per_stream() -> None:
    """However many events use it."""
    used = agent_reply(extensions=[A])["message"]
    call = grpc(
        "SendStreamingMessage",
        send(),
        snapshot("WORKING"),
        status("WORKING", message=used),
        status("COMPLETED", message=used),
        headers={"a2a-extensions": A},
    )
    assert told(call) == []
