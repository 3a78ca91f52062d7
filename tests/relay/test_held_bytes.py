"""Bytes that editors hold: one limit over all connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import cast

import pytest

from a2a_proxy.faults.live import parse_live_fault
from a2a_proxy.faults.plan import FaultPlan
from a2a_proxy.relay import held_bytes
from a2a_proxy.relay.edits import fault_output, http1_faults
from a2a_proxy.relay.held_bytes import MAX_HELD_BYTES, SMALL_HOLD_BYTES, HeldBytes
from a2a_proxy.relay.listener_state import EditPolicy
from support_floods import ANSWER
from support_relay import Story, agent, relaying, until

Play = Callable[[Story], None]
READ = 262_144
"""Bytes of the largest read of an event loop."""
HEAD = b"POST / HTTP/1.1\r\nHost: agent\r\nContent-Length: 1000000\r\n\r\n"
SMALL = b"POST / HTTP/1.1\r\nHost: agent\r\nContent-Length: 2\r\n\r\n{}"


class Loop:
    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def turn(self) -> None:
        due, self.calls = self.calls, []
        for each in due:
            each()


def test_those_that_wait_go_on_one_by_one() -> None:
    loop, resumed = Loop(), []
    account = HeldBytes(cast(asyncio.AbstractEventLoop, loop))
    assert not account.must_wait(MAX_HELD_BYTES)
    account.add(MAX_HELD_BYTES)
    assert account.must_wait(SMALL_HOLD_BYTES + 1)
    assert not account.must_wait(SMALL_HOLD_BYTES)
    for name in "abc":
        account.wait(lambda name=name: resumed.append(name))
    loop.turn()
    assert resumed == []
    account.add(-1)
    loop.turn()
    assert resumed == ["a"]
    account.add(1)  # the first one holds more again
    loop.turn()
    assert resumed == ["a"]
    account.add(-1)
    loop.turn()
    loop.turn()
    loop.turn()
    assert resumed == ["a", "b", "c"]
    assert account.total == MAX_HELD_BYTES - 1
    assert loop.calls == []


class Agent:
    """Reads whole requests, and answers each."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
                self.bodies.append(await reader.readexactly(size))
                writer.write(ANSWER)
        writer.close()


@pytest.fixture
def policy(monkeypatch: pytest.MonkeyPatch) -> EditPolicy:
    """Faults, and a limit that two requests reach."""
    monkeypatch.setattr(held_bytes, "MAX_HELD_BYTES", 2_000_000)
    return EditPolicy(
        "never", keep_host=True, faults=FaultPlan([parse_live_fault("fail 503 at GetTask")])
    )


def test_unfinished_requests_of_many_clients_are_held_up_to_a_limit(
    play: Play, policy: EditPolicy
) -> None:
    """The others are not read. A small request is answered meanwhile."""

    async def story() -> None:
        far = Agent()
        async with agent(far.serve) as port, relaying(port, editing=policy) as bench:
            account, clients = bench.relay._context.held, [await bench.connect() for _ in range(12)]
            for _, writer in clients:
                writer.write(HEAD + bytes(999_999))
            await until(lambda: account.total >= 2_000_000)
            reader, writer = await bench.connect()
            for _ in range(20):
                writer.write(SMALL)
                assert await reader.readexactly(len(ANSWER)) == ANSWER
            assert 2_000_000 <= account.total < 2_000_000 + 12 * READ
            assert far.bodies == [b"{}"] * 20
            for _, each in (*clients, (reader, writer)):
                each.close()

    play(story())


def test_a_request_that_waits_goes_on_when_fewer_bytes_are_held(
    play: Play, policy: EditPolicy
) -> None:
    async def story() -> None:
        far = Agent()
        async with agent(far.serve) as port, relaying(port, editing=policy) as bench:
            account, clients = bench.relay._context.held, [await bench.connect() for _ in range(3)]
            for count, (_, writer) in enumerate(clients, 1):
                writer.write(HEAD + bytes((count,)) * 900_000)
                await until(lambda count=count: account.total >= min(count * 900_000, 2_000_000))
            (waits,) = [each for each in bench.relay._connections if each.client.delayed]
            assert waits.client.received_bytes < 900_000
            for count, (reader, writer) in enumerate(clients, 1):
                writer.write(bytes((count,)) * 100_000)
                assert await reader.readexactly(len(ANSWER)) == ANSWER
                writer.close()
            assert far.bodies == [bytes((count,)) * 1_000_000 for count in (1, 2, 3)]
            assert account.total == 0

    play(story())


def test_unfinished_requests_go_on_after_a_time(
    play: Play, policy: EditPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waits forever: held requests are forwarded, a line says so, and the next ones are
    read."""
    for module in (fault_output, http1_faults):
        monkeypatch.setattr(module, "HOLD_SECONDS", 0.2)

    async def story() -> None:
        far = Agent()
        async with agent(far.serve) as port, relaying(port, editing=policy) as bench:
            clients = [await bench.connect() for _ in range(8)]
            for _, writer in clients:
                writer.write(HEAD + bytes(999_999))
            await until(lambda: bench.relay.stats.bytes_to_agent == 8 * (len(HEAD) + 999_999))
            await until(lambda: bench.relay._context.held.total == 0)
            (note,) = bench.notes
            assert (
                note.text
                == "a request was forwarded without faults: it was not complete after 0.2 s"
            )
            for reader, writer in clients:
                writer.write(b"\0")
                assert await reader.readexactly(len(ANSWER)) == ANSWER
                writer.close()

    play(story())


def test_a_connection_that_ends_holds_nothing(play: Play, policy: EditPolicy) -> None:
    async def story() -> None:
        far = Agent()
        async with agent(far.serve) as port, relaying(port, editing=policy) as bench:
            _, writer = await bench.connect()
            writer.write(HEAD + bytes(500_000))
            await until(lambda: bench.relay._context.held.total > 400_000)
            writer.transport.abort()
            await bench.closed()
            assert bench.relay._context.held.total == 0

    play(story())
