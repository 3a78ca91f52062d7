"""Generations on the screen and in lists, with the sample that has a gap which heals."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from a2a_inspect.commands import ls, show
from a2a_inspect.data.finding_counts import find_findings
from a2a_inspect.data.generation_gaps import read_gaps
from a2a_inspect.data.source import ExchangeStream, RecordingSource
from a2a_inspect.widgets.exchange_list import is_successful, outcome_style, states_and_ending
from a2a_inspect.widgets.facts import fact_lines
from a2a_inspect.widgets.finding_lines import finding_lines, paint_findings
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.rows import ExchangeRow, make_key
from support_inspect import live

SAMPLE = Path(__file__).parents[3] / "recordings" / "generations.a2a.jsonl"
LINE = "generations 1-3 5-6, 4 missed on #1, healed by #2 GetTask at generation 5"


def stream(number: int) -> ExchangeStream:
    """What the screen reads of an exchange of the sample."""

    async def read() -> ExchangeStream | None:
        source = RecordingSource(SAMPLE)
        try:
            return await source.read_stream((1 << 40) + number)
        finally:
            source.close()

    found = asyncio.run(read())
    assert found is not None
    return found


@pytest.mark.parametrize("number", [1, 2])
def test_exchange_facts_show_the_generations_of_the_task(number: int) -> None:
    """Of the stream that left it out, and of the call that made it good."""
    assert [line for line in fact_lines(stream(number), None) if line.endswith(LINE)]


def test_findings_of_a_gap_show_its_healing() -> None:
    """Beneath the finding, from the moment at which it was healed on."""
    with open_recording_or_cassette(SAMPLE) as recording:
        row = recording.read_exchange(make_key(1, 1))
        assert row is not None
        found, total = find_findings(recording, row, 4)
        ((_, noticed),) = read_gaps(recording, row)
        for until, words in (
            (0, "generation 4 missed, healed by #2 GetTask at 5"),
            (noticed, "generation 4 missed, not healed"),
        ):
            lines = finding_lines(found, 4, total, read_gaps(recording, row, until))
            assert lines[3] == f"  ≠ {words}"
            assert paint_findings(lines[3]) != paint_findings(lines[4])


def test_only_the_finding_about_a_gap_shows_its_healing() -> None:
    """Not another finding about the same event."""
    with open_recording_or_cassette(SAMPLE) as recording:
        row = recording.read_exchange(make_key(1, 1))
        assert row is not None
        (gap,) = (
            each for each in find_findings(recording, row, 4)[0] if each.rule == "A2A-GEN-001"
        )
        other = msgspec.structs.replace(gap, rule="A2A-ID-015", evidence={})
        lines = finding_lines([gap, other], 4, 2, read_gaps(recording, row))
        heads = [
            index for index, line in enumerate(lines) if line.startswith(("error ", "warning "))
        ]
        assert [lines[index + 1].startswith("  ≠ ") for index in heads] == [True, False]


def test_a_long_poll_in_the_facts_and_in_the_list() -> None:
    poll = stream(5)
    assert "asks              waited for a generation above 2, got 3" in fact_lines(poll, None)
    assert states_and_ending(poll.row) == "completed  waited for a generation above 2, got 3"


def test_an_open_poll_is_no_failure() -> None:
    """On the list of the screen."""
    row = ExchangeRow(
        1, 1, live(1, operation="GetTask", streaming=False, events=0, current_generation=5)
    )
    assert states_and_ending(row) == "working  for a generation above 5"
    assert outcome_style(row) == "list--live"
    assert is_successful(row)


def test_ls_and_show_list_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    """`ls`, `ls --tasks --json` and `show` have it in words and as JSON."""
    with open_recording_or_cassette(SAMPLE) as recording:
        ls.list_exchanges(recording, as_json=False)
        assert "waited for a generation above 3, still 3" in capsys.readouterr().out
        ls.list_tasks(recording, as_json=True)
        first, *others = map(json.loads, capsys.readouterr().out.splitlines())
        assert first["generations"]["seen"] == [[1, 3], [5, 6]]
        assert (
            first["generations"]["missed"][0]["first"],
            first["generations"]["missed"][0]["healed_by"],
        ) == (4, 2)
        assert {each["generations"]["support"] for each in others} == {"yes"}
        show.show_conversation(recording, show.ShowSelection(), as_json=False)
        shown = capsys.readouterr().out
    assert LINE in shown
    assert "(expected generation 3, it is 5)" in shown
