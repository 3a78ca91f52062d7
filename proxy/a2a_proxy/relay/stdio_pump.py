"""One pipe of a stdio agent: octets from one descriptor to another, forwarded first and captured second.

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

READ = 64 * 1024
"""Octets in memory at most."""
_WRITE = 16 * 1024
"""Octets of one write, so that a slow reader can be told from one that reads nothing."""
_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Pump(threading.Thread):
    """Passes on from `source` to `sink` until one of them ends; then lets go of both."""

    def __init__(
        self, source: int, sink: int, tape: JournalBuffer, direction: Direction, kind: ChunkKind, ended: int = -1
    ) -> None:
        """`ended` is readable once the agent has ended: what the source holds at that moment is still passed on."""
        super().__init__(name=f"{kind.name} {direction.name}", daemon=True)
        self._source = source
        self._sink = sink
        self._tape = tape
        self._direction = direction
        self._kind = kind
        self._ended = ended
        self._left: int | None = None
        """Octets that the agent left behind; None while it lives."""
        self._unread = False
        """Nobody reads the sink any more."""
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        self._poll.register(sink, 0)  # tells that nobody will read, before something is lost in it
        if ended >= 0:
            self._poll.register(ended, select.POLLIN)
        self.moved = time.monotonic()
        """When the sink last took something, as `time.monotonic` has it."""

    def run(self) -> None:
        """Until the source ends, the sink does, or the agent has and its octets are passed on."""
        while self._has_more():
            data = self._read()
            if not data:
                if self._kind is ChunkKind.DATA:
                    self._tape.note(ChunkKind.EOF, self._direction)
                break
            self._tape.note(self._kind, self._direction, data)
            taken = self._write(data)
            self._tape.write()
            if not taken:
                self._unread = True
                break
        if self._unread and self._kind is ChunkKind.DATA and self._direction is Direction.TO_CLIENT:
            self._tape.note(ChunkKind.RESET, Direction.TO_AGENT)  # what comes of it is not the agent's doing
        let_go(self._source)
        let_go(self._sink)
        self._tape.write()

    def _has_more(self) -> bool:
        """Wait until there is something to read, or its end; False where nothing more is to be passed on."""
        # Once all is passed on that the agent left, nothing is waited for: its end was told already.
        ready = dict(self._poll.poll(0 if self._left == 0 else None))
        if ready.get(self._sink, 0) & _GONE:
            self._unread = True
            return False
        if self._left is None and self._ended in ready:
            self._poll.unregister(self._ended)
            self._left = _waiting(self._source)
        if self._left is None or self._left > 0:
            return True
        # All that the agent wrote is passed on. What holds the pipe open still is a child that it left behind.
        return bool(ready.get(self._source, 0) & _GONE)

    def _read(self) -> bytes:
        """Octets; none at the end. A source that cannot be read (a terminal that hung up, a folder) has ended."""
        size = READ if not self._left else min(READ, self._left)
        try:
            data = os.read(self._source, size)
        except BlockingIOError:  # somebody else made it non-blocking, and has taken what there was
            return self._read() if self._has_more() else b""
        except OSError:
            return b""
        if self._left is not None:
            self._left -= len(data)
        return data

    def _write(self, data: bytes) -> bool:
        """All of it; False where nobody takes it any more."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._sink, rest[:_WRITE]) :]
                self.moved = time.monotonic()
            except BlockingIOError:
                _until_writable(self._sink)
            except OSError:
                return False
        return True


def let_go(descriptor: int) -> None:
    """Close it. The numbers 0 to 2 lead nowhere then, so that no other file gets them."""
    with contextlib.suppress(OSError):
        if descriptor > 2:
            os.close(descriptor)
            return
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, descriptor, inheritable=False)
        os.close(nowhere)


def _waiting(source: int) -> int:
    """Octets that can be read now."""
    try:
        found: int = struct.unpack("i", fcntl.ioctl(source, termios.FIONREAD, bytes(4)))[0]
    except OSError:
        return 0
    return found


def _until_writable(sink: int) -> None:
    poll = select.poll()
    poll.register(sink, select.POLLOUT)
    poll.poll()
