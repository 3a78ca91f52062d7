"""Listening sockets: one port on all hosts, and none left open after an error."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator

import pytest

from a2a_proxy.relay import bind as module
from a2a_proxy.relay import route
from a2a_proxy.relay.bind import bind_listener, bind_next_port
from a2a_proxy.relay.route import Listen, RouteError

HOSTS = ("127.0.0.1", "127.0.0.2")
Fail = Callable[[str, int], int]
"""Returns the error of an attempt to bind a host with so many sockets bound before; 0 for none."""


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """All sockets of the test, which stand for both loopback addresses."""
    found: list[socket.socket] = []
    original = module._start_listening

    def watch(sock: socket.socket, where: tuple[object, ...]) -> socket.socket:
        found.append(sock)
        return original(sock, where)

    monkeypatch.setattr(module, "_start_listening", watch)
    monkeypatch.setattr(route, "LOOPBACK", HOSTS)
    yield found
    for sock in found:
        sock.close()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, bound: list[socket.socket]) -> Callable[[Fail], None]:
    """Make attempts to bind fail."""

    def fail_with(fail: Fail) -> None:
        original, attempts = module._bind_host, iter(range(1000))

        async def bind_host(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
            if number := fail(host, next(attempts)):
                raise OSError(number, "No such luck")
            return await original(loop, host, port)

        monkeypatch.setattr(module, "_bind_host", bind_host)

    return fail_with


async def listen(port: int = 0, host: str = "") -> list[socket.socket]:
    return await bind_listener(asyncio.get_running_loop(), Listen(host, port))


def names(sockets: list[socket.socket]) -> list[tuple[str, int]]:
    return [sock.getsockname()[:2] for sock in sockets]


async def test_a_free_port_is_the_same_on_both_addresses(bound: list[socket.socket]) -> None:
    first, second = await listen()
    assert [host for host, _ in names([first, second])] == list(HOSTS)
    assert len({port for _, port in names([first, second])}) == 1
    assert not first.getblocking()
    with socket.create_connection(first.getsockname()):
        pass


async def test_a_given_host_and_port_are_bound(bound: list[socket.socket]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.3", 0))
        port = free.getsockname()[1]
    assert names(await listen(port, "127.0.0.3")) == [("127.0.0.3", port)]


@pytest.mark.parametrize("number", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
async def test_a_machine_without_the_second_address_uses_the_first(
    number: int, failing: Callable[[Fail], None]
) -> None:
    failing(lambda host, _: number if host == HOSTS[1] else 0)
    assert [host for host, _ in names(await listen())] == [HOSTS[0]]


async def test_a_first_address_that_does_not_exist_is_an_error(
    failing: Callable[[Fail], None],
) -> None:
    failing(lambda host, _: errno.EADDRNOTAVAIL if host == HOSTS[0] else 0)
    with pytest.raises(RouteError, match=r"cannot listen on .*: no such luck"):
        await listen()


async def test_a_free_port_that_is_taken_on_the_second_address_is_drawn_again(
    bound: list[socket.socket], failing: Callable[[Fail], None]
) -> None:
    failing(lambda host, attempt: errno.EADDRINUSE if host == HOSTS[1] and attempt < 31 else 0)
    assert len(await listen()) == 2
    assert [sock.fileno() == -1 for sock in bound] == [True] * 15 + [False] * 2


async def test_after_sixteen_attempts_the_port_is_in_use_and_no_socket_is_open(
    bound: list[socket.socket], failing: Callable[[Fail], None]
) -> None:
    failing(lambda host, _: errno.EADDRINUSE if host == HOSTS[1] else 0)
    with pytest.raises(RouteError, match="port 0 is in use"):
        await listen()
    assert [sock.fileno() for sock in bound] == [-1] * 16


async def test_a_given_port_is_tried_once(bound: list[socket.socket]) -> None:
    (taken,) = await listen(0, HOSTS[0])
    port = taken.getsockname()[1]
    with pytest.raises(RouteError, match=f"port {port} is in use") as caught:
        await listen(port)
    assert f":{port}," in caught.value.hint
    assert [sock.fileno() == -1 for sock in bound] == [False, True]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EINVAL])
async def test_any_other_error_is_explained_at_once(
    number: int, bound: list[socket.socket], failing: Callable[[Fail], None]
) -> None:
    failing(lambda host, _: number if host == HOSTS[1] else 0)
    with pytest.raises(RouteError) as caught:
        await listen()
    assert ("no permission" in str(caught.value)) is (number == errno.EACCES)
    assert [sock.fileno() for sock in bound] == [-1]


async def test_the_next_port_is_the_first_that_is_free_on_all_hosts(
    bound: list[socket.socket],
) -> None:
    neighbours = await listen()
    port = neighbours[0].getsockname()[1]
    (first,) = bind_next_port(neighbours[1:])
    assert first.getsockname()[0] == HOSTS[1]
    assert port < first.getsockname()[1] <= port + 64
    for found in bind_next_port(neighbours):
        assert found.getsockname()[1] > first.getsockname()[1]
    assert all(sock.fileno() == -1 for sock in bound[3:-2])


class _Neighbour:
    """A socket with a port."""

    family = socket.AF_INET

    def __init__(self, port: int) -> None:
        self._port = port

    def getsockname(self) -> tuple[str, int]:
        return HOSTS[0], self._port


@pytest.mark.parametrize(
    ("port", "last"), [(9000, 9064), (65471, 65535), (65534, 65535), (65535, 0)]
)
def test_there_is_no_next_port_if_64_are_taken_or_the_ports_end(
    port: int, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def refuse(sock: socket.socket, where: tuple[object, ...]) -> socket.socket:
        tried.append(where[1])
        sock.close()
        raise OSError(errno.EADDRINUSE, "in use")

    monkeypatch.setattr(module, "_start_listening", refuse)
    assert bind_next_port([_Neighbour(port)]) == []  # type: ignore[list-item]
    assert tried == list(range(port + 1, last + 1))
