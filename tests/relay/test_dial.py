from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from a2a_proxy.relay import dial as dial_module
from a2a_proxy.relay.dial import DialError, dial_upstream
from a2a_proxy.relay.route import Upstream
from support_relay import UNKNOWN, Story, agent, echo, refusing_port

Play = Callable[[Story], None]


def resolving_to(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> None:
    async def resolve(loop: asyncio.AbstractEventLoop, upstream: Upstream) -> list[str]:
        return list(hosts)

    monkeypatch.setattr(dial_module, "_resolve_host", resolve)


def test_the_next_address_is_tried(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that refuses, and one whose accept queue never answers, do not hide the one that
    works."""

    async def story() -> None:
        async with agent(echo) as port:
            with silent_address(port) as silent:
                resolving_to(monkeypatch, "127.0.0.3", silent, "127.0.0.1")
                monkeypatch.setattr(dial_module, "ADDRESS_SECONDS", 0.1)
                made: asyncio.Future[str] = asyncio.get_running_loop().create_future()

                class Peer(asyncio.Protocol):
                    def connection_made(self, transport: asyncio.BaseTransport) -> None:
                        made.set_result(transport.get_extra_info("peername")[0])
                        transport.close()

                await dial_upstream(Upstream.parse(f"agent:{port}"), Peer)
                assert await made == "127.0.0.1"

    play(story())


class silent_address:
    """An address on which connecting takes for ever: its accept queue is full."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __enter__(self) -> str:
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.2", self.port))
        self.listener.listen(0)
        self.fill = [socket.socket() for _ in range(8)]
        for sock in self.fill:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.2", self.port))
        return "127.0.0.2"

    def __exit__(self, *_: object) -> None:
        for sock in (*self.fill, self.listener):
            sock.close()


def test_dialling_times_out(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is bounded as a whole, and the reason says how long it was."""

    async def story() -> None:
        port = refusing_port()
        with silent_address(port) as silent:
            resolving_to(monkeypatch, silent)
            with pytest.raises(DialError, match=r"no answer within 0\.1 s"):
                await dial_upstream(Upstream.parse(f"agent:{port}"), asyncio.Protocol, 0.1)

    play(story())


def test_the_error_names_the_reason_of_the_last_address(play: Play) -> None:
    """In words for people, without errno and addresses."""

    async def story() -> None:
        with pytest.raises(DialError) as caught:
            await dial_upstream(Upstream.parse(f"127.0.0.1:{refusing_port()}"), asyncio.Protocol)
        assert str(caught.value) == "connection refused"
        with pytest.raises(DialError, match=f"^cannot resolve {UNKNOWN}: "):
            await dial_upstream(Upstream.parse(f"{UNKNOWN}:80"), asyncio.Protocol)

    play(story())
