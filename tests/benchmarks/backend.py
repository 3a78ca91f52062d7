"""A tracing backend in a process of its own, in a mood that its caller sets:
`backend.py PROTOCOL PORT`.

It reads one command per line from stdin and answers each with a line: `fine`, `slow` (it accepts
requests and answers none), `refusing` and `errors` set its mood; `count` returns the number of
stored spans and of distinct ones. It stores what it acknowledges, and nothing else. It runs at idle
priority, because a real backend runs on another machine.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import grpc

sys.path.append(str(Path(__file__).resolve().parents[1]))
from a2a_proxy.recorder.priority import set_idle_priority
from support_otlp import Received, grpc_backend, http_backend

_ANSWERS: dict[str, dict[str, Any]] = {
    "grpc": {"refusing": grpc.StatusCode.UNAUTHENTICATED, "errors": grpc.StatusCode.INTERNAL},
    "http/protobuf": {"refusing": 401, "errors": 500},
}
_HELD: dict[str, Any] = {"grpc": grpc.StatusCode.UNAVAILABLE, "http/protobuf": 503}
"""The late response to a held request, whose client has usually stopped waiting."""


class Moody(Received):
    """A backend with a mood."""

    def __init__(self, protocol: str) -> None:
        super().__init__(protocol)
        self._mood = "fine"
        self._changed = threading.Event()

    def be(self, mood: str) -> None:
        """Set the mood and release the held requests."""
        self._mood, before, self._changed = mood, self._changed, threading.Event()
        before.set()

    def take(self, request: Any, headers: dict[str, str]) -> Any:
        """Take a request (see `Received.take`)."""
        changed, mood = self._changed, self._mood
        if mood == "slow":
            changed.wait()
            return _HELD[self.protocol]
        answer = _ANSWERS[self.protocol].get(mood)
        return answer if answer is not None else super().take(request, headers)


def main() -> None:
    """Serve until stdin ends."""
    set_idle_priority()
    moody = Moody(sys.argv[1])
    with (grpc_backend if moody.protocol == "grpc" else http_backend)(int(sys.argv[2]), moody):
        print("ready", flush=True)
        for line in sys.stdin:
            word = line.strip()
            if word == "count":
                ids = [span.span_id for span in moody.spans()]
                print(len(ids), len(set(ids)), flush=True)
            else:
                moody.be(word)
                print(word, flush=True)
        moody.be("errors")


if __name__ == "__main__":
    main()
