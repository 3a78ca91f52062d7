"""Supervision of one child process: starts it, reads its status pipe, restarts it by a policy,
stops it.

Subclasses of `ProcessSupervisor` keep the recorder, the followers and the metrics server alive.
Nothing here runs on an event loop: each supervisor has one thread, which waits for the pipe and for
the process.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Sequence

import msgspec


class ProcessEnd(msgspec.Struct, frozen=True):
    """The end of one run: an exit code (negative: killed by that signal), or the error that kept it
    from starting."""

    code: int = 0
    error: OSError | None = None

    @property
    def description(self) -> str:
        """The end in words."""
        if self.error is not None:
            return f"it cannot be started: {(self.error.strerror or str(self.error)).lower()}"
        return f"killed by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"


class RestartPolicy(msgspec.Struct, frozen=True):
    """When a process that died is started again."""

    pauses: Sequence[float]
    """Seconds before the n-th restart in a row; the last value repeats."""
    max_deaths: int | None = None
    """Deaths in a row after which the process is given up; None: never."""
    max_deaths_before_ready: int | None = None
    """The same until a process was ready for the first time: a failure to start is then not taken
    for an accident."""
    retry_failed_start: bool = True
    """Whether a process that could not be created counts as a death; otherwise it is given up at
    once."""
    exit_seconds: float | None = None
    """Seconds from the end of its statuses after which a process that has not exited is killed;
    None: never."""

    def choose_pause(self, deaths: int) -> float:
        """Return the seconds to wait after so many deaths in a row."""
        return self.pauses[min(deaths, len(self.pauses)) - 1]

    def gives_up(self, end: ProcessEnd, deaths: int, *, ready: bool) -> bool:
        """Whether the process is given up after `end`, the n-th death in a row."""
        if end.error is not None and not self.retry_failed_start:
            return True
        return deaths == self.max_deaths or (not ready and deaths == self.max_deaths_before_ready)


class ProcessSupervisor:
    """Keeps one process alive. Subclasses start it, read its statuses and decide what its end
    means."""

    def __init__(self, name: str, policy: RestartPolicy, *, has_status_pipe: bool = True) -> None:
        self._policy = policy
        self._has_status_pipe = has_status_pipe
        self._start_lock = threading.Lock()
        """Held while a process is created, so that no process starts after `stop_process`."""
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._launched = threading.Event()
        """Set when the first process exists or could not be created."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._supervise_process, name=name, daemon=True)
        self.restarts = 0

    @property
    def pid(self) -> int:
        """Process id of the current or last process; 0 before the first."""
        return self._process.pid if self._process is not None else 0

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the process has ended for good; return False if it has not after `seconds`."""
        return self._ended.wait(seconds)

    def stop_process(self, number: signal.Signals | None) -> None:
        """Start no further process, and send the current one a signal, if any."""
        self._stopping.set()
        with self._start_lock:
            if self._process is not None and number is not None:
                self._process.send_signal(number)

    # --- implemented by subclasses

    def _spawn_process(self, status_fd: int) -> subprocess.Popen[bytes]:
        """Create the process, which writes its statuses to `status_fd` (-1: it has none). Raises
        OSError."""
        raise NotImplementedError

    def _read_statuses(self, status_fd: int) -> None:
        """Read statuses until the last one, or until the process has ended. The supervisor closes
        the descriptor."""

    def _is_finished(self) -> bool:
        """Whether the process has done its work or failed for good, so that its end is not a
        death."""
        return False

    def _is_ready(self) -> bool:
        """Whether a process was ready once."""
        return True

    def _has_progressed(self) -> bool:
        """Whether the last process did a part of the work, so that its death begins a new row of
        deaths."""
        return False

    def _on_death(self, end: ProcessEnd, deaths: int) -> None:
        """Report that the process died, for the n-th time in a row."""

    def _gives_up(self) -> bool:
        """Whether the process is given up for a reason other than the policy's; reports the
        reason."""
        return False

    def _on_given_up(self, end: ProcessEnd) -> None:
        """Report that the policy gives the process up."""

    def _on_end(self) -> None:
        """Called when no further process will be started, before `wait` returns."""

    # --- the thread

    def _supervise_process(self) -> None:
        deaths = 0
        try:
            while not self._stopping.is_set():
                end = self._run_once()
                if self._is_finished() or self._stopping.is_set():
                    break
                deaths = 1 if self._has_progressed() else deaths + 1
                self._on_death(end, deaths)
                if self._policy.gives_up(end, deaths, ready=self._is_ready()):
                    self._on_given_up(end)
                    break
                if self._gives_up():
                    break
                self.restarts += 1
                self._stopping.wait(self._policy.choose_pause(deaths))
        finally:
            self._launched.set()
            self._on_end()
            self._ended.set()

    def _run_once(self) -> ProcessEnd:
        """Run one process from start to end."""
        read_end = write_end = -1
        try:
            if self._has_status_pipe:
                read_end, write_end = os.pipe()
            with self._start_lock:
                if not self._stopping.is_set():
                    self._process = self._spawn_process(write_end)
        except OSError as wrong:
            _close_descriptor(read_end)
            return ProcessEnd(error=wrong)
        finally:
            _close_descriptor(write_end)
            self._launched.set()
        try:
            if self._has_status_pipe:
                self._read_statuses(read_end)
        finally:
            _close_descriptor(read_end)
        return ProcessEnd(self._wait_for_exit())

    def _wait_for_exit(self) -> int:
        process = self._process
        if process is None:
            return 0
        try:
            return process.wait(self._policy.exit_seconds)
        except subprocess.TimeoutExpired:  # a thread keeps it alive
            process.kill()
            return process.wait()


def _close_descriptor(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)
