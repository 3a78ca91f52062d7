"""The processes of this machine and their TCP sockets, as Linux describes them in /proc.

Processes end at any time, so what cannot be read is left out. On other systems everything is empty.
"""

import mmap
import os
import socket
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

PROC = Path("/proc")
_CLOSED, _LISTENING = "07", "0A"
_SOCKET_TABLES = ("net/tcp", "net/tcp6")
_MAPPED_PREFIX = bytes(10) + b"\xff\xff"
"""First bytes of an IPv4 address in an IPv6 socket."""
_GO_MARK = b"\xff Go buildinf:"
"""Mark in each program that the Go compiler has made."""
_INTERPRETERS = ("python", "node", "deno", "bun", "java", "ruby", "sh", "bash", "dash")
_CODE_OPTIONS = ("-c", "-e", "--eval", "-p", "--print")
_OPTIONS_WITH_VALUE = (
    "-X",
    "-W",
    "-r",
    "--require",
    "--import",
    "-cp",
    "-classpath",
    "--class-path",
)
_SCRIPT_ENDINGS = ("py", "pyz", "js", "mjs", "cjs", "ts", "jar", "java", "rb", "sh")
_MODULE_FILES = ("__main__", "main", "index", "app", "server", "cli")
"""Names of files that say less about a program than the name of their folder."""

Address = tuple[str, int]
"""IP address and port."""


class TcpSocket(msgspec.Struct, frozen=True):
    """One TCP socket of a process that listens, connects, or is connected in at least one
    direction."""

    local: Address
    remote: Address
    inode: int
    listening: bool = False


class Process(msgspec.Struct, frozen=True):
    """One process."""

    pid: int
    parent: int
    state: str
    """`R`, `S`, `Z` and so on."""


def read_sockets(proc: Path = PROC) -> list[TcpSocket]:
    """Return the TCP sockets of processes in this network namespace."""
    found = []
    for table in _SOCKET_TABLES:
        with suppress(OSError, ValueError):
            for line in (proc / table).read_text().splitlines()[1:]:
                _, local, remote, state, _, _, _, _, _, inode, *_ = line.split()
                if state != _CLOSED and int(
                    inode
                ):  # a socket without an inode has no process any more
                    listening = state == _LISTENING
                    found.append(
                        TcpSocket(
                            _parse_address(local), _parse_address(remote), int(inode), listening
                        )
                    )
    return found


def _parse_address(text: str) -> Address:
    """Return the address of `0100007F:1F90`, whose 32-bit words are in the byte order of the
    machine."""
    digits, _, port = text.partition(":")
    words = (int(digits[at : at + 8], 16) for at in range(0, len(digits), 8))
    packed = b"".join(struct.pack("=I", word) for word in words)
    if len(packed) == 16 and packed.startswith(_MAPPED_PREFIX):
        packed = packed[12:]
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, packed), int(port, 16)


def parse_peer(text: str) -> Address:
    """Return the address of `host:port` or `[host]:port`, in the form of `read_sockets`. Raises
    ValueError."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]").partition("%")[0]
    with suppress(OSError):
        packed = socket.inet_pton(socket.AF_INET6, host)
        host = socket.inet_ntop(socket.AF_INET6, packed)
        if packed.startswith(_MAPPED_PREFIX):
            host = socket.inet_ntop(socket.AF_INET, packed[12:])
    return host, int(port)


def read_descendants(root: int, proc: Path = PROC) -> list[Process]:
    """Return the process `root` and all its descendants, parents first."""
    children: dict[int, list[Process]] = defaultdict(list)
    found = []
    for process in _read_processes(proc):
        children[process.parent].append(process)
        if process.pid == root:
            found.append(process)
    for process in found:  # the list grows
        found += children[process.pid]
    return found


def _read_processes(proc: Path) -> Iterator[Process]:
    try:
        names = os.listdir(proc)
    except OSError:
        return
    for name in names:
        if name.isdigit():
            with suppress(OSError, ValueError):
                # The name of the program is in brackets, and may contain any character.
                rest = (proc / name / "stat").read_text(errors="replace").rpartition(")")[2].split()
                yield Process(int(name), int(rest[1]), rest[0])


def socket_inodes(pid: int, proc: Path = PROC) -> set[int]:
    """Return the inodes of the sockets that a process has open; empty if this user may not see
    them."""
    found = set()
    folder = proc / str(pid) / "fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError, ValueError):
                target = os.readlink(folder / name)
                if target.startswith("socket:["):
                    found.add(int(target[8:-1]))
    return found


def listening_ports(sockets: Iterable[TcpSocket], inodes: set[int]) -> tuple[int, ...]:
    """Return the ports of the listening sockets with these inodes, in ascending order."""
    return tuple(
        sorted({each.local[1] for each in sockets if each.listening and each.inode in inodes})
    )


def read_name(pid: int, proc: Path = PROC) -> str:
    """Return the name of a process: of its script or module if it is an interpreter, else of its
    program. An unknown name is `?`."""
    words = _command_line(pid, proc)
    if not words or not words[0]:
        with suppress(OSError):
            return (proc / str(pid) / "comm").read_text(errors="replace").strip() or "?"
        return "?"
    program = words[0].rpartition("/")[2].lstrip("-")
    return (
        _script_name(words[1:]) if program.rstrip("0123456789.") in _INTERPRETERS else ""
    ) or program


def is_helper(pid: int, proxy: int, proc: Path = PROC) -> bool:
    """Return whether a child of the process `proxy` is the recorder or a follower of the recording,
    or will be."""
    words = _command_line(pid, proc)
    if words[1:3] == ["-P", "-m"]:
        return words[3].startswith("a2a_proxy.")
    return words == _command_line(proxy, proc)  # forked, and not yet another program


def _command_line(pid: int, proc: Path) -> list[str]:
    try:
        return (
            (proc / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
        )
    except OSError:
        return []


def _script_name(words: list[str]) -> str:
    """Return the name of the script or module in an interpreter's arguments, or an empty text if
    there is none."""
    arguments = iter(words)
    for word in arguments:
        if word in _CODE_OPTIONS:
            return ""
        if word == "-m":
            return _shorten_name(next(arguments, "").split("."))
        if word in _OPTIONS_WITH_VALUE:
            next(arguments, None)
        elif not word.startswith("-"):
            *folders, file = word.split("/")
            stem, _, ending = file.rpartition(".")
            if stem and ending in _SCRIPT_ENDINGS:
                return _shorten_name([*folders, stem])
            return _shorten_name([*folders, *file.split(".")])  # a class of Java
    return ""


def _shorten_name(parts: list[str]) -> str:
    """Return the last part that says something: `planner` for `planner/__main__`."""
    telling = [part for part in parts if part not in ("", ".", "..", *_MODULE_FILES)]
    return telling[-1] if telling else parts[-1]


def _read_environment(pid: int, proc: Path) -> dict[str, str]:
    """Return the variables with which a process was started; empty if this user may not see
    them."""
    try:
        entries = (proc / str(pid) / "environ").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def proxy_ignorance(pid: int, remote_host: str, proc: Path = PROC) -> str:
    """Return why the program of a process may ignore proxy variables for this host, or an empty
    text if no reason is known."""
    program = ""
    with suppress(OSError):
        program = os.readlink(proc / str(pid) / "exe").rpartition("/")[2]
    name = program.rstrip("0123456789.")
    variables = _read_environment(pid, proc)
    if variables and not variables.get("HTTP_PROXY"):
        return "its environment has no HTTP_PROXY"
    if variables.get("NO_PROXY") or variables.get("no_proxy"):
        return "its environment has a NO_PROXY"
    if name == "node" and variables and variables.get("NODE_USE_ENV_PROXY") != "1":
        return "its environment has no NODE_USE_ENV_PROXY=1"
    if name == "node":
        return "Node.js before 22.21 ignores proxy variables"
    if name == "python":
        return "plain sockets, and aiohttp without trust_env=True, ignore proxy variables"
    if remote_host.startswith("127.") or remote_host == "::1":
        with (
            suppress(OSError, ValueError),
            (proc / str(pid) / "exe").open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            if data.find(_GO_MARK) >= 0:
                return "Go programs ignore proxy variables for loopback addresses"
    return ""
