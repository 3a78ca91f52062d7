"""The overhead of `a2a-proxy stdio` for a stdio agent: at its start, for each message, and at its
end."""

from __future__ import annotations

import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PROXY = str(Path(sysconfig.get_path("scripts")) / "a2a-proxy")
DIRECT, OURS = "direct", "a2a-proxy stdio, recording"
MESSAGE = b"x" * 400
TRIPS = 2_000
BULK = 64 * 1024 * 1024


def commands(folder: Path) -> dict[str, list[str]]:
    """The words before the agent's command, by contestant."""
    return {
        DIRECT: [],
        OURS: [PROXY, "stdio", "--record", str(folder / "stdio.a2a.db"), "--"],
    }


@contextmanager
def _running(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def start(before: Sequence[str]) -> float:
    """Return the milliseconds from the start of the process to the first byte of an agent that
    writes one at once."""
    began = time.monotonic()
    with _running([*before, "sh", "-c", "echo; exec cat"]) as process:
        _read(process, 1)
        return (time.monotonic() - began) * 1000


def end(before: Sequence[str]) -> float:
    """Return the milliseconds from the end of stdin to the exit code."""
    with _running([*before, "sh", "-c", "echo; exec cat"]) as process:
        _read(process, 1)
        time.sleep(0.3)  # longer than the start of any contestant
        began = time.monotonic()
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        process.wait()
        return (time.monotonic() - began) * 1000


def trips(before: Sequence[str]) -> float:
    """Return the median round trip of a small message through an agent that sends it back, in
    microseconds."""
    with _running([*before, "cat"]) as process:
        took = sorted(_timed(lambda: _trip(process)) for _ in range(TRIPS))
        return took[len(took) // 2] * 1e6


def bulk(before: Sequence[str]) -> float:
    """Return the MiB/s of an agent that writes as fast as possible."""
    with _running([*before, "head", "-c", str(BULK), "/dev/zero"]) as process:
        _read(process, 1)
        return BULK / _timed(lambda: _read(process, BULK - 1)) / (1024 * 1024)


def _timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _trip(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(MESSAGE)
    _read(process, len(MESSAGE))


def _read(process: subprocess.Popen[bytes], count: int) -> None:
    assert process.stdout is not None
    while count:
        got = len(process.stdout.read(min(count, 1 << 20)) or b"")
        assert got, "the agent has ended"
        count -= got
