"""Mutated conversations through the real proxy: a short run of fixed seeds; `tests/benchmarks/fuzz`
runs longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.model.wire import Direction
from support_fuzz import conversations, plan, way_of
from support_fuzz_round import Round, Totals, peak
from support_fuzz_stdio import fuzz_stdio
from support_ways import SECURE_WAYS, Way, expected_requests, to_absolute_form

CONNECTIONS, SECURE_CONNECTIONS = 160, 60
STDIO_SESSIONS = 5
RELAY_MIB, RECORDER_MIB = 128, 256


@pytest.mark.parametrize(
    ("seed", "ways"),
    [(1, (Way.PLAIN,)), (2, (Way.PLAIN,)), (3, SECURE_WAYS)],
    ids=["1", "2", "3-tls-and-forward"],
)
async def test_mutated_conversations_pass_unchanged(
    seed: int, ways: tuple[Way, ...], tmp_path: Path
) -> None:
    """Each peer receives all bytes and the end of the other; no process dies, the recordings are
    sound."""
    totals = Totals()
    running = Round(tmp_path, totals, ways=ways)
    count = CONNECTIONS if Way.PLAIN in ways else SECURE_CONNECTIONS
    try:
        await running.play(seed, iter(range(count)))
        running.finish()
    finally:
        running.kill()
    assert [failure.line(seed) for failure in totals.failures] == []
    assert totals.connections == count
    assert totals.refused < count // 10  # the bytes to the client are not compared there
    assert totals.unjudged < count // 10
    relay, recorder = peak(totals.memory)
    assert 0 < relay < RELAY_MIB
    assert 0 < recorder < RECORDER_MIB


def test_mutated_conversations_pass_a_stdio_agent_unchanged(tmp_path: Path) -> None:
    """stdin, stdout, stderr and the exit code are those of the agent without the proxy; the
    recording is sound."""
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
    for word in (
        b"PRI * HTTP/2.0",
        b"text/event-stream",
        b'"jsonrpc"',
        b"GET /tasks/",
        b"application/a2a+json",
    ):
        assert word in everything
    assert b"agent-card.json" not in everything


def test_requests_in_absolute_form_are_predicted() -> None:
    """In origin form, with the origin as Host and without fields for the proxy; then nothing beyond
    a request that is not plain."""
    data = b"POST /a?b HTTP/1.1\r\nhost:x\r\nContent-Length: 2\r\n\r\nok"
    chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    sent = to_absolute_form(data + chunked, "127.0.0.1:80")
    assert sent.count(b"Proxy-Authorization: ") == sent.count(b" http://127.0.0.1:80/") == 2
    wanted = data.replace(b"host:x", b"host: 127.0.0.1:80") + chunked.replace(
        b"Tra", b"Host: 127.0.0.1:80\r\nTra"
    )
    assert expected_requests(sent) == (wanted, True)
    assert expected_requests(sent + b"GET http://127.0.0.1:80/ HTTP/1.0\r\n\r\n") == (wanted, False)
    assert expected_requests(sent[:-1]) == (wanted[:-5], False)


def test_each_way_is_used() -> None:
    """Half of the requests in absolute form are whole, so that all bytes of their connections are
    compared."""
    assert {way_of(3, number, SECURE_WAYS) for number in range(SECURE_CONNECTIONS)} == set(
        SECURE_WAYS
    )
    plans = [plan(3, number, way=Way.ABSOLUTE, authority="127.0.0.1:80") for number in range(100)]
    sent = [
        b"".join(data for _, to, data in each.steps if to is Direction.TO_AGENT) for each in plans
    ]
    assert sum(expected_requests(each)[1] for each in sent) > 50
