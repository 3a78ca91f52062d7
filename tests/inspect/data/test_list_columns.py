"""Columns that a user chooses: their names, and their cells in the samples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.data import list_columns
from a2a_inspect.data.list_columns import ColumnReader, UserColumn, parse_columns
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Exchange, Finding, Severity
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.query.fields import FIELDS
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from support_inspect import changes, exchange, frame, live, request, status, writer
from support_recording import STARTED

SAMPLES = Path(__file__).resolve().parents[3] / "recordings"


def cells(recording: Recording, words: str) -> list[tuple[str, ...]]:
    return ColumnReader(parse_columns(words)).read_cells(
        recording, recording.read_exchanges(headers=False)
    )


@pytest.fixture(scope="module")
def demo() -> Iterator[Recording]:
    with open_recording_or_cassette(SAMPLES / "demo.a2a.jsonl") as recording:
        yield recording


def test_names_of_columns() -> None:
    """Titles of the list, fields, headers, paths; a comma in a path is no separator; each once."""
    assert parse_columns("") == parse_columns(" , ") == ()
    parsed = parse_columns(
        'Time, ttfe,req.header:User-Agent, $.a["b, c"][0] ,ttfe,slow,gap,bookmark, resp.text'
    )
    assert parsed == (
        UserColumn("time", "time"),
        UserColumn("ttfe", "ttfe"),
        UserColumn("req.header:User-Agent", "header", "req", "user-agent"),
        UserColumn('$.a["b, c"][0]', '$.a["b, c"][0]'),
        UserColumn("slow", "dur"),
        UserColumn("gap", "gap"),
        UserColumn("bookmark", "bookmark"),
        UserColumn("resp.text", "text", "resp"),
    )
    titles = [
        "TIME",
        "TTFE",
        "req.user-agent",
        '$.a["b, c"][0]',
        "SLOW",
        "GAP",
        "BOOKMARK",
        "RESP.TEXT",
    ]
    assert [each.title for each in parsed] == titles
    assert [each.is_standard for each in parsed] == [True] + [False] * 7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ttfee", 'ttfee is not a column: unknown field "ttfee"; did you mean "ttfe"?'),
        ("operatoin", 'did you mean "operation"?'),
        ("status:200", "is not a column"),
        ("time,err OR gap", "err OR gap is not a column"),
        ("$.a..b", "$.a..b is not a column: a JSON path needs steps"),
        ("header", "the name of the header is missing"),
        ("header:", "the name of the header is missing"),
        ("req.status", "req.status is not a column"),
        (",".join(f"header:x{n}" for n in range(21)), "21 columns are too many"),
    ],
)
def test_a_wrong_name_is_an_error_with_a_hint(words: str, message: str) -> None:
    """It names the column, and says what a column is."""
    with pytest.raises(UserError) as wrong:
        parse_columns(words)
    assert message in wrong.value.message
    assert wrong.value.hint


def test_every_field_of_the_filters_is_a_column(demo: Recording) -> None:
    """Each can be read for each sample; the manual promises it. `ending` is a standard column."""
    names = [name for name in FIELDS if name not in ("header", "ending")]
    assert list(list_columns._FIELD_VALUES) == names
    for some in (names[:20], names[20:]):
        for name in ("demo", "stdio", "generations", "sdk-0.3-grpc"):
            with open_recording_or_cassette(SAMPLES / f"{name}.a2a.jsonl") as recording:
                rows = cells(recording, ",".join(some))
                assert all(len(row) == len(some) for row in rows)
    sided = [
        f"{side}.{each.name}"
        for each in FIELDS.values()
        if each.sides and each.name != "header"
        for side in ("req", "resp")
    ]
    assert cells(demo, ",".join(sided[:20]))


def test_cells_of_the_demo(demo: Recording) -> None:
    """Of each kind of column: fields of exchanges and of frames, headers of both sides, JSON
    paths."""
    rows = cells(
        demo,
        "op,status,state,ver,dir,part,code,header:content-type,"
        "resp.header:CONTENT-TYPE,rec,err,time",
    )
    first, second, *_ = rows
    assert first[:2] == ("GetAgentCard", "200")
    kinds = ("application/json, text/event-stream", "text/event-stream")
    assert second == (
        *(
            "SendStreamingMessage",
            "200",
            "submitted, working, completed",
            "1.0",
            "to-agent, to-client",
            "text",
            "",
        ),
        *(*kinds, "1", "", ""),
    )
    assert [row[10] for row in rows].count("yes") == 1
    path = "$.result.statusUpdate.status.state"
    assert cells(demo, path)[1] == ("TASK_STATE_WORKING, TASK_STATE_COMPLETED",)
    assert cells(demo, "resp.$.result.task.id")[1] == cells(demo, "$.result.task.id")[1]


def made(path: Path, *calls: Exchange, **more: Any) -> Path:
    recorded = writer(path)
    recorded.write(more.get("frames", []), more.get("findings", []), changes(*calls))
    recorded.close()
    return path


def test_text_findings_and_notes(tmp_path: Path) -> None:
    """The first words; the highest severity; the note of the exchange, not of its frames; nothing
    acts."""
    found = [
        Finding("A2A-SCH-001", Severity.WARNING, STARTED, "no `id`", 1, 1, 0),
        Finding("A2A-GEN-001", Severity.ERROR, STARTED, "4 is missing", 1, 1, 1),
    ]
    path = made(
        tmp_path / "r.db",
        exchange(1),
        frames=[request(1, "Plan \x1b\n a day"), status(1, 1, "Done")],
        findings=found,
    )
    write_note(path, NotePlace(1, 1), 1, text="why?", bookmark=True)
    write_note(path, NotePlace(1, 1, 1), 1, text="of the frame")
    with Recording(path) as recording:
        (row,) = cells(
            recording, "text,resp.text,sev,rule,gap,note,bookmark,$.params.message.parts[*]"
        )
        assert row[:3] == ("Plan \x1b a day", "Done", "error")
        assert row[3:7] == ("A2A-SCH-001, A2A-GEN-001", "yes", "why?", "yes")
        assert json.loads(row[7]) == {"text": "Plan \x1b\n a day"}


def test_a_long_exchange_costs_no_more(tmp_path: Path) -> None:
    """Only its first frames are read, no large payload is decoded, and a cell has a bounded
    length."""
    frames = [
        request(1, "x" * 100_000),
        *(status(1, n, f"event {n} " + "y" * 300) for n in range(1, 200)),
    ]
    with Recording(made(tmp_path / "r.db", exchange(1), frames=frames)) as recording:
        asked: list[str] = []
        recording.db.set_trace_callback(asked.append)
        (row,) = cells(recording, "text,$.result.statusUpdate.status.message.parts[0].text")
        recording.db.set_trace_callback(None)
        assert row[0].startswith("event 1 ")
        assert len(row[1]) <= 200
        assert len(asked) < 80


def test_cells_of_finished_exchanges_are_read_once(tmp_path: Path) -> None:
    """Those of live ones are read again, and so are findings and notes, which come later."""
    recorded = writer(tmp_path / "r.db")
    recorded.write([request(1), request(2)], changes=changes(exchange(1), live(2)))
    columns = ColumnReader(parse_columns("state,rule"))
    with Recording(tmp_path / "r.db") as recording:

        def now() -> list[tuple[str, ...]]:
            return columns.read_cells(recording, recording.read_exchanges(headers=False))

        assert now() == [("", ""), ("", "")]
        found = Finding("A2A-SCH-001", Severity.WARNING, STARTED, "no `id`", 1, 1, 0)
        recorded.write(
            [status(1, 1, "a"), status(2, 1, "a")], [found], changes(exchange(1), live(2))
        )
        assert now() == [("", "A2A-SCH-001"), ("working", "")]
        recorded.close()
    with Recording(tmp_path / "r.db") as again:
        assert columns.read_cells(again, again.read_exchanges()) == [
            ("working", "A2A-SCH-001"),
            ("working", ""),
        ]


def test_damaged_and_binary_payloads_have_no_value(tmp_path: Path) -> None:
    frames = [frame(1, 0, b"\xff{"), frame(1, 1, b'{"a": [1, {"b": null}]}'), frame(1, 2, b"")]
    with Recording(made(tmp_path / "r.db", exchange(1), frames=frames)) as recording:
        assert cells(recording, "$.a[*], $.a[1].b, text, meta, mime") == [
            ('1, {"b": null}', "null", "", "", "")
        ]
