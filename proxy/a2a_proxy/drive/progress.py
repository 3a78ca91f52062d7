"""How far the calls of a drive are, and waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from a2a_proxy.drive.plan import CALL_END, AwaitedResponse


class CallProgress(msgspec.Struct):
    """How far one call is."""

    answer_count: int = 0
    """Messages of the live agent."""
    is_over: bool = False
    is_interrupted: bool = False
    """The agent has said last that it waits for its client."""
    last_change: float = 0.0
    """When something passed in it last, in the loop's seconds."""


class DriveProgress:
    """Of all calls."""

    def __init__(self, steps: int) -> None:
        self._calls = [CallProgress() for _ in range(steps)]
        self._change_event = asyncio.Event()

    def progress_of(self, step: int) -> CallProgress:
        """Of one call."""
        return self._calls[step]

    def notify_change(self, step: int) -> None:
        """Something passed in a call: whoever waits looks again."""
        self._calls[step].last_change = asyncio.get_running_loop().time()
        self._change_event.set()
        self._change_event = asyncio.Event()

    def has_answer(self, wait: AwaitedResponse) -> bool:
        """What is waited for has come, or will not come any more: the call is over, or its agent waits itself."""
        progress = self._calls[wait.step]
        if progress.is_over:
            return True
        return wait.answers != CALL_END and (progress.answer_count >= wait.answers or progress.is_interrupted)

    async def wait_until(self, condition: Callable[[], bool], deadline: Callable[[], float] | None = None) -> bool:
        """Wait until something is so; False where it is not and `deadline`, the time in the loop's seconds when
        patience
        ends, has passed."""
        loop = asyncio.get_running_loop()
        while not condition():
            left = deadline() - loop.time() if deadline is not None else None
            if left is not None and left <= 0:
                return False
            pulse = self._change_event
            try:
                async with asyncio.timeout(left):
                    await pulse.wait()
            except TimeoutError:
                continue
        return True
