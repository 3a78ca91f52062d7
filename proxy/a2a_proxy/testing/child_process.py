"""The process behind the fixtures, as the tests' process sees it: one per worker, started when it is first needed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading

import msgspec

from a2a_proxy.testing.child_messages import Answer, CommandFailed, Order, decode_answer, encode

_STOP_SECONDS = 30.0


class CommandRefused(Exception):
    """The order cannot be done: the message, and what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}\nhint: {hint}" if hint else message)


class ChildProcess:
    """Orders in, answers out, for any thread: nothing here belongs to an event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process

    def do(self, order: Order) -> Answer:
        """What the process answers. Raises Refused where it cannot do it, or is gone."""
        with self._lock:
            answer = self._asked(order)
        if isinstance(answer, CommandFailed):
            raise CommandRefused(answer.message, answer.hint)
        return answer

    def _asked(self, order: Order) -> Answer:
        if self._running is None:
            # A session of its own: a Ctrl-C is for pytest, which ends this process in its own time.
            self._running = subprocess.Popen(
                [sys.executable, "-P", "-m", "a2a_proxy.testing.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        assert self._running.stdin is not None
        assert self._running.stdout is not None
        try:
            self._running.stdin.write(encode(order) + b"\n")
            self._running.stdin.flush()
            return decode_answer(self._running.stdout.readline())
        except (OSError, msgspec.DecodeError):
            return CommandFailed(
                f"the process of the agents has ended: {self._last_words()}", "report this as a bug of a2a-proxy"
            )

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    def stop(self) -> None:
        """End it with all its agents."""
        with self._lock:
            running, self._running = self._running, None
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
