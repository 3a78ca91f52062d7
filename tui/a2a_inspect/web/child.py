"""The process of one tab: `python -m a2a_inspect.web.child [--write] RECORDING`, connected to the
server by pipes."""

import sys
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from textual import messages
from textual.drivers.web_driver import WebDriver

from a2a_inspect.app import InspectApp, open_source
from a2a_proxy.cli.errors import print_error
from a2a_proxy.model.errors import UserError


class TabDriver(WebDriver):
    """Textual's driver for a browser. The application ends when its input ends, also if the server
    was killed."""

    def run_input_thread(self) -> None:
        """Read until the end of the input."""
        super().run_input_thread()
        self._app.call_later(self._app.post_message, messages.ExitApp())

    def open_url(self, url: str, new_tab: bool = True) -> None:
        """Do nothing: a URL in a recording comes from a peer and is not trusted."""

    def deliver_binary(self, binary: BinaryIO | TextIO, **_how: Any) -> None:
        """Do nothing: exports are written to files next to the recording, and the screen shows
        their path."""
        binary.close()


def main(arguments: list[str]) -> int:
    """Show the recording; return the exit code."""
    *flags, recording = arguments
    try:
        app = InspectApp(
            *open_source(Path(recording)), read_only="--write" not in flags, driver_class=TabDriver
        )
    except UserError as wrong:
        print_error("a2a-inspect", wrong.message, wrong.hint, wrong.details)
        return wrong.code
    return app.run() or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
