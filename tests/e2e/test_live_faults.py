"""Each fault with real SDK clients and a real agent, over SSE and gRPC: what the client gets, and
what is recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.values import FAULT_MARK, Binding, Severity
from support_peers import agent, require_peers, run_client
from support_proxy import finished, inspect, proxy

Event = dict[str, Any]
FAULTS = (
    "drop status 2 of SendStreamingMessage call 1",
    "dup artifact of SendStreamingMessage call 2",
    "swap 3 4 of SendStreamingMessage call 3",
    "slice 7 of SendStreamingMessage call 4",
    "slow 20ms every SendStreamingMessage call 5",
    "stall 400ms before artifact 2 of SendStreamingMessage call 6",
    "cut artifact 2 of SendStreamingMessage call 7 @ 50%",
    "fail 503 at SendStreamingMessage call 8",
    "reset at SendStreamingMessage call 9",
    "gen+2 at 1 of SendStreamingMessage call 10",
)
CALLS = len(FAULTS)
FAILING = (7, 8, 9)
PEERS = [("sdk1", "jsonrpc"), ("sdk1", "rest"), ("sdk1", "grpc"), ("js", "jsonrpc"), ("js", "grpc")]


def calls_of(entries: list[Any]) -> list[list[Any]]:
    """Return the entries of each call: an end or an error closes one."""
    calls: list[list[Any]] = [[]]
    for entry in entries:
        calls[-1].append(entry)
        if entry.event["kind"] in ("end", "error"):
            calls.append([])
    return calls[:-1]


def shapes(call: list[Any]) -> list[str]:
    """Return the events of a call without ids."""
    return [
        str(each.event.get("artifact") or each.event.get("state") or each.event["kind"])
        for each in call[:-1]
    ]


@pytest.mark.peers
@pytest.mark.parametrize(("kind", "binding"), PEERS)
def test_every_fault_reaches_a_real_client(kind: str, binding: str, tmp_path: Path) -> None:
    require_peers(kind, "sdk1")
    options = [word for fault in FAULTS for word in ("--fault", fault)]
    with (
        agent("sdk1") as far,
        proxy(tmp_path, far.base_url, far.grpc_target, *options) as between,
    ):
        target = f"127.0.0.1:{between.port}"
        (seen,) = asyncio.run(
            run_client(kind, binding, ["streaming"] * CALLS, between.base_url, target)
        )
        entries = calls_of(seen.entries)
        with finished(between) as recording:
            rows = [
                row
                for row in recording.read_exchanges()
                if row.exchange.operation == "SendStreamingMessage"
            ]
            exchanges = [row.exchange for row in rows]
            frames = [each.frame for row in rows for each in recording.read_frames(row.key)]
            notes = [frame.note for frame in frames if FAULT_MARK in frame.note]
            findings = [
                f.finding
                for f in recording.read_findings()
                if f.finding.exchange and f.finding.severity > Severity.INFO
            ]
        shown = inspect(between.state, "show", between.recording)
    plain = shapes(entries[9])
    status = [place for place, each in enumerate(entries[9]) if each.event["kind"] == "status"]
    artifact = [place for place, each in enumerate(entries[9]) if each.event["kind"] == "artifact"]
    lost = plain[: status[1]] + plain[status[1] + 1 :]
    twice = plain[: artifact[0] + 1] + plain[artifact[0] :]
    moved = [*plain[:2], plain[3], plain[2], *plain[4:]]
    expected = [lost, twice, moved, plain, plain, plain]
    assert [shapes(call) for call in entries[:6]] == expected
    (stalled,) = [frame.at for frame in frames if FAULTS[5] in frame.note]
    assert entries[5][artifact[1]].at - stalled > 390_000_000  # a client in JavaScript counts ms
    assert shapes(entries[6]) == plain[: artifact[1]]
    assert [entries[number][-1].event["kind"] for number in range(CALLS)] == [
        "error" if number + 1 in FAILING else "end" for number in range(CALLS)
    ]
    assert [each.how for each in exchanges] == [
        *["complete"] * 6, "cut by --fault", "refused", "cut by --fault", "complete",
    ]  # fmt: skip
    assert [len([note for note in notes if fault in note]) > 0 for fault in FAULTS] == [
        True
    ] * 9 + [False]
    assert f"this fault never happened: {FAULTS[9]} (no event fits)" in between.text
    assert "faults on purpose: drop status 2" in shown
    faulted = {each.id for each in exchanges[:9]}
    assert [
        each
        for each in findings
        if each.exchange in faulted and each.evidence.get("actor") != "agent"
    ] == []
    clean = {each.rule for each in findings if each.exchange == exchanges[9].id}
    assert {
        each.rule
        for each in findings
        if each.exchange in faulted and not each.rule.startswith("A2A-LAT")
    } <= clean


@pytest.mark.peers
def test_a_delivery_fails_and_the_next_ones_do_not(tmp_path: Path) -> None:
    """The webhook of a real client, posted to by a real agent through `--webhooks`."""
    require_peers("sdk1")
    options = ("--webhooks", "127.0.0.1:0", "--fault", "fail 503 at webhook call 1")
    with agent("sdk1") as far, proxy(tmp_path, far.base_url, far.grpc_target, *options) as between:
        (seen,) = asyncio.run(run_client("sdk1", "jsonrpc", ["webhook"], between.base_url))
        with finished(between) as recording:
            exchanges = [row.exchange for row in recording.read_exchanges()]
    deliveries = [each for each in exchanges if each.binding is Binding.WEBHOOK]
    assert [each.how for each in deliveries] == ["refused", *["complete"] * (len(deliveries) - 1)]
    assert deliveries[0].status == 503
    assert len(seen.streams()["webhook"]) == len(deliveries) - 1 > 1
    assert "never happened" not in between.text
