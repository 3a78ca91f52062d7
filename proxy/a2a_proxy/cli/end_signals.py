"""The signals that end a command in an orderly way: Ctrl-C, SIGTERM, and SIGHUP, which a closed
terminal sends."""

import signal

INTERRUPTED = 130
"""Exit code of a command that one of these signals has interrupted."""


def end_signals() -> tuple[signal.Signals, ...]:
    """Return the signals, without SIGHUP if it was ignored when the process started, as under
    `nohup`."""
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return signal.SIGINT, signal.SIGTERM, *hangup
