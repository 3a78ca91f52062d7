"""Lists show which rows have findings, how many, and their highest severity."""

from __future__ import annotations

from pathlib import Path

from a2a_inspect.data.finding_counts import (
    FindingCounts,
    count_by_frame,
    exchange_lines,
    find_findings,
)
from a2a_inspect.data.replay.as_of import AsOf
from a2a_inspect.widgets.finding_lines import finding_lines
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from support_inspect import MS, changes, exchange, live, request, status, writer
from support_recording import STARTED
from support_screen import SMALL, looking

GENERATIONS = Path(__file__).resolve().parents[3] / "recordings" / "generations.a2a.jsonl"


def finding(number: int, seq: int, severity: Severity, after: int = 0) -> Finding:
    """So many ms after the exchange began."""
    return Finding(
        "A2A-SCH-001", severity, STARTED + (number * 1000 + after) * MS, "no `id`", 1, number, seq
    )


def found(path: Path) -> Path:
    """Two exchanges without a finding, one with three at two places."""
    made = writer(path)
    grave, light = finding(2, 1, Severity.WARNING, 100), finding(2, 1, Severity.INFO, 150)
    whole = finding(2, -1, Severity.ERROR, 900)
    frames = [request(n) for n in (1, 2, 3)] + [status(2, 1, "a"), status(2, 2, "b")]
    made.write(frames, [light, grave, whole], changes(*map(exchange, (1, 2, 3))))
    made.close()
    return path


def test_counts_are_at_most_five_cells() -> None:
    """At most five cells, in letters as well as colours."""
    assert str(FindingCounts(2, Severity.ERROR)) == "!2 E"
    assert str(FindingCounts(12, Severity.WARNING)) == "!12W"
    assert str(FindingCounts(10_000, Severity.INFO)) == "!99+I"


def test_counts_of_exchanges_and_frames(tmp_path: Path) -> None:
    """An exchange has all that was found in it, a frame what is about it alone."""
    with Recording(found(tmp_path / "r.db")) as recording:
        rows = list(recording.read_exchanges())
        assert [line.finding_counts for line in exchange_lines(recording, rows)] == [
            None,
            FindingCounts(3, Severity.ERROR),
            None,
        ]
        frames = list(recording.read_frames(rows[1].key))
        assert count_by_frame(recording, frames) == {1: FindingCounts(2, Severity.WARNING)}
        assert count_by_frame(recording, frames[2:]) == {}
        assert exchange_lines(recording, []) == []
        assert count_by_frame(recording, []) == {}


def test_the_findings_of_a_frame_are_shown_among_many(tmp_path: Path) -> None:
    """However many others precede them; the list says that there are more."""
    made = writer(tmp_path / "r.db")
    many = [finding(1, 1, Severity.INFO, 10)] * 200
    made.write([request(1)], [*many, finding(1, 2, Severity.ERROR, 20)], changes(exchange(1)))
    made.close()
    with Recording(tmp_path / "r.db") as recording:
        (row,) = recording.read_exchanges()
        there, total = find_findings(recording, row, 2)
        assert (there[0].seq, len(there), total) == (2, 51, 201)
        lines_told = finding_lines(there, 2, total)
        assert lines_told[:3] == ["ABOUT THIS FRAME", "", "error A2A-SCH-001 frame 2: no `id`"]
        assert lines_told[-1] == "(and 150 more: a2a-inspect show lists all)"
        assert find_findings(recording, row, 2, row.exchange.started + 10 * MS)[1] == 200


def test_a_replay_shows_only_earlier_findings(tmp_path: Path) -> None:
    """At every moment."""
    with Recording(found(tmp_path / "r.db")) as recording:
        known, row = AsOf(recording), list(recording.read_exchanges())[1]
        began = row.exchange.started
        shown = [
            known.read_exchanges(0, began + after * MS)[1].finding_counts
            for after in (0, 100, 150, 900)
        ]
        assert shown == [
            None,
            FindingCounts(1, Severity.WARNING),
            FindingCounts(2, Severity.WARNING),
            FindingCounts(3, Severity.ERROR),
        ]


def test_a_page_takes_one_indexed_query(tmp_path: Path) -> None:
    """However many findings there are elsewhere, they are not looked at."""
    with Recording(found(tmp_path / "r.db")) as recording:
        asked: list[str] = []
        recording.db.set_trace_callback(asked.append)
        rows = list(recording.read_exchanges())
        asked.clear()
        exchange_lines(recording, rows)
        count_by_frame(recording, list(recording.read_frames(rows[1].key)))
        recording.db.set_trace_callback(None)
        questions = [each for each in asked if "FROM finding" in each]
        assert len(questions) == 2
        for question in questions:
            plan = [row[3] for row in recording.db.execute(f"EXPLAIN QUERY PLAN {question}")]
            assert any("finding USING INDEX finding_place" in step for step in plan), plan


def test_the_sample_with_a_lost_event() -> None:
    """Exchange 1 and its frame 4."""
    with open_recording_or_cassette(GENERATIONS) as recording:
        first, second, *_ = exchange_lines(recording, list(recording.read_exchanges(limit=3)))
        assert (first.finding_counts, second.finding_counts) == (
            FindingCounts(1, Severity.ERROR),
            None,
        )
        assert count_by_frame(recording, list(recording.read_frames(first.key))) == {
            4: FindingCounts(1, Severity.ERROR)
        }


async def test_the_screen_shows_counts_and_jumps_to_findings(tmp_path: Path) -> None:
    """Also later findings; on a small terminal `e` opens the frames, so that the finding is
    visible."""
    path = tmp_path / "r.db"
    made = writer(path)
    made.write([request(1)], changes=changes(live(1)))
    async with looking(path, SMALL) as person:
        await person.sees("FOUND", "SendStreamingMessage")
        assert person.misses("!1")
        made.write([status(1, 1, "a")], [finding(1, 1, Severity.WARNING)], changes(live(1)))
        await person.sees("!1 W")
        await person.types("e")
        await person.sees("FRAME", "!1 W", "1 finding")
        made.close()
