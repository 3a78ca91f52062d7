"""SIGTERM and SIGHUP handled as Ctrl-C, so that unfinished files are removed before the program
ends."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt in the block, unless they were ignored
    before.

    For commands, in the main thread.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    numbers = [number for number, handler in before.items() if handler is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _raise_interrupt)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _raise_interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
