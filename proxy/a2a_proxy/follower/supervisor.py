"""Supervises a follower process: starts it, reads its messages, restarts it a few times if it dies.

Each follower has one thread, which waits for a pipe. Only `finish` waits for a follower, for a
bounded time.

A process whose call computes without end is throttled to a tenth of the processor time. The lowest
priority is not enough: two processors shown by a system are often one with two sets of registers,
and a process on one of them takes a quarter of the other's speed at any priority.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.follower import hook_log, status
from a2a_proxy.follower.checkpoint import CheckpointFile
from a2a_proxy.follower.status import (
    FollowerDone,
    FollowerFailed,
    FollowerLag,
    FollowerNotice,
    HookCallFailed,
)
from a2a_proxy.recorder.priority import restore_priority_of
from a2a_proxy.recorder.process_supervisor import ProcessEnd, ProcessSupervisor, RestartPolicy

NoticeCallback = Callable[[str, str], None]
"""Takes a message and a hint."""

MAX_STARTS = 4
"""Number of processes that may die before the hook is given up."""
_EXIT_SECONDS = 5.0
"""Seconds a process has to exit after its final message."""


IDLE_SECONDS = 0.25
"""Seconds between two checks of a process that runs unthrottled."""
_LONG_CALL_SECONDS = 0.5
"""Seconds a call may take before it is checked; nearly all return sooner, however much they
compute."""
_RUN_SECONDS, _REST_SECONDS = 0.1, 0.9
"""Seconds for which a throttled process alternately runs and is stopped."""
_MIN_BUSY_SHARE = 0.5
"""Processors in use between two checks that make a process a computing one; a call that waits is
not throttled."""


class Throttle:
    """Throttles one process started by the caller.

    Used by up to two threads: one calls `advance_to`, one `release_process`.
    """

    def __init__(self, process: subprocess.Popen[bytes], since: Callable[[], float]) -> None:
        """`since` returns the start of the current call, seconds of the monotonic clock; 0 if no
        call is running."""
        self._process = process
        self._call_start = since
        self._lock = threading.Lock()
        self._released = False
        self._stopped = False
        self._last_usage = (0.0, processor_seconds(process.pid))
        self._due = 0.0

    def advance_to(self, now: float) -> float:
        """Do what is due at `now`, seconds of the monotonic clock; return the seconds until the
        next step."""
        with self._lock:
            if now >= self._due and not self._released:
                self._due = now + self._switch_process(now)
            return IDLE_SECONDS if self._released else max(self._due - now, 0.0)

    def release_process(self) -> None:
        """Resume the process and stop throttling it, because a caller waits for it."""
        with self._lock:
            self._released = True
            self._resume_process()

    def _switch_process(self, now: float) -> float:
        if self._stopped:
            self._resume_process()
            self._last_usage = now, processor_seconds(self._process.pid)
            return _RUN_SECONDS
        (at, before), spent = self._last_usage, processor_seconds(self._process.pid)
        self._last_usage = now, spent
        since = self._call_start()
        if (
            since
            and now - since > _LONG_CALL_SECONDS
            and spent - before >= _MIN_BUSY_SHARE * (now - at)
        ):
            self._process.send_signal(signal.SIGSTOP)
            self._stopped = True
            return _REST_SECONDS
        return IDLE_SECONDS

    def _resume_process(self) -> None:
        if self._stopped:
            self._process.send_signal(signal.SIGCONT)
            self._stopped = False


def processor_seconds(process: int) -> float:
    """Return its processor time so far; 0 if it has ended or the system does not report it (then it
    is not throttled)."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class HookReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a hook."""

    name: str
    outcome: str
    """`done`, `stopped`, `slow` (the wait for it was given up), `died` (too often) or `failed` (it
    never began)."""
    calls: int
    errors: int
    frame: int
    """Id of the last frame it has handled."""
    log: str


class FollowerProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A follower process other than the one that calls a hook."""

    module: str
    """Its Python module."""
    arguments: tuple[str, ...]
    label: str
    """Its name in messages for people."""
    checkpoint: int
    """Descriptor of its checkpoint file; the supervisor closes it."""


class SupervisorTiming(msgspec.Struct, frozen=True, kw_only=True):
    """When a follower process is restarted, and when it counts as stuck."""

    pause_seconds: Sequence[float] = (0.1, 1.0, 5.0)
    """Seconds before the n-th restart."""
    stuck_seconds: float = 10.0
    """Seconds a call may take before it is reported."""


DEFAULT_TIMING = SupervisorTiming()


class FollowerSupervisor(ProcessSupervisor):
    """Keeps one follower process alive, for a hook or another program."""

    def __init__(
        self,
        name: str,
        recording: str,
        notify: NoticeCallback,
        *,
        session: str = "",
        follow: bool = False,
        prints: bool = False,
        timing: SupervisorTiming = DEFAULT_TIMING,
        program: FollowerProgram | None = None,
    ) -> None:
        """Create a supervisor. `session` is the UUID of the only session to follow, empty for all.

        With `follow`, later rows are followed too. `notify` is called on the supervisor's thread.
        Raises OSError if the state directory cannot be used.
        """
        self.name = name
        self.label = program.label if program is not None else f"hook {name}"
        super().__init__(
            self.label,
            RestartPolicy(timing.pause_seconds, max_deaths=MAX_STARTS, exit_seconds=_EXIT_SECONDS),
        )
        self._module = program.module if program is not None else "a2a_proxy.follower"
        wanted = program.arguments if program is not None else ("--hook", name)
        self._arguments = [recording, *wanted, "--session", session]
        self._arguments += [
            word for word, given in (("--follow", follow), ("--prints", prints)) if given
        ]
        self._prints = prints
        self._notify = notify
        self._stuck = timing.stuck_seconds
        self._is_throttled = follow and sys.platform == "linux"
        self._throttle: Throttle | None = None
        self._is_urgent = False
        self._reported_stuck = False
        self.log = hook_log.log_path(name)
        self._checkpoint_descriptor = (
            program.checkpoint if program is not None else open_unnamed_file()
        )
        self._checkpoint = CheckpointFile(self._checkpoint_descriptor)
        self._life_read, self._life = os.pipe()
        self._outcome = ""
        self._report: HookReport | None = None

    def start(self) -> None:
        """Start following. Returns at once."""
        self._thread.start()

    def raise_priority(self) -> None:
        """Raise the follower's priority, because a caller waits for it."""
        with self._start_lock:
            self._is_urgent = True
            self._release_throttle()
        if self._process is not None and not self._ended.is_set():
            restore_priority_of(self._process.pid)

    def stop(self) -> None:
        """Make it end after the current call."""
        self.raise_priority()
        self.stop_process(signal.SIGTERM)

    def finish(self) -> HookReport:
        """Kill it if it has not ended, and return its result."""
        if self._report is None:
            ended = self._ended.is_set()
            if not ended:
                self.stop_process(signal.SIGKILL)
            mark = self._checkpoint.read_mark()
            self._report = HookReport(
                name=self.name,
                outcome=self._outcome if ended else "slow",
                calls=mark.calls,
                errors=mark.errors,
                frame=mark.frame,
                log=str(self.log),
            )
            if self.wait(_EXIT_SECONDS):  # otherwise its thread still needs them
                os.close(self._life)
                os.close(self._life_read)
                os.close(self._checkpoint_descriptor)
        return self._report

    def _is_finished(self) -> bool:
        return bool(self._outcome)

    def _on_death(self, end: ProcessEnd, deaths: int) -> None:
        if deaths == 1:
            message = (
                f"{self.label} died ({end.description}); it is restarted and repeats the call in "
                f"which it died"
            )
            self._notify(message, f"see {self.log}")

    def _on_given_up(self, end: ProcessEnd) -> None:
        self._outcome = "died"
        how = f"{MAX_STARTS} times ({end.description})"
        self._notify(
            f"{self.label} died {how}, given up; traffic and recording continue", f"see {self.log}"
        )

    def _on_end(self) -> None:
        if self._stopping.is_set():
            self._outcome = self._outcome or "stopped"

    def _spawn_process(self, status_fd: int) -> subprocess.Popen[bytes]:
        out = hook_log.open_log(self.log)
        inherited = (self._life_read, status_fd, self._checkpoint_descriptor)
        numbers = [
            "--life",
            str(inherited[0]),
            "--status",
            str(inherited[1]),
            "--checkpoint",
            str(inherited[2]),
        ]
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", self._module, *self._arguments, *numbers],
                stdin=subprocess.DEVNULL,
                stdout=None if self._prints else subprocess.DEVNULL,
                stderr=out,
                pass_fds=inherited,
                start_new_session=True,
            )
        finally:
            os.close(out)
        if self._is_throttled:
            self._throttle = Throttle(process, lambda: self._checkpoint.read_mark().since / 1e9)
            if self._is_urgent:
                self._release_throttle()
        return process

    def _release_throttle(self) -> None:
        if self._throttle is not None:
            self._throttle.release_process()

    def _read_statuses(self, status_fd: int) -> None:
        try:
            self._read_until_done(status_fd)
        finally:
            self._release_throttle()

    def _read_until_done(self, pipe: int) -> None:
        """Read statuses until the final one, or until the process has ended."""
        rest = b""
        while True:
            pause = (
                self._throttle.advance_to(time.monotonic())
                if self._throttle is not None
                else IDLE_SECONDS
            )
            if not select.select([pipe], [], [], pause)[0]:
                if self._process is None or self._process.poll() is not None:
                    return  # another process holds the pipe, forked by the hook
                self._check_stuck()
                continue
            data = os.read(pipe, 1 << 16)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._on_status_line(line)
            if self._outcome:
                return  # a thread of the hook may keep the process alive

    def _on_status_line(self, line: bytes) -> None:
        try:
            message = status.decode_status(line)
        except msgspec.DecodeError:
            return  # not a status: the hook has written to the pipe
        if isinstance(message, FollowerDone):
            self._outcome = "stopped" if self._stopping.is_set() else "done"
        elif isinstance(message, FollowerFailed):
            self._outcome = "failed"
            self._notify(message.message, message.hint or f"the traceback is in {self.log}")
        elif isinstance(message, HookCallFailed):
            self._notify(message.message, f"calls continue; the traceback is in {self.log}")
        elif isinstance(message, FollowerNotice):
            self._notify(message.message, message.hint)
        elif isinstance(message, FollowerLag):
            self._notify(
                f"{self.label} is {message.frames:,} frames behind; the recording keeps them for "
                f"it",
                "",
            )

    def _check_stuck(self) -> None:
        since = self._checkpoint.read_mark().since
        if since and not self._reported_stuck and time.monotonic() - since / 1e9 > self._stuck:
            self._reported_stuck = True
            message = (
                f"a call of {self.label} has not returned for {self._stuck:.0f} s; traffic and "
                f"recording continue"
            )
            self._notify(message, "")


def open_unnamed_file() -> int:
    """Return the descriptor of a file that is deleted with the last process that has it open.

    The file is in memory if the system supports that, so that a full disk does not lose a hook's
    position.
    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create("a2a-proxy-hook")
    with tempfile.TemporaryFile(dir=file_layout.hooks_dir()) as file:
        return os.dup(file.fileno())
