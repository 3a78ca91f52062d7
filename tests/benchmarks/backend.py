"""A tracing backend in a process of its own, which is well or in trouble as it is told: `backend.py PROTOCOL PORT`.

It reads words from stdin, one a line, and answers each with a line: `fine`, `slow` (it takes requests and answers
none), `refusing` and `errors` change how it is; `count` tells how many spans it has stored and how many of them differ.
It stores what it acknowledges, and nothing else. It has what processor time all others leave: in life it stands
elsewhere.
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
"""What a request gets in the end that was not answered: its client mostly waits no more."""


class Moody(Received):
    """Takes spans, or not."""

    def __init__(self, protocol: str) -> None:
        super().__init__(protocol)
        self._mood = "fine"
        self._changed = threading.Event()

    def be(self, mood: str) -> None:
        """From now on; what is held is let go."""
        self._mood, before, self._changed = mood, self._changed, threading.Event()
        before.set()

    def take(self, request: Any, headers: dict[str, str]) -> Any:
        """`Received.take`."""
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
