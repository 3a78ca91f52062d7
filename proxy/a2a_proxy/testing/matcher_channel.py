"""Calls of the tests' own matchers by the process behind the fixtures: one JSON object a line, over
a socket."""

import contextlib
import socket
import threading
from collections.abc import Callable
from functools import cache
from io import BufferedRWPair
from typing import Any

import msgspec

from a2a_proxy.replay.core.match_rules import MatchedRequest, Matcher


class MatcherCall(msgspec.Struct, frozen=True):
    """A question of the child process."""

    number: int
    """Number of the matcher."""
    recorded: MatchedRequest
    requested: MatchedRequest


class MatcherResult(msgspec.Struct, frozen=True):
    """The answer of the process of the tests."""

    mismatch: str = ""
    """Why the requests do not match; empty if they do."""


encode = msgspec.json.Encoder().encode
decode_call: Callable[[bytes], MatcherCall] = msgspec.json.Decoder(MatcherCall).decode
decode_result: Callable[[bytes], MatcherResult] = msgspec.json.Decoder(MatcherResult).decode


class MatcherChannel:
    """The end of the process of the tests: runs matchers in a thread, so that a test that waits
    does not block them."""

    def __init__(self, mine: socket.socket, child_fd: int) -> None:
        """`child_fd` is the descriptor of the other end in the child process."""
        self._mine = mine
        self._child_fd = child_fd
        self._matchers: list[Matcher] = []
        threading.Thread(target=self._run, name="a2a-matchers", daemon=True).start()

    def register(self, matcher: Matcher) -> dict[str, Any]:
        """Return what the child process needs to call a matcher: the arguments of
        `RemoteMatcher`."""
        self._matchers.append(matcher)
        name = getattr(matcher, "__name__", type(matcher).__name__)
        return {"fd": self._child_fd, "number": len(self._matchers) - 1, "name": name}

    def _run(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._mine.makefile("rwb") as stream:
            for line in stream:
                call = decode_call(line)
                stream.write(encode(run_matcher(self._matchers[call.number], call)) + b"\n")
                stream.flush()


def run_matcher(matcher: Matcher, call: MatcherCall) -> MatcherResult:
    """Return the result of a matcher, and of what it raises."""
    try:
        return MatcherResult(
            "it returned False" if matcher(call.recorded, call.requested) is False else ""
        )
    except AssertionError as wrong:
        return MatcherResult(str(wrong) or "AssertionError")
    except Exception as wrong:  # a matcher is code of the user
        return MatcherResult(f"{type(wrong).__name__}: {wrong}")


class RemoteMatcher:
    """A matcher in the child process: sends both requests to the process of the tests, and waits
    for the result."""

    def __init__(self, fd: int, number: int, name: str) -> None:
        """The arguments are those that `MatcherChannel.register` returns."""
        self._fd = fd
        self._number = number
        self.__name__ = name

    def __call__(self, recorded: MatchedRequest, requested: MatchedRequest) -> None:
        """Raise AssertionError, with the reason, if the requests do not match."""
        stream = _open_stream(self._fd)
        stream.write(encode(MatcherCall(self._number, recorded, requested)) + b"\n")
        stream.flush()
        result = decode_result(stream.readline())
        if result.mismatch:
            raise AssertionError(result.mismatch)


@cache
def _open_stream(fd: int) -> BufferedRWPair:
    return socket.socket(fileno=fd).makefile("rwb")
