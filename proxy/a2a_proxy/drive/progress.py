"""Progress of the calls of a drive, and waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from a2a_proxy.drive.plan import CALL_END, AwaitedResponse


class CallProgress(msgspec.Struct):
    """Progress of one call."""

    answer_count: int = 0
    """Number of messages of the live agent."""
    is_over: bool = False
    is_interrupted: bool = False
    """Whether the last message of the agent says that it waits for its client."""
    last_change: float = 0.0
    """Time of the last message in either direction, in seconds of the event loop's clock."""


class DriveProgress:
    """Progress of all calls."""

    def __init__(self, steps: int) -> None:
        self._calls = [CallProgress() for _ in range(steps)]
        self._change_event = asyncio.Event()

    def progress_of(self, step: int) -> CallProgress:
        """Return the progress of one call."""
        return self._calls[step]

    def notify_change(self, step: int) -> None:
        """Note a change of a call and wake the waiters."""
        self._calls[step].last_change = asyncio.get_running_loop().time()
        self._change_event.set()
        self._change_event = asyncio.Event()

    def has_answer(self, wait: AwaitedResponse) -> bool:
        """Whether an answer has been received, or cannot be because the call is over or its agent
        waits for the client."""
        progress = self._calls[wait.step]
        if progress.is_over:
            return True
        return wait.answers != CALL_END and (
            progress.answer_count >= wait.answers or progress.is_interrupted
        )

    async def wait_until(
        self, condition: Callable[[], bool], deadline: Callable[[], float] | None = None
    ) -> bool:
        """Wait until `condition` is true; return False if `deadline`, in seconds of the loop's
        clock, passes before."""
        loop = asyncio.get_running_loop()
        while not condition():
            remaining = deadline() - loop.time() if deadline is not None else None
            if remaining is not None and remaining <= 0:
                return False
            pulse = self._change_event
            try:
                async with asyncio.timeout(remaining):
                    await pulse.wait()
            except TimeoutError:
                continue
        return True
