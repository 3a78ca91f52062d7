"""The lessons of the manual (`learn-*.md`) run as they are written: each command, in order, in one
shell.

Output that a lesson shows must be a part of what the command prints, line by line and in order;
numbers, ids and runs of spaces may differ.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

MANUAL = Path(__file__).parents[2] / "proxy/a2a_proxy/manual"
LESSONS = sorted(MANUAL.glob("learn-*.md"))
SECONDS = 120.0
_MARK = "=== command"


def _files(text: str) -> dict[str, str]:
    """Return the files that the lesson has the reader write: a name in code, and the Python block
    after it."""
    return dict(re.findall(r"Write `([\w.]+)`[^`]*?```python\n(.*?)```", text, re.DOTALL))


def _commands(text: str) -> list[tuple[str, list[str]]]:
    """Return each command with the lines that the lesson shows of its output."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


_VARIES = {
    "version": r"\d+\.\d+\.\d+(?= )",
    "id": r"\b(?=[a-f]*\d)[0-9a-f]{8}(?:-[0-9a-f]+)*",
    "number": r"\d+(?:[.:]\d+)*",
    "unit": r"(?<=\d )(?:ns|us|ms|s)\b",
    "rest": r"\.\.\.",
    "space": r"\s+",
}
_SHOWS = {
    "version": r"\S+",
    "id": "[0-9a-f-]+",
    "number": "[0-9.:]+",
    "unit": "[num]?s",
    "rest": ".*",
    "space": r"\s+",
}
_PARTS = re.compile(
    "|".join(f"(?P<{name}>{pattern})" for name, pattern in _VARIES.items()) + "|(?P<same>.)"
)


def _pattern(line: str) -> re.Pattern[str]:
    """Return a pattern for a line of output, in which numbers, ids, units of time and spaces may
    differ."""
    parts = ((str(found.lastgroup), found[0]) for found in _PARTS.finditer(line.strip()))
    return re.compile("".join(_SHOWS.get(kind) or re.escape(text) for kind, text in parts))


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _run(text: str, folder: Path) -> list[str]:
    """Run the commands of a lesson in one shell, and return the output of each."""
    for name, content in _files(text).items():
        (folder / name).write_text(content)
    (folder / "pytest.ini").write_text("[pytest]\n")
    lines = ["set -m", "exec 2>&1"]
    for number, (command, _) in enumerate(_commands(text)):
        lines += [f"echo '{_MARK} {number}'", command]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:xdist -p no:asyncio -p no:aiohttp",
    }
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return re.split(rf"{_MARK} \d+\n", done.stdout)[1:]


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: str(page.stem))
def test_each_command_prints_what_the_lesson_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    for port, free in zip((8000, 9000), _free_ports(2), strict=True):
        text = text.replace(f":{port}", f":{free}")
    outputs = _run(text, tmp_path)
    commands = _commands(text)
    assert len(outputs) == len(commands)
    for (command, expected), output in zip(commands, outputs, strict=True):
        rest = output
        for line in expected:
            found = _pattern(line).search(rest)
            assert found, f"$ {command}\nthe lesson shows: {line}\nthe command printed:\n{output}"
            rest = rest[found.end() :]


def test_there_are_lessons() -> None:
    assert len(LESSONS) >= 3
