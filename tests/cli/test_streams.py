"""Output to restricted streams: a terminal without UTF-8, or a closed stream."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from a2a_inspect.lanes.layout import _MARK_SIGNS
from a2a_proxy.cli.streams import prepare_streams
from support_cli import SECONDS, environment, program, run

SAMPLE = Path(__file__).parents[2] / "recordings" / "generations.a2a.jsonl"


@pytest.mark.parametrize(
    "words", [("ls",), ("show", "-p"), ("stats", "--histogram")], ids=lambda words: words[0]
)
def test_a_terminal_without_utf_8(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(tmp_path, "a2a-inspect", words[0], SAMPLE, *words[1:], PYTHONIOENCODING="ascii")
    assert (done.code, done.err) == (0, "")
    assert done.out.isascii()


def test_drawings_keep_their_shape_without_utf_8(tmp_path: Path) -> None:
    command = ("lanes", SAMPLE, 1, "--width", 80)
    plain = run(tmp_path, "a2a-inspect", *command, PYTHONIOENCODING="latin-1").lines
    drawn = run(tmp_path, "a2a-inspect", *command, PYTHONIOENCODING="utf-8").lines
    assert [len(line) for line in plain] == [len(line) for line in drawn]
    assert any("-->|" in line for line in plain)


@pytest.mark.parametrize("sign", [*(sign for sign, _ in _MARK_SIGNS.values()), *"▸◂→←"])
def test_every_sign_has_a_one_cell_ascii_substitute(sign: str) -> None:
    """Of one cell."""
    prepare_streams()
    assert len(sign.encode("ascii", "a2a_visible")) == 1


def test_unprintable_characters_are_escaped_by_code_point(tmp_path: Path) -> None:
    done = run(tmp_path, "a2a-inspect", "ls", SAMPLE, "-f", "\u2603", PYTHONIOENCODING="ascii")
    assert done.err == "nothing matches \\u2603\n"


@pytest.mark.parametrize("words", ["ls", "ls --json", "show", "rules", "nonsense"])
def test_closed_output(tmp_path: Path, words: str) -> None:
    command, *rest = words.split()
    line = [
        program("a2a-inspect"),
        command,
        *([str(SAMPLE)] if command in ("ls", "show") else []),
        *rest,
    ]
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", *line],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(tmp_path),
        check=False,
    )
    assert done.returncode == (2 if command == "nonsense" else 0), done.stderr
    assert "Traceback" not in done.stderr


def test_closed_stderr_leaves_stdout_unchanged(tmp_path: Path) -> None:
    line = ["/bin/sh", "-c", '"$@" 2>&-', "sh", program("a2a-inspect"), "ls", str(SAMPLE), "--json"]
    done = subprocess.run(
        line,
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
        env=environment(tmp_path),
        check=False,
    )
    assert done.returncode == 0
    assert [json.loads(printed)["id"] for printed in done.stdout.splitlines()] == list(range(1, 28))


def test_a_follower_ends_with_its_reader(tmp_path: Path) -> None:
    """`tail -f | head`: also where nothing more is recorded."""
    line = [program("a2a-inspect"), "tail", "-f", "-n", "30", str(SAMPLE)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, env=environment(tmp_path)) as following:
        assert following.stdout is not None
        assert following.stdout.readline()
        following.stdout.close()
        assert following.wait(SECONDS) == 0
