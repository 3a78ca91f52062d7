"""One syntax for places, for every command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_inspect.cli.main import cli
from a2a_proxy.cli.main import run_cli
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.tools.merge import merge_sessions

SAMPLE = Path(__file__).parents[3] / "recordings" / "demo.a2a.jsonl"
OTHER = SAMPLE.with_name("generations.a2a.jsonl")


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """`a2a-inspect` in this process: its exit code, what it said, and what went wrong."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))

    def ran(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["a2a-inspect", *map(str, words)])
        code = run_cli("a2a-inspect", cli)
        return code, *capsys.readouterr()

    return ran


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of two sessions."""
    path = tmp_path_factory.mktemp("two") / "two.a2a.db"
    with MultiReader([SAMPLE, OTHER]) as several:
        merge_sessions(several, path)
    return path


def test_show_accepts_every_kind_of_place(two: Path, run: Run) -> None:
    def shown(*words: str) -> list[tuple[int, int, list[int]]]:
        lines = run("show", two, *words, "--json")[1].splitlines()
        objects = [json.loads(line) for line in lines]
        return [
            (each["session"], each["id"], [frame["seq"] for frame in each["frames"]])
            for each in objects
        ]

    assert shown("1:2.5") == [(1, 2, [5])]
    assert shown("1:2.5", "1:2.3", "#1:7.0") == [(1, 2, [3, 5]), (1, 7, [0])]
    assert [len(frames) for _, _, frames in shown("1:2", "1:2.3")] == [8]
    assert {session for session, _, _ in shown("2:")} == {2}
    assert shown("1:2.5", "-f", "kind:status") == []
    with open_recording_or_cassette(SAMPLE) as recording:
        task = next(recording.read_tasks()).task
    assert [number for _, number, _ in shown(task.task_id[:6])] == list(task.exchanges)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("99", "two.a2a.db has no exchange 99; it has #1:1 to #1:7 and #2:1 to #2:27"),
        ("#99", "two.a2a.db has no exchange #99; it has #1:1 to #1:7 and #2:1 to #2:27"),
        ("2:99", "two.a2a.db has no exchange 2:99; it has #2:1 to #2:27"),
        ("1:2.99", "two.a2a.db has no frame 1:2.99; it has #1:2.0 to #1:2.7"),
        ("2.99", "two.a2a.db has no frame 2.99; it has #1:2.0 to #1:2.7 and #2:2.0 to #2:2.1"),
        ("1:99.1", "two.a2a.db has no exchange 1:99.1; it has #1:1 to #1:7"),
        ("3:", "two.a2a.db has no session 3; it has 1 to 2"),
        ("3:1", "two.a2a.db has no session 3; it has 1 to 2"),
        (
            "0",
            (
                "0 is neither an exchange of two.a2a.db nor the "
                "beginning of a task id (4 characters or more)"
            ),
        ),
        (
            "b2",
            (
                "b2 is neither an exchange of two.a2a.db nor the "
                "beginning of a task id (4 characters or more)"
            ),
        ),
        (
            "1:2 nosuch",
            "nosuch is neither an exchange of two.a2a.db nor the beginning of a task id",
        ),
        ("1:2 99", "two.a2a.db has no exchange 99; it has #1:1 to #1:7 and #2:1 to #2:27"),
    ],
)
@pytest.mark.parametrize("command", ["show", "segments"])
def test_an_unknown_reference_is_refused_with_the_existing_ones(
    two: Path, run: Run, command: str, words: str, error: str
) -> None:
    code, _, errors = run(command, two, *words.split())
    assert (code, errors.splitlines()[0]) == (2, f"a2a-inspect: error: {error}")
    assert f": a2a-inspect ls {two}\n" in errors


def test_at_most_three_sessions_are_listed(tmp_path: Path, run: Run) -> None:
    files = (
        SAMPLE,
        OTHER,
        *(SAMPLE.with_name(f"{name}.a2a.jsonl") for name in ("lossy", "stdio", "three-agents")),
    )
    with MultiReader(files) as several:
        merge_sessions(several, tmp_path / "five.a2a.db")
    errors = run("show", tmp_path / "five.a2a.db", "99")[2]
    assert errors.startswith(
        "a2a-inspect: error: five.a2a.db has no exchange 99; it has #1:1 to #1:"
    )
    assert " and those of 2 more sessions\n" in errors


def test_a_folder_is_not_a_place(two: Path, run: Run) -> None:
    code, _, errors = run("show", two, two.parent)
    assert (code, errors.splitlines()[0]) == (
        2,
        f"a2a-inspect: error: {two.parent} is a folder, not a recording",
    )


def test_segments_of_an_exchange_without_messages(two: Path, run: Run) -> None:
    code, _, errors = run("segments", two, "1:1")
    error = "a2a-inspect: error: 1:1 of two.a2a.db is not an exchange with messages"
    assert (code, errors.splitlines()[0]) == (2, error)


@pytest.mark.parametrize("words", [("note", "0", "x"), ("note", "1:0", "x")])
def test_exchange_0_is_refused(two: Path, run: Run, words: tuple[str, ...]) -> None:
    done = run(words[0], two, *words[1:])
    assert (done[0], "is not a place" in done[2]) == (2, True)


@pytest.mark.parametrize("words", [("2",), ("2", "3"), ("1:2", "3")])
def test_diff_requires_the_session_of_an_ambiguous_exchange(
    two: Path, run: Run, words: tuple[str, ...]
) -> None:
    done = run("diff", two, *words)
    assert (done[0], "is in several sessions" in done[2]) == (2, True), done[2]


@pytest.mark.parametrize("words", [("2", "99"), ("3:", "1:"), ("2.99", "2.3"), ("nosuch", "2")])
def test_diff_of_a_missing_place_is_an_error(run: Run, words: tuple[str, str]) -> None:
    done = run("diff", SAMPLE, *words)
    assert (done[0], ("demo.a2a.jsonl has no " in done[2]) or ("nosuch is neither" in done[2])) == (
        2,
        True,
    ), done[2]


@pytest.mark.parametrize("more", [("--json",), ("-f", "err"), ("-p",)])
def test_a_copy_form_excludes_other_options(run: Run, more: tuple[str, ...]) -> None:
    done = run("show", SAMPLE, "2", "--as", "curl", *more)
    assert (done[0], done[1]) == (2, "")
