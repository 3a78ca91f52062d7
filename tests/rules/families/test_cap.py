"""Rules about capabilities and media types: all bindings, near misses, what was not known yet."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.examples.conversation import (
    fetch_card,
    grpc,
    rest,
    rest_error,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import card, chunk, message, send, snapshot, status, task
from a2a_proxy.rules.examples.script import Script
from support_rules import findings

SILENT = fetch_card(card(capabilities={}))
"""Declares nothing."""
ALL = fetch_card()
STREAM = {"Accept": "text/event-stream"}
PLAYED = (snapshot("WORKING"), status("COMPLETED", second=1))
UNSUPPORTED, NO_PUSH = "UNSUPPORTED_OPERATION", "PUSH_NOTIFICATION_NOT_SUPPORTED"
SET = "CreateTaskPushNotificationConfig"
HOOK = {"taskId": "t1", "url": "https://client.example.com/hook"}


def said(script: Script, rule: str) -> list[str]:
    """Severities of what one rule says."""
    return [each.severity.name for each in findings(script) if each.rule == f"A2A-CAP-{rule}"]


class TestStreaming:
    """001."""

    @pytest.mark.parametrize(
        "call",
        [
            rpc_stream("SendStreamingMessage", send(), *PLAYED),
            rest_stream("POST", "/message:stream", send(), *PLAYED),
            grpc("SendStreamingMessage", send(), *PLAYED),
            rpc_stream("SubscribeToTask", {"id": "t1"}, *PLAYED),
        ],
    )
    def test_all_bindings(self, call: Script) -> None:
        """The client tried it (a warning), the agent did it."""
        assert said(SILENT + call, "001") == ["WARNING", "ERROR"]
        assert said(ALL + call, "001") == []
        assert said(call + SILENT, "001") == [], "the card was not known"

    def test_refusals(self) -> None:
        """The right error, another one, and one that has nothing to do with it."""
        call = ("SendStreamingMessage", send())
        for error, found in (
            (rpc_error(-32004, UNSUPPORTED), ["WARNING"]),
            (rpc_error(-32601, "METHOD_NOT_FOUND"), ["WARNING", "WARNING"]),
            (rpc_error(-32602, "INVALID_PARAMS"), ["WARNING"]),
        ):
            assert said(SILENT + rpc(*call, error=error, headers=STREAM), "001") == found

    def test_0_3(self) -> None:
        """The same flag; the error is not settled there."""
        old = fetch_card(_old({"streaming": False}))
        call = rpc("message/stream", send(), error=rpc_error(-32601), version="", headers=STREAM)
        assert said(old + call, "001") == ["WARNING"]


class TestPromises:
    """002, 003, 006."""

    def test_push_in_all_bindings(self) -> None:
        """Refused though declared."""
        error = rest_error(400, "FAILED_PRECONDITION", NO_PUSH)
        info = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": NO_PUSH,
                "domain": "a2a-protocol.org",
            }
        ]
        for call in (
            rpc(SET, HOOK, error=rpc_error(-32003, NO_PUSH)),
            rest("POST", "/tasks/t1/pushNotificationConfigs", HOOK, error, status=400),
            grpc(SET, HOOK, status=9, text="no", details=info),
            grpc(SET, HOOK, status=12, text="not implemented"),
        ):
            assert said(ALL + call, "002") == ["ERROR"]
            assert said(SILENT + call, "002") == []

    def test_a_task_that_may_be_over(self) -> None:
        """UnsupportedOperationError is right then."""
        over = rpc("SendMessage", send(), snapshot("COMPLETED"))
        refused = rpc(
            "SubscribeToTask", {"id": "t1"}, error=rpc_error(-32004, UNSUPPORTED), headers=STREAM
        )
        assert said(ALL + over + refused, "002") == []
        assert said(ALL + refused, "002") == []

    def test_an_interface_that_is_not_declared(self) -> None:
        """An old method on an agent of 1.0."""
        old = rpc("message/stream", send(), error=rpc_error(-32601), version="", headers=STREAM)
        assert said(ALL + old, "002") == []

    def test_the_extended_card(self) -> None:
        """Declared and refused as unsupported; served undeclared; not configured."""
        call = "GetExtendedAgentCard"
        bearer = {"Authorization": "Bearer t0ken-of-ann"}
        assert said(ALL + rpc(call, error=rpc_error(-32004, UNSUPPORTED)), "003") == ["ERROR"]
        assert (
            said(
                ALL + rpc(call, error=rpc_error(-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")),
                "003",
            )
            == []
        )
        assert said(SILENT + rpc(call, None, card(), headers=bearer), "003") == ["ERROR"]
        assert said(SILENT + rpc(call, error=rpc_error(-32601, "METHOD_NOT_FOUND")), "003") == [
            "ERROR"
        ]
        assert said(ALL + rpc(call, None, card(), headers=bearer), "003") == []

    def test_the_extended_card_of_0_3(self) -> None:
        """Served undeclared; a refusal has one error there."""
        call, bearer = (
            "agent/getAuthenticatedExtendedCard",
            {"Authorization": "Bearer t0ken-of-ann"},
        )
        for more, found in (({}, ["WARNING"]), ({"supportsAuthenticatedExtendedCard": True}, [])):
            old = _old({}) | more
            served = rpc(call, None, old, version="", headers=bearer)
            assert said(fetch_card(old) + served, "003") == found
            refused = rpc(call, error=rpc_error(-32007), version="")
            assert said(fetch_card(old) + refused, "003") == []

    def test_the_card_over_grpc_of_0_3(self) -> None:
        """GetAgentCard is the call for both cards there; Python SDK 0.3 answers with the public
        one."""
        old = _old({})
        served = grpc(
            "GetAgentCard",
            {},
            {"name": "weather", "protocolVersion": "0.3.0"},
            path="/a2a.v1.A2AService/GetAgentCard",
            version="",
            request_type="GetAgentCardRequest@0.3",
            answer_type="AgentCard@0.3",
        )
        assert said(fetch_card(old) + served, "003") == []

    def test_refusals_for_a_state(self) -> None:
        """A task that is over, again and again: not the capability."""
        script = ALL
        for _ in range(5):
            script += rpc(
                "SubscribeToTask",
                {"id": "t1"},
                error=rpc_error(-32004, UNSUPPORTED),
                headers=STREAM,
            )
        assert said(script, "006") == []


class TestMedia:
    """004, 005."""

    @pytest.mark.parametrize(
        ("modes", "found"),
        [
            (["text/plain"], ["WARNING"]),
            (["image/*"], []),
            (["*/*"], []),
            (["Image/PNG"], []),
            (["text", "file"], []),
            ([], []),
        ],
    )
    def test_modes(self, modes: list[str], found: list[str]) -> None:
        """Patterns, case, old bare words."""
        declared = fetch_card(card(defaultInputModes=modes))
        assert (
            said(declared + rpc("SendMessage", _picture(), snapshot("COMPLETED")), "004") == found
        )
        assert (
            said(declared + grpc("SendMessage", _picture(), snapshot("COMPLETED")), "004") == found
        )
        assert (
            said(declared + rest("POST", "/message:send", _picture(), snapshot("COMPLETED")), "004")
            == found
        )

    def test_modes_of_a_skill(self) -> None:
        """One skill takes it."""
        skill = {
            "id": "see",
            "name": "See",
            "description": "Sees",
            "tags": ["x"],
            "inputModes": ["image/png"],
        }
        call = rpc("SendMessage", _picture(), snapshot("COMPLETED"))
        assert said(fetch_card(card(skills=[skill])) + call, "004") == []

    def test_refusals(self) -> None:
        """By a task, by another error with and without a word about it."""
        assert said(ALL + rpc("SendMessage", _picture(), snapshot("REJECTED")), "004") == []
        error = rpc_error(-32602, "INVALID_PARAMS", "the media type image/png is not supported")
        assert said(ALL + rpc("SendMessage", _picture(), error=error), "004") == ["WARNING"]
        error = rpc_error(-32602, "INVALID_PARAMS", "messageId is missing")
        assert said(ALL + rpc("SendMessage", _picture(), error=error), "004") == []

    def test_artifacts_of_streams(self) -> None:
        """Every update is looked at, three are told."""
        wanted = {
            "message": message(),
            "configuration": {"acceptedOutputModes": ["text/plain", "application/json"]},
        }
        part = {"url": "https://example.com/1", "mediaType": "image/png"}
        update = chunk()
        update["artifactUpdate"]["artifact"]["parts"] = [part]
        for call in (
            rpc_stream(
                "SendStreamingMessage",
                wanted,
                snapshot("WORKING"),
                update,
                status("COMPLETED", second=1),
            ),
            grpc(
                "SendStreamingMessage",
                wanted,
                snapshot("WORKING"),
                update,
                status("COMPLETED", second=1),
            ),
        ):
            assert said(call, "005") == ["WARNING"]
        everything = {"message": message(), "configuration": {}}
        assert (
            said(
                rpc("SendMessage", everything, {"task": task(artifacts=[{"parts": [part]}])}), "005"
            )
            == []
        )

    def test_0_3(self) -> None:
        """A file with `mimeType`."""
        wanted = {
            "message": {
                "kind": "message",
                "messageId": "m",
                "role": "user",
                "parts": [{"kind": "text", "text": "x"}],
            },
            "configuration": {"acceptedOutputModes": ["text"]},
        }
        file = {"kind": "file", "file": {"mimeType": "image/png", "uri": "https://example.com/1"}}
        made = {
            "kind": "task",
            "id": "t1",
            "contextId": "c1",
            "status": {"state": "completed"},
            "artifacts": [{"artifactId": "a1", "parts": [file]}],
        }
        assert said(rpc("message/send", wanted, made, version=""), "005") == ["WARNING"]
        text = made | {
            "artifacts": [{"artifactId": "a1", "parts": [{"kind": "text", "text": "and/or"}]}]
        }
        assert said(rpc("message/send", wanted, text, version=""), "005") == []


def _picture() -> dict[str, Any]:
    part = {"url": "https://example.com/cat.png", "mediaType": "image/png"}
    return {"message": message(parts=[part])}


def _old(capabilities: dict[str, Any]) -> dict[str, Any]:
    old = {
        "protocolVersion": "0.3.0",
        "url": "http://localhost:8000/",
        "preferredTransport": "JSONRPC",
    }
    return card(supportedInterfaces=None, capabilities=capabilities, **old)
