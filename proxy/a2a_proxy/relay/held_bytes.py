"""The number of bytes that the editors of all connections hold. Beyond a limit, those that hold
more must wait."""

import asyncio
from collections import deque
from collections.abc import Callable

MAX_HELD_BYTES = 64 << 20
"""Bytes of all connections that are held before no more are read for those that hold the most."""
SMALL_HOLD_BYTES = 64 << 10
"""Bytes of one direction of a connection that are held without waiting, so that ordinary calls
continue."""


class HeldBytes:
    """The account of a relay. Those that wait go on one by one, each in a turn of the event loop of
    its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.total = 0
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    def must_wait(self, held: int) -> bool:
        """Return whether a direction of a connection that holds so many bytes must read no more."""
        return held > SMALL_HOLD_BYTES and self.total >= MAX_HELD_BYTES

    def add(self, growth: int) -> None:
        """Account for so many more bytes; a negative number for fewer."""
        self.total += growth
        self._schedule()

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once when fewer bytes are held than the limit."""
        self._waiting.append(resume)

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled and self.total < MAX_HELD_BYTES:
            self._is_scheduled = True
            self._loop.call_soon(self._resume_next)

    def _resume_next(self) -> None:
        self._is_scheduled = False
        if self._waiting and self.total < MAX_HELD_BYTES:
            self._waiting.popleft()()
            self._schedule()
