"""The cost of the rules: memory for open tasks, and the time to check a recording again; each in a
process of its own.

`cost.burst` measures the time while recording, with and without rules.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
from conversations import unary_connection
from english import English
from journals import STARTED, STEP_NS
from processes import memory_mib

_ROUND = 1000
"""Tasks, or frames, between two samples of the memory."""


class Open(msgspec.Struct, frozen=True):
    """The memory of that many open tasks."""

    tasks: int
    mib: float
    """Growth of the resident memory."""


class Again(msgspec.Struct, frozen=True):
    """A recording that is checked again."""

    frames: int
    findings: int
    cpu_seconds: float
    mib_at_tenth: float
    """Resident memory after a tenth of the frames."""
    mib: float
    """Resident memory at the end."""

    @property
    def per_million(self) -> float:
        """Return the seconds of one core for a million frames."""
        return self.cpu_seconds / self.frames * 1e6


def open_tasks(tasks: int) -> Open:
    """Create that many tasks, each by a call of its own, and end none of them."""
    return msgspec.convert(_child("tasks", str(tasks)), Open)


def again(recording: Path) -> Again:
    """Check the session of a recording by all rules."""
    return msgspec.convert(_child("again", str(recording)), Again)


def _child(*arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def _open_tasks(tasks: int) -> Open:
    """Run one client that calls one agent; changes are removed as a recorder does."""
    from a2a_proxy.model.wire import Chunk, ChunkKind, ConnectionFacts, Direction
    from a2a_proxy.observer import Observer
    from a2a_proxy.recorder.__main__ import reduce_collections
    from a2a_proxy.redaction import Redactor

    observer = Observer(Redactor(b"k" * 32))
    facts = ConnectionFacts("127.0.0.1:40000", "127.0.0.1:9000", "127.0.0.1:8000")
    calls = unary_connection(English())
    times = itertools.count(STARTED, STEP_NS)
    observer.feed(
        Chunk(1, ChunkKind.OPEN, Direction.TO_AGENT, next(times), msgspec.json.encode(facts)), []
    )
    reduce_collections()
    _talk(observer, calls, times, _ROUND)  # objects that are created once
    before = _resident()
    _talk(observer, calls, times, tasks)
    return Open(tasks, _resident() - before)


def _talk(observer: Any, calls: Any, times: Any, tasks: int) -> None:
    from a2a_proxy.model.wire import Chunk, ChunkKind

    out: list[Any] = []
    for number in range(2 * tasks):
        direction, data, _ = next(calls)
        observer.feed(Chunk(1, ChunkKind.DATA, direction, next(times), data), out)
        if number % _ROUND == 0:
            out.clear()
            observer.pop_changes()


def _again(path: Path) -> Again:
    from a2a_proxy.recorder.__main__ import reduce_collections
    from a2a_proxy.recording.read.reader import Recording
    from a2a_proxy.recording.tools.recheck import recheck_session

    class Watched(Recording):
        """Samples the memory during the run."""

        def frames_after(self, *given: Any, **more: Any) -> Any:
            for frames, row in enumerate(super().frames_after(*given, **more), 1):
                if frames == tenth:
                    marks.append(_resident())
                yield row

    marks: list[float] = []
    with Watched(path) as recording:
        frames = recording.count_rows().frames
        tenth = frames // 10
        reduce_collections()
        began = time.process_time()
        findings = sum(
            1 for session in recording.read_sessions() for _ in recheck_session(recording, session)
        )
        return Again(frames, findings, time.process_time() - began, marks[0], _resident())


def _resident() -> float:
    return memory_mib(os.getpid())[0]


if __name__ == "__main__":
    value = _open_tasks(int(sys.argv[2])) if sys.argv[1] == "tasks" else _again(Path(sys.argv[2]))
    sys.stdout.buffer.write(msgspec.json.encode(value))
