"""A program in a pseudo terminal: sends keys, and returns the output with its times."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path

from processes import end, memory_mib

WAIT_SECONDS = 60.0
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|P[^\x1b]*\x1b\\|[ -/]*[0-~])"
)
_PLACE = re.compile(r"\x1b\[[\d;]*H")


class Terminal:
    """A program with `columns` x `rows` cells. Times are those of `time.monotonic`."""

    def __init__(
        self, command: list[str], columns: int = 160, rows: int = 50, **extra: str
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **extra}
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self._painted: list[tuple[float, str]] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def press(self, keys: bytes) -> float:
        """Type and return the time."""
        at = time.monotonic()
        os.write(self._master, keys)
        return at

    def painted(self, since: float) -> list[tuple[float, str]]:
        """Return the output after this time as plain text: each position on the screen is a
        line."""
        with self._news:
            return [(at, text) for at, text in self._painted if at > since]

    def until(self, pattern: str, since: float) -> float:
        """Return the time at which this regular expression was in the output, after `since`. Raises
        RuntimeError after a minute."""
        wanted, deadline = re.compile(pattern), time.monotonic() + WAIT_SECONDS
        with self._news:
            while True:
                for at, text in self._painted:
                    if at > since and wanted.search(text):
                        return at
                if self.process.poll() is not None or time.monotonic() > deadline:
                    shown = "".join(text for _, text in self._painted)[-3000:]
                    raise RuntimeError(f"{self.process.args!r} does not show {pattern!r}: {shown}")
                self._news.wait(0.2)

    def forget(self) -> None:
        """Discard the output so far."""
        with self._news:
            self._painted.clear()

    def resident_mib(self) -> float:
        """Return the current or the peak memory of the program, whichever is larger."""
        return memory_mib(self.process.pid)[1]

    def worked(self) -> float:
        """Return the processor seconds that the program has used so far."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the program."""
        end(self.process, signal.SIGTERM)
        self._reader.join(5)
        os.close(self._master)

    def _read(self) -> None:
        rest = ""
        with contextlib.suppress(OSError):  # Linux reports the end of the other side like this
            while data := os.read(self._master, 1 << 16):
                at = time.monotonic()
                rest, text = _plain(rest + data.decode(errors="replace"))
                with self._news:
                    self._painted.append((at, text))
                    self._news.notify_all()


def _take_terminal() -> None:
    """Make the terminal the controlling one, in the program before it starts: it receives SIGHUP
    when the terminal is closed."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _plain(data: str) -> tuple[str, str]:
    """Return the text before an incomplete escape sequence, and that sequence."""
    text = _SEQUENCE.sub("", _PLACE.sub("\n", data))
    text, escape, rest = text.partition("\x1b")
    return escape + rest, text
