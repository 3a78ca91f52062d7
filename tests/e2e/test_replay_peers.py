"""Real agents, recorded once and replayed to the real clients, whose transcripts do not change.

A client of each SDK runs its scenarios against its agent through the proxy, and then against the
recording: on the same binding and on another one. The transcripts must be equal: kinds, states,
contents, errors, order.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from support_mock import Replay, replaying
from support_peers import Transcript, agent, normalise, require_peers, run_client
from support_proxy import proxy

STREAMS = ["streaming", "failures", "errors", "concurrent"]
COMMON = ["card", *STREAMS, "unary", "parts", "tricky", "input", "cancel", "push", "big"]
ALL = [*COMMON, "message-only", "subscribe"]
SCENARIOS = {"sdk1": ALL, "sdk03": ALL, "js": ALL, "0_1": COMMON, "0_2": ALL, "vendor": STREAMS}
PAIRS = [
    ("sdk1", "sdk1", "jsonrpc"),
    ("sdk1", "sdk1", "rest"),
    ("sdk1", "sdk1", "grpc"),
    ("sdk1", "js", "jsonrpc"),
    ("sdk1", "js", "rest"),
    ("sdk1", "js", "grpc"),
    ("sdk03", "sdk03", "jsonrpc"),
    ("sdk03", "sdk03", "rest"),
    ("sdk03", "sdk03", "grpc"),
    ("sdk1 --compat", "sdk03", "jsonrpc"),
    ("sdk1 --compat", "sdk03", "rest"),
    ("sdk1 --compat", "sdk03", "grpc"),
    ("sdk03", "js", "jsonrpc"),
    ("sdk03", "js", "rest"),
    ("sdk03", "js", "grpc"),
    ("0_1", "0_1", "jsonrpc"),
    ("0_2", "0_2", "jsonrpc"),
    ("vendor", "vendor", "jsonrpc"),
]
"""Agent, client, binding."""

Seen = dict[str, dict[str, list[dict[str, Any]]]]


class Recorded:
    """The recording of one agent with one client over one binding."""

    def __init__(self, client: str, binding: str, scenarios: list[str], folder: Path) -> None:
        self.client, self.binding, self.scenarios, self.folder = client, binding, scenarios, folder
        self.seen: list[Transcript] = []

    def record(self, kind: str, *options: str) -> Recorded:
        """Run the client against the agent through the proxy."""
        with (
            agent(kind, *options) as far,
            proxy(self.folder, f"127.0.0.1:{far.http}", far.grpc_target) as between,
        ):
            grpc = between.address if far.grpc else ""
            self.seen = self.run(self.binding, between.base_url, grpc)
            between.stop()
        return self

    def run(self, binding: str, base_url: str, grpc: str) -> list[Transcript]:
        """Run the client."""
        return asyncio.run(run_client(self.client, binding, self.scenarios, base_url, grpc))

    def replayed(self, binding: str, *options: str) -> tuple[list[Transcript], Replay]:
        """Run the client against the recording."""
        with replaying(
            self.folder / f"replay-{binding}", self.folder / "recording.a2a", *LABELS, *options
        ) as mock:
            seen = self.run(binding, mock.url, mock.address)
            mock.stop()
            return seen, mock


AT = re.compile(r"line \d+ column \d+ \(char \d+\)")
"""The position at which a parser failed: members of an envelope have another order."""
APART = {
    "sdk1": {"tricky", "failures"},
    "sdk03": {"tricky", "failures", "errors", "cancel", "push", "parts"},
}
"""Scenarios whose transcripts differ between bindings: characters at which an event stream reader
fails, errors with the class of each transport of the SDK; in 0.3 also files, which are in base64
twice in its protobuf."""
LABELS = ("--allow-redacted",)
"""Tokens of push configurations are recorded as labels and replayed as such."""


def shown(seen: list[Transcript]) -> Seen:
    """Return the transcript without differences between runs."""
    found: Seen = json.loads(AT.sub("somewhere", json.dumps(normalise(seen))))
    for streams in found.values():
        for event in (
            event for events in streams.values() for event in events if event["kind"] == "http"
        ):
            with contextlib.suppress(ValueError):
                event["body"] = json.loads(event["body"])  # the order of members has no meaning
    return found


def recorded(
    pair: tuple[str, str, str], folder: Path, scenarios: list[str] | None = None
) -> Recorded:
    """Return a pair's recording; skip the test if a peer is missing."""
    kind, client, binding = pair
    agent_kind, *options = kind.split()
    require_peers(agent_kind, client)
    return Recorded(client, binding, scenarios or SCENARIOS[client], folder).record(
        agent_kind, *options
    )


def name(pair: tuple[str, str, str]) -> str:
    """Return the name for test ids."""
    return "-".join(pair).replace(" --", "-")


def same(talk: Recorded, binding: str, apart: set[str]) -> None:
    """Check that the transcripts of a replay equal those of the recording, scenario by scenario,
    with no miss and no call left; scenarios in `apart` differ on another binding."""
    seen, mock = talk.replayed(binding)
    before, after = shown(talk.seen), shown(seen)
    for scenario in (each for each in talk.scenarios if each not in apart):
        assert (scenario, after[scenario]) == (scenario, before[scenario])
    assert [line["text"] for line in mock.said("miss")] == []
    assert mock.said("summary")[-1]["unused"] == []


@pytest.mark.peers
def test_some_scenarios_are_replayed(tmp_path: Path) -> None:
    """The part that CI runs: one client, on the binding of the recording and on another one."""
    talk = recorded(
        ("sdk1", "sdk1", "jsonrpc"),
        tmp_path,
        ["card", "streaming", "unary", "input", "errors", "cancel"],
    )
    same(talk, "jsonrpc", set())
    same(talk, "grpc", set())


@pytest.mark.peers
@pytest.mark.soak
@pytest.mark.parametrize("pair", PAIRS, ids=name)
def test_the_client_gets_the_recorded_responses(pair: tuple[str, str, str], tmp_path: Path) -> None:
    """On the binding of the recording."""
    same(recorded(pair, tmp_path), pair[2], set())


@pytest.mark.peers
@pytest.mark.soak
@pytest.mark.parametrize("to", ["jsonrpc", "rest", "grpc"])
@pytest.mark.parametrize("pair", [PAIRS[0], PAIRS[2], PAIRS[6], PAIRS[8]], ids=name)
def test_the_client_gets_the_same_on_another_binding(
    pair: tuple[str, str, str], to: str, tmp_path: Path
) -> None:
    """Except in scenarios whose transcripts differ between bindings."""
    if to == pair[2]:
        pytest.skip("that is the recorded one")
    same(recorded(pair, tmp_path), to, APART[pair[1]])
