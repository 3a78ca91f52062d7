"""One pipe of a stdio agent: bytes from one descriptor to another, forwarded first and captured second.

Descriptors stay blocking: O_NONBLOCK sits on what a descriptor leads to, and the client's terminal or pipe is not ours
alone. A thread that waits in `write` reads no more meanwhile, which is the back-pressure.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
import threading
import time

from a2a_proxy.model.chunk import ChunkKind, Direction
from a2a_proxy.relay.journal_buffer import JournalBuffer

READ_SIZE = 64 * 1024
"""Bytes in memory at most."""
_WRITE_SIZE = 16 * 1024
"""Bytes of one write, so that a slow reader can be told from one that reads nothing."""
_HANG_UP = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Pump(threading.Thread):
    """Passes on from `source` to `sink` until one of them ends; then lets go of both."""

    def __init__(
        self, source: int, sink: int, journal: JournalBuffer, direction: Direction, kind: ChunkKind, agent_end: int = -1
    ) -> None:
        """`agent_end` is readable once the agent has ended: what the source holds at that moment is still passed on."""
        super().__init__(name=f"{kind.name} {direction.name}", daemon=True)
        self._source = source
        self._sink = sink
        self._journal = journal
        self._direction = direction
        self._kind = kind
        self._agent_end = agent_end
        self._remaining_bytes: int | None = None
        """Bytes that the agent left behind; None while it lives."""
        self._is_sink_gone = False
        """Nobody reads the sink any more."""
        self._poller = select.poll()
        self._poller.register(source, select.POLLIN)
        self._poller.register(sink, 0)  # tells that nobody will read, before something is lost in it
        if agent_end >= 0:
            self._poller.register(agent_end, select.POLLIN)
        self.last_write_at = time.monotonic()
        """When the sink last took something, as `time.monotonic` has it."""

    def run(self) -> None:
        """Until the source ends, the sink does, or the agent has and its bytes are passed on."""
        while self._has_more():
            data = self._read_source()
            if not data:
                if self._kind is ChunkKind.DATA:
                    self._journal.note(ChunkKind.EOF, self._direction)
                break
            self._journal.note(self._kind, self._direction, data)
            taken = self._write_sink(data)
            self._journal.write()
            if not taken:
                self._is_sink_gone = True
                break
        if self._is_sink_gone and self._kind is ChunkKind.DATA and self._direction is Direction.TO_CLIENT:
            self._journal.note(ChunkKind.RESET, Direction.TO_AGENT)  # what comes of it is not the agent's doing
        close_descriptor(self._source)
        close_descriptor(self._sink)
        self._journal.write()

    def _has_more(self) -> bool:
        """Wait until there is something to read, or its end; False where nothing more is to be passed on."""
        # Once all is passed on that the agent left, nothing is waited for: its end was told already.
        ready = dict(self._poller.poll(0 if self._remaining_bytes == 0 else None))
        if ready.get(self._sink, 0) & _HANG_UP:
            self._is_sink_gone = True
            return False
        if self._remaining_bytes is None and self._agent_end in ready:
            self._poller.unregister(self._agent_end)
            self._remaining_bytes = _readable_bytes(self._source)
        if self._remaining_bytes is None or self._remaining_bytes > 0:
            return True
        # All that the agent wrote is passed on. What holds the pipe open still is a child that it left behind.
        return bool(ready.get(self._source, 0) & _HANG_UP)

    def _read_source(self) -> bytes:
        """Bytes; none at the end. A source that cannot be read (a terminal that hung up, a folder) has ended."""
        size = READ_SIZE if not self._remaining_bytes else min(READ_SIZE, self._remaining_bytes)
        try:
            data = os.read(self._source, size)
        except BlockingIOError:  # somebody else made it non-blocking, and has taken what there was
            return self._read_source() if self._has_more() else b""
        except OSError:
            return b""
        if self._remaining_bytes is not None:
            self._remaining_bytes -= len(data)
        return data

    def _write_sink(self, data: bytes) -> bool:
        """All of it; False where nobody takes it any more."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._sink, rest[:_WRITE_SIZE]) :]
                self.last_write_at = time.monotonic()
            except BlockingIOError:
                _wait_until_writable(self._sink)
            except OSError:
                return False
        return True


def close_descriptor(descriptor: int) -> None:
    """Close it. The numbers 0 to 2 lead nowhere then, so that no other file gets them."""
    with contextlib.suppress(OSError):
        if descriptor > 2:
            os.close(descriptor)
            return
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, descriptor, inheritable=False)
        os.close(nowhere)


def _readable_bytes(source: int) -> int:
    """Bytes that can be read now."""
    try:
        found: int = struct.unpack("i", fcntl.ioctl(source, termios.FIONREAD, bytes(4)))[0]
    except OSError:
        return 0
    return found


def _wait_until_writable(sink: int) -> None:
    poll = select.poll()
    poll.register(sink, select.POLLOUT)
    poll.poll()
