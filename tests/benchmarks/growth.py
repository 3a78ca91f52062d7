"""The memory of a recorder over a long session: `growth.py [MESSAGES]`, 10,000,000 A2A messages by
default.

The journal is written as fast as the recorder reads it, so that it needs the space of a few
segments. Prints the resident memory after each quarter of a million messages; ends with 1 if a
message is missing, if the memory exceeds the limit, or if it grows after the first million. With
`--open`, calls create tasks that never end as well, 9 in 1,000 messages, and the memory grows with
these tasks, up to the number that a recorder keeps.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import cost
from english import English
from journals import STARTED, Record, Segments, life, source
from processes import memory_mib

from a2a_proxy.capture.file_layout import SessionFile, write_session
from a2a_proxy.capture.record_format import segment_numbers
from a2a_proxy.model.wire import ChunkKind, Direction

LIMIT_MIB = 250.0
MOST_GROWTH = 1.25
"""Largest memory after the first million messages, times that before."""
_STEADY = 1_000_000
_SAMPLE = 250_000
"""Messages between two samples."""
_STEP_NS = 250_000
"""Time between two records of six messages on average: 25,000 messages a second, as fast as a
recorder reads them, so that what it keeps for some seconds is as much as in real traffic."""
_MOST_SEGMENTS = 3
"""Segments that may wait for the recorder."""


def measure(folder: Path, messages: int, *, with_open_tasks: bool) -> bool:
    """Run one recorder over that many messages; return whether its memory stayed within the
    limits."""
    recording, journal = folder / "growth.a2a.db", folder / "journal"
    journal.mkdir(mode=0o700)
    write_session(
        journal, SessionFile(str(recording), os.getpid(), STARTED, "growth", ("a2a-proxy",))
    )
    wake, bell = os.pipe()
    process = subprocess.Popen(
        [sys.executable, cost.__file__, "burst", str(journal), str(wake)], pass_fds=(wake,)
    )
    os.close(wake)
    early = late = 0.0
    for count in _write(journal, messages, bell, with_open_tasks=with_open_tasks):
        size = memory_mib(process.pid)[0]
        print(f"{count:>12,} messages  {size:7.1f} MiB", flush=True)
        early, late = (
            (max(early, size), late) if count <= _STEADY + _SAMPLE else (early, max(late, size))
        )
    os.close(bell)
    _, peak = cost.ended(process)
    with sqlite3.connect(f"file:{recording}?mode=ro", uri=True) as db:
        stored = db.execute(
            "SELECT count(*) FROM frame WHERE shape IN "
            "(SELECT id FROM shape WHERE kind IN (1, 2, 3, 4))"
        ).fetchone()
        opened = db.execute("SELECT count(*) FROM task WHERE state IN (1, 2)").fetchone()[0]
    print(
        f"{stored[0]:,} messages stored, {opened:,} open tasks; peak of the recorder {peak:.1f} MiB"
    )
    is_flat = with_open_tasks or late <= MOST_GROWTH * early
    if late:
        print(
            f"after the first million messages {late:.1f} MiB, "
            f"{late / early:.2f} times as much as before"
        )
    return stored[0] >= messages and peak <= LIMIT_MIB and is_flat


def _write(journal: Path, messages: int, bell: int, *, with_open_tasks: bool) -> Iterator[int]:
    """Write the journal; yield the number of messages written so far after each sample's."""
    english, numbers = English(), itertools.count(1)
    kinds = range(18 if with_open_tasks else 16)
    lives = [life(partial(source, kind, english), numbers, 8) for kind in kinds]
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
    parser = argparse.ArgumentParser(prog="growth.py", description=__doc__)
    parser.add_argument(
        "messages", nargs="?", type=int, default=10_000_000, metavar="MESSAGES", help="10000000"
    )
    parser.add_argument("--open", action="store_true", help="some tasks never end")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="a2a-growth-") as name, cost.state_in(Path(name)):
        sys.exit(not measure(Path(name), asked.messages, with_open_tasks=asked.open))


if __name__ == "__main__":
    main()
