"""The archive with a million frames: ten proxies write to an S3 server (moto) at the same time, one
of them is killed and restarted, DuckDB searches for gaps, one task is fetched.

    .venv/bin/python tests/peers/setup.py --soak  # once: it makes moto's environment, among others
    .venv/bin/python tests/benchmarks/lake.py

A `moto_server` that is on PATH is used as it is.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import duckdb
import msgspec
import pyarrow.dataset as ds
import pyarrow.fs
from processes import free_port

from a2a_proxy.archive import segment
from a2a_proxy.archive.restore import restore_recording
from a2a_proxy.archive.search import SegmentQuery, find_segments
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.archive.upload import SessionUpload
from a2a_proxy.model.values import Changes, Connection, Finding, Severity, Task
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionFacts
from a2a_proxy.recording.write.writer import Writer
from support_cli import until
from support_inspect import exchange
from support_recording import event_frames

MOTO = Path(__file__).resolve().parents[2] / ".peers" / "moto"
BUCKET, URL = "a2a", "s3://a2a/fleet"
HOUR = 3_600_000_000_000
_PER_CALL = 20
_ROTATED = 20_000
"""Frames of a segment in this benchmark: as many as rotation by age gives."""
_QUIET = 20 * 60_000_000_000
"""ns after the beginning of the last hour in which no gap is planted: the maximum time until the
query starts."""
_GAPS = """SELECT agent, count(DISTINCT task_id) AS tasks FROM facts
  WHERE kind = 'finding' AND rule = 'A2A-GEN-001'
  AND time > (now() AT TIME ZONE 'UTC') - INTERVAL 1 HOUR GROUP BY agent ORDER BY agent"""


def recorded(path: Path, number: int, frames: int, now: int) -> int:
    """Write the recording of one proxy over the last three hours; return the number of its tasks
    with a gap in the last one."""
    started = now - 3 * HOUR
    agent = f"agent-{number}:8000"
    facts = SessionFacts(
        uuid=str(uuid.UUID(int=number << 96 | number)), tool="a2a-proxy", started=started
    )
    writer = Writer(path, facts)
    gaps = 0
    for first in range(0, frames, 5000):
        made, calls, tasks, found = [], [], [], []
        for place, frame in enumerate(
            event_frames(5000, per_exchange=_PER_CALL, seed=number << 20 | first), first
        ):
            call, seq = place // _PER_CALL + 1, place % _PER_CALL
            at = started + 3 * HOUR * (place + 1) // (frames + 1)
            made.append(
                msgspec.structs.replace(
                    frame, exchange=call, connection=1, seq=seq, began=at, at=at
                )
            )
            if seq == _PER_CALL - 1:
                calls.append(
                    exchange(
                        call,
                        started=at,
                        closed=at,
                        task_id=frame.task_id,
                        context_id=frame.context_id,
                    )
                )
                tasks.append(
                    Task(
                        agent, frame.task_id, frame.context_id, first=at, last=at, exchanges=(call,)
                    )
                )
                if call % 10 == 0 and not now - HOUR <= at < now - HOUR + _QUIET:
                    found.append(_gap(at, call, seq, frame.task_id))
                    gaps += at > now - HOUR
        connection = Connection(1, "client", "listen", agent, started)
        writer.write(made, found, Changes([connection], calls, tasks))
    writer.finish(now)
    return gaps


def _gap(at: int, call: int, seq: int, task: str) -> Finding:
    return Finding(
        "A2A-GEN-001",
        Severity.ERROR,
        at,
        "generation 3 is missing: 2 is followed by 4 (agent)",
        1,
        call,
        seq,
        task,
    )


def put(path: str, number: str) -> None:
    """Archive a recording, in the process of a proxy."""
    segment.MAX_ROWS = _ROTATED
    place = ArchiveStore(URL)
    with Recording(path) as recording:
        SessionUpload(
            place, f"proxy-{number}", recording, recording.read_sessions()[0]
        ).put_segments(include_rest=True)
    print(place.traffic.puts)


def started(path: Path, number: int) -> subprocess.Popen[str]:
    """Start the process of a proxy."""
    command = [sys.executable, __file__, "--put", str(path), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def objects() -> dict[str, tuple[int, str]]:
    """Return every object with its size and its ETag."""
    import obstore

    store = ArchiveStore(URL)._store
    return {
        each["path"]: (each["size"], str(each["e_tag"]))
        for page in obstore.list(store)
        for each in page
    }


def settled(of: str) -> set[str]:
    """Return the keys of a killed proxy after a moment, because requests on their way may still
    reach the storage."""
    before: set[str] | None = None
    while (now := {key for key in objects() if of in key}) != before:
        before = now
        time.sleep(1)
    return now


def main() -> None:
    """Run the benchmark."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--proxies", type=int, default=10)
    parser.add_argument("--frames", type=int, default=100_000, help="of each proxy")
    parser.add_argument("--put", nargs=2, help=argparse.SUPPRESS)
    typed = parser.parse_args()
    if typed.put:
        put(*typed.put)
        return
    with tempfile.TemporaryDirectory() as folder, _Moto():
        measure(Path(folder), typed.proxies, typed.frames)


def measure(folder: Path, proxies: int, frames: int) -> None:
    """Measure with the server in the environment variables."""
    now = time.time_ns()
    began = time.monotonic()
    paths = {number: folder / f"{number}.a2a.db" for number in range(1, proxies + 1)}
    gaps = {
        f"agent-{number}:8000": recorded(path, number, frames, now)
        for number, path in paths.items()
    }
    print(f"{proxies} recordings of {frames:,} frames made in {time.monotonic() - began:.1f} s")

    began = time.monotonic()
    running = {number: started(path, number) for number, path in paths.items()}
    until(
        lambda: any("proxy=proxy-1/" in key and key.startswith("frames") for key in objects()), 600
    )
    running[1].send_signal(signal.SIGKILL)
    running[1].wait()
    killed = settled("proxy=proxy-1/")
    again = started(paths[1], 1)
    puts = sum(
        int(each.communicate()[0] or 0)
        for number, each in [*running.items(), (0, again)]
        if number != 1
    )
    took = time.monotonic() - began
    there = objects()
    size = sum(size for size, _ in there.values())
    each = f"{size / 1e6:.1f} MB, {size / proxies / frames:.1f} B/frame"
    rate = f"{proxies * frames / took:,.0f} frames/s"
    print(f"written at once in {took:.1f} s, {rate}: {len(there)} objects, {each}")
    print(
        f"proxy-1 was killed when {len(killed)} objects were there; "
        f"the others and its second try made {puts} PUTs"
    )
    assert puts + len(killed) == len(there)

    began = time.monotonic()
    ends = [started(path, number) for number, path in paths.items()]
    puts = sum(int(each.communicate()[0]) for each in ends)
    assert objects() == there
    print(
        f"all ten once more: {puts} PUTs, every key, size and ETag as before "
        f"({time.monotonic() - began:.1f} s)",
        flush=True,
    )
    asked(gaps, proxies * frames)
    fetched(folder)


def asked(gaps: dict[str, int], frames: int) -> None:
    """Query the bucket with DuckDB and Arrow's S3 client."""
    endpoint = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
    s3 = pyarrow.fs.S3FileSystem(
        access_key="x", secret_key="y", endpoint_override=endpoint, scheme="http"
    )
    for table, query in (("facts", _GAPS), ("frames", "SELECT count(*) FROM frames")):
        took, rows = [], []
        for _ in range(3):
            began = time.perf_counter()
            db = duckdb.connect()
            db.register(
                table, ds.dataset(f"{BUCKET}/fleet/{table}", filesystem=s3, partitioning="hive")
            )
            rows = db.execute(query).fetchall()
            took.append(f"{time.perf_counter() - began:.2f} s")
        print(
            f"{' '.join(query.split())}\n  {', '.join(took)}: "
            f"{rows[:3]}{' ...' if len(rows) > 3 else ''}"
        )
        if table == "facts":
            assert dict(rows) == gaps
        else:
            assert rows == [(frames,)]


def fetched(folder: Path) -> None:
    """Fetch one task, with and without a time."""
    with Recording(folder / "2.a2a.db") as recording:
        task = list(recording.read_tasks())[-7].task
    for name, since in (("of all time", 0), ("of the last hour", time.time_ns() - HOUR)):
        place = ArchiveStore(URL)
        wanted = SegmentQuery(since=since, idents=(("task", task.task_id),))
        began = time.perf_counter()
        brought = restore_recording(place, wanted, "it", folder / f"{since}.a2a.db")
        took = time.perf_counter() - began
        gets, got = place.traffic.gets, place.traffic.got
        print(
            f"a task {name}: {brought.frames} frames in "
            f"{took:.2f} s, {gets} GETs, {got / 1e3:.0f} kB"
        )
        assert brought.frames == _PER_CALL
    print(
        f"  of {len(find_segments(ArchiveStore(URL), SegmentQuery()))} segments it may be in "
        f"{len(find_segments(ArchiveStore(URL), wanted))}"
    )


class _Moto:
    """moto's S3 server, and the environment that selects it."""

    def __enter__(self) -> None:
        program = shutil.which("moto_server") or str(MOTO / "bin" / "moto_server")
        if not Path(program).exists():
            sys.exit("moto is missing: run `python tests/peers/setup.py --soak`")
        port = free_port()
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [program, "-H", "127.0.0.1", "-p", str(port)], stdout=null, stderr=null
        )
        endpoint = f"http://127.0.0.1:{port}"
        os.environ |= {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "y",
        }
        os.environ["AWS_REGION"] = "us-east-1"
        until(lambda: _made(f"{endpoint}/{BUCKET}"), 60)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


def _made(url: str) -> bool:
    """Create the bucket; return whether the server did so."""
    key = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request"
    try:
        urllib.request.urlopen(
            urllib.request.Request(url, method="PUT", headers={"Authorization": key})
        )
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
