"""The processes behind the proxy's client connections.

The relay looks a client up before it reads the first byte, so that the answer is in the
connection's first record.
"""

import asyncio
import os
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from a2a_proxy.cli.command.process_table import (
    PROC,
    listening_ports,
    parse_peer,
    read_descendants,
    read_name,
    read_sockets,
    socket_inodes,
)
from a2a_proxy.cli.command.socket_lookup import find_inode, read_listeners
from a2a_proxy.model.wire import ClientProcess

_SECONDS = 0.5
"""Seconds that a client waits for the look-up at most."""
_MAX_CLIENTS = 4096
_MAX_OWNERS = 64
"""Processes that are examined first, because they had a connection before."""


class ClientProcesses:
    """Finds the processes of clients among the descendants of this process."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._found: OrderedDict[str, ClientProcess] = OrderedDict()
        """Address of the client, `host:port` -> its process."""
        self._owners: OrderedDict[int, None] = OrderedDict()
        """Processes that had connections, the latest one last."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="client-processes")

    async def learn(self, client: str, listener: str) -> None:
        """Look up the process of the client at `client`, connected to `listener` (both
        `host:port`). Never raises."""
        self._found.pop(client, None)  # the port may have belonged to another client
        work = asyncio.get_running_loop().run_in_executor(self._thread, self.find, client, listener)
        done, _ = await asyncio.wait((work,), timeout=_SECONDS)
        process = work.result() if done and work.exception() is None else None
        if process is not None:
            self._found[client] = process
            if len(self._found) > _MAX_CLIENTS:
                self._found.popitem(last=False)

    def get(self, client: str) -> ClientProcess | None:
        """Return the process of this client, or None if it is unknown."""
        return self._found.get(client)

    def find(self, client: str, listener: str) -> ClientProcess | None:
        """Return the process that has this connection open now, or None."""
        here, there = parse_peer(client), parse_peer(listener)
        inode, read = 0, read_listeners
        with suppress(OSError):
            inode = find_inode(here, there)
        if not inode:
            sockets = read_sockets(self._proc)
            inode = next(
                (each.inode for each in sockets if (each.local, each.remote) == (here, there)), 0
            )
            read = partial(list, sockets)
        if not inode:
            return None
        known = list(reversed(self._owners))
        for pid in known:
            if inode in (inodes := socket_inodes(pid, self._proc)):
                return self._describe(pid, listening_ports(read(), inodes))
        for process in reversed(read_descendants(os.getpid(), self._proc)):
            if process.pid not in known and inode in (
                inodes := socket_inodes(process.pid, self._proc)
            ):
                return self._describe(process.pid, listening_ports(read(), inodes))
        return None

    def _describe(self, pid: int, ports: tuple[int, ...]) -> ClientProcess:
        self._owners[pid] = None
        self._owners.move_to_end(pid)
        if len(self._owners) > _MAX_OWNERS:
            self._owners.popitem(last=False)
        return ClientProcess(pid, read_name(pid, self._proc), ports)

    def close(self) -> None:
        """End the thread of the look-ups."""
        self._thread.shutdown(wait=False, cancel_futures=True)
