"""Connections of the command's processes that do not go through the proxy.

The tables of the system are read ten times a second, so connections that end sooner may be missed:
counts are minima.
"""

import os
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from a2a_proxy.cli.command.process_table import (
    PROC,
    Address,
    Process,
    is_helper,
    proxy_ignorance,
    read_descendants,
    read_name,
    read_sockets,
    socket_inodes,
)
from a2a_proxy.relay.route import format_address

_INTERVAL_SECONDS = 0.1
_PROCESS_SECONDS = 0.5
_MAX_LOAD = 0.05
"""Share of one processor that the watch takes at most: on a machine with many sockets it looks less
often."""
_ENDED = "Z"
"""State of a process that has ended, and whose parent does not know it yet."""
_MAX_TARGETS = 100
"""Pairs of process and address that are reported."""

ShowLine = Callable[[str, str], None]
"""Shows a line and its hint to the user; called on the thread of the watch."""


class _Target(msgspec.Struct):
    """Connections of one process to one address."""

    name: str
    ports: set[int]
    """Ports of the process, one for each connection that was seen."""


class BypassWatch:
    """Watches the processes of the command: the descendants of this process, except those that
    record."""

    def __init__(
        self,
        guard: int,
        proxy_ports: Collection[int],
        show_line: ShowLine,
        root: int | None = None,
        proc: Path = PROC,
    ) -> None:
        """Create the watch. `guard` is the process id of the command's parent, which is a child of
        this process; connections to `proxy_ports` go through the proxy. `root` stands for this
        process."""
        self._guard = guard
        self._proxy_ports = frozenset(proxy_ports)
        self._show_line = show_line
        self._root = root or os.getpid()
        self._proc = proc
        self._targets: dict[tuple[int, Address], _Target] = {}
        self._listening: set[int] = set()
        """Ports on which the command's processes have listened."""
        self._connections: set[tuple[Address, Address]] = set()
        """The connections of all processes at the previous look."""
        self._next_read = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._watch_command, name="bypass-watch", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and report the targets with several connections."""
        self._stopped.set()
        self._thread.join()
        for (pid, remote), target in self._targets.items():
            if len(target.ports) > 1:
                self._show_line(
                    f"{_describe_connection(target.name, pid, remote)}, "
                    f"at least {len(target.ports)} connections",
                    "",
                )

    def _watch_command(self) -> None:
        pause = _INTERVAL_SECONDS
        while not self._stopped.wait(pause):
            began = time.thread_time()
            with suppress(OSError):
                self.look()
            pause = max(_INTERVAL_SECONDS, (time.thread_time() - began) / _MAX_LOAD)

    def look(self) -> None:
        """Read the tables once, and report new targets. Without new connections, processes are read
        less often."""
        sockets = read_sockets(self._proc)
        connections = {
            (each.local, each.remote)
            for each in sockets
            if not each.listening and not {each.local[1], each.remote[1]} & self._proxy_ports
        }
        known, self._connections = self._connections, connections
        if connections <= known and time.monotonic() < self._next_read:
            return
        self._next_read = time.monotonic() + _PROCESS_SECONDS
        processes = self._read_processes()
        owners = {
            inode: each for each in processes for inode in socket_inodes(each.pid, self._proc)
        }
        of_command = [(owners[each.inode], each) for each in sockets if each.inode in owners]
        self._listening |= {each.local[1] for _, each in of_command if each.listening}
        for process, each in of_command:
            # Whether the process itself has opened this connection, and not to the proxy.
            if (
                not each.listening
                and each.local[1] not in self._listening
                and each.remote[1] not in self._proxy_ports
            ):
                key = process.pid, each.remote
                if (target := self._targets.get(key)) is not None:
                    target.ports.add(each.local[1])
                elif len(self._targets) < _MAX_TARGETS:
                    name = read_name(process.pid, self._proc)
                    self._targets[key] = _Target(name, {each.local[1]})
                    reason = proxy_ignorance(process.pid, each.remote[0], self._proc)
                    self._show_line(_describe_connection(name, process.pid, each.remote), reason)

    def list_processes(self) -> list[str]:
        """Return the processes of the command that run now, as `worker (pid 72)`."""
        return [
            f"{read_name(each.pid, self._proc)} (pid {each.pid})" for each in self._read_processes()
        ]

    def _read_processes(self) -> list[Process]:
        """Return the command's processes that run. Those that outlive the guard are children of
        this process."""
        helpers: set[int] = set()
        found = []
        for each in read_descendants(self._root, self._proc)[1:]:
            if each.pid == self._guard:
                continue
            is_child = each.parent == self._root
            if each.parent in helpers or (is_child and is_helper(each.pid, self._root, self._proc)):
                helpers.add(each.pid)
            elif each.state != _ENDED:
                found.append(each)
        return found


def _describe_connection(name: str, pid: int, remote: Address) -> str:
    return f"past the proxy: {name} (pid {pid}) to {format_address(*remote)}"
