"""The real proxy for tests: started as a user starts it, on loopback, with a state directory of its
own.

`start` and `stop` block until the proxy is ready or finished. A test whose own event loop serves a
peer calls `stop` with `asyncio.to_thread`.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from a2a_proxy.recording.read.reader import Recording

START_SECONDS, STOP_SECONDS, COMMAND_SECONDS = 120, 120, 120


def program(name: str) -> str:
    """Return the command as installed beside the interpreter that runs the tests."""
    return str(Path(sysconfig.get_path("scripts")) / name)


def environment(state: Path) -> dict[str, str]:
    """Return the environment of a command: this state directory, and no settings of the user who
    runs the tests."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("A2A_PROXY_")}
    return {**own, "A2A_PROXY_STATE": str(state)}


class Proxy:
    """One run of `a2a-proxy` between clients and the given upstreams; its files are in `folder`.

    Without an upstream, `extra` has the listeners; `address` is the one of the first forward proxy.
    """

    def __init__(
        self, folder: Path, upstream: str, grpc: str = "", *extra: str, log_format: str = "json"
    ) -> None:
        self.folder = folder
        self.recording = folder / "recording.a2a"
        self.state = folder / "state"
        self.log_format = log_format
        self.words = ["--listen", "127.0.0.1:0", "--upstream", upstream] if upstream else []
        self.words += [
            "--record",
            self.recording.name,
            "--log-format",
            log_format,
            *(("--upstream-grpc", grpc) if grpc else ()),
            *extra,
        ]
        self.out: list[str] = []
        self.out_at: list[int] = []
        """When each line of `out` came, ns since the epoch."""
        self.err: list[str] = []
        self.address = ""
        self._said: queue.Queue[str | None] = queue.Queue()

    def start(self) -> Proxy:
        """Start it and wait until it listens. Raises RuntimeError if it does not."""
        pipe = subprocess.PIPE
        line = [program("a2a-proxy"), *self.words]
        # The working directory is its folder, so that the recorded command line has no path of this
        # machine.
        self.process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env=environment(self.state),
            cwd=self.folder,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=each, daemon=True)
            for each in (
                (self.process.stdout, self.out, self.out_at),
                (self.process.stderr, self.err, []),
            )
        ]
        for reader in self._readers:
            reader.start()
        self.address = self._listening()
        return self

    def stop(self) -> dict[str, Any]:
        """Send SIGINT as Ctrl-C does, wait until everything is recorded, and return the summary
        (empty in text format)."""
        self.process.send_signal(signal.SIGINT)
        self._end(STOP_SECONDS)
        if self.process.returncode:
            raise RuntimeError(f"the proxy ended with {self.process.returncode}: {self.text}")
        return self.said("summary")[-1] if self.log_format == "json" else {}

    def kill(self) -> None:
        """Kill it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self._end(STOP_SECONDS)

    @property
    def base_url(self) -> str:
        """Return the base URL for HTTP clients."""
        return f"http://{self.address}"

    @property
    def port(self) -> int:
        """Return the port on which it listens."""
        return int(self.address.rpartition(":")[2])

    @property
    def text(self) -> str:
        """Return its output so far."""
        return "\n".join([*self.out, *self.err])

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return the logged objects of this kind so far."""
        return [found for line in self.out if (found := json.loads(line))["event"] == event]

    def _listening(self) -> str:
        marker = '"event": "start"' if self.log_format == "json" else " listens on "
        while True:
            try:
                line = self._said.get(timeout=START_SECONDS)
            except queue.Empty:
                line = None
            if line is None:
                self.kill()
                raise RuntimeError(f"the proxy did not start: {self.text}")
            if marker in line:
                if self.log_format == "json":
                    start = json.loads(line)
                    return str(
                        (start["routes"][0]["listen"] if start["routes"] else start["forwards"][0])[
                            0
                        ]
                    )
                return line.partition(marker)[2].partition(" ")[0]

    def _read(self, stream: IO[str], kept: list[str], came: list[int]) -> None:
        for line in stream:
            came.append(time.time_ns())
            kept.append(line.rstrip("\n"))
            self._said.put(kept[-1])
        self._said.put(None)

    def _end(self, seconds: int) -> None:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"the proxy did not stop: {self.text}") from None
        finally:
            for reader in self._readers:
                reader.join(STOP_SECONDS)


@contextlib.contextmanager
def proxy(
    folder: Path, upstream: str, grpc: str = "", *extra: str, log_format: str = "json"
) -> Iterator[Proxy]:
    """Run a proxy while the block runs; it is killed at the end unless it was stopped."""
    with running(Proxy(folder, upstream, grpc, *extra, log_format=log_format)) as between:
        yield between


@contextlib.contextmanager
def running(between: Proxy) -> Iterator[Proxy]:
    """The same for a proxy that is not started."""
    between.start()
    try:
        yield between
    finally:
        between.kill()


def inspect(state: Path, *words: str | Path) -> str:
    """Return the stdout of `a2a-inspect` with these arguments. Raises RuntimeError if it fails."""
    line = [program("a2a-inspect"), *map(str, words)]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=COMMAND_SECONDS, env=environment(state)
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(line)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def finished(between: Proxy) -> Recording:
    """Stop the proxy and open its recording."""
    between.stop()
    return Recording(between.recording)
