"""A stdio agent that plays one side of a script: `scripted.py SCRIPT RECEIVED`.

SCRIPT is a JSON list of [what, direction, bytes in hexadecimal]; `data`, `log`, `eof` or `reset`;
direction 0 is the client's. Before it writes it waits for what the client writes before that. What
it reads it appends to the file RECEIVED. It exits with 3 when stdin has ended. Standard library
only, nothing of this project.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time

WAIT_SECONDS = 0.2
EXIT_CODE = 3
END_SECONDS = 120.0


class Stdin(threading.Thread):
    """Reads all that comes, and counts it."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.size = 0
        self.ended = threading.Event()

    def run(self) -> None:
        while data := os.read(0, 65536):
            os.write(self.file, data)
            self.size += len(data)
        self.ended.set()

    def wait(self, size: int) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while self.size < size and not self.ended.is_set() and time.monotonic() < deadline:
            time.sleep(0.001)


def put(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def main() -> None:
    with open(sys.argv[1]) as file:
        steps = json.load(file)
    stdin = Stdin(sys.argv[2])
    stdin.start()
    expected = 0
    for what, direction, text in steps:
        data = bytes.fromhex(text)
        if direction == 0:
            expected += len(data)
            continue
        stdin.wait(expected)
        if what in ("data", "log"):
            put(1 if what == "data" else 2, data)
        elif what == "eof":
            with contextlib.suppress(OSError):  # closed before
                os.close(1)
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    stdin.ended.wait(END_SECONDS)
    os._exit(EXIT_CODE)


main()
