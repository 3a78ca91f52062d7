"""The process behind the fixtures, as the tests' process uses it: one per worker, started on first
use."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING, Any

import msgspec

from a2a_proxy.testing.child_messages import Answer, CommandFailed, Order, decode_answer, encode

if TYPE_CHECKING:
    from a2a_proxy.replay.core.match_rules import Matcher
    from a2a_proxy.testing.matcher_channel import MatcherChannel

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
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        """Both ends of the channel of the matchers: that of this process, and that of the child."""
        self._matchers: MatcherChannel | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process

    def send_order(self, order: Order) -> Answer:
        """Send an order and return its answer. Raises CommandRefused if the order fails or the
        process has ended."""
        with self._lock:
            answer = self._exchange_order(order)
        if isinstance(answer, CommandFailed):
            raise CommandRefused(answer.message, answer.hint)
        return answer

    def register_matcher(self, matcher: Matcher) -> dict[str, Any]:
        """Return how the process calls a matcher of the tests, as its order has it."""
        with self._lock:
            self._start()
            if self._matchers is None:
                from a2a_proxy.testing.matcher_channel import (
                    MatcherChannel,
                )  # and with it the replay

                assert self._sockets is not None
                self._matchers = MatcherChannel(self._sockets[0], self._sockets[1].fileno())
            return self._matchers.register(matcher)

    def _exchange_order(self, order: Order) -> Answer:
        process = self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(encode(order) + b"\n")
            process.stdin.flush()
            return decode_answer(process.stdout.readline())
        except (OSError, msgspec.DecodeError):
            return CommandFailed(
                f"the process of the agents has ended: {self._error_output()}",
                "report this as a bug of a2a-proxy",
            )

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process if it does not run yet."""
        if self._process is None:
            self._sockets = socket.socketpair()
            # A session of its own, because a Ctrl-C is for pytest, which then ends this process.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "a2a_proxy.testing.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
                pass_fds=(self._sockets[1].fileno(),),
            )
        return self._process

    def _error_output(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").splitlines()
        return lines[-1] if lines else "without an error message"

    def stop(self) -> None:
        """End the process with all its agents."""
        with self._lock:
            running, self._process = self._process, None
        for each in self._sockets or ():
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # ends the thread of the matchers
            each.close()
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
