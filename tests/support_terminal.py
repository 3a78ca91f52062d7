"""A real terminal: tmux without a client, which receives keys and returns the text on the
screen."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support_debian import debian_environment, require_program

PATIENCE = 60.0
"""Seconds for each step; the machine may be busy."""


class Terminal:
    """One window of a tmux server of its own."""

    def __init__(self, tmux: str, folder: Path) -> None:
        self._folder = folder
        self._base = [tmux, "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._environment = debian_environment(
            {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        )

    def ask(self, *words: str) -> str:
        """Run a command of tmux and return its output."""
        done = subprocess.run(
            [*self._base, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        return done.stdout

    def start(self, size: tuple[int, int], *command: str) -> None:
        """Run a command in the folder, in a window of this size. tmux keeps the text that a program
        copies."""
        width, height = map(str, size)
        # The environment of tmux is not that of the program in it.
        own = ("env", "-u", "LD_LIBRARY_PATH", "COLORTERM=truecolor", *command)
        self.ask(
            "new-session",
            "-d",
            "-c",
            str(self._folder),
            "-x",
            width,
            "-y",
            height,
            *own,
            ";",
            "set",
            "-g",
            "set-clipboard",
            "on",
        )

    def types(self, *keys: str) -> None:
        """Send keys with the names of tmux: `Enter`, `Escape`, `C-p`; anything else is text."""
        for key in keys:
            self.ask("send-keys", key)

    @property
    def text(self) -> str:
        """Return all lines of the window."""
        return self.ask("capture-pane", "-p")

    def sees(self, *words: str) -> str:
        """Wait until all of these words are on the screen, and return the screen."""
        end = time.monotonic() + PATIENCE
        while not all(word in (text := self.text) for word in words):
            assert time.monotonic() < end, f"{words} did not come:\n{text}"
            time.sleep(0.05)
        return text

    @property
    def copied(self) -> str:
        """Return the text that a program copied last."""
        return self.ask("show-buffer")

    @property
    def ended(self) -> bool:
        """Return whether the program has ended, and with it the window and the server."""
        return (
            subprocess.run(
                [*self._base, "ls"], env=self._environment, capture_output=True, check=False
            ).returncode
            > 0
        )


@contextmanager
def terminal(folder: Path) -> Iterator[Terminal]:
    """Run a terminal until the block ends."""
    made = Terminal(require_program("tmux"), folder)
    try:
        yield made
    finally:
        if not made.ended:
            with suppress(subprocess.CalledProcessError):  # it has ended meanwhile
                made.ask("kill-server")
