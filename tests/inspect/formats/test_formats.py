"""The other formats: each has the facts of the selected exchanges, and nothing that was
redacted."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from a2a_inspect.commands.export import ExportOptions, export_recording
from a2a_inspect.data.redacted_view import RedactionOptions
from a2a_inspect.formats.mermaid import escape_heading
from a2a_inspect.formats.registry import FORMATS
from a2a_proxy.installation import install_hint
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.cassette.file import (
    open_recording_or_cassette,
    read_cassette,
    write_cassette,
)
from a2a_proxy.recording.read.reader import Recording
from support_hostile import evil_texts

RECORDINGS = Path(__file__).parents[3] / "recordings"
DEMO, LOSSY = RECORDINGS / "demo.a2a.jsonl", RECORDINGS / "lossy.a2a.jsonl"
WORD = "Lisbon"
"""Stands in a message of the demo."""


def exported(tmp_path: Path, form: str, what: ExportOptions) -> bytes:
    target = tmp_path / f"x{FORMATS[form].suffix}"
    export_recording(what, target, form)
    assert target.stat().st_mode & 0o777 == 0o600
    return target.read_bytes()


@pytest.mark.parametrize("form", ["jsonl", "har", "mermaid", "parquet"])
def test_redacted_text_is_in_no_format(form: str, tmp_path: Path) -> None:
    """The policy applies to each; without it the word is there, so that this means something."""
    assert content_of(form, exported(tmp_path, form, ExportOptions(DEMO))).count(WORD)
    (tmp_path / f"x{FORMATS[form].suffix}").unlink()
    assert not content_of(
        form,
        exported(
            tmp_path, form, ExportOptions(DEMO, redaction=RedactionOptions(("regex:Lisb.n",)))
        ),
    ).count(WORD)


def content_of(form: str, data: bytes) -> str:
    """A table as text: it is compressed."""
    if form == "parquet":
        return str(pq.read_table(io.BytesIO(data)).column("payload").to_pylist())
    return data.decode()


def test_jsonl_loses_nothing_in_a_database_and_back(tmp_path: Path) -> None:
    """Export, import, export: the same bytes; the recording between has the same facts and
    payloads."""
    first = exported(tmp_path, "jsonl", ExportOptions(LOSSY))
    read_cassette(tmp_path / "x.a2a.jsonl", tmp_path / "r.a2a.db")
    with (
        Recording(tmp_path / "r.a2a.db") as recording,
        open_recording_or_cassette(LOSSY) as original,
    ):
        assert list(recording.read_exchanges()) == list(original.read_exchanges())
        assert [row.frame for row in recording.frames_after(0)] == [
            row.frame for row in original.frames_after(0)
        ]
        assert list(recording.read_tasks()) == list(original.read_tasks())
        assert list(recording.read_findings()) == list(original.read_findings())
        write_cassette(recording, tmp_path / "again.a2a.jsonl")
    assert (tmp_path / "again.a2a.jsonl").read_bytes() == first == LOSSY.read_bytes()


def test_a_diagram_for_each_task(tmp_path: Path) -> None:
    """In fences that Markdown readers draw; with a filter only the tasks that match, each whole."""
    document = exported(tmp_path, "mermaid", ExportOptions(DEMO)).decode()
    with open_recording_or_cassette(DEMO) as recording:
        tasks = [row.task.task_id for row in recording.read_tasks() if row.task.exchanges]
    assert (
        document.count("```mermaid\nsequenceDiagram\n")
        == document.count("\n## ") + 1
        == len(tasks)
        > 1
    )
    (tmp_path / "x.md").unlink()
    some = exported(tmp_path, "mermaid", ExportOptions(DEMO, f"task:{tasks[0]}")).decode()
    assert some.count("```mermaid") == 1
    assert document.startswith(some.rstrip("\n"))


def test_a_heading_is_no_markup() -> None:
    """What a peer sent as a path may look like anything."""
    assert escape_heading("GET /<script>[x](y)`") == r"GET /\<script\>\[x\](y)\`"


@pytest.mark.parametrize("form", ["har", "mermaid"])
def test_lone_surrogates_keep_documents_valid(form: str, tmp_path: Path) -> None:
    """Readers of JSON and Markdown want Unicode, and a peer may send the half of a pair."""
    document = exported(tmp_path, form, ExportOptions(evil_texts(tmp_path))).decode()
    if form == "har":
        json.dumps(json.loads(document), ensure_ascii=False).encode()


def test_parquet_has_one_row_per_frame(tmp_path: Path) -> None:
    """With the columns of the archive, for the selected exchanges."""
    table = pq.read_table(io.BytesIO(exported(tmp_path, "parquet", ExportOptions(DEMO))))
    with open_recording_or_cassette(DEMO) as recording:
        assert table.num_rows == recording.count_rows().frames
        assert table.column("payload").to_pylist() == [
            row.frame.payload for row in recording.frames_after(0)
        ]
    (tmp_path / "x.parquet").unlink()
    some = pq.read_table(
        io.BytesIO(exported(tmp_path, "parquet", ExportOptions(DEMO, "op:SendMessage")))
    )
    assert set(some.column("operation").to_pylist()) == {"SendMessage"}


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One line that says what to install, and no file."""
    for name in ("pyarrow", "a2a_proxy.archive.rows", "a2a_proxy.archive.schema"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="Parquet needs the extra lake: pyarrow") as error:
        export_recording(ExportOptions(DEMO), tmp_path / "x.parquet", "parquet")
    assert error.value.hint == install_hint("lake")
    assert list(tmp_path.iterdir()) == []
