"""The signals that end a command in order: Ctrl-C, SIGTERM, and SIGHUP, which the closing of a terminal sends."""

from __future__ import annotations

import signal

INTERRUPTED = 130
"""Exit code of a command that one of them has broken off."""


def end_signals() -> tuple[signal.Signals, ...]:
    """Return them, without SIGHUP if that was ignored when the process started, as `nohup` does it."""
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return signal.SIGINT, signal.SIGTERM, *hangup
