"""The command `completion` of both programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support_cli import environment, program, run


@pytest.mark.parametrize("name", ["a2a-proxy", "a2a-inspect"])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_for_the_program(tmp_path: Path, name: str, shell: str) -> None:
    done = run(tmp_path, name, "completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_{name.replace('-', '_').upper()}_COMPLETE={shell}_complete" in done.out


def test_the_script_completes_commands(tmp_path: Path) -> None:
    """As bash calls the program."""
    words = {
        "_A2A_INSPECT_COMPLETE": "bash_complete",
        "COMP_WORDS": "a2a-inspect sh",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [program("a2a-inspect")],
        env=environment(tmp_path, **words),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["plain,show"]


@pytest.mark.parametrize(
    ("word", "question"),
    [("serve", ""), ("exprot", ". Did you mean 'export'?"), ("shwo", ". Did you mean 'show'?")],
)
def test_only_close_commands_are_suggested(tmp_path: Path, word: str, question: str) -> None:
    done = run(tmp_path, "a2a-inspect", word)
    assert done.err.splitlines()[0] == f"a2a-inspect: error: no such command '{word}'{question}"
