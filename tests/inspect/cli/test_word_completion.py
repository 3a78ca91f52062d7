"""Words that the shell completes for `a2a-inspect`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from a2a_inspect.cli.main import cli
from a2a_proxy.recording.cassette.file import open_recording_or_cassette

DEMO = Path(__file__).resolve().parents[3] / "recordings" / "demo.a2a.jsonl"


def complete(*words: object) -> list[str]:
    """Return the completions of the last word; `FILE` stands for the names of files."""
    *before, last = map(str, words)
    items = BashComplete(cli, {}, "a2a-inspect", "_A2A_INSPECT_COMPLETE").get_completions(
        before, last
    )
    return ["FILE" if each.type == "file" else each.value for each in items]


@pytest.mark.parametrize("command", ["show", "lanes", "segments", "diff", "note", "cassette trim"])
def test_a_recording_then_its_places(command: str) -> None:
    with open_recording_or_cassette(DEMO) as recording:
        tasks = [row.task.task_id for row in recording.read_tasks()]
        numbers = [str(row.exchange.id) for row in recording.read_exchanges()]
    assert complete(*command.split(), "gen") == ["FILE"]
    assert complete(*command.split(), DEMO, "") == numbers + tasks
    assert complete(*command.split(), DEMO, tasks[0][:5]) == tasks[:1]
    assert complete(*command.split(), DEMO, "other.db") == ["FILE"]
    assert complete(*command.split(), "absent.db", "") == ["FILE"]


def test_pages_of_the_manual() -> None:
    assert complete("help", "ge") == ["generations"]
    assert "commands" in complete("help", "")


@pytest.mark.parametrize(
    ("typed", "first"), [("GEN-00", "GEN-001"), ("gen-00", "GEN-001"), ("A2A-GEN", "A2A-GEN-001")]
)
def test_ids_of_rules(typed: str, first: str) -> None:
    found = complete("rules", typed)
    assert (found[0], {each[: len(typed)] for each in found}) == (first, {typed.upper()})


def test_formats_of_export_come_before_files() -> None:
    assert complete("export", "h") == ["har", "html"]
    assert {"html", "har", "jsonl", "otlp"} < set(complete("export", ""))
    assert complete("export", "gen") == ["FILE"]
    assert complete("export", "html", "gen") == ["FILE"]
