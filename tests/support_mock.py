"""`a2a-proxy replay` for tests: started as a user starts it, on loopback."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support_proxy import STOP_SECONDS, environment, program


class Replay:
    """One run; `said` returns its JSON output."""

    def __init__(self, folder: Path, recording: Path, *extra: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        words = ["--listen", "127.0.0.1:0", "--log-format", "json", *extra]
        self.lines: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [program("a2a-proxy"), "replay", str(recording), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(folder / "stderr").open("wb"),
            text=True,
            env=environment(folder / "state"),
        )
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        if not first:
            self.process.wait()
            raise RuntimeError(f"the mock did not start: {(folder / 'stderr').read_text()}")
        self.start = json.loads(first)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def address(self) -> str:
        """Return the address on which it listens, `host:port`."""
        return str(self.start["listen"][0])

    @property
    def url(self) -> str:
        """Return the same as an HTTP URL."""
        return f"http://{self.address}"

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return the printed objects of this kind."""
        return [line for line in self.lines if line["event"] == event]

    def stop(self) -> int:
        """Interrupt it and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(STOP_SECONDS)
        self._reader.join(STOP_SECONDS)
        return code

    def kill(self) -> None:
        """Kill it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))


@contextlib.contextmanager
def replaying(folder: Path, recording: Path, *extra: str) -> Iterator[Replay]:
    """Run a mock agent while the block runs."""
    running = Replay(folder, recording, *extra)
    try:
        yield running
    finally:
        running.kill()
