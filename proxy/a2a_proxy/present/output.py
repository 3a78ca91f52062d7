"""The one writer of both programs: nothing else prints on stdout or stderr (TID251 and T20 in
pyproject).

Lines for people have symbols in place of all characters that could control a terminal or begin
another line, so that a peer's text cannot forge output. Output for programs is written as it is:
its format escapes such characters.
"""

import json
import os
import select
import shutil
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple, TextIO

import click

from a2a_proxy.protocol.text import make_visible

MAX_LINES = 10_000
"""Lines that wait for a stopped reader; further ones are only counted."""


def print_line(line: str = "", *, flush: bool = False) -> None:
    """Print a line for people on stdout."""
    print(make_visible(line), flush=flush)


def print_note(line: str = "") -> None:
    """Print a line for people on stderr."""
    print(make_visible(line), file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON in ASCII on stdout."""
    print(json.dumps(value))


def print_document(text: str, *, end: str = "\n") -> None:
    """Print lines of a format for programs, or of the program's own files, as they are on
    stdout."""
    print(text, end=end)


def show_in_pager(text: str) -> None:
    """Show a page of the program's own, with colours, in the user's pager."""
    click.echo_via_pager(text)


def raw_output() -> BinaryIO:
    """Return stdout for bytes of such a format, after the lines printed before."""
    sys.stdout.flush()
    return sys.stdout.buffer


def is_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def terminal_width() -> int:
    """Return the width of the terminal on stdout in cells; 0 if stdout is not a terminal, and then
    nothing is cut."""
    return shutil.get_terminal_size().columns if is_terminal() else 0


class ColouredWord(NamedTuple):
    """A word, in a colour if a terminal shows it."""

    text: str
    colour: str
    """Parameter of the escape sequence SGR: `31` for red; empty for none."""


class Printer:
    """Writes lines for people or JSON lines by a thread of its own, so that a stopped terminal
    stops neither traffic nor recording. If the reader has gone (`| head`), nothing more is written
    and no error is raised.

    Python's own streams would suffice for writing, but not at exit, which waits for their locks.
    """

    def __init__(self, stream: TextIO | None, dropped_note: Callable[[int], str]) -> None:
        """Create the printer. `stream` is None if the program was started without it;
        `dropped_note` returns the text for a number of dropped lines."""
        self._descriptor = stream.fileno() if stream is not None else -1
        self._encoding = (stream.encoding if stream is not None else "") or "utf-8"
        self._has_colours = (
            stream is not None and stream.isatty() and not os.environ.get("NO_COLOR")
        )
        self._dropped_note = dropped_note
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._busy = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def __call__(self, *parts: str | ColouredWord) -> None:
        """Queue a line of these parts, with two spaces between those that are not empty. Never
        blocks."""
        line = "  ".join(self._format_part(part) for part in parts if part)
        with self._changed:
            if len(self._lines) >= MAX_LINES:
                self._dropped += 1
                return
            self._lines.append(line)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._print_queued, name="printer", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until everything is printed. Return False if `seconds` were not enough."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines and not self._busy, seconds)

    def _format_part(self, part: str | ColouredWord) -> str:
        if isinstance(part, str):
            return make_visible(part)
        word = make_visible(part.text)
        return f"\x1b[{part.colour}m{word}\x1b[0m" if self._has_colours and part.colour else word

    def _print_queued(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._lines)
                lines, self._busy = list(self._lines), True
                self._lines.clear()
                if self._dropped:
                    lines.append(self._dropped_note(self._dropped))
                    self._dropped = 0
            self._write_data(
                "".join(line + "\n" for line in lines).encode(self._encoding, "backslashreplace")
            )

    def _write_data(self, data: bytes) -> None:
        while data and self._descriptor >= 0:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError:
                self._descriptor = -1  # the reader has gone: later lines are discarded
