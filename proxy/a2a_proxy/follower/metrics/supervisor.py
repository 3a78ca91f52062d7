"""The proxy's side: starts the process that serves the metrics, and restarts it a few times if it
dies."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from a2a_proxy.recorder.process_supervisor import ProcessEnd, ProcessSupervisor, RestartPolicy

MAX_STARTS = 4
"""Number of processes that may die before it is given up."""
_PAUSE_SECONDS = (0.1, 1.0, 5.0)
"""Seconds before the n-th restart."""
_EXIT_SECONDS = 5.0
"""Seconds the process has to exit."""


class MetricsSupervisor(ProcessSupervisor):
    """Keeps one process alive; it ends when this object is closed, or with the proxy, however that
    ends."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        notify: Callable[[str, str], None],
        pauses: Sequence[float] = _PAUSE_SECONDS,
    ) -> None:
        """`sockets` already listen; `close` closes them.

        `notify` takes a message and a hint, on the supervisor's thread.
        """
        policy = RestartPolicy(pauses, max_deaths=MAX_STARTS, retry_failed_start=False)
        super().__init__("metrics supervisor", policy, has_status_pipe=False)
        self._sockets = sockets
        self._notify = notify
        self._life_read, self._life = os.pipe()
        self._arguments: list[str] = []

    def start(self, recording: str, session: str, journal: Path) -> None:
        """Follow the session with this UUID. Returns at once."""
        self._arguments = [
            recording,
            "--session",
            session,
            "--journal",
            str(journal),
            "--life",
            str(self._life_read),
        ]
        self._arguments += [str(sock.fileno()) for sock in self._sockets]
        self._thread.start()

    def close(self) -> None:
        """End the process and free the port."""
        self.stop_process(None)
        os.close(self._life)
        if self._thread.ident is not None:
            self._thread.join(_EXIT_SECONDS)
        os.close(self._life_read)
        self._close_sockets()

    def _close_sockets(self) -> None:
        """Close the port, so that clients are refused instead of waiting for a response that never
        comes."""
        for sock in self._sockets:
            sock.close()

    def _on_death(self, end: ProcessEnd, deaths: int) -> None:
        if deaths == 1 and end.error is None:
            self._notify(
                f"the process that serves metrics died (exit code {end.code}); it is restarted", ""
            )

    def _on_given_up(self, end: ProcessEnd) -> None:
        self._close_sockets()
        if end.error is not None:
            self._notify(
                f"metrics are not served: {(end.error.strerror or str(end.error)).lower()}", ""
            )
        else:
            self._notify(
                f"the process that serves metrics died {MAX_STARTS} times, given up; recording "
                f"continues",
                "",
            )

    def _spawn_process(self, status_fd: int) -> subprocess.Popen[bytes]:  # noqa: ARG002 - it writes no statuses
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "a2a_proxy.follower.metrics", *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(self._life_read, *(sock.fileno() for sock in self._sockets)),
            start_new_session=True,
        )
