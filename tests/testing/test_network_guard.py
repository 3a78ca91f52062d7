"""The guard in a separate process: an audit hook stays until the process ends."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from a2a_proxy.testing.network_guard import parse_grpc_target


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("agent.example:50051", ("agent.example", 50051)),
        ("agent.example", ("agent.example", 443)),
        ("dns:///agent.example:80", ("agent.example", 80)),
        ("dns://8.8.8.8/agent.example:80", ("agent.example", 80)),
        ("ipv4:10.0.0.7:5,10.0.0.8:5", ("10.0.0.7", 5)),
        ("ipv6:[::1]:5", ("::1", 5)),
        ("[::1]:5", ("::1", 5)),
        ("::1", ("::1", 443)),
        ("unix:/run/agent.sock", None),
        ("unix-abstract:agent", None),
    ],
)
def test_targets_of_grpc(target: str, place: tuple[str, int] | None) -> None:
    assert parse_grpc_target(target) == place


_SCRIPT = """
    import asyncio, socket, urllib.request
    import grpc, grpc.aio
    from grpc import insecure_channel as imported_before
    from a2a_proxy.testing.network_guard import GUARD, NetworkBlocked

    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]

    def blocked(call, said):
        try:
            call()
        except NetworkBlocked as wrong:
            assert said in str(wrong), wrong
        else:
            raise AssertionError(f"{said} was not blocked")

    async def aio():
        await asyncio.open_connection("10.255.0.1", 80)

    async def aio_channel():
        grpc.aio.insecure_channel("agent.example:80")

    GUARD.start(["localhost"])
    blocked(
        lambda: urllib.request.urlopen("http://10.255.0.1/"),
        "a connection to 10.255.0.1:80 is blocked",
    )
    blocked(lambda: asyncio.run(aio()), "--a2a-allowed-hosts=10.255.0.1")
    blocked(lambda: imported_before("agent.example:80"), "a gRPC channel to agent.example:80")
    blocked(
        lambda: grpc.secure_channel("dns:///agent.example", grpc.ssl_channel_credentials()),
        "agent.example:443",
    )
    blocked(lambda: asyncio.run(aio_channel()), "a gRPC channel to agent.example:80")
    blocked(
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"", ("10.255.0.1", 9)),
        "a datagram to",
    )
    assert len(GUARD.blocked_attempts) == 6, GUARD.blocked_attempts
    socket.create_connection(("127.0.0.1", port)).close()  # that is where localhost is
    grpc.insecure_channel(f"localhost:{port}").close()

    GUARD.start([f"agent.example:80", "127.0.0.1:1"])
    assert not GUARD.blocked_attempts
    blocked(lambda: socket.create_connection(("127.0.0.1", port)), f"127.0.0.1:{port}")
    GUARD.allow_address("127.0.0.1", port)
    socket.create_connection(("127.0.0.1", port)).close()
    GUARD.forget_address("127.0.0.1", port)
    blocked(lambda: socket.create_connection(("127.0.0.1", port)), f"127.0.0.1:{port}")
    grpc.insecure_channel("agent.example:80").close()
    left, right = socket.socketpair()
    left.send(b"x")
    GUARD.stop()
    socket.create_connection(("127.0.0.1", port)).close()
    print("all as it should be")
"""


def test_the_guard_blocks_remote_addresses_only() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_SCRIPT)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("all as it should be\n", "")
