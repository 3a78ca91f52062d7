"""Tables: complete if not printed to a terminal, else one line per row."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
from pathlib import Path

import pytest

from a2a_inspect.widgets.table import TableLimits, table_lines
from support_cli import SECONDS, environment, program
from support_inspect import changes, exchange, writer
from support_recording import STARTED

HEAD = ("#", "WHAT", "TASK", "ERROR")
ROWS = [("1", "SendStreamingMessage", "t-123", "the agent is not there"), ("2", "漢字" * 9, "", "")]


def test_without_a_width_nothing_is_cut() -> None:
    """Every cell in full."""
    lines = list(table_lines(HEAD, ROWS))
    assert all(cell in line for row, line in zip(ROWS, lines[1:], strict=True) for cell in row)


def test_wide_tables_are_narrowed_by_priority() -> None:
    """First columns over their cap are narrowed, then whole columns dropped, then the others cut;
    also rows after the sample."""
    gives = (("TASK", 0), ("WHAT", 9), ("ERROR", 8))
    lines = {
        width: list(table_lines(HEAD, ROWS, TableLimits(width, {"WHAT": 12}, gives)))
        for width in (60, 40, 25)
    }
    assert lines[60][1] == "1  SendStreami…  t-123  the agent is not there"
    assert lines[40][1] == "1  SendStreami…  the agent is not there"
    assert lines[25][1] == "1  SendStre…  the agent …"
    begun = {"ERROR": lambda cell, width: cell[: width // 2]}
    short = list(table_lines(HEAD, ROWS, TableLimits(25, {"WHAT": 12}, gives, begun)))
    assert short[1] == "1  SendStre…  the a"
    late = [*[("1", "a", "b", "c")] * 300, ROWS[0]]
    assert list(table_lines(HEAD, late, TableLimits(60, {}, ())))[-1] == "1  Sen…  t-1…  the …"


@pytest.mark.parametrize("width", [60, 80])
def test_ls_on_a_terminal_has_one_line_per_row(tmp_path: Path, width: int) -> None:
    """Of a common width, with a long operation and a long error; what went wrong is still begun."""
    path = tmp_path / "r.db"
    made = writer(path)
    wrong = "TASK_NOT_FOUND -32001: no such task in this place or in any other"
    made.write(
        [],
        changes=changes(
            exchange(1, operation="", method="GET", target="/" + "x" * 90, error=wrong)
        ),
    )
    made.finish(STARTED)
    for words in (["ls"], ["ls", "--tasks"]):
        lines = on_a_terminal(tmp_path, width, words[0], str(path), *words[1:])
        assert max(map(len, lines)) <= width
    lines = on_a_terminal(tmp_path, width, "ls", str(path))
    assert len(lines) == 2
    assert "TASK_NO" in lines[1]
    assert "GET /xx" in lines[1]


def on_a_terminal(folder: Path, width: int, *words: str) -> list[str]:
    """What a command prints on a terminal so many columns wide."""
    ours, theirs = pty.openpty()
    env = environment(folder / "state", COLUMNS=str(width))
    with subprocess.Popen([program("a2a-inspect"), *words], stdout=theirs, env=env) as process:
        os.close(theirs)
        assert process.wait(SECONDS) == 0
    data = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
        while more := os.read(ours, 1 << 16):
            data += more
    os.close(ours)
    return data.decode().splitlines()
