"""Mutated conversations through the real proxy: a short run of fixed seeds; `tests/benchmarks/fuzz` runs longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from support_fuzz import conversations, plan
from support_fuzz_round import Round, Totals, peak
from support_fuzz_stdio import fuzz_stdio

CONNECTIONS = 160
STDIO_SESSIONS = 5
RELAY_MIB, RECORDER_MIB = 128, 256


@pytest.mark.parametrize("seed", [1, 2])
async def test_mutated_conversations_pass_unchanged(seed: int, tmp_path: Path) -> None:
    """Each peer receives all bytes and the end of the other; no process dies, the recordings are sound."""
    totals = Totals()
    running = Round(tmp_path, totals)
    try:
        await running.play(seed, iter(range(CONNECTIONS)))
        running.finish()
    finally:
        running.kill()
    assert [failure.line(seed) for failure in totals.failures] == []
    assert totals.connections == CONNECTIONS
    assert totals.refused < CONNECTIONS // 10  # the bytes to the client are not compared there
    relay, recorder = peak(totals.memory)
    assert 0 < relay < RELAY_MIB
    assert 0 < recorder < RECORDER_MIB


def test_mutated_conversations_pass_a_stdio_agent_unchanged(tmp_path: Path) -> None:
    """stdin, stdout, stderr and the exit code are those of the agent without the proxy; the recording is sound."""
    totals = Totals()
    fuzz_stdio(tmp_path, 1, range(STDIO_SESSIONS), totals)
    assert [failure.line(1) for failure in totals.failures] == []
    assert totals.connections == STDIO_SESSIONS


def test_a_connection_is_determined_by_seed_and_number() -> None:
    """It can be reproduced without the connections before it."""
    again = [plan(1, number) for number in (7, 3)]
    assert [plan(1, number) for number in (3, 7)] == again[::-1]
    assert plan(2, 3) != plan(1, 3)


def test_most_connections_are_mutated_over_all_bindings() -> None:
    """No recorded conversation carries a card, which the proxy may change."""
    plans = [plan(1, number) for number in range(1000)]
    unchanged = [each for each in plans if len(each.changes) == 1]
    assert 50 < len(unchanged) < 250
    everything = b"".join(data for steps in conversations().values() for _, _, data in steps)
    for word in (b"PRI * HTTP/2.0", b"text/event-stream", b'"jsonrpc"', b"GET /tasks/", b"application/a2a+json"):
        assert word in everything
    assert b"agent-card.json" not in everything
