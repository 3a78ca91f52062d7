"""The command line of `a2a-inspect`: help of `card`, and completion by the shell."""

from __future__ import annotations

from pathlib import Path

from click.shell_completion import ShellComplete

from a2a_inspect.cli.main import cli
from support_cli import run_here


def test_help_names_the_exit_codes_and_the_path_order(tmp_path: Path) -> None:
    text = " ".join(run_here(tmp_path / "state", "card", "--help").out.split())
    assert "tried at /.well-known/agent-card.json and then at the older path agent.json" in text
    assert (
        "Exit code: 0 no finding is severe enough, 1 at least one is, 2 there is no card to check."
        in text
    )


def complete(words: list[str], begun: str) -> list[tuple[str, str]]:
    """Type and value of each completion of the word `begun` after `words`."""
    shell = ShellComplete(cli, {}, "a2a-inspect", "_A2A_INSPECT_COMPLETE")
    return [(each.type, each.value) for each in shell.get_completions(words, begun)]


def test_completion_of_the_command() -> None:
    """Its options, and files."""
    assert {("plain", "--probe"), ("plain", "--format")} <= set(complete(["card"], "--"))
    assert complete(["card"], "some") == [("file", "some")]


def test_completion_of_the_first_word() -> None:
    """A command, or a recording that the screen opens, or an option of the program or of the
    screen."""
    assert complete([], "ca") == [("plain", "card"), ("plain", "cassette")]
    assert complete([], "run") == [("file", "run")]
    assert complete([], "--") == [
        ("plain", f"--{name}") for name in ("version", "help", "web", "port", "write")
    ]
    assert complete(["run.db"], "--w") == [("plain", "--web"), ("plain", "--write")]


def test_an_unknown_export_format_is_answered_with_the_existing_ones(tmp_path: Path) -> None:
    done = run_here(tmp_path, "export", "pdf")
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        "a2a-inspect: error: export has no format pdf",
    )
    assert "formats: har, html, jsonl, " in done.err
    assert "show 2 --as curl" in done.err
