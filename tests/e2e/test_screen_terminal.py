"""The screen in a real terminal, by keys alone: tasks of a new user and of an experienced one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_proxy.recording.cassette.file import read_cassette
from support_cli import environment, program, run, until
from support_scenes import SAMPLES
from support_terminal import Terminal, terminal

pytestmark = pytest.mark.peers


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Terminal]:
    with terminal(tmp_path) as made:
        yield made


def inspect(state: Path, *words: object) -> list[str]:
    """Return the command as a user types it, with a state directory of its own."""
    own = environment(state, A2A_PROXY_CONFIG=str(state), TZ="UTC")
    set_ = [f"{name}={own[name]}" for name in ("A2A_PROXY_STATE", "A2A_PROXY_CONFIG", "TZ")]
    return ["env", *set_, program("a2a-inspect"), *map(str, words)]


_README = (SAMPLES.parent / "README.md").read_text()
_SHOWN = _README.partition("    $ a2a-inspect show 8\n")[2].partition("\n\n")[0]
_TASK = _README.partition("A long poll is shown as waiting, not as slow:\n\n")[2].partition("\n\n")[
    0
]
README_OUTPUT = [*_SHOWN.splitlines(), *_TASK.splitlines()]
"""Lines of the README that are output of `a2a-inspect show`."""


def test_a_new_user_finds_the_lost_event(tmp_path: Path, window: Terminal) -> None:
    """As in the README: from the demo to the lost event and the reason, in a small terminal."""
    assert run(tmp_path, "a2a-proxy", "demo", "--lossy").code == 0
    window.start((80, 24), *inspect(tmp_path))
    window.sees("2 findings", "SendStreamingMessage", "following")
    window.types("g", "g", "e")
    window.sees("#8 SendStreamingMessage", "▌     4")
    window.types("s")
    window.sees("A2A-GEN-001 generation 4 is missing", "generation 4 missed, healed by #9 GetTask")
    window.types("Escape")
    window.sees("FRAME")
    window.types("Enter", "4")
    window.sees(
        "[4 Findings]",
        "A2A-GEN-001 frame 4",
        "Generation gap",
        "The client missed at least one change",
    )
    window.sees("must act: agent")
    window.types("C-q")
    until(lambda: window.ended)
    shown = without_values(run(tmp_path, "a2a-inspect", "show", "8").out)
    for line in README_OUTPUT:
        pieces = map(without_values, line.strip().split("…"))
        assert re.search(".*".join(map(re.escape, pieces)), shown), (
            f"the README shows another line: {line}"
        )


def without_values(text: str) -> str:
    """Return a text of `a2a-inspect show` without times, and without the ids of tasks."""
    return re.sub(
        r"task [0-9a-f]{8}[0-9a-f-]*|[+]? *[0-9.:]+ [mu]?s\b|[0-9:]{8}[.][0-9]{3}", "-", text
    )


def test_a_recording_is_read_by_keys(tmp_path: Path, window: Terminal) -> None:
    """Filter, open a frame and a finding with its rule, copy, export the matches, compare, open the
    help, change the theme."""
    path = tmp_path / "demo.a2a.db"
    read_cassette(SAMPLES / "dialect-vendor.a2a.jsonl", path)
    window.start((160, 50), *inspect(tmp_path, path))
    window.sees("5 exchanges", "10 findings", '"method": "message/send"')
    window.types("/")
    window.sees("valid")
    window.types("rule:A2A-RPC-012")
    window.sees("A2A-RPC-012  2")
    window.types("Enter")
    window.sees("2 of 5")
    window.types("Enter", "Enter", "2")
    window.sees("[2 Raw]", "00000000")
    window.types("4")
    window.sees(
        "error A2A-RPC-002 frame 0",
        "is missing or is not",
        "examples: a2a-inspect rules A2A-RPC-002",
    )
    window.types("y")
    window.sees("Copy #4.0 as")
    window.types("j")
    window.sees("copied with tmux")
    assert json.loads(window.copied) == {"method": "message/stream"}
    window.types("x")
    window.sees("matches of rule:A2A-RPC-012")
    window.types("f")
    (exported,) = until(lambda: list(tmp_path.glob("*.a2a.jsonl")))
    window.sees(exported.name)
    window.types("D")
    window.sees("demo.a2a.db  #3  |  #4", "HTTP 406")
    window.types("Escape")
    window.sees("10 findings", "[4 Findings]")
    window.types("?")
    window.sees("All screens", "quit immediately")
    window.types("Escape")  # alone, because a following key would be read as part of it
    until(lambda: "quit immediately" not in window.text)
    window.types("T")
    window.sees("day")
    window.types("C-q")
    until(lambda: window.ended)
    assert (tmp_path / "theme").read_text() == "day\n"
    assert run(tmp_path, "a2a-inspect", "ls", exported, "--json").out.count("\n") == 2
