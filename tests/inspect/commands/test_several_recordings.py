"""`ls`, `tail` and `stats` of several recordings: one view by time, each line with its file."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from support_cli import SECONDS, Ran, environment, program, run_here, until
from support_inspect import MS, TASK
from support_recording import STARTED
from support_several import OTHER, TRACE, begin, call, pair


def inspect(tmp_path: Path, *words: object) -> Ran:
    done = run_here(tmp_path / "state", *words, TZ="UTC")
    assert done.code == 0, done.err
    return done


def test_exchanges_are_one_list_by_time(tmp_path: Path) -> None:
    """After a line for each session, which says whether its capture is whole."""
    lines = inspect(tmp_path, "ls", *pair(tmp_path)).lines

    assert [line.split()[0] for line in lines[:2]] == ["first", "second"]
    assert all(line.endswith("capture complete") for line in lines[:2])
    assert lines[2].split()[:2] == ["FILE", "#"]
    assert [line.split()[:2] for line in lines[3:]] == [
        ["first", "1"],
        ["second", "1"],
        ["first", "2"],
        ["second", "2"],
        ["first", "3"],
    ]


def test_a_trace_is_followed_over_files(tmp_path: Path) -> None:
    """By a filter, as JSON with the file of each call; invalid filters and empty results are
    reported."""
    files = pair(tmp_path)
    objects = [
        json.loads(line)
        for line in inspect(tmp_path, "ls", *files, "-f", f"~~{TRACE[:8]}", "--json").lines
    ]
    assert [(each["file"], each["session"]) for each in objects] == [
        (str(files[0]), 1),
        (str(files[1]), 1),
    ]
    assert "nothing matches" in inspect(tmp_path, "ls", *files, "-f", "text:absent").err
    assert "tsak" in run_here(tmp_path / "state", "ls", *files, "-f", "tsak:1").err


def test_a_task_is_listed_once_with_its_files(tmp_path: Path) -> None:
    """And so it is counted."""
    files = pair(tmp_path)
    lines = inspect(tmp_path, "ls", *files, "--tasks").lines
    assert [line.split()[0] for line in lines[1:]] == [TASK, OTHER]
    assert "first, second" in lines[1]
    assert lines[1].endswith("first#1 first#2 second#1")
    (task_line,) = inspect(tmp_path, "ls", *files, "--tasks", "--json", "-f", "agent:agent-1").lines
    assert [(seen["file"], seen["exchanges"]) for seen in json.loads(task_line)["seen"]] == [
        (str(files[0]), [1, 2]),
        (str(files[1]), [1]),
    ]
    assert json.loads(inspect(tmp_path, "stats", *files, "--json").out)["tasks"] == {"working": 2}


def test_stats_are_summed_over_all_files(tmp_path: Path) -> None:
    """Ranks too, which no two sums add up to; a session that two files hold counts once."""
    for number, lengths in ((1, (1, 2, 3)), (2, (10, 20))):
        writer = begin(tmp_path / f"{number}.a2a.db", number)
        for call_number, length in enumerate(lengths, 1):
            at = STARTED + call_number * 1000 * MS
            call(
                writer, number, call_number, call_number, request_ended=at, closed=at + length * MS
            )
        writer.finish(STARTED + 9_000 * MS)
    shutil.copy(tmp_path / "1.a2a.db", tmp_path / "copy.a2a.db")

    files = [tmp_path / f"{name}.a2a.db" for name in ("1", "2", "copy")]
    statistics = json.loads(inspect(tmp_path, "stats", *files, "--json").out)
    assert (statistics["sessions"], statistics["exchanges"], statistics["frames"]) == (2, 5, 10)
    assert statistics["calls"][0]["took_ns"] == {
        "p50": 3 * MS,
        "p95": 20 * MS,
        "p99": 20 * MS,
        "max": 20 * MS,
    }
    assert len(inspect(tmp_path, "ls", *files, "--json").lines) == 5
    assert len(inspect(tmp_path, "tail", *files).lines) == 10


def test_tail_shows_the_last_frames_of_all_files(tmp_path: Path) -> None:
    """By time, not file by file."""
    lines = inspect(tmp_path, "tail", *pair(tmp_path), "-n", 5).lines
    assert [line.split()[0] for line in lines] == ["first", "second", "second", "first", "first"]
    assert [line.split()[2] for line in lines] == ["#2.1", "#2.0", "#2.1", "#3.0", "#3.1"]


def test_live_recordings_are_followed_as_one(tmp_path: Path) -> None:
    """One of them begins later; each frame comes once, with its file."""
    files = [tmp_path / f"{name}.a2a.db" for name in ("one", "two")]
    one, two = begin(files[0], 1), None
    output_file = tmp_path / "said"
    with output_file.open("wb") as out, (tmp_path / "err").open("wb") as err:
        words = [program("a2a-inspect"), "tail", "-f", "--json", *map(str, files)]
        process = subprocess.Popen(
            words, stdout=out, stderr=err, env=environment(tmp_path / "state")
        )
    try:
        until(lambda: "does not exist yet" in (tmp_path / "err").read_text())
        two = begin(files[1], 2)
        for number in (1, 2):
            call(one, 1, number, 2 * number)
            until(lambda number=number: output_file.read_text().count("one.a2a.db") == 2 * number)
            call(two, 2, number, 2 * number + 1)
            until(lambda number=number: output_file.read_text().count("two.a2a.db") == 2 * number)
    finally:
        process.terminate()
        process.wait(SECONDS)

    objects = [json.loads(line) for line in output_file.read_text().splitlines()]
    assert [(Path(each["file"]).name[:3], each["exchange"], each["seq"]) for each in objects] == [
        *(("one", 1, 0), ("one", 1, 1), ("two", 1, 0), ("two", 1, 1)),
        *(("one", 2, 0), ("one", 2, 1), ("two", 2, 0), ("two", 2, 1)),
    ]
