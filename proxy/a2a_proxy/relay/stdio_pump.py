"""One pipe of a stdio agent: bytes from one descriptor to another, forwarded first and captured
second.

Descriptors stay blocking, because O_NONBLOCK belongs to the open file, and other processes share
the client's terminal or pipe. A thread that waits in `write` reads no more meanwhile, which is the
back-pressure.
"""

import contextlib
import fcntl
import os
import select
import struct
import termios
import threading
import time

from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay.journal_buffer import JournalBuffer

READ_SIZE = 64 * 1024
"""Bytes in memory at most."""
_WRITE_SIZE = 16 * 1024
"""Bytes of one write, so that a slow reader can be distinguished from one that reads nothing."""
_HANG_UP = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Pump(threading.Thread):
    """Forwards bytes from `source` to `sink` until one of them ends; then closes both."""

    def __init__(
        self,
        source: int,
        sink: int,
        journal: JournalBuffer,
        direction: Direction,
        kind: ChunkKind,
        agent_end: int = -1,
    ) -> None:
        """Create the pump. `agent_end` becomes readable once the agent has ended; the bytes that
        the source holds at that moment are still forwarded."""
        super().__init__(name=f"{kind.name} {direction.name}", daemon=True)
        self._source = source
        self._sink = sink
        self._journal = journal
        self._direction = direction
        self._kind = kind
        self._agent_end = agent_end
        self._remaining_bytes: int | None = None
        """Bytes that the agent left in the pipe when it ended; None while it runs."""
        self._is_sink_gone = False
        """Whether the sink has no reader any more."""
        self._poller = select.poll()
        self._poller.register(source, select.POLLIN)
        self._poller.register(sink, 0)  # reports a missing reader before bytes are lost in the pipe
        if agent_end >= 0:
            self._poller.register(agent_end, select.POLLIN)
        self.last_write_at = time.monotonic()
        """Time at which the sink last accepted bytes, on the `time.monotonic` clock."""

    def run(self) -> None:
        """Forward bytes until the source or the sink ends, or the agent has ended and its bytes are
        forwarded."""
        while self._has_more():
            data = self._read_source()
            if not data:
                if self._kind is ChunkKind.DATA:
                    self._journal.note_record(ChunkKind.EOF, self._direction)
                break
            self._journal.note_record(self._kind, self._direction, data)
            taken = self._write_sink(data)
            self._journal.write()
            if not taken:
                self._is_sink_gone = True
                break
        if (
            self._is_sink_gone
            and self._kind is ChunkKind.DATA
            and self._direction is Direction.TO_CLIENT
        ):
            self._journal.note_record(
                ChunkKind.RESET, Direction.TO_AGENT
            )  # the consequences are not the agent's fault
        close_descriptor(self._source)
        close_descriptor(self._sink)
        self._journal.write()

    def _has_more(self) -> bool:
        """Wait for bytes or the end of the source. Return False if no more bytes must be
        forwarded."""
        # Once all bytes that the agent left are forwarded, do not wait: the end of the agent is
        # already known.
        ready = dict(self._poller.poll(0 if self._remaining_bytes == 0 else None))
        if ready.get(self._sink, 0) & _HANG_UP:
            self._is_sink_gone = True
            return False
        if self._remaining_bytes is None and self._agent_end in ready:
            self._poller.unregister(self._agent_end)
            self._remaining_bytes = _readable_bytes(self._source)
        if self._remaining_bytes is None or self._remaining_bytes > 0:
            return True
        # All bytes of the agent are forwarded. A pipe that is still open is held by a child that
        # the agent left running.
        return bool(ready.get(self._source, 0) & _HANG_UP)

    def _read_source(self) -> bytes:
        """Return bytes, or none at the end. A source that cannot be read (a hung-up terminal, a
        folder) has ended."""
        size = READ_SIZE if not self._remaining_bytes else min(READ_SIZE, self._remaining_bytes)
        try:
            data = os.read(self._source, size)
        except BlockingIOError:  # another process made it non-blocking and has read the bytes
            return self._read_source() if self._has_more() else b""
        except OSError:
            return b""
        if self._remaining_bytes is not None:
            self._remaining_bytes -= len(data)
        return data

    def _write_sink(self, data: bytes) -> bool:
        """Write all bytes. Return False if the sink has no reader any more."""
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
    """Close a descriptor. The numbers 0 to 2 are opened on the null device, so that no other file
    gets them."""
    with contextlib.suppress(OSError):
        if descriptor > 2:
            os.close(descriptor)
            return
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, descriptor, inheritable=False)
        os.close(nowhere)


def _readable_bytes(source: int) -> int:
    """Return the number of bytes that can be read now."""
    try:
        found: int = struct.unpack("i", fcntl.ioctl(source, termios.FIONREAD, bytes(4)))[0]
    except OSError:
        return 0
    return found


def _wait_until_writable(sink: int) -> None:
    poll = select.poll()
    poll.register(sink, select.POLLOUT)
    poll.poll()
