"""Run a coroutine on the fastest event loop available."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from a2a_proxy.relay.file_limit import require_file_limit

Result = TypeVar("Result")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the event loop factory of uvloop if it is installed, else asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def run_loop(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` as `asyncio.run` does, on that loop, and return its result. Raises OSError: too
    few files may be open."""
    try:
        require_file_limit()
    except OSError:
        main.close()
        raise
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)
