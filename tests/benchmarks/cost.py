"""The cost of recording: a recorder process on one core over a generated journal, and one commit
per frame."""

from __future__ import annotations

import contextlib
import cProfile
import io
import json
import os
import pstats
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from journals import STARTED, Made, session
from processes import memory_mib

CORE = max(os.sched_getaffinity(0))


class Cost(msgspec.Struct, frozen=True):
    """One run of the recorder."""

    messages: int
    """A2A messages, the unit of rates."""
    frames: int
    """Rows of `frame`: the messages, the ends of exchanges and the settings of connections."""
    cpu_seconds: float
    """Processor time of the process, including its start."""
    start_seconds: float
    """The part of it that a process without work needs."""
    wall_seconds: float
    peak_mib: float
    file_bytes: int
    payload_bytes: int
    """Sum of the payload sizes before compression."""

    @property
    def per_second(self) -> float:
        """Return the messages decoded, stored and indexed per second of processor time."""
        return self.messages / (self.cpu_seconds - self.start_seconds)

    @property
    def bytes_per_frame(self) -> float:
        """Return the bytes of the file, with all tables and indexes, per A2A message."""
        return self.file_bytes / self.messages


@contextlib.contextmanager
def state_in(folder: Path) -> Iterator[None]:
    """Use a state directory (with the redaction key) in `folder`."""
    old = os.environ.get("A2A_PROXY_STATE")
    os.environ["A2A_PROXY_STATE"] = str(folder / "state")
    try:
        yield
    finally:
        if old is None:
            del os.environ["A2A_PROXY_STATE"]
        else:
            os.environ["A2A_PROXY_STATE"] = old


def burst(made: Made, folder: Path, start_seconds: float = 0.0, *, rules: bool = True) -> Cost:
    """Run a recorder process, pinned to one core, from the first record to the end; without `rules`
    it checks no rules."""
    return recorded(made, folder, start_seconds, rules=rules)[0]


def recorded(
    made: Made, folder: Path, start_seconds: float = 0.0, *, rules: bool = True
) -> tuple[Cost, Path]:
    """Return the same and the recording."""
    name = f"burst-{made.messages}-{time.monotonic_ns()}"
    recording = folder / f"{name}.a2a.db"
    session(made, folder / name, recording)
    wake, wake_write = os.pipe()
    os.close(wake_write)  # as if the relay had ended: the recorder reads to the end and finishes
    command = [
        sys.executable,
        __file__,
        "burst" if rules else "unjudged",
        str(folder / name),
        str(wake),
    ]
    began = time.monotonic()
    process = subprocess.Popen(command, pass_fds=(wake,))
    os.sched_setaffinity(process.pid, {CORE})
    os.close(wake)
    return _cost(recording, made, began, start_seconds, *ended(process)), recording


def trickle(made: Made, folder: Path) -> Cost:
    """Measure one transaction per frame, as for frames that arrive one by one, in a process of its
    own."""
    recording = folder / f"trickle-{made.messages}.a2a.db"
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, __file__, "trickle", str(made.folder), str(recording)]
    )
    return _cost(recording, made, began, 0.0, *ended(process))


def ended(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Wait for its end; return the processor seconds and the peak of its resident memory in MiB,
    sampled while it runs."""
    peak = 0.0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        with contextlib.suppress(OSError):
            peak = max(peak, memory_mib(process.pid)[1])
        time.sleep(0.02)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, peak


def _cost(
    recording: Path, made: Made, began: float, start_seconds: float, cpu: float, peak: float
) -> Cost:
    wall = time.monotonic() - began
    with contextlib.closing(sqlite3.connect(f"file:{recording}?mode=ro", uri=True)) as db:
        frames, payload, wrong = db.execute(
            "SELECT count(*), sum(f.size), sum(s.kind = 10) "
            "FROM frame f JOIN shape s ON s.id = f.shape"
        ).fetchone()
        complete = db.execute("SELECT complete FROM session").fetchone()[0]
        messages = db.execute(
            "SELECT count(*) FROM frame f JOIN shape s ON s.id = f.shape "
            "WHERE s.kind IN (1, 2, 3, 4)"
        ).fetchone()[0]
    if messages != made.messages or wrong:
        raise RuntimeError(
            f"{made.messages} messages in the journal, "
            f"{messages} recorded, {wrong} undecodable, {complete}"
        )
    return Cost(messages, frames, cpu, start_seconds, wall, peak, recording.stat().st_size, payload)


def _trickle(journal: Path, recording: Path) -> None:
    """Commit each chunk that yields rows."""
    from a2a_proxy.capture.journal_reader import JournalReader
    from a2a_proxy.model.values import Finding, Frame, Observation
    from a2a_proxy.observer import Observer
    from a2a_proxy.recording.read.rows import SessionFacts
    from a2a_proxy.recording.write.writer import Writer
    from a2a_proxy.redaction import Redactor

    observer, reader = Observer(Redactor(b"k" * 32)), JournalReader(journal)
    writer = Writer(recording, SessionFacts(uuid="benchmark", tool="benchmark", started=STARTED))
    at = STARTED
    while chunks := reader.read():
        for chunk in chunks:
            out: list[Observation] = []
            observer.feed(chunk, out)
            at = chunk.at
            frames = [one for one in out if type(one) is Frame]
            if frames:
                findings = [one for one in out if type(one) is Finding]
                writer.write(frames, findings, observer.pop_changes(), reader.position)
    writer.write([], [], observer.pop_changes(), reader.position)
    writer.finish(at)


def _burst(folder: Path, wake: int) -> None:
    """Run a recorder process at normal priority and without output."""
    from a2a_proxy.recorder.__main__ import reduce_collections
    from a2a_proxy.recorder.process import record_session
    from a2a_proxy.recorder.status_writer import StatusWriter

    reduce_collections()
    record_session(folder, wake, StatusWriter(-1))


def without_rules() -> None:
    """Disable the rules and their state in the observers of this process."""
    from a2a_proxy import observer

    class Silent:
        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *_: None

    observer.Engine = Silent  # type: ignore[assignment,misc]


def profile(made: Made, folder: Path, rows: int = 40) -> str:
    """Return the most expensive functions of the recorder, with and without their callees; us per
    A2A message."""
    name = f"profile-{time.monotonic_ns()}"
    session(made, folder / name, folder / f"{name}.a2a.db")
    wake, wake_write = os.pipe()
    os.close(wake_write)
    profiler = cProfile.Profile()
    profiler.runcall(_burst, folder / name, wake)
    os.close(wake)
    stats = pstats.Stats(profiler, stream=io.StringIO())
    return _table(stats, made.messages, rows)


def _table(stats: pstats.Stats, messages: int, rows: int) -> str:
    lines = [
        (
            f"{'calls':>9} {'own us':>8} {'all us':>8}  per A2A message, "
            "under cProfile (which slows small functions most)"
        )
    ]
    entries = [
        (own, total, calls, where) for where, (_, calls, own, total, _) in stats.stats.items()
    ]  # type: ignore[attr-defined]
    for own, total, calls, (file, line, function) in sorted(entries, reverse=True)[:rows]:
        place = "" if file == "~" else f"{'/'.join(Path(file).parts[-2:])}:{line} "
        lines.append(
            f"{calls / messages:9.2f} {own / messages * 1e6:8.2f} "
            f"{total / messages * 1e6:8.2f}  {place}{function}"
        )
    return "\n".join(lines)


def report(cost: Cost) -> dict[str, float]:
    """Return the values for JSON."""
    values = json.loads(msgspec.json.encode(cost))
    return {**values, "per_second": cost.per_second, "bytes_per_frame": cost.bytes_per_frame}


if __name__ == "__main__":
    if sys.argv[1] in ("burst", "unjudged"):
        if sys.argv[1] == "unjudged":
            without_rules()
        _burst(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        _trickle(Path(sys.argv[2]), Path(sys.argv[3]))
