"""The ends of TLS connections through the relay, seen by peers that use OpenSSL as most programs
do: blocking, each direction closed by itself."""

from __future__ import annotations

import asyncio
import datetime
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from a2a_proxy.certificates.authority import Authority
from a2a_proxy.certificates.contexts import IssuedContexts
from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay.client_tls import ClientTls
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.tls import Trust
from support_relay import Bench, Story, agent, relaying
from support_tls_peer import Act, Peer, run_client, tls_agent

Play = Callable[[Story], None]
Talk = Callable[[Act, Act], Bench]
BIG = bytes(range(256)) * 12_000
"""More than fits into the buffers."""


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("test", datetime.datetime.now(datetime.UTC))


@pytest.fixture
def tls(authority: Authority) -> ClientTls:
    return ClientTls(IssuedContexts(authority))


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def editing(ca: trustme.CA, tmp_path: Path) -> EditPolicy:
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return EditPolicy(cards="never", keep_host=True, trust=Trust(tmp_path / "ca.pem"))


@pytest.fixture
def talk(
    play: Play, tls: ClientTls, authority: Authority, ca: trustme.CA, editing: EditPolicy
) -> Talk:
    """A function that runs an agent and a client, both over TLS, until the connection has ended."""

    def run(serve: Act, client: Act) -> Bench:
        benches: list[Bench] = []

        async def story() -> None:
            with tls_agent(ca, serve) as port:
                async with relaying(
                    f"https://localhost:{port}", client_tls=tls, editing=editing
                ) as bench:
                    await run_client(bench.port, authority, client)
                    await bench.closed()
                    benches.append(bench)

        play(story())
        return benches[0]

    return run


def test_the_agents_end_reaches_a_client_that_does_not_answer_it(
    play: Play, tls: ClientTls, authority: Authority
) -> None:
    """After all bytes: close_notify and FIN. Clients look for FIN before they use a connection
    again."""

    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(BIG)
        writer.close()

    def client(peer: Peer) -> None:
        peer.send(b"?")
        threading.Event().wait(0.3)  # reads slowly
        assert peer.read() == (BIG, True)
        peer.wait_fin()

    async def story() -> None:
        async with agent(leave) as port, relaying(port, client_tls=tls) as bench:
            await run_client(bench.port, authority, client)
            await bench.closed()
            assert bench.journal.kinds() == [
                "OPEN",
                "DIALED",
                "EOF to_client",
                "EOF to_agent",
                "CLOSED",
            ]

    play(story())


def test_a_client_reads_on_after_its_end(play: Play, tls: ClientTls, authority: Authority) -> None:
    """As with plain text, the agent's bytes arrive after the client has sent its last ones."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == BIG
        writer.write(BIG[::-1])
        writer.close()

    def client(peer: Peer) -> None:
        peer.send(BIG)
        peer.end()
        assert peer.read() == (BIG[::-1], True)
        peer.wait_fin()

    async def story() -> None:
        async with agent(answer) as port, relaying(port, client_tls=tls) as bench:
            await run_client(bench.port, authority, client)
            await bench.closed()

    play(story())


def test_an_agent_reads_on_after_its_end(talk: Talk) -> None:
    received: list[tuple[bytes, bool]] = []

    def serve(peer: Peer) -> None:
        peer.read_some()
        peer.send(b"no more")
        peer.end()
        received.append(peer.read())

    def client(peer: Peer) -> None:
        peer.send(b"GET ")
        assert peer.read() == (b"no more", True)
        peer.send(BIG)
        peer.end()

    talk(serve, client)
    assert received == [(BIG, True)]


def test_a_plain_clients_end_reaches_the_agent_at_once(
    play: Play, ca: trustme.CA, editing: EditPolicy
) -> None:
    """As close_notify and FIN, after the request; the response still arrives."""
    received: list[tuple[bytes, bool]] = []

    def serve(peer: Peer) -> None:
        received.append(peer.read())
        peer.wait_fin()
        peer.send(BIG)
        peer.end()

    async def story() -> None:
        with tls_agent(ca, serve) as port:
            async with relaying(f"https://localhost:{port}", editing=editing) as bench:
                reader, writer = await bench.connect()
                writer.write(b"GET " + BIG)
                writer.write_eof()
                assert await reader.read() == BIG
                writer.close()
                await bench.closed()
        assert received == [(b"GET " + BIG, True)]

    play(story())


def test_an_agent_without_close_notify(talk: Talk) -> None:
    """Its bytes may be cut off: the client sees the same, and the recording too."""

    def serve(peer: Peer) -> None:
        peer.read_some()
        peer.send(BIG)
        peer.cut()
        peer.wait_fin()

    def client(peer: Peer) -> None:
        peer.send(b"GET ")
        assert peer.read() == (BIG, False)

    journal = talk(serve, client).journal
    assert "EOF to_client" not in journal.kinds()
    (cut,) = [c for c in journal.chunks if c.kind is ChunkKind.RESET]
    assert (cut.direction, cut.data) == (
        Direction.TO_CLIENT,
        b"TLS ended by the agent without close_notify",
    )


def test_a_client_without_close_notify(talk: Talk) -> None:
    """The agent sees the same. Many clients leave so, and it is no fault: no request ends with the
    connection."""
    received: list[tuple[bytes, bool]] = []

    def client(peer: Peer) -> None:
        peer.send(b"GET ")
        peer.cut()
        peer.read()

    bench = talk(lambda peer: received.append(peer.read()), client)
    assert "EOF to_agent" in bench.journal.kinds()
    assert received == [(b"GET ", False)]


def test_an_agent_that_ends_while_its_client_reads_slowly(talk: Talk) -> None:
    """Reading from the agent pauses; its bytes and its end wait, and none is lost."""

    def serve(peer: Peer) -> None:
        peer.read_some()
        peer.send(BIG)
        peer.end()
        peer.wait_fin()

    def client(peer: Peer) -> None:
        peer.send(b"GET ")
        threading.Event().wait(0.3)
        assert peer.read() == (BIG, True)
        peer.end()

    assert talk(serve, client).journal.data(Direction.TO_CLIENT) == BIG
