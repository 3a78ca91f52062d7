"""The console of a drive's proxy: only its problems are printed. The rest is in the report."""

from __future__ import annotations

import sys

from a2a_proxy.cli.console import HookSummary, StartInfo
from a2a_proxy.cli.errors import print_error
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recorder.status import RecorderFailed, Status, TroubleStarted


class WarningConsole:
    """A `Console` that prints only warnings."""

    def start(self, start: StartInfo) -> None:
        """Print nothing: the address is not needed."""

    def status(self, status: Status) -> None:
        """Print problems."""
        if isinstance(status, TroubleStarted | RecorderFailed):
            print_error("a2a-proxy", status.message, status.hint)

    def stopping(self, open_connections: int) -> None:
        """Print nothing: the drive is over."""

    def draining(self, lag: int) -> None:
        """Print nothing: the wait is short."""

    def note(self, message: str, hint: str = "", *, loud: bool = True) -> None:
        """Print a warning."""
        if loud:
            print(f"a2a-proxy: warning: {make_visible(message)}", file=sys.stderr)
            if hint:
                print(f"a2a-proxy: hint: {make_visible(hint)}", file=sys.stderr)

    def hook(self, summary: HookSummary) -> None:
        """Print nothing: a drive has no hooks."""

    def close(self) -> None:
        """Do nothing: all lines are printed."""
