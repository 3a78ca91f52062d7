from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.host_patterns import HostPattern
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, Route, RouteError, Upstream
from a2a_proxy.relay.server import Relay
from a2a_proxy.relay.upstream_proxy import UpstreamProxy
from support_relay import Bench, ForwardBench, MemoryJournal, Story, agent, echo, refusing_port

Play = Callable[[Story], None]
AGENT = "agent.test:8000"
"""An agent that only the other proxy knows."""


@contextlib.asynccontextmanager
async def other_proxy(answer: bytes, asked: list[bytes]) -> AsyncIterator[int]:
    """A proxy that answers CONNECT like this, with the first bytes of the tunnel in the same
    packet; tunnels echo."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await echo(reader, writer)

    async with agent(handle) as port:
        yield port


@contextlib.asynccontextmanager
async def relaying(proxy: str) -> AsyncIterator[tuple[Bench, ForwardBench]]:
    """A relay to AGENT and a forward proxy beside it, behind the other proxy."""
    journal, notes = MemoryJournal(), []
    route = Route(Listen.parse(":0"), Upstream.parse(AGENT))
    through = UpstreamProxy.parse(proxy)
    policy = EditPolicy("never", keep_host=True)
    relay = Relay(
        [route], session_clock(), policy, notes.append, [Listen.parse(":0")], proxy=through
    )
    await relay.bind_listeners()
    relay.accept_connections(journal)
    try:
        yield Bench(relay, journal, notes), ForwardBench(relay, journal, notes)
    finally:
        await relay.stop()


def test_upstreams_are_dialled_through_the_proxy(play: Play) -> None:
    """Those of listeners, of absolute-form requests and of tunnels; the first bytes of the agent
    are not lost."""

    async def story() -> None:
        asked: list[bytes] = []
        async with (
            other_proxy(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nhello", asked) as port,
            relaying(f"http://user:p%40ss@127.0.0.1:{port}") as (listener, forward),
        ):
            get = b"GET / HTTP/1.1\r\nHost: agent.test:8000\r\n\r\n"
            for bench, sent in (
                (listener, get),
                (forward, get.replace(b"/", b"http://agent.test:8000/", 1)),
                (forward, b"CONNECT agent.test:8000 HTTP/1.1\r\n\r\n" + get),
            ):
                reader, writer = await bench.connect()
                writer.write(sent)
                if sent.startswith(b"CONNECT"):
                    await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(len(get) + 5) == b"hello" + get
                writer.close()
            token = base64.b64encode(b"user:p@ss")
            assert (
                asked
                == [
                    b"CONNECT agent.test:8000 HTTP/1.1\r\nHost: agent.test:8000\r\n"
                    b"Proxy-Authorization: Basic " + token + b"\r\n\r\n"
                ]
                * 3
            )
            await listener.closed(3)
            assert not any(token in chunk.data for chunk in listener.journal.chunks)
            assert listener.journal.data(Direction.TO_CLIENT, 1).startswith(b"hello")

    play(story())


@pytest.mark.parametrize(
    ("answer", "words", "hint"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "answers 407", "USER:PASSWORD"),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nno.", "answers 503", ""),
        (b"SSH-2.0-x\r\n\r\n", "does not answer as an HTTP proxy", ""),
        (b"", "connection refused", "check --upstream-proxy"),
    ],
)
def test_a_proxy_that_does_not_lead_there(play: Play, answer: bytes, words: str, hint: str) -> None:
    """502 in words that name the other proxy."""

    async def story() -> None:
        async with other_proxy(answer, []) as port:
            at = port if answer else refusing_port()
            async with relaying(f"http://127.0.0.1:{at}") as (bench, _):
                reader, writer = await bench.connect()
                writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                text = await reader.read()
                assert text.startswith(b"HTTP/1.1 502 ")
                assert f"the upstream proxy 127.0.0.1:{at}" in text.decode()
                assert words in text.decode()
                assert [hint in note.hint for note in bench.notes] == [True] * bool(hint)
                writer.close()

    play(story())


def test_a_proxy_that_is_this_one(play: Play) -> None:
    """It would send each request to itself, until no descriptor is left."""

    async def story() -> None:
        with socket.socket() as reserved:  # a port that is free until the relay has it
            reserved.bind(("127.0.0.1", 0))
            port = reserved.getsockname()[1]
        through, notes = UpstreamProxy.parse(f"localhost:{port}"), list[ConsoleNote]()
        route = Route(Listen.parse(":0"), Upstream.parse(AGENT))
        listens = [Listen.parse(f"127.0.0.1:{port}")]
        relay = Relay([route], session_clock(), EditPolicy(), notes.append, listens, proxy=through)
        await relay.bind_listeners()
        journal = MemoryJournal()
        relay.accept_connections(journal)
        get = b"GET http://agent.test:8000/ HTTP/1.1\r\nHost: agent.test:8000\r\n\r\n"
        for bench, sent in (
            (Bench(relay, journal, notes), get.replace(b"http://agent.test:8000", b"")),
            (ForwardBench(relay, journal, notes), get),
            (ForwardBench(relay, journal, notes), b"CONNECT agent.test:8000 HTTP/1.1\r\n\r\n"),
        ):
            reader, writer = await bench.connect()
            writer.write(sent)
            text = (await reader.read()).decode()
            assert f"the upstream proxy localhost:{port}: it is a port of the proxy itself" in text
            writer.close()
        assert relay.stats.total == 3
        await relay.stop()

    play(story())


def test_this_machine_and_exceptions_are_dialled_directly() -> None:
    proxy = UpstreamProxy(Upstream.parse("proxy:3128"), exceptions=(HostPattern.parse("*.corp"),))
    assert proxy.leads_to(Upstream.parse("agent.example"))
    for direct in ("localhost:1", "127.0.0.2:1", "[::1]:1", "a.corp"):
        assert not proxy.leads_to(Upstream.parse(direct))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://proxy:3128", "https:// proxies are not supported"),
        ("socks5://user:secret@proxy:3128", "socks5:// proxies are not supported"),
        ("http://user:secret@proxy:3128/path", "the URL of a proxy has no path"),
        ("http://user:secret@proxy:99999", "is not a port"),
        ("", "the URL of a proxy has no path"),
    ],
)
def test_invalid_addresses(text: str, words: str) -> None:
    """The message names the option, and no credentials."""
    with pytest.raises(RouteError) as caught:
        UpstreamProxy.parse(text)
    assert words in caught.value.message
    assert "--upstream-proxy" in caught.value.message
    assert "secret" not in caught.value.message + caught.value.hint


def test_addresses() -> None:
    assert UpstreamProxy.parse("proxy:3128").address.address == "proxy:3128"
    assert UpstreamProxy.parse("HTTP://proxy/").address.address == "proxy:80"
    assert UpstreamProxy.parse("http://a:b%3A@[::1]:9").credentials == "a:b:"
