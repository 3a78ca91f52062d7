"""Processes and sockets: from tables as Linux writes them, and of real processes."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from a2a_proxy.cli.command.process_table import (
    TcpSocket,
    is_helper,
    listening_ports,
    parse_peer,
    proxy_ignorance,
    read_descendants,
    read_name,
    read_sockets,
    socket_inodes,
)

_HEAD = (
    "  sl  local_address rem_address   st tx_queue "
    "rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
)


def word(address: bytes) -> str:
    """32-bit words of an address, as the kernel prints them on this machine."""
    return "".join(f"{each:08X}" for each in struct.unpack(f"={len(address) // 4}I", address))


def row(local: str, remote: str, state: str, inode: int) -> str:
    return (
        f"   0: {local} {remote} {state} 00000000:00000000 "
        f"00:00000000 00000000     0        0 {inode} 1 0 20\n"
    )


def fake_process(proc: Path, pid: int, parent: int, *words: str, name: str = "x") -> Path:
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0 -1")
    (folder / "cmdline").write_bytes("".join(f"{each}\0" for each in words).encode())
    (folder / "comm").write_text(f"{name}\n")
    return folder


def test_sockets_of_both_families(tmp_path: Path) -> None:
    """Listening, connected, connecting and half-closed ones; a mapped IPv4 address is an IPv4
    address."""
    (tmp_path / "net").mkdir()
    here, there = word(socket.inet_aton("127.0.0.1")), word(socket.inet_aton("10.0.0.5"))
    rows = (
        row(f"{here}:1F90", "00000000:0000", "0A", 11),
        row(f"{here}:C350", f"{there}:01BB", "01", 12),
        row(f"{here}:C351", f"{there}:01BB", "02", 13),
        row(f"{here}:C352", f"{there}:01BB", "06", 0),
        row(f"{here}:C354", f"{there}:01BB", "08", 16),
        row(f"{here}:C355", "00000000:0000", "07", 17),
    )
    (tmp_path / "net/tcp").write_text(_HEAD + "".join(rows))
    mapped = word(socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"))
    loopback = word(socket.inet_pton(socket.AF_INET6, "::1"))
    (tmp_path / "net/tcp6").write_text(
        _HEAD
        + row(f"{mapped}:C353", f"{mapped}:1F90", "01", 14)
        + row(f"{loopback}:1F91", f"{word(bytes(16))}:0000", "0A", 15)
    )
    found = read_sockets(tmp_path)
    assert found == [
        TcpSocket(("127.0.0.1", 8080), ("0.0.0.0", 0), 11, True),
        TcpSocket(("127.0.0.1", 50000), ("10.0.0.5", 443), 12),
        TcpSocket(("127.0.0.1", 50001), ("10.0.0.5", 443), 13),
        TcpSocket(("127.0.0.1", 50004), ("10.0.0.5", 443), 16),
        TcpSocket(("127.0.0.1", 50003), ("127.0.0.1", 8080), 14),
        TcpSocket(("::1", 8081), ("::", 0), 15, True),
    ]
    assert listening_ports(found, {11, 12, 15}) == (8080, 8081)


def test_a_system_without_tables_has_nothing(tmp_path: Path) -> None:
    """And a damaged table ends there."""
    assert read_sockets(tmp_path) == read_descendants(1, tmp_path) == []
    assert (
        socket_inodes(1, tmp_path),
        read_name(1, tmp_path),
        proxy_ignorance(1, "::1", tmp_path),
    ) == (set(), "?", "")
    (tmp_path / "net").mkdir()
    (tmp_path / "net/tcp").write_text(_HEAD + "   0: 1 2 3\n")
    assert read_sockets(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9000", ("127.0.0.1", 9000)),
        ("[::1]:9000", ("::1", 9000)),
        ("::1:9000", ("::1", 9000)),
        ("[0:0::1]:9000", ("::1", 9000)),
        ("[::ffff:127.0.0.1]:9000", ("127.0.0.1", 9000)),
        ("[fe80::1%eth0]:9000", ("fe80::1", 9000)),
    ],
)
def test_addresses_of_connections(text: str, address: tuple[str, int]) -> None:
    assert parse_peer(text) == address


def test_descendants_are_found_through_all_generations(tmp_path: Path) -> None:
    """Parents first, whatever their numbers and names; processes of others are left out."""
    for pid, parent, name in (
        (9, 1, "a"),
        (3, 9, "b) S 1 1"),
        (5, 3, "c"),
        (4, 9, "d"),
        (8, 1, "e"),
    ):
        fake_process(tmp_path, pid, parent, name=name)
    (tmp_path / "77").mkdir()  # has ended
    found = read_descendants(9, tmp_path)
    assert (found[0].pid, {each.pid for each in found}) == (9, {9, 3, 4, 5})
    assert [each.pid for each in found].index(3) < [each.pid for each in found].index(5)
    assert read_descendants(99, tmp_path) == []


def test_inodes_of_sockets(tmp_path: Path) -> None:
    folder = fake_process(tmp_path, 7, 1)
    for number, target in enumerate(
        ("/dev/null", "socket:[4711]", "pipe:[1]", "socket:[x]", "socket:[12]")
    ):
        (folder / "fd" / str(number)).symlink_to(target)
    assert socket_inodes(7, tmp_path) == {4711, 12}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["/usr/bin/planner", "-v"], "planner"),
        (["-bash"], "bash"),
        (["python3.12", "-u", "agents/planner.py", "--port", "1"], "planner"),
        (["/venv/bin/python", "-X", "dev", "-m", "shop.planner"], "planner"),
        (["python", "-m", "shop.planner.__main__"], "planner"),
        (["python", "planner/__main__.py"], "planner"),
        (["python", "/app/planner/main.py"], "planner"),
        (["python", "main.py"], "main"),
        (["python", "-c", "import x"], "python"),
        (["python"], "python"),
        (["node", "--require", "./x.js", "dist/planner.js"], "planner"),
        (["node", "/srv/planner/index.js"], "planner"),
        (["java", "-cp", "a.jar", "org.shop.Planner"], "Planner"),
        (["java", "-jar", "planner.jar"], "planner"),
        (["sh", "start.sh"], "start"),
        ([], "comm"),
        ([""], "comm"),
    ],
)
def test_names_of_processes(tmp_path: Path, words: list[str], name: str) -> None:
    fake_process(tmp_path, 7, 1, *words, name="comm")
    assert read_name(7, tmp_path) == name


@pytest.mark.parametrize(
    ("words", "helper"),
    [
        (["python", "-P", "-m", "a2a_proxy.recorder", "x"], True),
        (["python", "-P", "-m", "shop.planner"], False),
        (["python", "a2a-proxy", "run"], True),
        (["python", "a2a-proxy", "stdio"], False),
        ([], False),
    ],
)
def test_processes_that_record(tmp_path: Path, words: list[str], *, helper: bool) -> None:
    """Also before the fork of the proxy has become the recorder."""
    fake_process(tmp_path, 5, 1, "python", "a2a-proxy", "run")
    fake_process(tmp_path, 7, 5, *words)
    assert is_helper(7, 5, tmp_path) == helper


@pytest.mark.parametrize(
    ("program", "content", "host", "begin"),
    [
        ("node", b"", "127.0.0.1", "Node.js before 22.21"),
        ("python3.12", b"", "10.0.0.5", "plain sockets"),
        ("planner", b"\x7fELF...\xff Go buildinf:...", "127.0.0.1", "Go programs"),
        ("planner", b"\x7fELF...\xff Go buildinf:...", "::1", "Go programs"),
        ("planner", b"\x7fELF...\xff Go buildinf:...", "10.0.0.5", ""),
        ("planner", b"\x7fELF...", "127.0.0.1", ""),
        ("planner", b"", "127.0.0.1", ""),
    ],
)
def test_reasons_for_which_a_program_ignores_the_proxy(
    tmp_path: Path, program: str, content: bytes, host: str, begin: str
) -> None:
    (tmp_path / program).write_bytes(content)
    (fake_process(tmp_path, 7, 1) / "exe").symlink_to(tmp_path / program)
    reason = proxy_ignorance(7, host, tmp_path)
    assert reason.startswith(begin)
    assert bool(reason) == bool(begin)


@pytest.mark.parametrize(
    ("program", "variables", "reason"),
    [
        ("curl", ["PATH=/bin", "HOME="], "its environment has no HTTP_PROXY"),
        (
            "python3",
            ["HTTP_PROXY=http://p:1", "no_proxy=localhost"],
            "its environment has a NO_PROXY",
        ),
        (
            "node",
            ["HTTP_PROXY=http://p:1", "NO_PROXY="],
            "its environment has no NODE_USE_ENV_PROXY=1",
        ),
        (
            "node",
            ["HTTP_PROXY=http://p:1", "NODE_USE_ENV_PROXY=1"],
            "Node.js before 22.21 ignores proxy variables",
        ),
        ("curl", ["HTTP_PROXY=http://p:1", "NO_PROXY=", "no value"], ""),
        ("curl", [], ""),
    ],
)
def test_the_environment_may_be_the_reason(
    tmp_path: Path, program: str, variables: list[str], reason: str
) -> None:
    """That with which the process was started. It is empty of a process that has ended."""
    folder = fake_process(tmp_path, 7, 1)
    (tmp_path / program).write_bytes(b"")
    (folder / "exe").symlink_to(tmp_path / program)
    (folder / "environ").write_bytes("".join(f"{each}\0" for each in variables).encode())
    assert proxy_ignorance(7, "10.0.0.1", tmp_path) == reason


def test_real_processes_and_sockets() -> None:
    """A listener of this process, connected by a process of its own."""
    connect = (
        "import socket, sys; "
        "s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); sys.stdin.read()"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with subprocess.Popen(
            [sys.executable, "-c", connect, str(port)], stdin=subprocess.PIPE
        ) as child:
            client, peer = server.accept()
            sockets = read_sockets()
            (theirs,) = (
                each
                for each in sockets
                if each.local == peer and each.remote == ("127.0.0.1", port)
            )
            assert theirs.inode in socket_inodes(child.pid)
            assert listening_ports(sockets, socket_inodes(os.getpid())) != ()
            assert child.pid in {each.pid for each in read_descendants(os.getpid())}
            client.close()
            assert child.stdin is not None
            child.stdin.close()
