"""The Textual application: opens a recording, shows its screen, and returns an exit code."""

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen

from a2a_inspect.data.source import RecordingSource
from a2a_inspect.dialogs.help import Help
from a2a_inspect.dialogs.palette import ActionProvider
from a2a_inspect.keys.actions import Keymap, list_actions
from a2a_inspect.keys.app_keys import APP_KEYS
from a2a_inspect.keys.keymap import keys_file, read_keymap
from a2a_inspect.screens.main import MainScreen
from a2a_inspect.screens.themes import NIGHT, ThemedApp, ThemeMemory, theme_for_console
from a2a_proxy.capture import file_layout
from a2a_proxy.cli.end_signals import INTERRUPTED, end_signals
from a2a_proxy.cli.streams import discard_output
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.text import make_visible, shell_line

_FIRST_ROWS_TIMEOUT = 10.0
"""Seconds for which keys wait for the first rows of a recording, or for an error."""
_THREAD_SWITCH_INTERVAL = 0.0005
"""Seconds before a thread that runs Python lets another one run. With Python's default of 5 ms,
each of the ten rows that one thread reads while another paints would wait that long."""


class TerminalDriver(LinuxDriver):
    """A driver that resumes only what was suspended, and never waits for a writer thread that has
    ended.

    The kernel sends SIGCONT together with SIGHUP when a terminal is closed. Textual's driver then
    starts a second writer thread, which fails at the closed terminal, and the end of the
    application waits for it without end.
    """

    _suspended = False

    def suspend_application_mode(self) -> None:
        """Give the terminal back, as before the process stops."""
        self._suspended = True
        super().suspend_application_mode()

    def resume_application_mode(self) -> None:
        """Take the terminal again if it was given back."""
        if self._suspended:
            self._suspended = False
            super().resume_application_mode()

    def write(self, data: str) -> None:
        """Write to the terminal, or discard the data if the terminal is gone."""
        if self._writes():
            super().write(data)

    def close(self) -> None:
        """End the writer thread."""
        if self._writes():
            super().close()

    def _writes(self) -> bool:
        return self._writer_thread is not None and self._writer_thread.is_alive()


class InspectApp(ThemedApp):
    """One recording on a screen. Closes the source when it ends."""

    TITLE = "a2a-inspect"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = ThemedApp.COMMANDS | {ActionProvider}

    BINDINGS: ClassVar[list[BindingType]] = [*APP_KEYS]

    def __init__(
        self,
        source: RecordingSource,
        keymap: Keymap | None = None,
        *,
        read_only: bool = False,
        initial_screen: Screen[None] | None = None,
        driver_class: type[Driver] | None = None,
        memory: ThemeMemory | None = None,
        theme: str = NIGHT.name,
    ) -> None:
        super().__init__(driver_class, memory or ThemeMemory(), theme)
        self.read_only = read_only
        """Whether the application may not write: no note, no bookmark, no export."""
        self._source = source
        self._main_screen = MainScreen(source, self._open_replay)
        self._initial_screen = initial_screen
        self._user_keymap = keymap or {}
        self.notice = ""
        """A message that is shown at the start."""
        self._signals: tuple[signal.Signals, ...] = ()
        """Signals that end the application."""

    def get_driver_class(self) -> type[Driver]:
        """Return the driver for this terminal."""
        driver_class = super().get_driver_class()
        return TerminalDriver if driver_class is LinuxDriver else driver_class

    def on_mount(self) -> None:
        """Put the keys of the user and the signal handlers in force."""
        self.set_keymap(self._user_keymap)
        for number in self._signals:
            asyncio.get_running_loop().add_signal_handler(number, self._end_by_signal, number)
        if self._initial_screen is not None:
            self.push_screen(self._initial_screen)
        else:
            self.hold_keys(_FIRST_ROWS_TIMEOUT)  # until the first rows are there
        if self.notice:
            self.notify(self.notice, markup=False)

    def get_default_screen(self) -> Screen[None]:
        """Return the screen below all others."""
        return self._main_screen

    def get_system_commands(self, screen: Screen[object]) -> Iterator[SystemCommand]:
        """Yield the commands of the palette that have no keys."""
        offered = ("Theme",) if self.read_only else ("Theme", "Screenshot")
        if (
            screen is self._main_screen and not self.read_only
        ):  # a read-only screen may show this recording alone
            yield SystemCommand(
                "Compare", "Compare this recording with another one", self._compare_with_another
            )
        yield from (each for each in super().get_system_commands(screen) if each.title in offered)

    def _compare_with_another(self) -> None:
        from a2a_inspect.screens.compare import compare_with_another

        compare_with_another(self._main_screen, self._source.path)

    def _open_replay(self, keys: Sequence[int] | None, start_time: int) -> None:
        from a2a_inspect.screens.replay_screen import ReplayScreen

        self.push_screen(ReplayScreen(self._source, keys, start_time))

    def action_keys(self) -> None:
        """Show all keys, those in force first."""
        from a2a_inspect.keys.places import (
            KEY_SCOPES,
        )  # imports all screens, which the first one need not wait for

        here = {
            found.binding.id for found in self.screen.active_bindings.values() if found.binding.id
        }
        self.push_screen(Help(list_actions(KEY_SCOPES, self._user_keymap), here))

    def run(self, *arguments: Any, **options: Any) -> int | None:
        """Run the application, with modules that are loaded by now exempt from garbage collection.

        Collecting them delayed keys by 60 ms. Threads also switch more often: see
        `_THREAD_SWITCH_INTERVAL`.
        """
        gc.freeze()
        self._signals = end_signals()
        sys.setswitchinterval(_THREAD_SWITCH_INTERVAL)
        return super().run(*arguments, **options)

    def _end_by_signal(self, number: int) -> None:
        """End as after Ctrl-C. After SIGHUP the terminal is gone, so its streams are discarded
        first."""
        if number == signal.SIGHUP:
            streams = sys.__stdin__, sys.__stdout__, sys.__stderr__  # noqa: TID251 - discards them
            for stream in filter(None, streams):
                discard_output(stream)
        self.exit(INTERRUPTED)

    def on_unmount(self) -> None:
        """Close the recording."""
        self._source.close()


def open_source(path: Path) -> tuple[RecordingSource, Keymap]:
    """Return a recording, which may not exist yet, and the keys of the user.

    Raises:
        UserError: the recording cannot be opened, or the file of keys is wrong.
    """
    keymap = read_user_keymap()
    return RecordingSource(path), keymap


def read_user_keymap() -> Keymap:
    """Return the keys of the user. Raises UserError if the file of keys is wrong."""
    file = keys_file()
    if file is None or not file.exists():
        # do not import all screens, which checking the keys needs, before the first one is shown
        return {}
    from a2a_inspect.keys.places import KEY_SCOPES

    return read_keymap(file, KEY_SCOPES)


def run_app(
    *paths: Path, make_initial_screen: Screen[None] | None = None, is_chosen: bool = False
) -> int:
    """Show a recording, or several as one, until the user quits, and return the exit code.

    With `is_chosen` the user named none, so the screen says which one it opened.

    Raises:
        UserError: see `open_source`, or there is no terminal.
    """
    streams = sys.__stdin__, sys.__stderr__  # noqa: TID251 - prints nothing
    if not all(stream and stream.isatty() for stream in streams):
        listing = shell_line("a2a-inspect", "ls", *map(str, paths))
        raise UserError("the screen needs a terminal", f"list the exchanges with: {listing}")
    memory = ThemeMemory()
    with contextlib.suppress(OSError):  # a recording can be read without a state directory
        memory = ThemeMemory(file_layout.state_dir() / "theme")
    theme = theme_for_console(Console())
    if len(paths) == 1:
        app = InspectApp(
            *open_source(paths[0]), initial_screen=make_initial_screen, memory=memory, theme=theme
        )
        app.notice = (
            f"This is the newest recording: {make_visible(str(paths[0]))}" if is_chosen else ""
        )
        return app.run() or 0

    from a2a_inspect.data.joined.start import joined_source

    keymap = read_user_keymap()
    with joined_source(paths) as source:
        # read-only, because a note would be lost with the joined recording
        return (
            InspectApp(
                source,
                keymap,
                read_only=True,
                initial_screen=make_initial_screen,
                memory=memory,
                theme=theme,
            ).run()
            or 0
        )
