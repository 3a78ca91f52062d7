"""The views `findings` and `artifacts`, for readers of the file with any SQLite tool."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from a2a_proxy.model.values import ArtifactState, Changes, Finding, Severity, Task
from a2a_proxy.recording.cassette.file import read_cassette
from a2a_proxy.recording.write.writer import Writer
from a2a_proxy.rules.define.catalogue import all_rules
from support_recording import facts

ROOT = Path(__file__).parents[3]
START = facts().started
FINDINGS = (
    Finding("A2A-GEN-001", Severity.ERROR, START + 5, "generation 4 is missing", 1, 2, 3, "t1"),
    Finding("A2A-SSE-010", Severity.WARNING, START + 6, "no blank line", 1, 2),
    Finding("UNDECODABLE", Severity.INFO, START + 7, "not HTTP", 9, confidence="low"),
)
TASK = Task(
    agent="a",
    task_id="t1",
    first=START + 1,
    last=START + 9,
    artifacts=(
        ArtifactState(
            "r",
            "result",
            chunks=2,
            parts=3,
            size=40,
            complete=True,
            first=START + 2,
            last=START + 3,
        ),
    ),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "r.a2a.db"
    writer = Writer(path, facts())
    writer.write([], FINDINGS, Changes([], [], [TASK]))
    writer.close()
    return path


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def test_findings_name_rule_title_severity_and_place(path: Path):
    """The place is written as the commands take it; decoders' findings have no title."""
    rows = query(
        path,
        "SELECT rule, title, severity, confidence, at, "
        "place, connection, task_id, summary FROM findings",
    )
    assert rows == [
        (
            "A2A-GEN-001",
            "Generation gap",
            "error",
            "high",
            START + 5,
            "1:2.3",
            1,
            "t1",
            "generation 4 is missing",
        ),
        (
            "A2A-SSE-010",
            all_rules()["A2A-SSE-010"].title,
            "warning",
            "high",
            START + 6,
            "1:2",
            1,
            None,
            "no blank line",
        ),
        ("UNDECODABLE", None, "info", "low", START + 7, None, 9, None, "not HTTP"),
    ]


def test_artifacts_name_their_task(path: Path):
    """One row for each artifact of each task."""
    rows = query(
        path,
        "SELECT agent, task_id, artifact_id, name, chunks, "
        "parts, size, complete, first, last FROM artifacts",
    )
    assert rows == [("a", "t1", "r", "result", 2, 3, 40, 1, START + 2, START + 3)]


def test_the_queries_of_the_manual_run(tmp_path: Path):
    """Each query under "Five queries" gives rows for a recording with findings and artifacts."""
    page = (ROOT / "proxy/a2a_proxy/manual/recordings.md").read_text()
    section = page.partition("### Five queries")[2].partition("\n## ")[0]
    queries = re.findall(r"```sql\n(.*?)```", section, re.DOTALL)
    assert len(queries) == 5
    path = tmp_path / "r.a2a.db"
    read_cassette(ROOT / "recordings/generations.a2a.jsonl", path)
    for sql in queries:
        assert query(path, sql), sql
