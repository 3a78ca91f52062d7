"""Facts about processes from proc(5)."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from pathlib import Path


def stat(pid: int) -> list[str]:
    """Return the fields of `stat` after the name; the state is the first. Raises OSError if the
    process does not exist."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def state_of(pid: int) -> str:
    """Return the state letter: R runs, S waits, T is stopped, Z has ended. Raises as `stat`."""
    return stat(pid)[0]


def listening_ports(pid: int) -> set[tuple[str, int]]:
    """Return the TCP sockets on which a process listens, as (host, port)."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            inodes |= set(re.findall(r"^socket:\[(\d+)\]$", str(link.readlink())))
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                address, _, port = words[1].partition(":")
                numbers = struct.iter_unpack(">I", bytes.fromhex(address))
                packed = b"".join(struct.pack("=I", number) for (number,) in numbers)
                host = socket.inet_ntop(family, packed)
                found.add((f"[{host}]" if ":" in host else host, int(port, 16)))
    return found


def memory_mib(pid: int) -> tuple[float, float]:
    """Return the resident memory of a process now, and its peak, in MiB.

    The peak of `wait4` includes that of the process that forked it. Raises OSError if the process
    does not exist.
    """
    found = dict(
        re.findall(
            r"^(VmRSS|VmHWM):\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
        )
    )
    now = int(found.get("VmRSS", 0)) / 1024  # a zombie has none
    return now, max(now, int(found.get("VmHWM", 0)) / 1024)
