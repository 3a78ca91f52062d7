"""Frames in Parquet are read back unchanged, also by other readers."""

from pathlib import Path

import duckdb
from hypothesis import given, settings

from a2a_proxy.archive.rows import FrameContext, call_cells, frames_table, read_frames, write_frames
from a2a_proxy.archive.schema import FACT_COLUMNS, FRAME_COLUMNS, trace_id_of
from a2a_proxy.model.values import Binding, Exchange, Frame
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.rows import FrameRow
from support_recording import frames

RECORDINGS = Path(__file__).parents[2] / "recordings"
CALL = Exchange(
    id=1, connection=1, stream=1, binding=Binding.GRPC, started=5, task_id="T", context_id="\ud800"
)


@settings(max_examples=25)
@given(frames())
def test_any_frame_comes_back_as_it_was(frame: Frame) -> None:
    table = frames_table([(FrameRow(5, 1, frame), FrameContext("run", call_cells(CALL)))])

    assert list(read_frames(table)) == [("run", 5, frame)]


def test_a_frame_without_a_task_has_the_task_of_its_exchange() -> None:
    """The request that begins a task cannot name it."""
    frame = Frame(1, 1, 0, direction=0, kind=1, began=1, at=1, start=0, end=1)  # type: ignore[arg-type]
    [row] = (
        frames_table([(FrameRow(5, 1, frame), FrameContext("run", call_cells(CALL)))])
        .select(["task_id", "named"])
        .to_pylist()
    )

    assert row == {"task_id": "T", "named": None}


def test_every_column_has_a_description() -> None:
    assert all(column.meaning.endswith(".") for column in (*FRAME_COLUMNS, *FACT_COLUMNS))
    assert len({column.name for column in FRAME_COLUMNS}) == len(FRAME_COLUMNS)
    assert len({column.name for column in FACT_COLUMNS}) == len(FACT_COLUMNS)


def test_trace_id_is_read_from_the_traceparent() -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    assert trace_id_of(f"00-{trace.upper()}-00f067aa0ba902b7-01") == trace
    assert (
        trace_id_of("00-4bf9-00f067aa0ba902b7-01")
        == trace_id_of("nonsense")
        == trace_id_of("")
        == ""
    )


def test_duckdb_reads_a_recording(tmp_path: Path) -> None:
    """Tasks with gaps by agent, from the one file."""
    file = tmp_path / "frames.parquet"
    with (
        open_recording_or_cassette(RECORDINGS / "lossy.a2a.jsonl") as recording,
        file.open("wb") as stream,
    ):
        written = write_frames(recording, recording.frames_after(0), stream)
        counts = recording.count_rows()
        gaps = {
            row.finding.task_id
            for row in recording.read_findings()
            if row.finding.rule == "A2A-GEN-001"
        }

    asked = (
        "SELECT agent, count(DISTINCT task_id) FROM "
        "(SELECT agent, task_id, unnest(findings) AS found FROM "
        f"'{file}') WHERE found.rule = 'A2A-GEN-001' GROUP BY agent"
    )
    [(rows,)] = duckdb.sql(f"SELECT count(*) FROM '{file}'").fetchall()
    assert rows == written == counts.frames
    assert [tasks for _, tasks in duckdb.sql(asked).fetchall()] == [len(gaps)] != [0]
