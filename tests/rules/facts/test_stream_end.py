"""A stream that ended early has one line that says who ended it and how that is known."""

from __future__ import annotations

import pytest

from a2a_proxy.rules.examples.conversation import EventPause, fetch_card, grpc, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status
from a2a_proxy.rules.examples.script import Script
from support_rules import findings

MINUTE = 60_000_000_000
WORKING = (snapshot(), status("WORKING", second=1))
ENVOY = {"server": "envoy"}
SILENCE = ", 9.0 s after its last event"
AND_STAYED_AWAY = "while task t1 was working, and did not ask for the task within 30 s"
BY_ENVOY = "; a proxy in front of the agent (`Server: envoy`) or the agent itself did so"


def jsonrpc(*events: EventPause, **options: object) -> Script:
    return rpc_stream("SendStreamingMessage", send(), *WORKING, *events, **options)


def grpc_call(*events: EventPause, **options: object) -> Script:
    return grpc("SendStreamingMessage", send(), *WORKING, *events, **options)


@pytest.mark.parametrize(
    ("script", "summary"),
    [
        (jsonrpc(), "the agent ended the stream without an error while the task was working"),
        (
            jsonrpc(finish="cut"),
            "the agent's side resets the connection in state working, without ending the stream",
        ),
        (
            jsonrpc(EventPause(9), finish="cut", reply_headers=ENVOY),
            (
                "the agent's side resets the connection in state "
                f"working{SILENCE}, without ending the stream{BY_ENVOY}"
            ),
        ),
        (
            jsonrpc(EventPause(9), reply_headers=ENVOY),
            (
                f"the agent ended the stream without an error while the task was "
                f"working{SILENCE}{BY_ENVOY}"
            ),
        ),
        (jsonrpc(finish="leave"), f"the client closed its connection {AND_STAYED_AWAY}"),
        (grpc_call(), "the agent ended the stream without an error while the task was working"),
        (
            grpc_call(finish="cut", reply_headers=ENVOY),
            (
                "the agent's side breaks off the stream (rst_stream "
                f"internal_error) in state working{BY_ENVOY}"
            ),
        ),
        (grpc_call(finish="leave"), f"the client cancelled the stream {AND_STAYED_AWAY}"),
        (
            grpc_call(status=1),
            (
                "CANCELLED 1 ends the stream of a task that is working, "
                "although the client has not cancelled it"
            ),
        ),
        (
            grpc_call(status=13, reply_headers=ENVOY),
            f"INTERNAL 13 ends the stream of a task that is working{BY_ENVOY}",
        ),
        (
            grpc_call(status=4),
            "SendStreamingMessage ends with DEADLINE_EXCEEDED, the client sets no deadline",
        ),
    ],
)
def test_one_line_says_who_ended_a_stream(script: Script, summary: str) -> None:
    assert [each.summary for each in findings(script.then(fetch_card(), MINUTE))] == [summary]


def test_a_status_that_follows_from_a_deadline_is_not_the_agents() -> None:
    """The client's deadline may have passed at the agent first."""
    script = grpc_call(status=1, headers={"grpc-timeout": "9S"})
    assert "A2A-STREAM-022" not in {each.rule for each in findings(script)}
