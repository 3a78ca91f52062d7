"""A real terminal: tmux without anybody in front of it. Keys go in, what stands on the screen comes out."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support_debian import debian_environment, debian_program

PATIENCE = 60.0
"""Seconds for anything; the machine may be busy."""


class Terminal:
    """One window of a tmux server of its own."""

    def __init__(self, tmux: str, folder: Path) -> None:
        self._folder = folder
        self._base = [tmux, "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._environment = debian_environment({**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})

    def ask(self, *words: str) -> str:
        """A command of tmux, and what it printed."""
        done = subprocess.run(
            [*self._base, *words], env=self._environment, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        return done.stdout

    def start(self, size: tuple[int, int], *command: str) -> None:
        """Run a command in the folder, in a window of this size. Whatever a program copies, tmux keeps."""
        width, height = map(str, size)
        # What tmux needs to be found is nothing for the program in it.
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
        """Keys as tmux names them: `Enter`, `Escape`, `C-p`; anything else is text."""
        for key in keys:
            self.ask("send-keys", key)

    @property
    def text(self) -> str:
        """All lines of the window."""
        return self.ask("capture-pane", "-p")

    def sees(self, *words: str) -> str:
        """Wait until all of it is on the screen; the screen then."""
        end = time.monotonic() + PATIENCE
        while not all(word in (text := self.text) for word in words):
            assert time.monotonic() < end, f"{words} did not come:\n{text}"
            time.sleep(0.05)
        return text

    @property
    def copied(self) -> str:
        """What a program has copied last."""
        return self.ask("show-buffer")

    @property
    def ended(self) -> bool:
        """The program has, and with it the window and the server."""
        return (
            subprocess.run([*self._base, "ls"], env=self._environment, capture_output=True, check=False).returncode > 0
        )


@contextmanager
def terminal(folder: Path) -> Iterator[Terminal]:
    """A terminal, gone at the end."""
    tmux = debian_program("tmux")
    assert tmux is not None
    made = Terminal(tmux, folder)
    try:
        yield made
    finally:
        if not made.ended:
            with suppress(subprocess.CalledProcessError):  # it has ended meanwhile
                made.ask("kill-server")
