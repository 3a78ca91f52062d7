"""`a2a-inspect cassette`: output, files and exit code of each command, run in this process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from a2a_inspect.cli.main import cli
from a2a_proxy.cli.main import run_cli
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.replay.load import load_script

RECORDINGS = Path(__file__).parents[3] / "recordings"
DEMO = RECORDINGS / "demo.a2a.jsonl"
SDK = RECORDINGS / "sdk-1.x-jsonrpc.a2a.jsonl"


class Inspect:
    """Runs `a2a-inspect`."""

    def __init__(self, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self._patch, self._captured = patch, captured
        self.out = self.err = ""

    def __call__(self, *words: object) -> int:
        """The exit code of a command; `out` and `err` are what it said."""
        self._patch.setattr(sys, "argv", ["a2a-inspect", *map(str, words)])
        code = run_cli("a2a-inspect", cli)
        self.out, self.err = self._captured.readouterr()
        return code


@pytest.fixture
def inspect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Inspect:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    return Inspect(monkeypatch, capsys)


def test_fmt_checks_and_writes(inspect: Inspect, tmp_path: Path) -> None:
    """`--check` is for CI: 1 where a file is not as it should be, 0 after it was written."""
    path = tmp_path / "e.a2a.jsonl"
    path.write_bytes(DEMO.read_bytes().replace(b"Lisbon", b"Porto"))
    assert inspect("ls", path) == 2
    assert "the digest differs" in inspect.err
    assert f"a2a-inspect cassette fmt {path}" in inspect.err
    assert inspect("cassette", "fmt", "--check", DEMO, path) == 1
    assert inspect.out == f"{DEMO}: unchanged\n{path}: edited by hand; would be rewritten\n"
    assert inspect("cassette", "fmt", path) == 0
    assert inspect.out == f"{path}: edited by hand; rewritten, with new digests\n"
    assert inspect("cassette", "fmt", "--check", path) == 0
    assert inspect("ls", path) == 0


def test_trim_keeps_the_calls_that_a_replay_needs(inspect: Inspect, tmp_path: Path) -> None:
    """A poll alone would query a task without its start: the call that created it stays, and the
    card."""
    with open_recording_or_cassette(SDK) as recording:
        poll = next(
            row.exchange
            for row in recording.read_exchanges()
            if row.exchange.operation == "GetTask"
        )
    target = tmp_path / "t.a2a.jsonl"
    assert inspect("cassette", "trim", SDK, poll.id, "-o", target) == 0
    assert f"also kept  #3  began the task of #{poll.id}" in inspect.out
    assert "also kept  #1  agent card" in inspect.out
    assert "left out  34 exchanges of 38" in inspect.out
    with open_recording_or_cassette(target) as made, open_recording_or_cassette(SDK) as whole:
        assert [row.exchange.id for row in made.read_exchanges()] == [1, 2, 3, 4]
        key = 1 << 40 | poll.id
        assert [row.frame for row in made.read_frames(key)] == [
            row.frame for row in whole.read_frames(key)
        ]
        assert made.read_sessions()[0].complete == f"only {poll.id} and what that needs"
        assert [each.place for each in load_script(made).calls] == ["#2", "#3", "#4"], (
            "a choice is no lack"
        )
    assert inspect("cassette", "trim", SDK, poll.id, "-o", target) == 2
    assert "exists" in inspect.err
    assert "--overwrite" in inspect.err
    assert (
        inspect("cassette", "trim", SDK, poll.id, "--exact", "--json", "--overwrite", "-o", target)
        == 0
    )
    found = json.loads(inspect.out)
    assert (found["exchanges"], found["chosen"], found["besides"]) == (1, 1, [])
    assert found["left_out"]["exchanges"] == 37


def test_trim_replaces_only_a_cassette(inspect: Inspect, tmp_path: Path) -> None:
    """Least of all the recording that it reads: the rest of it would be lost."""
    recording = tmp_path / "r.a2a.db"
    assert inspect("cassette", "read", DEMO, recording) == 0
    before = recording.read_bytes()
    assert inspect("cassette", "trim", recording, "2", "--overwrite", "-o", recording) == 2
    assert "is not a cassette, so it is not overwritten" in inspect.err
    assert inspect("cassette", "trim", recording, "2", "--overwrite", "-o", tmp_path) == 2
    assert "is not a cassette" in inspect.err
    assert recording.read_bytes() == before
    empty = tmp_path / "e.a2a.jsonl"
    empty.touch()
    assert inspect("cassette", "trim", recording, "2", "--overwrite", "-o", empty) == 0


@pytest.mark.parametrize("words", [("scan",), ("fmt", "--check")])
def test_a_bad_file_does_not_stop_the_others(
    inspect: Inspect, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Each file is reported, bad ones with their reason, and the exit code says that there was
    one."""
    good = tmp_path / "good.a2a.jsonl"
    good.write_bytes(DEMO.read_bytes())
    assert inspect("cassette", *words, tmp_path / "none", good, tmp_path, good) == 2
    assert inspect.err.count("error: ") == 2
    assert inspect.out.count(f"{good}: ") == 2


def test_trim_by_time_and_by_an_empty_selection(inspect: Inspect, tmp_path: Path) -> None:
    """A time range is a filter; an empty or missing selection is an error that leaves no file."""
    target = tmp_path / "t.a2a.jsonl"
    assert inspect("cassette", "trim", SDK, "-f", "t:<+7s", "--exact", "-o", target) == 0
    with open_recording_or_cassette(target) as made, open_recording_or_cassette(SDK) as whole:
        start = whole.read_sessions()[0].facts.started
        early = [
            row.exchange.id
            for row in whole.read_exchanges()
            if row.exchange.started < start + 7_000_000_000
        ]
        assert [row.exchange.id for row in made.read_exchanges()] == early
        assert 0 < len(early) < whole.count_rows().exchanges
    for words in ((), ("99",), ("-f", "op:Nothing"), ("2", "-f", "op:GetTask")):
        assert inspect("cassette", "trim", SDK, *words, "-o", tmp_path / "no.a2a.jsonl") == 2
        assert "hint: " in inspect.err
    assert not (tmp_path / "no.a2a.jsonl").exists()


def test_trim_keeps_the_registration_of_a_webhook(inspect: Inspect, tmp_path: Path) -> None:
    """Who trims to a task keeps the call that registered its webhook."""
    with open_recording_or_cassette(SDK) as recording:
        rows = [row.exchange for row in recording.read_exchanges()]
    made = next(row for row in rows if row.operation == "CreateTaskPushNotificationConfig")
    asked = next(row for row in rows if row.operation == "ListTaskPushNotificationConfigs")
    assert inspect("cassette", "trim", SDK, asked.id, "-o", tmp_path / "t.a2a.jsonl") == 0
    assert f"also kept  #{made.id}  registered the webhook of #{asked.id}" in inspect.out


def test_merge_writes_a_cassette(inspect: Inspect, tmp_path: Path) -> None:
    """Of cassettes and recordings; the same session goes in once; sources and other files are
    safe."""
    out = tmp_path / "m.a2a.jsonl"
    assert inspect("merge", out, DEMO, SDK, DEMO) == 0
    assert inspect.out.endswith(f"merged 2 sessions into {out}\n")
    with (
        open_recording_or_cassette(out) as made,
        open_recording_or_cassette(DEMO) as one,
        open_recording_or_cassette(SDK) as other,
    ):
        assert made.count_rows().frames == one.count_rows().frames + other.count_rows().frames
    assert inspect("merge", out, DEMO) == 2
    assert "--overwrite" in inspect.err
    before = out.read_bytes()
    assert inspect("merge", out, out, "--overwrite") == 2
    assert out.read_bytes() == before
    other_file = tmp_path / "notes.jsonl"
    other_file.write_text("mine")
    assert inspect("merge", other_file, DEMO, "--overwrite") == 2
    assert other_file.read_text() == "mine"


def test_invalid_cassettes_are_refused(inspect: Inspect, tmp_path: Path) -> None:
    """Another file, a recording, no file, a folder: a clear line each."""
    other = tmp_path / "other.yaml"
    other.write_text("interactions: []\n")
    for path, message in (
        (other, "is not a cassette"),
        (tmp_path / "none", "cannot"),
        (tmp_path, "is not a cassette"),
    ):
        assert inspect("cassette", "fmt", path) == 2
        assert message in inspect.err
        assert "Traceback" not in inspect.err
