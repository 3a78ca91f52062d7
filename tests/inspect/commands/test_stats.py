"""`stats`: totals of a recording."""

from __future__ import annotations

import json
from pathlib import Path

from a2a_inspect.plots.sums import (
    DurationRanks,
    compute_totals,
    count_task_states,
    distinct_parts,
    rank_durations,
)
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.present import text
from a2a_proxy.protocol.finding_totals import follows_ending
from a2a_proxy.protocol.outcome import latency_origin
from a2a_proxy.recording.read.multi_reader import MultiReader
from support_cli import run, run_here
from support_inspect import MS, changes, exchange, live, request, sample, writer
from support_recording import STARTED

SAMPLES = sorted(Path(__file__).parents[3].joinpath("recordings").glob("*.a2a.jsonl"))


def test_percentiles_are_nearest_ranks(tmp_path: Path) -> None:
    """Of 1 to 20 ms the median is the 10th, 95 of 100 are at most the 19th; an open exchange has
    not taken its time."""
    made = writer(tmp_path / "a.db")
    for number in range(1, 21):
        begun = STARTED + number * 1000 * MS
        made.write([request(number)], changes=changes(exchange(number, closed=begun + number * MS)))
    made.write([request(21)], changes=changes(live(21, first_event=0, last_event=0)))
    made.finish(STARTED + 60_000 * MS)

    with MultiReader([tmp_path / "a.db"]) as several:
        ((kind, calls),) = compute_totals(distinct_parts(several)).calls.items()

    assert kind == ("SendStreamingMessage", "jsonrpc", "1.0")
    assert calls.outcomes == {"ok": 20, "live": 1}
    assert calls.took == DurationRanks(10 * MS, 19 * MS, 20 * MS, 20 * MS)
    assert calls.first == DurationRanks(2 * MS, 2 * MS, 2 * MS, 2 * MS)


def test_counts_equal_those_of_the_samples() -> None:
    """The same as counting one by one what `ls` shows."""
    for path in SAMPLES:
        with MultiReader([path]) as several:
            recording, known = several.members[0].recording, compute_totals(distinct_parts(several))
            rows = [row.exchange for row in recording.read_exchanges()]
            for (operation, binding, dialect), calls in known.calls.items():
                of = [
                    each
                    for each in rows
                    if (each.operation, each.binding, each.dialect) == (operation, binding, dialect)
                ]
                outcomes = [text.outcome_of(each) for each in of]
                assert calls.outcomes == {name: outcomes.count(name) for name in set(outcomes)}, (
                    path
                )
                assert calls.events == sum(each.events for each in of)
                assert calls.took == rank_durations(
                    max(each.closed - latency_origin(each), 0) for each in of if each.closed
                ), path
            assert sum(calls.count for calls in known.calls.values()) == len(rows)
            assert sum(count for _, count in count_task_states(several)) == len(
                list(recording.read_tasks())
            )
            findings = (row.finding for row in recording.read_findings())
            counted = [each for each in findings if not follows_ending(each)]
            assert sum(count for *_, count in known.findings) == len(counted)
            assert sum(count for _, count in known.errors) == sum(bool(each.error) for each in rows)


def test_text_and_json(tmp_path: Path) -> None:
    """Both have the same facts; findings are ordered by severity, errors by frequency."""
    path = sample(tmp_path / "a.db")
    made = writer(tmp_path / "b.db")
    found = [
        Finding("A2A-X-001", Severity.INFO, STARTED, "a"),
        Finding("A2A-X-002", Severity.ERROR, STARTED, "b"),
    ]
    made.write([], found, changes(exchange(1, error="no \x1b[31mway")))
    made.finish(STARTED)

    lines = run(tmp_path / "state", "a2a-inspect", "stats", path).lines
    statistics = json.loads(run_here(tmp_path / "state", "stats", "--json", path).out)
    other = run_here(tmp_path / "state", "stats", tmp_path / "b.db")

    assert lines[1].startswith("3 exchanges, 9 frames, ")
    assert lines[4].split()[:7] == ["SendStreamingMessage", "jsonrpc", "1.0", "3", "2", "1", "6"]
    assert lines[-1] == "1      TASK_NOT_FOUND -32001: no such task"
    assert statistics["calls"][0]["took_ns"] == {
        "p50": 900 * MS,
        "p95": 900 * MS,
        "p99": 900 * MS,
        "max": 900 * MS,
    }
    assert statistics["calls"][0]["outcomes"] == {"ok": 2, "error": 1}
    assert [line.split()[-1] for line in other.lines[-2:]] == ["A2A-X-002", "A2A-X-001"]
    assert "\x1b" not in other.out


def test_a_session_without_traffic_has_stats(tmp_path: Path) -> None:
    """A session without traffic has numbers too."""
    made = writer(tmp_path / "a.db")
    made.open()
    made.finish(STARTED)

    assert (
        run_here(tmp_path / "state", "stats", tmp_path / "a.db")
        .lines[-1]
        .startswith("0 exchanges, 0 frames")
    )


def test_with_a_filter(tmp_path: Path) -> None:
    """Only matching exchanges count, with their tasks and findings; a wrong expression is an error,
    nothing a word."""
    path = next(each for each in SAMPLES if each.name == "demo.a2a.jsonl")
    statistics = json.loads(
        run_here(tmp_path / "state", "stats", "--json", "-f", "binding:rest", path).out
    )
    assert {each["operation"]: each["count"] for each in statistics["calls"]} == {
        "SendMessage": 2,
        "GetTask": 1,
    }
    assert (statistics["exchanges"], statistics["tasks"]) == (3, {"completed": 1})
    assert sum(each["count"] for each in statistics["calls"][0]["took_distribution"]) == 2
    wrong = run_here(tmp_path / "state", "stats", "-f", "bindung:rest", path)
    assert (wrong.code, "binding" in wrong.err) == (2, True)
    assert (
        "nothing matches" in run_here(tmp_path / "state", "stats", "-f", "op:CancelTask", path).err
    )


def test_a_histogram(tmp_path: Path) -> None:
    """A line for each step, and the same in JSON; plain characters where no colour is wanted."""
    path = next(each for each in SAMPLES if each.name == "generations.a2a.jsonl")
    lines = run_here(tmp_path / "state", "stats", "--histogram", path, NO_COLOR="1").lines
    head = next(number for number, line in enumerate(lines) if line.startswith("EACH "))
    statistics = json.loads(
        run_here(tmp_path / "state", "stats", "--histogram", "--json", path).out
    )
    buckets = statistics["histogram"]
    assert [int(line[14:].split()[0]) for line in lines[head + 1 :]] == [
        each["frames"] for each in buckets["buckets"]
    ]
    assert sum("1 error" in line for line in lines[head:]) == 3
    assert all(line.isascii() for line in lines[head:])
    assert buckets["step_ns"] == 500 * MS
