"""What runs for one tab: `python -m a2a_inspect.web.child [--write] RECORDING`, between pipes of the server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from textual import messages
from textual.drivers.web_driver import WebDriver

from a2a_inspect.app import InspectApp, open_source
from a2a_proxy.cli.errors import UserError, print_error


class TabDriver(WebDriver):
    """Textual's driver for a browser. The end of the input is the end of the application, also when the server died."""

    def run_input_thread(self) -> None:
        """Read until there is no more to come."""
        super().run_input_thread()
        self._app.call_later(self._app.post_message, messages.ExitApp())

    def open_url(self, url: str, new_tab: bool = True) -> None:
        """Not from here: an address in a recording is the peer's."""

    def deliver_binary(self, binary: BinaryIO | TextIO, **_how: Any) -> None:
        """No downloads: what is exported is written beside the recording, and said on the screen."""
        binary.close()


def main(arguments: list[str]) -> int:
    """Show the recording; the exit code."""
    *flags, recording = arguments
    try:
        app = InspectApp(*open_source(Path(recording)), read_only="--write" not in flags, driver_class=TabDriver)
    except UserError as wrong:
        print_error("a2a-inspect", wrong.message, wrong.hint)
        return wrong.code
    return app.run() or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
