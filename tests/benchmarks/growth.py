"""The memory of a recorder over a long session: `growth.py [MESSAGES]`, 10,000,000 A2A messages by default.

The journal is written as fast as the recorder reads it, so that it needs the space of a few segments. Prints the
resident memory after each quarter of a million messages; ends with 1 if a message is missing, or if the memory exceeds
the limit.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cost
from english import English
from journals import STARTED, Record, Segments, life
from processes import memory_mib

from a2a_proxy.capture.file_layout import SessionFile, write_session
from a2a_proxy.capture.record_format import segment_numbers
from a2a_proxy.model.chunk import ChunkKind, Direction

LIMIT_MIB = 250.0
_SAMPLE = 250_000
"""Messages between two samples."""
_STEP_NS = 250_000
"""Time between two records of six messages on average: 25,000 messages a second, as fast as a recorder reads them, so
that what it keeps for some seconds is as much as in real traffic."""
_MOST_SEGMENTS = 3
"""Segments that may wait for the recorder."""


def measure(folder: Path, messages: int) -> bool:
    """Run one recorder over that many messages; return whether its memory stayed within the limits."""
    recording, journal = folder / "growth.a2a.db", folder / "journal"
    journal.mkdir(mode=0o700)
    write_session(journal, SessionFile(str(recording), os.getpid(), STARTED, "growth", ("a2a-proxy",)))
    wake, bell = os.pipe()
    process = subprocess.Popen([sys.executable, cost.__file__, "burst", str(journal), str(wake)], pass_fds=(wake,))
    os.close(wake)
    for count in _write(journal, messages, bell):
        print(f"{count:>12,} messages  {memory_mib(process.pid)[0]:7.1f} MiB", flush=True)
    os.close(bell)
    _, peak = cost.ended(process)
    with sqlite3.connect(f"file:{recording}?mode=ro", uri=True) as db:
        stored = db.execute(
            "SELECT count(*) FROM frame WHERE shape IN (SELECT id FROM shape WHERE kind IN (1, 2, 3, 4))"
        ).fetchone()
        opened = db.execute("SELECT count(*) FROM task WHERE state IN (1, 2)").fetchone()[0]
    print(f"{stored[0]:,} messages stored, {opened:,} open tasks; peak of the recorder {peak:.1f} MiB")
    return stored[0] >= messages and peak <= LIMIT_MIB


def _write(journal: Path, messages: int, bell: int) -> Iterator[int]:
    """Write the journal; yield the number of messages written so far after each sample's."""
    english, numbers = English(), itertools.count(1)
    lives = [life(kind, english, numbers, 8) for kind in range(18)]
    writer, at, count, due = Segments(journal), STARTED, 0, _SAMPLE
    records: Iterator[Record] = (next(each) for each in itertools.cycle(lives))
    for kind, direction, connection, data, done in records:
        at += _STEP_NS
        writer.put(kind, direction, connection, at, data)
        count += done
        if count >= due or count >= messages:
            _wait_for_recorder(journal, bell)
            yield count
            due += _SAMPLE
        if count >= messages:
            break
    writer.put(ChunkKind.END, Direction.TO_AGENT, 0, at + _STEP_NS, b"")
    writer.close()


def _wait_for_recorder(journal: Path, bell: int) -> None:
    """Wait until the recorder has deleted all but the newest segments."""
    os.write(bell, b"!")
    while len(segment_numbers(journal)) > _MOST_SEGMENTS:
        time.sleep(0.1)


def main() -> None:
    """Measure in a folder that is deleted afterwards."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory(prefix="a2a-growth-") as name, cost.state_in(Path(name)):
        sys.exit(not measure(Path(name), messages))


if __name__ == "__main__":
    main()
