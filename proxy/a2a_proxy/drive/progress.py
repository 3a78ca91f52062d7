"""How far the calls of a drive are, and waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from a2a_proxy.drive.plan import ENDED, AwaitedResponse


class CallProgress(msgspec.Struct):
    """How far one call is."""

    heard: int = 0
    """Messages of the live agent."""
    over: bool = False
    interrupted: bool = False
    """The agent has said last that it waits for its client."""
    moved: float = 0.0
    """When something passed in it last, in the loop's seconds."""


class DriveProgress:
    """Of all calls."""

    def __init__(self, steps: int) -> None:
        self._stands = [CallProgress() for _ in range(steps)]
        self._pulse = asyncio.Event()

    def of(self, step: int) -> CallProgress:
        """Of one call."""
        return self._stands[step]

    def changed(self, step: int) -> None:
        """Something passed in a call: whoever waits looks again."""
        self._stands[step].moved = asyncio.get_running_loop().time()
        self._pulse.set()
        self._pulse = asyncio.Event()

    def has(self, wait: AwaitedResponse) -> bool:
        """What is waited for has come, or will not come any more: the call is over, or its agent waits itself."""
        stand = self._stands[wait.step]
        if stand.over:
            return True
        return wait.answers != ENDED and (stand.heard >= wait.answers or stand.interrupted)

    async def until(self, so: Callable[[], bool], quiet: Callable[[], float] | None = None) -> bool:
        """Wait until something is so; False where it is not and `quiet`, the time in the loop's seconds when patience
        ends, has passed."""
        loop = asyncio.get_running_loop()
        while not so():
            left = quiet() - loop.time() if quiet is not None else None
            if left is not None and left <= 0:
                return False
            pulse = self._pulse
            try:
                async with asyncio.timeout(left):
                    await pulse.wait()
            except TimeoutError:
                continue
        return True
