"""Requests as the player takes them: the agent by the base path at which its calls were
recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a2a_proxy.model.values import Binding
from a2a_proxy.replay.core.matching import RequestMatcher
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.serve.incoming import RequestReader, match_rest
from support_replay import call, script

SEND = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}


def sent(number: int, agent: str, target: str, binding: Binding = Binding.JSONRPC) -> Any:
    return call(
        number, "SendMessage", SEND, ("s", 1, "end"), agent=agent, target=target, binding=binding
    )


CALLS = (
    sent(1, "h/a", "/a/"),
    sent(2, "h/b", "/b"),
    sent(3, "h/b", "/b/message:send", Binding.REST),
    sent(4, "one", "/"),
    sent(5, "two", "/?x=1"),
    sent(6, "h:2", "", Binding.GRPC),
)


@pytest.mark.parametrize(
    ("target", "agent", "found"),
    [
        ("/a", "h/a", [0, 5]),
        ("/b/?c", "h/b", [1, 2, 5]),
        ("/b/message:send", "h/b", [1, 2, 5]),
        ("/", "", [0, 1, 2, 3, 4, 5]),
        ("/other", "", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_the_base_path_of_a_request_selects_the_agent(
    target: str, agent: str, found: list[int]
) -> None:
    """Only if one agent was recorded there; equal requests to the base paths of others are no
    candidates."""
    reader, matcher = (
        RequestReader(script(*CALLS)),
        RequestMatcher(CALLS, ReplayOptions().match_rules()),
    )
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": SEND}).encode()
    rest = match_rest("POST", target)
    if rest is not None:
        request = reader.read_rest(rest, "POST", target, json.dumps(SEND).encode(), ())
    else:
        request = reader.read_rpc(body, ((b"A2A-Version", b"1.0"),), target=target).request

    assert request.agent == agent
    assert matcher.calls_of(request) == matcher.find_candidates(request) == found


def test_an_operation_that_the_agent_never_had_is_looked_for_at_the_others() -> None:
    reader, calls = (
        RequestReader(script(*CALLS)),
        (*CALLS, call(7, "GetTask", {"id": "t"}, agent="h/a", binding=Binding.REST)),
    )
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}}
    ).encode()
    request = reader.read_rpc(body, ((b"A2A-Version", b"1.0"),), target="/b").request

    assert (
        request.agent,
        RequestMatcher(calls, ReplayOptions().match_rules()).calls_of(request),
    ) == ("h/b", [6])
