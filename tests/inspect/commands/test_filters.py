"""`--filter` of `ls`, `show` and `check`."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from a2a_inspect.check import run as check
from a2a_inspect.commands.diff import DiffOptions, print_diff
from support_cli import Ran, run_here
from support_query import rich


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filters")
    rich(folder / "r.a2a.db")
    return folder


def inspect(folder: Path, command: str, *words: str) -> Ran:
    return run_here(folder / "state", command, str(folder / "r.a2a.db"), *words)


def test_ls_lists_matching_exchanges(folder: Path) -> None:
    """With the heading of each session that has any; the same as JSON."""
    ran = inspect(folder, "ls", "-f", "binding:grpc")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split()[0] for line in ran.lines if line.strip()] == [
        "session",
        "#",
        "#1:7",
        "session",
        "#",
        "#2:7",
    ]
    found = [
        json.loads(line) for line in inspect(folder, "ls", "--json", "-f", "binding:grpc").lines
    ]
    assert [(each["session"], each["binding"]) for each in found] == [(1, "grpc"), (2, "grpc")]
    one = inspect(folder, "ls", "--filter", "binding:grpc rec:2")
    assert [line.split()[0] for line in one.lines] == ["session", "#", "#2:7"]


def test_ls_lists_tasks_of_matching_exchanges(folder: Path) -> None:
    """Those that a matching exchange has touched."""
    ran = inspect(folder, "ls", "--tasks", "--json", "-f", "task=order-7 rec:1")
    assert [json.loads(line)["task_id"] for line in ran.lines] == ["order-7"]


def test_show_shows_the_frames_that_match(folder: Path) -> None:
    """Under their exchanges; the others are left out, as are exchanges without any."""
    ran = inspect(folder, "show", "-f", "task=order-7 state:completed")
    assert sum("status completed" in line for line in ran.lines) == 2
    assert not [line for line in ran.lines if "-->" in line or "<-- status working" in line]
    objects = [
        json.loads(line)
        for line in inspect(folder, "show", "--json", "-f", "task=order-7 state:completed").lines
    ]
    assert [[frame["state"] for frame in each["frames"]] for each in objects] == [
        ["completed"],
        ["completed"],
    ]
    assert not [each for each in objects if "finding" in each]


def test_check_reports_matching_exchanges(folder: Path) -> None:
    """The rules see all that passed; what they find elsewhere is left out."""
    exchanges = []
    for words in ((), ("-f", "task=order-7")):
        facts = map(
            json.loads,
            inspect(folder, "check", "--format", "json", "--fail-on", "never", *words).lines,
        )
        exchanges.append([each.get("exchange") for each in facts if each["event"] == "finding"])
    assert set(exchanges[1]) == {3}
    assert len(exchanges[1]) == exchanges[0].count(3)
    assert len(set(exchanges[0])) > 1


@pytest.mark.parametrize("command", ["ls", "show"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_no_match_is_a_message_and_exit_code_0(
    folder: Path, command: str, more: tuple[str, ...]
) -> None:
    """That is an answer: on stderr, with exit code 0."""
    ran = inspect(folder, command, "-f", "op:ListTasks", *more)
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing matches op:ListTasks\n")


def test_check_and_diff_report_that_nothing_matches(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip in a filter must not look like a good report."""
    path = str(folder / "r.a2a.db")
    options = check.CheckOptions(where="op:ListTasks", allow_incomplete=True)
    codes = (
        check.run_check((Path(path),), options, datetime.date.min),
        print_diff(DiffOptions((path, path), where="op:ListTasks")),
    )
    assert (codes, capsys.readouterr().err) == ((0, 0), "nothing matches op:ListTasks\n" * 2)


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ("finding:GEN-001", {8}),
        ("finding:gen", {8}),
        ("finding:A2A-ART-006", {9}),
        ("finding=A2A-ART-006", {9}),
        ("finding:A2A-GE", set()),
        ("finding:streamed", {9}),
        ("outcome:error", {5}),
        ("-outcome:ok", {5}),
        ("op:Send*", {2, 3, 4, 6, 8}),
        ("method:tasks/get", {5, 7, 9}),
        ("method:tasks/g*", {5, 7, 9}),
    ],
)
def test_ids_of_rules_outcomes_and_beginnings(
    tmp_path: Path, where: str, numbers: set[int]
) -> None:
    """The conversation of `a2a-proxy demo --lossy`."""
    path = Path(__file__).parents[3] / "recordings/lossy.a2a.jsonl"
    done = run_here(tmp_path, "ls", path, "-f", where, "--json")
    assert {json.loads(line)["id"] for line in done.lines} == numbers


@pytest.mark.parametrize("command", ["ls", "show", "check"])
def test_filter_errors_show_their_position(folder: Path, command: str) -> None:
    """Message, expression, caret, hint; exit code 2 and no output."""
    ran = inspect(folder, command, "-f", "state:working taks:1")
    assert (ran.code, ran.out) == (2, "")
    first, second, third, hint = ran.err.splitlines()
    assert first == 'a2a-inspect: error: unknown field "taks"; did you mean "task"?'
    assert (second, third) == ("  state:working taks:1", "                ^")
    assert hint.startswith("a2a-inspect: hint: fields: op binding ")


def test_a_slow_pattern_is_an_error(folder: Path) -> None:
    """It is detected while running and reported as any error."""
    ran = inspect(folder, "ls", "-f", "text~(x+x+)+y")
    assert ran.code == 2
    assert "takes longer than 0.25 s on one text" in ran.err


def test_explain_prints_the_query(folder: Path) -> None:
    """`--explain`: the regular spelling, the SQL, its values, the plan."""
    ran = inspect(folder, "ls", "--explain", "-f", "op:message/send  err")
    assert [line.split()[0] for line in ran.lines[:4]] == ["filter", "sql", "values", "plan"]
    assert ran.lines[0] == "filter  op:SendMessage err:yes"
    assert "'SendMessage'" in ran.lines[2]
    assert "SendMessage" not in ran.lines[1]
