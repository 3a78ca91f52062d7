"""Reports of recordings: every row is there once, in its place, and hostile content is only
text."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from a2a_inspect.commands.export import ExportOptions, export_recording
from a2a_inspect.data.redacted_view import RedactionOptions
from a2a_inspect.formats.report.records import MAX_PAYLOAD, task_summary
from a2a_inspect.formats.report.tables import make_value_visible
from a2a_inspect.plots.sums import DurationRanks, compute_totals, distinct_parts
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import ArtifactState, Changes, Frame, Task
from a2a_proxy.present import text
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import TaskRow
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from a2a_proxy.rules.examples.conversation import CLEAN_SEND, rpc
from a2a_proxy.rules.examples.objects import send
from support_hostile import evil_texts
from support_inspect import MS, changes, exchange, frame, request, sample, status, writer
from support_recording import STARTED
from support_report import Page, Report, reported
from support_rules import record
from support_thin import thin

SAMPLES = sorted((Path(__file__).resolve().parents[4] / "recordings").glob("*.a2a.jsonl"))
every = pytest.mark.parametrize("cassette", thin(SAMPLES, 7))
MARKUP = "</script><script>alert(1)</script><!--\u2028<img src=x onerror=alert(1)>"
WHAT, PLACE, EXCHANGE, MORE = 0, 6, 9, 10


def test_exchange_has_its_ending(tmp_path: Path) -> None:
    """Why it did not end well; nothing if it ended well."""
    script = rpc("SendMessage", send(id="m5"), finish="cut") + CLEAN_SEND
    record(tmp_path / "r.db", script.make_chunks())
    failed, fine = (each["facts"] for each in reported(tmp_path / "r.db").table("exchange"))
    assert "reset the connection" in failed["why it did not end well"]
    assert failed["must act"] == "agent"
    assert "cause" not in fine


@every
def test_every_row_is_in_the_report_once(cassette: Path) -> None:
    """Each frame has a row with its payload, each finding its own, each conversation follows the
    one before."""
    report = reported(cassette)
    rows, details, findings = report.table("row"), report.table("detail"), report.table("finding")
    exchanges, talks = report.table("exchange"), report.table("talk")
    with open_recording_or_cassette(cassette) as recording:
        keys = {row.key: row for row in recording.read_exchanges()}
        frames = sorted(
            f"#{each.exchange}.{each.seq}" for key in keys for each in _frames(recording, key)
        )
        found = [row.finding for row in recording.read_findings()]
    assert sorted(row[PLACE] for row in rows if row[WHAT] == "frame") == frames
    assert [rows[each["row"]][MORE] for each in details] == list(range(len(details)))
    assert len(details) == len(frames)
    assert sorted(each["summary"] for each in findings) == sorted(
        str(make_value_visible(each.summary)) for each in found
    )
    for number, each in enumerate(findings):
        if each["row"] >= 0 and rows[each["row"]][WHAT] == "finding":
            assert rows[each["row"]][MORE] == number
            assert each["summary"] in rows[each["row"]][5]
    assert sorted(each["facts"]["id"] for each in exchanges) == sorted(
        row.exchange.id for row in keys.values()
    )
    assert all(
        exchanges[row[EXCHANGE]]["facts"]["id"] == int(row[PLACE][1:].split(".")[0])
        for row in rows
        if row[PLACE]
    )
    ends = [0]
    for talk in talks:
        assert talk["first"] == ends[-1]
        assert all(
            row[3] < len(talk["lanes"])
            for row in rows[talk["first"] : talk["first"] + talk["rows"]]
        )
        ends.append(talk["first"] + talk["rows"])
    assert ends[-1] == len(rows)
    counts = {
        "conversations": len(talks),
        "exchanges": len(exchanges),
        "frames": len(details),
        "findings": len(findings),
    }
    assert {name: report.index["counts"][name] for name in counts} == counts
    assert {each["id"] for each in report.index["rules"]} == {each["rule"] for each in findings}
    assert sum(each["count"] for each in report.index["rules"]) == len(findings)
    gravest = [
        ["info", "warning", "error"].index(each["severity"]) for each in report.index["rules"]
    ]
    assert gravest == sorted(gravest, reverse=True)
    for talk in talks:
        first, end = talk["findings"]
        assert sum(talk["grave"].values()) == end - first
        assert all(
            talk["first"] <= each["row"] < talk["first"] + talk["rows"]
            for each in findings[first:end]
        )


def _frames(recording: Recording, key: int) -> list[Frame]:
    return [row.frame for row in recording.read_frames(key, payloads=False)]


def test_reports_are_reproducible() -> None:
    """So that reports can be compared."""
    path = next(each for each in SAMPLES if each.name.startswith("lossy"))
    assert reported(path).data == reported(path).data


def test_rows_show_gaps_and_findings() -> None:
    """A gap in the generations in its place, with the rule that found it and the task's line of
    generations."""
    report = reported(next(each for each in SAMPLES if each.name.startswith("lossy")))
    rows = report.table("row")
    marks = [row for row in rows if row[WHAT] in ("missed", "finding")]
    assert [row[WHAT] for row in marks] == ["finding", "missed", "finding"]
    assert marks[0][PLACE] == "#8.4"
    finding = report.table("finding")[marks[0][MORE]]
    rule = next(each for each in report.index["rules"] if each["id"] == finding["rule"])
    assert finding["rule"] == "A2A-GEN-001"
    assert rule["what"]
    assert rule["why"]
    assert rule["section"]
    talks = report.table("talk")
    assert [talk["begin"] for talk in talks[:2]] == [
        "GetAgentCard",
        '"Plan a day in Lisbon for me"',
    ]
    failed = next(talk for talk in talks if talk["title"] == "#5 GetTask")
    assert failed["outcome"] == "error TASK_NOT_FOUND 404: there is no such task"
    assert report.index["counts"]["failed"] == 1
    (task,) = talks[-1]["tasks"]
    assert [name for _, name, _ in task["states"]] == ["submitted", "working", "completed"]
    assert "4 missed on #8, healed by #9 GetTask at generation 6" in task["generations"]
    assert len(task["missed"]) == 1
    detail = report.table("detail")[rows[finding["row"] - 1][MORE]]
    assert json.loads(detail["payload"])["artifactUpdate"]["append"] is True


@every
def test_latencies_equal_those_of_stats(cassette: Path) -> None:
    report = reported(cassette)
    with MultiReader([cassette]) as several:
        totals = compute_totals(distinct_parts(several))
    expected = [
        (
            operation or "not A2A",
            f"{binding} {dialect}".strip(),
            each.count,
            rank_words(each.first),
            rank_words(each.took),
        )
        for (operation, binding, dialect), each in totals.calls.items()
    ]
    made = [
        (each["operation"], each["manner"], each["count"], each["first"], each["took"])
        for each in report.index["latencies"]
    ]
    assert made == expected
    assert sum(each["failed"] for each in report.index["latencies"]) == sum(
        count
        for each in totals.calls.values()
        for name, count in each.outcomes.items()
        if name not in ("ok", "live")
    )


def rank_words(ranks: DurationRanks | None) -> list[str]:
    return (
        [text.format_duration(ns) for ns in msgspec.structs.astuple(ranks)]
        if ranks is not None
        else []
    )


@every
def test_each_task_has_a_line_that_names_its_first_exchange(cassette: Path) -> None:
    report = reported(cassette)
    rows, tasks = report.table("row"), report.table("task")
    assert [each["id"] for each in tasks] == [
        task["id"] for talk in report.table("talk") for task in talk["tasks"]
    ]
    for each in tasks:
        assert rows[each["row"]][PLACE].split(".")[0] == "#" + each["place"].split(":")[1]


def test_tasks_and_failures_are_listed() -> None:
    report = reported(next(each for each in SAMPLES if each.name.startswith("lossy")))
    assert report.table("task")[-1] == {
        "id": "efeb52b9-bb20-4237-b75f-5a5f9cb2d890",
        "agent": "127.0.0.1:35533",
        "states": "submitted > working > completed",
        "outcome": "completed",
        "took": "603 ms",
        "artifacts": ["plan (2 chunks, 211 B, complete)"],
        "messages": 2,
        "place": "1:8",
        "row": 30,
    }
    (failure,) = report.index["failures"]
    place, row = failure.pop("places")[0]
    assert failure == {
        "operation": "GetTask",
        "manner": "rest 1.0",
        "outcome": "error",
        "code": "TASK_NOT_FOUND 404",
        "message": "there is no such task",
        "count": 1,
    }
    assert (place, report.table("row")[row][PLACE]) == ("1:5", "#5.0")
    assert report.index["omitted"] == {"calls": 0, "failures": 0}


def test_a_task_without_an_end_is_measured_to_its_last_frame() -> None:
    """A task of many artifacts names the first four; one that was seen once has no duration."""
    working, once = TaskState.WORKING.value, TaskState.COMPLETED.value
    artifacts = tuple(ArtifactState(f"a{number}", chunks=1, size=1) for number in range(6))
    task = Task(
        "t", "agent:1", first=0, last=3000 * MS, states=((0, working),), artifacts=artifacts
    )
    made = task_summary(TaskRow(1, 1, task), -1)
    assert (made["outcome"], made["took"], made["place"]) == ("working", "3.0 s", "")
    assert made["artifacts"] == [
        *(f"a{number} (1 chunk, 1 B, not complete)" for number in range(4)),
        "2 more",
    ]
    ended = msgspec.structs.replace(task, states=((0, once),))
    assert task_summary(TaskRow(1, 1, ended), -1)["took"] == ""
    stateless = msgspec.structs.replace(task, states=())
    assert task_summary(TaskRow(1, 1, stateless), -1)["outcome"] == "no state seen"


def test_a_filtered_report_has_only_matching_rows() -> None:
    """Neither rows nor findings nor marks of exchanges that do not match; the words of the filter
    are told."""
    path = next(each for each in SAMPLES if each.name.startswith("lossy"))
    report = reported(path, "op:GetTask AND binding:jsonrpc")
    assert {row[PLACE].split(".")[0] for row in report.table("row") if row[PLACE]} == {"#9"}
    assert [each["place"] for each in report.table("exchange")] == ["1:9"]
    assert not [row for row in report.table("row") if row[WHAT] == "missed"]
    assert {each["rule"] for each in report.table("finding")} == {"A2A-ART-006"}
    assert report.index["what"] == "what matches op:GetTask AND binding:jsonrpc"


def test_markup_of_peers_is_text(tmp_path: Path) -> None:
    """In payloads, header fields, ids, names and notes: the page has the elements of any other
    report."""
    plain, odd = reported(sample(tmp_path / "plain.db", 1)), _hostile(tmp_path / "odd.db")
    report = reported(odd)
    assert report.page.frame == plain.page.frame
    texts = [
        *report.table("row"),
        *report.table("detail"),
        *report.table("exchange"),
        *report.table("talk"),
    ]
    texts += [*report.table("task"), *report.index["latencies"], *report.index["failures"]]
    assert MARKUP.split("\u2028")[0] in report.index["failures"][0]["code"]
    assert json.dumps(texts, ensure_ascii=False).count("<img src=x onerror=alert(1)>") > 5
    assert b"alert(1)" not in report.data
    assert "\u2028" not in json.dumps(texts, ensure_ascii=False)


def _hostile(path: Path) -> Path:
    made = writer(path)
    fields = ((b"X-Odd", MARKUP.encode()), (MARKUP.encode(), b"x"))
    call = exchange(1, operation=MARKUP, error=MARKUP, request_headers=fields, task_id=MARKUP)
    made.write(
        [request(1, MARKUP), status(1, 1, MARKUP), frame(1, 2, MARKUP.encode(), schema="text")],
        changes=changes(call),
    )
    made.finish(STARTED + 10_000 * MS)
    write_note(path, NotePlace(1, 1, 1), STARTED, text=MARKUP)
    return path


def test_hostile_text_is_shown_as_symbols(tmp_path: Path) -> None:
    """Control characters, marks that turn text round, halves of characters: shown, not obeyed."""
    report = reported(evil_texts(tmp_path))
    for name in ("row", "detail", "exchange", "finding", "talk"):
        for each in report.table(name):
            assert each == make_value_visible(each)


def test_a_large_payload_is_cut_with_a_note(tmp_path: Path) -> None:
    """Text that is not JSON: the page would grow with it."""
    path = tmp_path / "large.db"
    made = writer(path)
    made.write(
        [request(1), frame(1, 1, b'{"text":"' + b"x" * 2 * MAX_PAYLOAD + b'"}')],
        changes=changes(exchange(1)),
    )
    made.finish(STARTED + 10_000 * MS)
    small, large = reported(path).table("detail")
    assert "cut" not in small
    assert len(large["payload"]) == MAX_PAYLOAD
    assert large["cut"] == "the first 256.0 KiB of 512.0 KiB"


def test_an_empty_recording(tmp_path: Path) -> None:
    """There is a page, and nothing in it."""
    path = tmp_path / "empty.db"
    made = writer(path)
    made.write([], changes=Changes([], [], []))
    made.finish(STARTED)
    report = reported(path)
    assert report.index["tables"] == {}
    assert set(report.index["counts"].values()) == {0}


def test_the_command_redacts_and_filters(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """`export html`: what the policy takes out is in no block; to standard output where no file is
    named."""
    path = sample(tmp_path / "a.db")
    export_recording(ExportOptions(path, "err", RedactionOptions(("member:text",))), None, "html")
    report = Report(capsysbinary.readouterr().out)
    assert report.index["counts"]["exchanges"] == 1
    payloads = " ".join(each["payload"] for each in report.table("detail"))
    assert "Thinking" not in payloads
    assert "TASK_STATE_WORKING" in payloads
    assert any("Thinking" in each["payload"] for each in reported(path).table("detail"))


def test_a_file_is_a_whole_page(tmp_path: Path) -> None:
    """With its beginning and its index."""
    target = tmp_path / "out.html"
    export_recording(ExportOptions(sample(tmp_path / "a.db")), target, "html")
    data = target.read_bytes()
    assert data.startswith(b"<!DOCTYPE html>")
    assert Page(data).texts["index"]
