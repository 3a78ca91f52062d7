"""`a2a-inspect merge`: its output, and that it replaces no file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from a2a_proxy.recording.read.reader import Recording
from support_cli import Ran, run_here
from support_several import pair


def merge(tmp_path: Path, *words: object) -> Ran:
    return run_here(tmp_path / "state", "merge", *words)


def test_merge_reports_the_contents_of_the_new_file(tmp_path: Path) -> None:
    """And before, with a dry run, which writes nothing."""
    first, second = pair(tmp_path)
    out = tmp_path / "out.a2a.db"

    would = merge(tmp_path, out, second, first, first, "--dry-run")
    assert not out.exists()
    done = merge(tmp_path, out, second, first, first)

    assert (would.code, done.code) == (0, 0)
    assert [line.replace("would merge", "merged") for line in would.lines] == done.lines
    assert done.lines[0].startswith(f"merged session 1 of {first} as 1  ")
    assert done.lines[0].endswith("agent-1:8000  6 frames")
    assert done.lines[2:] == [
        f"left out session 1 of {first}: it is in {first}",
        f"merged 2 sessions into {out}",
    ]
    with Recording(out) as recording:
        assert recording.count_rows().frames == 10


def test_errors_have_hints(tmp_path: Path) -> None:
    """The new file exists, or a recording does not."""
    first, second = pair(tmp_path)
    there = merge(tmp_path, second, first)
    assert there.code == 2
    assert f"{second} exists" in there.err
    assert "--overwrite" in there.err
    absent = merge(tmp_path, tmp_path / "out.a2a.db", first, tmp_path / "absent.a2a.db")
    assert absent.code == 2
    assert "there is no recording" in absent.err
    nowhere = merge(tmp_path, tmp_path / "no" / "out.a2a.db", first)
    assert nowhere.code == 2
    assert "does not exist" in nowhere.err


def test_merge_prints_json(tmp_path: Path) -> None:
    """One session per line, including those left out."""
    first, second = pair(tmp_path)
    out = tmp_path / "out.a2a.db"
    would = [
        json.loads(line)
        for line in merge(tmp_path, out, second, first, first, "-n", "--json").lines
    ]
    assert [
        (merged_line["recording"], merged_line["as"], merged_line["done"]) for merged_line in would
    ] == [
        (str(first), 1, False),
        (str(second), 2, False),
        (str(first), None, False),
    ]
    assert (would[0]["frames"], would[2]["in"], out.exists()) == (6, str(first), False)


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_missing_folder_is_an_error(tmp_path: Path, more: tuple[str, ...]) -> None:
    """The error names the file that was asked for."""
    first, second = pair(tmp_path)
    out = tmp_path / "none" / "out.a2a.db"
    done = merge(tmp_path, out, first, second, *more)
    assert done.err.startswith(
        f"a2a-inspect: error: cannot record to {out}: {out.parent} does not exist\n"
    )
