"""The Textual application: opens a recording, shows its screen, and gives an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from textual.app import App, SystemCommand
from textual.driver import Driver
from textual.screen import Screen

from a2a_inspect.screen.main import MainScreen
from a2a_inspect.source import Source
from a2a_proxy.cli.errors import UserError
from a2a_proxy.recording.errors import RecordingError


class InspectApp(App[int]):
    """One recording on a screen. The source is closed when the app ends."""

    TITLE = "a2a-inspect"
    ENABLE_COMMAND_PALETTE = True
    CSS = """
    Footer { background: $panel; }
    """

    def __init__(self, source: Source, *, read_only: bool = False, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class)
        self.read_only = read_only
        """Nothing may be written from here: no note, no bookmark, no export."""
        self._source = source
        self._main = MainScreen(source)

    def get_default_screen(self) -> Screen[None]:
        """The one screen under all others."""
        return self._main

    def get_system_commands(self, screen: Screen[object]) -> Iterator[SystemCommand]:
        """What the palette offers."""
        yield SystemCommand("Pause", "Hold the display, or go on; recording is not touched", self._main.action_pause)
        yield from super().get_system_commands(screen)

    def on_unmount(self) -> None:
        """Close the file."""
        self._source.close()


def run_app(path: Path) -> int:
    """Show a recording, also one that is yet to be written, until the user quits; the exit code.

    Raises:
        UserError: it cannot be opened, or there is no terminal to show it on.
    """
    if not (sys.__stdin__ and sys.__stdin__.isatty() and sys.__stderr__ and sys.__stderr__.isatty()):
        raise UserError("the screen needs a terminal", f"list the exchanges with: a2a-inspect ls {path}")
    try:
        source = Source(path)
    except RecordingError as wrong:
        raise UserError(wrong.message, wrong.hint) from wrong
    return InspectApp(source).run() or 0
