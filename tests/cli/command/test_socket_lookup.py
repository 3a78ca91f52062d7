"""Look-up of sockets in the kernel: of both families, with real sockets."""

from __future__ import annotations

import os
import socket

import pytest

from a2a_proxy.cli.command.socket_lookup import find_inode, read_listeners


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_connected_socket_is_found_by_its_addresses(
    family: socket.AddressFamily, host: str
) -> None:
    """Each end by its own; a port without a connection leads to the listener, which is not
    meant."""
    with socket.create_server((host, 0), family=family) as server:
        there = server.getsockname()[:2]
        with socket.create_connection(there) as client:
            here = client.getsockname()[:2]
            accepted, _ = server.accept()
            with accepted:
                assert find_inode(here, there) == os.fstat(client.fileno()).st_ino
                assert find_inode(there, here) == os.fstat(accepted.fileno()).st_ino
                assert find_inode(there, (host, 1)) == 0
                assert find_inode((host, 1), there) == 0


def test_an_ipv4_connection_of_an_ipv6_socket_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_INET6) as client:
        client.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        here = ("127.0.0.1", client.getsockname()[1])
        assert find_inode(here, server.getsockname()) == os.fstat(client.fileno()).st_ino


def test_listeners_of_both_families_are_read() -> None:
    """Many of them: the kernel replies in several messages."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(300)]
    servers.append(socket.create_server(("::1", 0), family=socket.AF_INET6))
    found = {each.inode: each.local[1] for each in read_listeners() if each.listening}
    wanted = {os.fstat(each.fileno()).st_ino: each.getsockname()[1] for each in servers}
    for each in servers:
        each.close()
    assert {inode: found.get(inode) for inode in wanted} == wanted
