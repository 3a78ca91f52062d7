"""The archive, and a Parquet export, in the engines that the manual names: its own queries, and
every row in each."""

from __future__ import annotations

import json
import re
import subprocess
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from a2a_inspect.commands.export import ExportOptions, export_recording
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.archive.upload import SessionUpload
from a2a_proxy.model.values import Changes, Connection, Finding, Severity
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.writer import Writer
from support_inspect import exchange, request
from support_peers import command, require_peers
from support_recording import facts

MINUTE = 60_000_000_000
GAPS = {"one:8000": 2, "two:8000": 1}
"""Agent -> tasks with a gap in the last hour; each had one before, and a call without any."""
AGO = {"one:8000": (200, 30, 20, 0), "two:8000": (300, 10, 0)}
"""For each its calls: minutes since the gap, 0 where there is none."""
SECONDS = 600
COLUMNS = (
    "session, frame, {}, agent, task_id, context_id, "
    "kind, state, size, octet_length(payload), proxy"
)
FACTS = "session, kind, number, {}, agent, task_id, rule, summary"

Rows = list[list[Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of two proxies in `a2a`, and `frames.parquet` of the first one."""
    top = tmp_path_factory.mktemp("engines")
    (top / "a2a").mkdir()
    now = time.time_ns()
    for number, (agent, ago) in enumerate(AGO.items(), 1):
        recorded(top / f"{number}.a2a.db", number, agent, [now - each * MINUTE for each in ago])
        with Recording(top / f"{number}.a2a.db") as recording:
            SessionUpload(
                ArchiveStore((top / "a2a").as_uri()),
                f"p{number}",
                recording,
                recording.read_sessions()[0],
            ).put_segments(include_rest=True)
    export_recording(ExportOptions(top / "1.a2a.db"), top / "frames.parquet", "parquet")
    return top


def recorded(path: Path, number: int, agent: str, times: list[int]) -> None:
    """Calls that began at these times, ns, each of a task of its own; in all but the last a gap is
    found."""
    writer = Writer(path, facts(number, started=min(times), upstreams=(agent,)))
    calls, frames, found = [], [], []
    for call, at in enumerate(times, 1):
        task = f"task-{number}-{call}"
        calls.append(exchange(call, started=at, closed=at + 1, task_id=task, agent=agent))
        frames.append(
            msgspec.structs.replace(
                request(call, f"caf\u00e9 {call}"), began=at, at=at + call, task_id=task
            )
        )
        if call < len(times):
            found.append(Finding("A2A-GEN-001", Severity.ERROR, at, "4 after 2", 1, call, 0, task))
    writer.write(
        frames, found, Changes([Connection(1, "client", "listen", agent, min(times))], calls, [])
    )
    writer.finish(max(times))


def queries(engine: str, folder: Path) -> list[str]:
    """The manual's of this engine for this folder, and two that ask for the rows of both tables."""
    page = (files("a2a_proxy") / "manual" / "archive.md").read_text(encoding="utf-8")
    mark = {"duckdb": "duckdb", "chdb": "uniqExact", "spark": "parquet.`"}
    blocks = [
        each
        for each in re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
        if kind_of(each, mark) == engine
    ]
    assert len(blocks) == 2
    statements = [each.strip() for block in blocks for each in block.split(";") if each.strip()]
    statements = [
        each for each in statements if not each.startswith("CREATE SECRET")
    ]  # who may read is no matter of a folder
    time_column = {
        "duckdb": "epoch_ns(time)",
        "chdb": "toUnixTimestamp64Nano(time)",
        "spark": "time",
    }[engine]
    for table, columns in (("frames", COLUMNS), ("facts", FACTS)):
        statements.append(f"SELECT {columns.format(time_column)} FROM {source(engine, table)}")
    return [placed(each, folder) for each in statements]


def kind_of(block: str, mark: dict[str, str]) -> str:
    return next((engine for engine, word in mark.items() if word in block), "duckdb")


def source(engine: str, table: str) -> str:
    return {
        "duckdb": (
            f"read_parquet('s3://traffic/a2a/{table}/*/*/*.parquet', hive_partitioning = true)"
        ),
        "chdb": f"s3('https://traffic.s3.eu-central-1.amazonaws.com/a2a/{table}/*/*/*.parquet')",
        "spark": f"parquet.`s3a://traffic/a2a/{table}`",
    }[engine]


def placed(query: str, folder: Path) -> str:
    """The query of what is in this folder instead."""
    for there, here in (
        ("s3('https://traffic.s3.eu-central-1.amazonaws.com", f"file('{folder}"),
        ("s3a://traffic", folder.as_uri()),
        ("s3://traffic", str(folder)),
        ("parquet.`frames", f"parquet.`{folder.as_uri()}/frames"),
        ("'frames", f"'{folder}/frames"),
    ):
        query = query.replace(there, here)
    return query


def asked(engine: str, folder: Path) -> list[Rows]:
    """What it says to each query that is no setting."""
    statements = queries(engine, folder)
    if engine == "duckdb":
        with duckdb.connect() as db:
            rows = [[list(row) for row in db.execute(query).fetchall()] for query in statements]
    else:
        done = subprocess.run(
            command("rows", engine),
            input=json.dumps(statements),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            cwd=folder,  # Spark makes one of its own where it is
        )
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout.splitlines()[-1])
    return [
        sorted(some, key=str)
        for query, some in zip(statements, rows, strict=True)
        if query.startswith("SELECT")
    ]


def test_duckdb(folder: Path) -> None:
    gaps, exported, frames, timed = asked("duckdb", folder)
    assert gaps == [list(each) for each in GAPS.items()]
    assert exported == [["one:8000", 3]]
    assert len(frames) == sum(map(len, AGO.values()))
    assert sum(row[1] == "finding" for row in timed) == len(frames) - len(AGO)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["chdb", "spark"])
def test_other_engines_agree_with_duckdb(folder: Path, engine: str) -> None:
    require_peers(engine)
    assert asked(engine, folder) == asked("duckdb", folder)
