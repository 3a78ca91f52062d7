"""What a live export takes from the relay, and what becomes of the spans where the backend is in trouble.

One turn is one proxy with one backend under one steady load; turns without an export between them are what the others
are compared with. The load is calls at a fixed rate, one after another on one connection: latency, not throughput.
"""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import load
import msgspec
from processes import child, end, free_port, memory_mib, start, wait_listening, wait_said
from proxies import proxy_command

from a2a_proxy.capture.journal import segment_numbers, segment_path
from a2a_proxy.follower.brake import processor_seconds
from a2a_proxy.follower.ledger import Ledger
from a2a_proxy.recording.reader import Recording

RATE = 500
"""Calls a second."""
NONE = "no export"
MOODS = ("fine", "down", "slow", "refusing", "errors")
PROTOCOLS = ("grpc", "http/protobuf")
_BACK = 0.1
"""Of a turn: so much longer the load goes on when the backend is well again."""
_ROUNDS = len(PROTOCOLS)
_UNEXPORTED_BEFORE = ("fine", "slow")
"""Before these comes a turn without an export."""
_WARM = 1.0
"""Seconds of load that are not counted."""
_PATIENCE = 60.0
"""Seconds that the export has to catch up with a backend that is back, and the proxy to end."""
_LAST = re.compile(r"OTLP: ([\d,]+) calls? sent to \S+?(?:, ([\d,]+) given up)?(?:, ([\d,]+) not sent)?\n")


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """How one went."""

    mood: str
    protocol: str
    calls: int
    took: list[float]
    """Round trips while the backend was as it was, us, sorted."""
    back: list[float]
    """Those when it was well again."""
    behind: int
    """Octets that the recorder was behind at most, of looks once a second."""
    left: int
    """The same when the load had ended."""
    cpu: float = 0.0
    """Processors in use by the export while the backend was as it was."""
    mib: float = 0.0
    """Most memory that the export took."""
    caught_up: float = 0.0
    """Seconds from the return of the backend until it had all that it was to get."""
    sent: int = 0
    given_up: int = 0
    unsent: int = 0
    """These three as the proxy's last line says."""
    stored: int = 0
    """Spans that the backend has acknowledged."""
    distinct: int = 0
    """Those of them that differ."""

    @property
    def whole(self) -> bool:
        """Each call is accounted for once: stored, given up and counted, or told as not sent."""
        once = self.stored == self.distinct == self.sent
        return once and self.sent + self.given_up + self.unsent == self.calls


def turns(folder: Path, origin: int, seconds: float) -> list[Turn]:
    """All moods, each for so many seconds in all, half of them over each protocol; turns without export between."""
    done: list[Turn] = []
    for protocol in PROTOCOLS:
        for mood in MOODS:
            if mood in _UNEXPORTED_BEFORE:
                done.append(turn(folder, origin, seconds / _ROUNDS))
            done.append(turn(folder, origin, seconds / _ROUNDS, mood, protocol))
    return done


class Backend:
    """The process of `backend.py`."""

    def __init__(self, protocol: str, port: int) -> None:
        command = [sys.executable, str(load.HERE / "backend.py"), protocol, str(port)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._hear()

    def be(self, mood: str) -> None:
        """From now on."""
        self._ask(mood)

    def count(self) -> tuple[int, int]:
        """Spans that it stored, and how many of them differ."""
        stored, distinct = self._ask("count").split()
        return int(stored), int(distinct)

    def end(self) -> None:
        """It is no more."""
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


def turn(folder: Path, origin: int, seconds: float, mood: str = NONE, protocol: str = "") -> Turn:
    """One, from the start of a proxy to its end."""
    with tempfile.TemporaryDirectory(dir=folder) as state, contextlib.ExitStack() as stack:
        return _Turn(Path(state), mood, protocol, stack).run(origin, seconds)


class _Turn:
    def __init__(self, state: Path, mood: str, protocol: str, stack: contextlib.ExitStack) -> None:
        self._state = state
        self._log = state / "stderr"
        self._mood = mood
        self._protocol = protocol
        self._stack = stack
        self._port = free_port()
        self._behind: list[int] = []
        self._open: BinaryIO | None = None

    def run(self, origin: int, seconds: float) -> Turn:
        backend = self._backend(self._mood) if self._mood not in (NONE, "down") else None
        process, port = self._proxy(origin)
        export = child(process.pid, "a2a_proxy.telemetry") if self._protocol else 0
        caller = self._stack.enter_context(load.Caller(port))
        caller.steady(RATE, _WARM)
        if self._protocol:
            _until(lambda: self._ledger().load().file is not None)  # it has been loaded, and follows
        before = processor_seconds(export)
        took = self._load(caller, seconds)
        cpu = (processor_seconds(export) - before) / seconds
        came_back = time.monotonic()
        if self._mood == "down":
            backend = self._backend("fine")
        elif backend is not None:
            backend.be("fine")
        back = self._load(caller, seconds * _BACK)
        calls = caller.calls
        left = self._settled()
        caught_up = self._caught_up(calls) - came_back if backend is not None else 0.0
        mib = memory_mib(export)[1] if export else 0.0
        process.send_signal(signal.SIGTERM)
        process.wait(_PATIENCE)
        stored, distinct = backend.count() if backend is not None else (0, 0)
        sent, given_up, unsent = last_line(self._log.read_text()) if backend is not None else [0, 0, 0]
        return Turn(
            mood=self._mood,
            protocol=self._protocol,
            calls=calls,
            took=sorted(took),
            back=sorted(back),
            behind=max(self._behind),
            left=left,
            cpu=cpu,
            mib=mib,
            caught_up=caught_up,
            sent=sent,
            given_up=given_up,
            unsent=unsent,
            stored=stored,
            distinct=distinct,
        )

    def _backend(self, mood: str) -> Backend:
        backend = Backend(self._protocol, self._port)
        self._stack.callback(backend.end)
        backend.be(mood)
        return backend

    def _proxy(self, origin: int) -> tuple[subprocess.Popen[bytes], int]:
        port = free_port()
        command = [*proxy_command(port, f"127.0.0.1:{origin}", str(self._state)), "--quiet"]
        if self._protocol:
            command += ["--otlp", f"http://127.0.0.1:{self._port}", "--otlp-protocol", self._protocol]
        process = start(command, self._log, A2A_PROXY_STATE=str(self._state))
        self._stack.callback(end, process, signal.SIGTERM, signal.SIGTERM)
        wait_listening(process, port, self._log)
        wait_said(process, "stop with Ctrl-C", self._log)
        return process, port

    def _load(self, caller: load.Caller, seconds: float) -> list[float]:
        took: list[float] = []
        for _ in range(max(round(seconds), 1)):
            took += caller.steady(RATE, 1.0)
            self._behind.append(self._bytes_behind())
        return took

    def _bytes_behind(self) -> int:
        """Octets of the journal that are not in the recording."""
        folders = [each.parent for each in (self._state / "journals").glob("*/session.json")]
        with Recording(self._state / "benchmark.a2a.db") as recording:
            rows = recording.sessions()
        segment, offset = rows[0].position or (0, 0)
        sizes = {
            number: segment_path(folder, number).stat().st_size
            for folder in folders
            for number in segment_numbers(folder)
            if number >= segment
        }
        return sum(sizes.values()) - (offset if segment in sizes else 0)

    def _settled(self) -> int:
        """How far the recorder is behind when it had time to catch up."""
        _until(lambda: not self._bytes_behind())
        return self._bytes_behind()

    def _caught_up(self, calls: int) -> float:
        """When each of the calls was sent or given up, as the export's own ledger says."""
        _until(lambda: (mark := self._ledger().read_mark()).calls + mark.errors >= calls)
        return time.monotonic()

    def _ledger(self) -> Ledger:
        """Where the export says how far it is."""
        if self._open is None:
            [path] = (self._state / "otlp").glob("*.ledger")
            self._open = self._stack.enter_context(path.open("rb"))
        return Ledger(self._open.fileno())


def last_line(said: str) -> list[int]:
    """Calls that were sent, given up and not sent, as a proxy says at its end. Raises RuntimeError."""
    found = _LAST.search(said)
    if found is None:
        raise RuntimeError(f"the proxy does not say what it sent: {said[-2000:]}")
    return [int((each or "0").replace(",", "")) for each in found.groups()]


def _until(true: Callable[[], bool]) -> None:
    """Wait for it, but not for ever."""
    deadline = time.monotonic() + _PATIENCE
    while not true() and time.monotonic() < deadline:
        time.sleep(0.1)
