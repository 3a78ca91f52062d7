"""A recorder at work: a generated journal is written at a fixed rate, and a recorder process
follows it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import cost
from journals import STARTED, Made

from a2a_proxy.capture.file_layout import SessionFile, write_session

_TICK = 0.01
"""Seconds between two writes of a relay with low load."""
_END_SECONDS = 60.0


@contextlib.contextmanager
def feeding(made: Made, folder: Path, recording: Path, rate: float) -> Iterator[threading.Event]:
    """Write `rate` messages per second as another session of `recording` until the block ends; the
    yielded event is set at the end of the journal."""
    folder.mkdir(mode=0o700)
    facts = SessionFile(
        str(recording), os.getpid(), STARTED, f"benchmark {folder.name}", ("a2a-proxy",)
    )
    write_session(folder, facts)
    wake, bell = os.pipe()
    process = subprocess.Popen(
        [sys.executable, cost.__file__, "burst", str(folder), str(wake)], pass_fds=(wake,)
    )
    os.close(wake)
    stop, done = threading.Event(), threading.Event()
    writer = threading.Thread(target=_write, args=(made, folder, rate, bell, stop, done))
    writer.start()
    try:
        yield done
    finally:
        stop.set()
        writer.join()
        os.close(bell)  # as if the relay had ended: the recorder reads to the end and finishes
        process.wait(_END_SECONDS)


def _write(
    made: Made, folder: Path, rate: float, bell: int, stop: threading.Event, done: threading.Event
) -> None:
    segments = sorted(made.folder.glob("*.a2aj"))
    per_second = sum(segment.stat().st_size for segment in segments) / made.messages * rate
    began, written = time.monotonic(), 0
    for segment in segments:
        data, at = segment.read_bytes(), 0
        with (folder / segment.name).open("wb", buffering=0) as file:
            while at < len(data):
                if stop.wait(_TICK):
                    return
                due = max(int((time.monotonic() - began) * per_second) - written, 0)
                piece = data[at : at + due]
                file.write(piece)
                os.write(bell, b"!")
                at, written = at + len(piece), written + len(piece)
    done.set()
