"""Which ports of the agent's host an agent card may open, for listeners on loopback and beyond."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import grpc.aio
import pytest

from a2a_proto import message_class, parse
from a2a_proxy.model.wire import ChunkKind
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.listener_state import MOST_NAMED, EditPolicy
from a2a_proxy.relay.route import Listen, PortRanges, Route, Upstream
from a2a_proxy.relay.server import Relay
from support_cards import call, card_agent, extended_urls_of, grpc_server, urls_of
from support_relay import Bench, MemoryJournal, relaying

BEYOND = ["0.0.0.0:0", "[::]:0"]
LOOPBACK = [":0", "127.0.0.1:0", "localhost:0", "127.0.0.2:0", "[::1]:0"]


def learning(ports: str) -> EditPolicy:
    return EditPolicy(learn_ports=PortRanges.parse(ports))


def refusals(bench: Bench) -> list[ConsoleNote]:
    return [note for note in bench.notes if "is not relayed" in note.text]


def bound(bench: Bench) -> list[list[str]]:
    """The hosts that each listener is bound to."""
    return [
        [text.rpartition(":")[0].strip("[]") for text in addresses]
        for _, addresses in bench.relay.bound_addresses
    ]


def dialed(bench: Bench) -> set[int]:
    """The ports that connections were made to."""
    chunks = [chunk.data for chunk in bench.journal.chunks if chunk.kind is ChunkKind.DIALED]
    return {int(data.split(b'"')[3].rpartition(b":")[2]) for data in chunks}


@pytest.mark.parametrize("line", ["1.0", "0.3"])
@pytest.mark.parametrize("listen", BEYOND)
async def test_a_card_opens_no_port_beyond_loopback(listen: str, line: str) -> None:
    """The card and the extended card: the URL stays, nothing listens, and one line names the
    option."""
    async with (
        card_agent() as other,
        card_agent(
            ("http://localhost:PORT/a", "JSONRPC"),
            (f"http://127.0.0.1:{other}/", "HTTP+JSON"),
            (f"http://localhost:{other}/again", "JSONRPC"),
            line=line,
        ) as port,
        relaying(port, listen=listen, editing=EditPolicy()) as bench,
    ):
        for urls in (
            await urls_of(bench),
            await extended_urls_of(bench, line),
            await urls_of(bench),
        ):
            own = f"http://127.0.0.1:{bench.port}/a"
            assert urls == [own, f"http://127.0.0.1:{other}/", f"http://localhost:{other}/again"]
        assert len(bench.relay.bound_addresses) == 1
        (note,) = bench.notes
        assert note.loud
        assert f"127.0.0.1:{other}" in note.text
        assert listen in note.text
        assert note.hint.endswith(f"--learn-ports {other}")


@pytest.mark.parametrize("line", ["1.0", "0.3"])
@pytest.mark.parametrize("listen", BEYOND)
async def test_a_card_redirects_no_grpc_beyond_loopback(listen: str, line: str) -> None:
    """HTTP/2 of the listener's port does not go where a card says; the line has the option with its
    value."""
    async with (
        grpc_server() as other,
        card_agent(
            ("http://localhost:PORT/", "JSONRPC"), (f"localhost:{other}", "GRPC"), line=line
        ) as port,
        relaying(port, listen=listen, editing=EditPolicy()) as bench,
    ):
        for urls in (await urls_of(bench), await extended_urls_of(bench, line)):
            assert urls == [f"http://127.0.0.1:{bench.port}/", f"localhost:{other}"]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(bench.port)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert dialed(bench) == {port}
        assert len(bench.relay.bound_addresses) == 1
        (note,) = bench.notes
        assert f"gRPC at 127.0.0.1:{other}" in note.text
        assert note.hint.endswith(f"--upstream-grpc 127.0.0.1:{other}")


async def test_a_signed_card_redirects_no_grpc_beyond_loopback() -> None:
    """A signed card is not rewritten, but teaches the way for gRPC on loopback."""
    async with (
        grpc_server() as other,
        card_agent(
            ("http://localhost:PORT/", "JSONRPC"), (f"localhost:{other}", "GRPC"), signed=True
        ) as port,
        relaying(port, listen="0.0.0.0:0", editing=EditPolicy()) as bench,
    ):
        await urls_of(bench)
        with pytest.raises(grpc.aio.AioRpcError):
            await call(bench.port)
        assert [note.hint.split()[-2] for note in refusals(bench)] == ["--upstream-grpc"]


def grpc_card(line: str, urls: dict[str, str]) -> bytes:
    card = message_class(line, "AgentCard")(name="a", version="1")  # type: ignore[arg-type]
    if line == "0.3":
        (first, *more) = urls.items()
        card.url, card.preferred_transport = first
        for url, transport in more:
            card.additional_interfaces.add(url=url, transport=transport)
    else:
        for url, binding in urls.items():
            card.supported_interfaces.add(url=url, protocol_binding=binding, protocol_version="1.0")
    data: bytes = card.SerializeToString()
    return data


@pytest.mark.parametrize(
    ("line", "method"),
    [
        ("1.0", "/lf.a2a.v1.A2AService/GetExtendedAgentCard"),
        ("0.3", "/a2a.v1.A2AService/GetAgentCard"),
    ],
)
async def test_a_card_over_grpc_opens_no_port(line: str, method: str) -> None:
    """The card that a gRPC call returns."""
    async with card_agent() as other:
        urls = {f"http://localhost:{other}/": "JSONRPC", f"localhost:{other}": "GRPC"}
        async with (
            grpc_server(grpc_card(line, urls)) as port,
            relaying(port, listen="0.0.0.0:0", editing=EditPolicy()) as bench,
        ):
            card: Any = parse(line, "AgentCard", await call(bench.port, method))  # type: ignore[arg-type]
            entries = (
                card.supported_interfaces if line == "1.0" else [card, *card.additional_interfaces]
            )
            assert [entry.url for entry in entries] == list(urls)
            assert len(bench.relay.bound_addresses) == 1
            assert [note.hint.split()[-2] for note in refusals(bench)] == [
                "--learn-ports",
                "--upstream-grpc",
            ]


@pytest.mark.parametrize("listen", BEYOND)
async def test_an_allowed_port_is_opened(listen: str) -> None:
    """Its listener is on the address of the one beside it; the card's other ports stay closed."""
    async with card_agent() as wanted, card_agent() as other:
        urls = [f"http://localhost:{port}/" for port in (wanted, other)]
        listed = [(url, "HTTP+JSON") for url in urls]
        async with (
            card_agent(("http://localhost:PORT/", "JSONRPC"), *listed) as port,
            relaying(port, listen=listen, editing=learning(str(wanted))) as bench,
        ):
            first, second, third = await urls_of(bench)
            assert third == urls[1]
            assert await urls_of(bench) == [first, second, third]
            host = listen.rpartition(":")[0].strip("[]")
            assert bound(bench) == [[host], [host]]
            async with aiohttp.ClientSession() as session, session.get(second + "x") as response:
                assert response.status == 200
            assert wanted in dialed(bench)
            (note,) = refusals(bench)
            assert note.hint.endswith(f"--learn-ports {wanted},{other}")


async def test_an_allowed_grpc_port_is_used() -> None:
    """HTTP/2 of the listener's port goes there."""
    async with (
        grpc_server() as other,
        card_agent(("http://localhost:PORT/", "JSONRPC"), (f"localhost:{other}", "GRPC")) as port,
        relaying(port, listen="0.0.0.0:0", editing=learning(f"1,{other}-{other}")) as bench,
    ):
        assert await urls_of(bench) == [
            f"http://127.0.0.1:{bench.port}/",
            f"127.0.0.1:{bench.port}",
        ]
        assert await call(bench.port) == b"hi"
        assert refusals(bench) == []


async def test_a_second_grpc_port_is_named_with_the_option_that_opens_it() -> None:
    """`--upstream-grpc` would take the first one's place."""
    async with (
        card_agent(
            ("http://localhost:PORT/", "JSONRPC"), ("localhost:1", "GRPC"), ("localhost:2", "GRPC")
        ) as port,
        relaying(port, listen="0.0.0.0:0", editing=learning("1")) as bench,
    ):
        await urls_of(bench)
        (note,) = refusals(bench)
        assert note.hint.endswith("--learn-ports 1,2")


@pytest.mark.parametrize("listen", LOOPBACK)
async def test_on_loopback_ports_are_offered_on_loopback_only(listen: str) -> None:
    """Without the option, and with one that names other ports: it is about listeners beyond
    loopback."""
    for editing in (EditPolicy(), learning("1")):
        async with (
            card_agent() as other,
            card_agent(
                ("http://localhost:PORT/", "JSONRPC"), (f"http://localhost:{other}/", "HTTP+JSON")
            ) as port,
            relaying(port, listen=listen, editing=editing) as bench,
        ):
            host = bench.addresses[0][0]
            shown = f"[{host}]" if ":" in host else host
            url = f"http://{shown}:{bench.port}/.well-known/agent-card.json"
            async with aiohttp.ClientSession() as session, session.get(url) as response:
                await response.read()
            first, second = bound(bench)
            assert first == second
            assert all(ipaddress.ip_address(host).is_loopback for host in second)


@pytest.mark.parametrize(("address", "learns"), [("127.0.0.1", True), ("0.0.0.0", False)])
async def test_learning_depends_on_the_resolved_listener_address(
    monkeypatch: pytest.MonkeyPatch, address: str, learns: bool
) -> None:
    """What the name resolves to decides."""
    loop = asyncio.get_running_loop()
    resolve = loop.getaddrinfo

    async def getaddrinfo(host: str, port: int | None, **more: Any) -> Any:
        return await resolve(address if host == "proxy.example" else host, port, **more)

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    async with (
        card_agent() as other,
        card_agent(
            ("http://localhost:PORT/", "JSONRPC"), (f"http://localhost:{other}/", "HTTP+JSON")
        ) as port,
        relaying(port, listen="proxy.example:0", editing=EditPolicy()) as bench,
    ):
        await urls_of(bench)
        assert bound(bench) == [[address]] * (2 if learns else 1)
        assert len(refusals(bench)) == int(not learns)


@contextlib.asynccontextmanager
async def several(*pairs: tuple[str, int]) -> AsyncIterator[list[Bench]]:
    """One relay with several listeners; a bench for each, all with the same notes."""
    routes = [
        Route(Listen.parse(listen), Upstream.parse(f"127.0.0.1:{port}")) for listen, port in pairs
    ]
    notes: list[ConsoleNote] = []
    journal = MemoryJournal()
    relay = Relay(routes, session_clock(), EditPolicy(), notes.append)
    await relay.bind_listeners()
    relay.accept_connections(journal)
    try:
        yield [Bench(relay, journal, notes, number) for number in range(len(pairs))]
    finally:
        await relay.stop()


async def test_each_listener_learns_separately() -> None:
    """One on loopback learns, one beyond does not, whichever reads the card first; nor is it given
    the other's port."""
    async with (
        card_agent() as other,
        card_agent(
            ("http://localhost:PORT/", "JSONRPC"), (f"http://localhost:{other}/", "HTTP+JSON")
        ) as port,
        several(("0.0.0.0:0", port), (":0", port)) as (beyond, local),
    ):
        untouched = [f"http://127.0.0.1:{beyond.port}/", f"http://localhost:{other}/"]
        assert await urls_of(beyond) == untouched
        _, learned = await urls_of(local)
        assert learned.startswith("http://127.0.0.1:")
        assert await urls_of(beyond) == untouched
        assert bound(beyond) == [["0.0.0.0"], ["127.0.0.1", "::1"], ["127.0.0.1", "::1"]]
        (note,) = refusals(beyond)
        assert "0.0.0.0:0" in note.text


async def test_a_port_with_its_own_listener_is_reused() -> None:
    """The user offers it beyond loopback already: the card's URL leads there."""
    async with (
        card_agent() as other,
        card_agent(
            ("http://localhost:PORT/", "JSONRPC"), (f"http://localhost:{other}/", "HTTP+JSON")
        ) as port,
        several(("0.0.0.0:0", port), ("0.0.0.0:0", other)) as (main, further),
    ):
        assert await urls_of(main) == [f"http://127.0.0.1:{each.port}/" for each in (main, further)]
        assert main.notes == []


async def test_notes_about_many_ports_are_bounded() -> None:
    """So many interfaces get a line of their own, the rest one line, however often a card comes."""
    listed = [(f"http://localhost:{port}/", "HTTP+JSON") for port in range(1, 3 * MOST_NAMED)]
    async with (
        card_agent(("http://localhost:PORT/", "JSONRPC"), *listed) as port,
        relaying(port, listen="0.0.0.0:0", editing=EditPolicy()) as bench,
    ):
        for _ in range(2):
            await urls_of(bench)
        assert len(refusals(bench)) == MOST_NAMED
        assert len(bench.notes) == MOST_NAMED + 1


@pytest.mark.parametrize("mode", ["auto", "always"])
async def test_host_names_of_cards_are_not_resolved(
    monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    """The resolver sees the upstream's name and those of this machine, never a card's, whatever the
    card lists."""
    asked: set[str] = set()

    async def getaddrinfo(host: str, port: int | None, **_: object) -> list[tuple[Any, ...]]:
        asked.add(host)
        if host not in ("agent.example", "127.0.0.1", "::1"):
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        found = (
            ["127.0.0.1", *([] if port else ["192.0.2.7"])] if host == "agent.example" else [host]
        )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port or 0)) for address in found]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    listed = [
        ("http://agent.example:PORT/", "JSONRPC"),
        ("http://card.example:PORT/", "JSONRPC"),
        ("http://card.example:1/", "HTTP+JSON"),
        ("grpc.card.example:2", "GRPC"),
        ("http://192.0.2.7:PORT/literal", "JSONRPC"),
        ("http://127.0.0.1:PORT/loopback", "JSONRPC"),
    ]
    async with (
        card_agent(*listed) as port,
        relaying(f"agent.example:{port}", editing=EditPolicy(mode)) as bench,
    ):
        urls = await urls_of(bench)
        await asyncio.sleep(0)
        assert await urls_of(bench) == urls
        own = f"127.0.0.1:{bench.port}"
        assert [urls[0], *urls[4:]] == [
            f"http://{own}/",
            f"http://{own}/literal",
            f"http://{own}/loopback",
        ]
        if mode == "auto":
            assert urls[1:4] == [
                listed[1][0].replace("PORT", str(port)),
                listed[2][0],
                listed[3][0],
            ]
        assert "agent.example" in asked
        assert {host for host in asked if "card.example" in host} == set()
