"""The relay's side of the recorder: starts the process, reads its status messages, restarts it when
it dies.

Nothing here runs on the event loop: one thread reads the status pipe and calls back. A dead or slow
recorder costs the relay nothing, because the journal on disk is the queue.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from zlib import crc32

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.record_format import START_POSITION, Position, bytes_after
from a2a_proxy.private_files import open_private
from a2a_proxy.recorder import status
from a2a_proxy.recorder.priority import restore_priority_of
from a2a_proxy.recorder.process_supervisor import ProcessEnd, ProcessSupervisor, RestartPolicy
from a2a_proxy.recorder.status import (
    RecorderDone,
    RecorderFailed,
    RecorderProgress,
    RecorderReady,
    Status,
    TroubleStarted,
)

RESTART_PAUSES = (0.1, 0.5, 2.0, 5.0)
"""Seconds before the n-th restart in a row; the last value repeats."""

WRITE_RETRY_SECONDS = 30.0
"""Seconds for which writing the recording is retried after the relay has exited."""

_MAX_START_TRIES = 3
"""Recorders that may die before the first one is ready; after that the failure is not taken for an
accident."""

_BACKLOG_BYTES = 16 << 20
"""Unrecorded bytes of the journal from which on a recorder starts at full priority."""


class RecorderSupervisor(ProcessSupervisor):
    """Keeps one recorder process alive for one journal folder."""

    def __init__(
        self,
        folder: Path,
        on_status: Callable[[Status], None],
        pauses: Sequence[float] = RESTART_PAUSES,
        patience: float = WRITE_RETRY_SECONDS,
        kept_fds: Sequence[int] = (),
    ) -> None:
        """Create a supervisor; `on_status` is called on its thread.

        After `close_wake_pipe`, writing the recording is retried for `patience` seconds. Recorders
        inherit the descriptors `kept_fds` and keep them open as long as they live.
        """
        super().__init__(
            "recorder-supervisor", RestartPolicy(pauses, max_deaths_before_ready=_MAX_START_TRIES)
        )
        self._kept_fds = kept_fds
        self._patience = patience
        self._released_at = 0.0
        self._folder = folder
        self._on_status = on_status
        self._wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_write, False)
        self._first_answer = threading.Event()
        self._answer: RecorderReady | RecorderFailed | None = None
        self._is_start_awaited = False
        """Whether a caller of `start` waits for the first recorder to be ready."""
        self._reported_failure = ""
        """The last failure that was reported."""
        self._failure = ""
        """The failure of the current or last recorder; empty if it reported none."""
        self.progress: RecorderProgress | None = None
        """The last progress message."""
        self._progress_at_death: RecorderProgress | None = None
        self.outcome: RecorderDone | RecorderFailed | None = None
        """The final message; None while the recorder runs."""

    @property
    def position(self) -> Position:
        """The last position of the journal up to which everything is recorded."""
        progress = self.progress
        return START_POSITION if progress is None else (progress.segment, progress.offset)

    @property
    def unrecorded_bytes(self) -> int:
        """Bytes of the journal after that position."""
        return bytes_after(self._folder, self.position)

    def start(
        self, timeout: float | None = 30.0, on_launch: Callable[[], object] = lambda: None
    ) -> RecorderReady | RecorderFailed:
        """Start the recorder and wait until the recording is open or the recorder reports why it
        cannot be. `on_launch` is called as soon as the process exists or could not be created.

        A recorder that continues a journal first decodes again the recorded part of its last file;
        to wait for that, pass None as `timeout` (seconds).
        """
        self._is_start_awaited = True
        self.launch_process()
        on_launch()
        if not self._first_answer.wait(timeout) or self._answer is None:
            self.kill()
            return RecorderFailed(
                f"the recorder does not start: {self._last_log_line()}",
                "report this as a bug of a2a-proxy",
            )
        return self._answer

    def launch_process(self, timeout: float = 30.0) -> None:
        """Start the recorder, and wait only until the process exists or could not be created."""
        self._thread.start()
        self._launched.wait(timeout)

    def _last_log_line(self) -> str:
        """Return the last line of the recorder's log, which is deleted with the journal."""
        try:
            lines = (self._folder / "recorder.log").read_text("utf-8", "replace").splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "no answer"

    def drain_journal(self, timeout: float | None = None) -> bool:
        """Wait until the whole journal is recorded; return False if it is not after `timeout`
        seconds."""
        return self.wait(timeout)

    def close_wake_pipe(self) -> None:
        """Close the wake-up pipe: the recorder exits when it has read the journal to its end."""
        self._released_at = time.monotonic()
        with contextlib.suppress(OSError):
            os.close(self.wake_write)
        self.wake_write = -1
        if self._process is not None:
            restore_priority_of(self._process.pid)

    def kill(self) -> None:
        """Kill the recorder now; the unrecorded rest stays in the journal."""
        self.stop_process(signal.SIGKILL)

    def _is_finished(self) -> bool:
        return self.outcome is not None

    def _is_ready(self) -> bool:
        return self._answer is not None

    def _has_progressed(self) -> bool:
        before, self._progress_at_death = self._progress_at_death, self.progress
        return not _is_same_position(before, self.progress)

    def _on_death(self, end: ProcessEnd, deaths: int) -> None:  # noqa: ARG002 - every death is reported
        if end.error is not None:
            self._report_start_failure(end.error)
        else:
            self._report_death(end)

    def _on_end(self) -> None:
        self._first_answer.set()

    def _gives_up(self) -> bool:
        """Whether the relay has released the recorder and retries took too long: the session can be
        finished later."""
        if not self._released_at or time.monotonic() - self._released_at < self._patience:
            return False
        why = self._failure or f"the recorder ends early: {self._last_log_line()}"
        self.outcome = RecorderFailed(
            f"{why}; the journal is left for later", "finish with: a2a-inspect recover"
        )
        self._on_status(self.outcome)
        return True

    def _report_start_failure(self, wrong: OSError) -> None:
        where = f"{wrong.filename}: " if wrong.filename else ""
        reason = (wrong.strerror or str(wrong)).lower()
        self._forward_status(
            RecorderFailed(
                f"the recorder cannot be started: {where}{reason}",
                "a2a-proxy tries again",
                permanent=False,
            )
        )

    def _report_death(self, end: ProcessEnd) -> None:
        """Report a recorder that exited without a reason."""
        if self._failure or self._answer is None:
            return
        message = (
            f"the recorder died ({end.description}); a new one continues from its position, "
            f"nothing is lost"
        )
        self._on_status(
            TroubleStarted(
                message, f"if it happens again, report it with {self._folder / 'recorder.log'}"
            )
        )

    def _spawn_process(self, status_fd: int) -> subprocess.Popen[bytes]:
        self._failure = ""
        with open(self._folder / "recorder.log", "ab", opener=open_private) as log:
            return subprocess.Popen(
                _recorder_command(
                    self._folder,
                    self._wake_read,
                    status_fd,
                    self._patience,
                    urgent=self._is_recorder_urgent(),
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, "PYTHONHASHSEED": _hash_seed(self._folder)},
                pass_fds=(self._wake_read, status_fd, *self._kept_fds),
                start_new_session=True,
            )

    def _is_recorder_urgent(self) -> bool:
        """Whether the next recorder starts at full priority.

        One that yields may need minutes until it has started on a busy machine, so a backlog would
        only grow.
        """
        if self._is_start_awaited and self._answer is None:
            return True  # there is no traffic yet
        return self.unrecorded_bytes > _BACKLOG_BYTES

    def _read_statuses(self, status_fd: int) -> None:
        with open(status_fd, "rb", closefd=False) as pipe:
            for line in pipe:
                self._handle_line(line)

    def _handle_line(self, line: bytes) -> None:
        try:
            message = status.decode_status(line)
        except msgspec.DecodeError:
            return  # the last line of a recorder that was killed while writing it
        if isinstance(message, RecorderProgress):
            self.progress = message
        elif isinstance(message, RecorderDone) or (
            isinstance(message, RecorderFailed) and message.permanent
        ):
            self.outcome = message
        if self._answer is None and isinstance(message, RecorderReady | RecorderFailed):
            self._answer = message
            self._first_answer.set()
            if isinstance(message, RecorderFailed):
                self._failure = message.message
                return  # `start` returns it to its caller
        self._forward_status(message)

    def _forward_status(self, message: Status) -> None:
        if isinstance(message, RecorderFailed):
            self._failure = message.message
        if not self._is_repeated_failure(message):
            self._on_status(message)

    def _is_repeated_failure(self, message: Status) -> bool:
        """Whether the failure was already reported, so that repeated failures for the same reason
        are reported once."""
        if isinstance(message, RecorderReady):
            self._reported_failure = ""
        if not isinstance(message, RecorderFailed):
            return False
        before, self._reported_failure = self._reported_failure, message.message
        return before == message.message


def _is_same_position(before: RecorderProgress | None, after: RecorderProgress | None) -> bool:
    """Whether no record was recorded in between."""
    return after is None or (
        before is not None and (before.segment, before.offset) == (after.segment, after.offset)
    )


def _hash_seed(folder: Path) -> str:
    """Return one hash seed for all recorders of a session, because their snapshots hold hashes;
    outsiders cannot guess it."""
    session = file_layout.read_session(folder)
    return str(crc32(session.uuid.encode() if session is not None else b""))


def _recorder_command(
    folder: Path, wake_fd: int, status_fd: int, patience: float, *, urgent: bool
) -> list[str]:
    options = ["--wake", str(wake_fd), "--status", str(status_fd), "--patience", str(patience)]
    options += ["--urgent"] if urgent else []
    return [sys.executable, "-P", "-m", "a2a_proxy.recorder", str(folder), *options]
