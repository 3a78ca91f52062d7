"""The proxy's side: starts the process that serves the metrics, and restarts it a few times if it dies."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

MAX_STARTS = 4
"""Number of processes that may die before it is given up."""
_PAUSE_SECONDS = (0.1, 1.0, 5.0)
"""Seconds before the n-th restart."""
_EXIT_SECONDS = 5.0
"""Seconds the process has to exit."""


class MetricsKeeper:
    """Keeps one process alive; it ends when this object is closed, or with the proxy, however that ends."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        notify: Callable[[str, str], None],
        pauses: Sequence[float] = _PAUSE_SECONDS,
    ) -> None:
        """`sockets` already listen; `close` closes them.

        `notify` takes a message and a hint, on the keeper's thread.
        """
        self._sockets = sockets
        self._notify = notify
        self._pauses = pauses
        self._life_read, self._life = os.pipe()
        self._leaving = threading.Event()
        self._arguments: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name="metrics keeper", daemon=True)

    def start(self, recording: str, session: str, journal: Path) -> None:
        """Follow the session with this UUID. Returns at once."""
        self._arguments = [recording, "--session", session, "--journal", str(journal), "--life", str(self._life_read)]
        self._arguments += [str(sock.fileno()) for sock in self._sockets]
        self._thread.start()

    @property
    def pid(self) -> int:
        """Process id of the current or last process; 0 before the first."""
        return self._process.pid if self._process is not None else 0

    def close(self) -> None:
        """End the process and free the port."""
        self._leaving.set()
        os.close(self._life)
        if self._thread.ident is not None:
            self._thread.join(_EXIT_SECONDS)
        os.close(self._life_read)
        self._close_sockets()

    def _close_sockets(self) -> None:
        """Close the port, so that clients are refused instead of waiting for a response that never comes."""
        for sock in self._sockets:
            sock.close()

    def _supervise(self) -> None:
        for start in range(MAX_STARTS):
            try:
                code = self._run_once()
            except OSError as wrong:
                self._close_sockets()
                self._notify(f"metrics are not served: {(wrong.strerror or str(wrong)).lower()}", "")
                return
            if self._leaving.is_set():
                return
            if start == 0:
                self._notify(f"the process that serves metrics died (exit code {code}); it is restarted", "")
            self._leaving.wait(self._pauses[min(start, len(self._pauses) - 1)])
        if not self._leaving.is_set():
            self._close_sockets()
            self._notify(f"the process that serves metrics died {MAX_STARTS} times, given up; recording continues", "")

    def _run_once(self) -> int:
        passed = (self._life_read, *(sock.fileno() for sock in self._sockets))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "a2a_proxy.follower.metrics", *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=passed,
            start_new_session=True,
        )
        return self._process.wait()
