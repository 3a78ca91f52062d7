"""The process behind the fixtures, as the tests' process uses it: one per worker, started on first use."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading

import msgspec

from a2a_proxy.testing.child_messages import Answer, CommandFailed, Order, decode_answer, encode

_STOP_SECONDS = 30.0


class CommandRefused(Exception):
    """The order failed: the message, and a hint."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}\nhint: {hint}" if hint else message)


class ChildProcess:
    """Sends orders and returns answers, for any thread: nothing here belongs to an event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process

    def send_order(self, order: Order) -> Answer:
        """Send an order and return its answer. Raises CommandRefused if the order fails or the process has ended."""
        with self._lock:
            answer = self._exchange_order(order)
        if isinstance(answer, CommandFailed):
            raise CommandRefused(answer.message, answer.hint)
        return answer

    def _exchange_order(self, order: Order) -> Answer:
        if self._process is None:
            # A session of its own, because a Ctrl-C is for pytest, which then ends this process.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "a2a_proxy.testing.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(encode(order) + b"\n")
            self._process.stdin.flush()
            return decode_answer(self._process.stdout.readline())
        except (OSError, msgspec.DecodeError):
            return CommandFailed(
                f"the process of the agents has ended: {self._error_output()}", "report this as a bug of a2a-proxy"
            )

    def _error_output(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").splitlines()
        return lines[-1] if lines else "without an error message"

    def stop(self) -> None:
        """End the process with all its agents."""
        with self._lock:
            running, self._process = self._process, None
        if running is not None:
            assert running.stdin is not None
            running.stdin.close()
            try:
                running.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
            assert running.stdout is not None
            running.stdout.close()
        self._errors.close()
