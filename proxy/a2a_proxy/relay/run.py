"""Run a coroutine on the fastest event loop there is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """That of uvloop where it is installed, else that of asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Like `asyncio.run`, on that loop."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)
