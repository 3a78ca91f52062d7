"""A proxy that runs as long as a mood of its backend, with its caller, its backend and its
export."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import load
from processes import child, end, free_port, memory_mib, start, wait_listening, wait_said
from proxies import proxy_command

from a2a_proxy.capture.record_format import segment_numbers, segment_path
from a2a_proxy.follower.checkpoint import CheckpointFile
from a2a_proxy.follower.supervisor import processor_seconds
from a2a_proxy.recording.read.reader import Recording

_PATIENCE = 300.0
"""Seconds within which an export is loaded and a proxy ends, on the busiest machine."""
_LAST = re.compile(
    r"OTLP: ([\d,]+) calls? sent to \S+?(?:, ([\d,]+) given up)?(?:, ([\d,]+) not sent)?\n"
)


class Backend:
    """The process of `backend.py`."""

    def __init__(self, protocol: str, port: int) -> None:
        command = [sys.executable, str(load.HERE / "backend.py"), protocol, str(port)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._hear()

    def be(self, mood: str) -> None:
        """Set the mood."""
        self._ask(mood)

    def count(self) -> tuple[int, int]:
        """Return the number of stored spans and of distinct ones."""
        stored, distinct = self._ask("count").split()
        return int(stored), int(distinct)

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, word: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        if not (said := self._process.stdout.readline()):
            raise RuntimeError("the backend has ended")
        return said


class Standing:
    """One proxy. All its processes end with `stack`."""

    def __init__(
        self,
        state: Path,
        origin: int,
        stack: contextlib.ExitStack,
        mood: str = "",
        protocol: str = "",
    ) -> None:
        """Start a proxy that exports by `protocol` to a backend with this mood; without a protocol
        it does not export."""
        state.mkdir()
        self._state = state
        self._log = state / "stderr"
        self._protocol = protocol
        self._stack = stack
        self._port = free_port()
        self._backend: Backend | None = None
        self._spent = 0.0
        self.behind = 0
        """Bytes that the recorder was behind at most, of all looks."""
        if protocol and mood != "down":
            self._bring_backend(mood)
        self._process, port = self._proxy(origin)
        self._export = child(self._process.pid, "a2a_proxy.telemetry") if protocol else 0
        stack.callback(self.go_on)  # a stopped process would not end by itself
        self.caller = stack.enter_context(load.Caller(port))

    def follows(self) -> None:
        """Wait until the export is loaded and has written its ledger."""
        if self._export:
            [path] = (self._state / "otlp").glob("*.ledger")
            opened: BinaryIO = self._stack.enter_context(path.open("rb"))
            self._ledger = CheckpointFile(opened.fileno())
            _until(lambda: self._ledger.load().file is not None)

    def rest(self) -> None:
        """Stop the export."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue the export."""
        self._signal(signal.SIGCONT)

    def usage(self) -> float:
        """Return the processor seconds that the export has used since the last call."""
        before, self._spent = self._spent, processor_seconds(self._export) if self._export else 0.0
        return self._spent - before

    def look(self) -> None:
        """Record how far the recorder is behind."""
        self.behind = max(self.behind, self.bytes_behind())

    def bring_back(self) -> None:
        """Let the backend recover."""
        if self._backend is not None:
            self._backend.be("fine")
        elif self._protocol:
            self._bring_backend("fine")

    def caught_up(self) -> bool:
        """Return whether everything is recorded, and each call was sent or given up, according to
        the export's own ledger."""
        if self.bytes_behind():
            return False
        return (
            not self._export
            or (mark := self._ledger.read_mark()).calls + mark.errors >= self.caller.calls
        )

    def mib(self) -> float:
        """Return the peak memory of the export."""
        return memory_mib(self._export)[1] if self._export else 0.0

    def end(self) -> tuple[list[int], tuple[int, int]]:
        """End it as a user does; return the content of its last line (`last_line`) and of the
        backend (`count`)."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_PATIENCE)
        if self._backend is None:
            return [0, 0, 0], (0, 0)
        return last_line(self._log.read_text()), self._backend.count()

    def _bring_backend(self, mood: str) -> None:
        self._backend = Backend(self._protocol, self._port)
        self._stack.callback(self._backend.end)
        self._backend.be(mood)

    def _proxy(self, origin: int) -> tuple[subprocess.Popen[bytes], int]:
        port = free_port()
        command = [*proxy_command(port, f"127.0.0.1:{origin}", str(self._state)), "--quiet"]
        if self._protocol:
            command += [
                "--otlp",
                f"http://127.0.0.1:{self._port}",
                "--otlp-protocol",
                self._protocol,
            ]
        process = start(command, self._log, A2A_PROXY_STATE=str(self._state))
        self._stack.callback(end, process, signal.SIGTERM, signal.SIGTERM)
        wait_listening(process, port, self._log)
        wait_said(process, "stop with Ctrl-C", self._log)
        return process, port

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the export while its parent lives: afterwards the pid may belong to
        another process."""
        if self._export and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._export, number)

    def bytes_behind(self) -> int:
        """Return the bytes of the journal that are not in the recording."""
        folders = [each.parent for each in (self._state / "journals").glob("*/session.json")]
        with Recording(self._state / "benchmark.a2a.db") as recording:
            rows = recording.read_sessions()
        segment, offset = rows[0].position or (0, 0)
        sizes = {
            number: segment_path(folder, number).stat().st_size
            for folder in folders
            for number in segment_numbers(folder)
            if number >= segment
        }
        return sum(sizes.values()) - (offset if segment in sizes else 0)


def last_line(said: str) -> list[int]:
    """Return the number of calls that were sent, given up and not sent, from the last line of a
    proxy. Raises RuntimeError."""
    found = _LAST.search(said)
    if found is None:
        raise RuntimeError(f"the proxy does not say what it sent: {said[-2000:]}")
    return [int((each or "0").replace(",", "")) for each in found.groups()]


def _until(true: Callable[[], bool]) -> None:
    """Wait a limited time for a condition."""
    deadline = time.monotonic() + _PATIENCE
    while not true() and time.monotonic() < deadline:
        time.sleep(0.1)
