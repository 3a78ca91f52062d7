"""What the proxy of a drive says: only what is wrong with it. The rest is in the report."""

from __future__ import annotations

import sys

from a2a_proxy.cli.console import HookSummary, StartInfo
from a2a_proxy.cli.errors import print_error
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recorder.status import RecorderFailed, Status, TroubleStarted


class WarningConsole:
    """A `Console` for warnings."""

    def start(self, start: StartInfo) -> None:
        """Nobody needs the address."""

    def status(self, status: Status) -> None:
        """Trouble is told."""
        if isinstance(status, TroubleStarted | RecorderFailed):
            print_error("a2a-proxy", status.message, status.hint)

    def stopping(self, open_connections: int) -> None:
        """The drive is over."""

    def draining(self, lag: int) -> None:
        """It takes a moment."""

    def note(self, message: str, hint: str = "", *, loud: bool = True) -> None:
        """A warning."""
        if loud:
            print(f"a2a-proxy: warning: {make_visible(message)}", file=sys.stderr)
            if hint:
                print(f"a2a-proxy: hint: {make_visible(hint)}", file=sys.stderr)

    def hook(self, summary: HookSummary) -> None:
        """There are none."""

    def close(self) -> None:
        """All is printed."""
