"""Each command run as a process prints what it prints when other tests run it in their own
process."""

from __future__ import annotations

from pathlib import Path

import pytest

from support_cli import run, run_here

RECORDINGS = Path(__file__).parents[3] / "recordings"
DEMO, OTHER = RECORDINGS / "demo.a2a.jsonl", RECORDINGS / "lossy.a2a.jsonl"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, ("ls", DEMO)),
        (0, ("show", DEMO, "--payloads")),
        (0, ("tail", DEMO)),
        (0, ("stats", DEMO)),
        (0, ("segments", DEMO)),
        (2, ("lanes", DEMO, "no-such-task")),
        (1, ("diff", DEMO, OTHER)),
        (1, ("check", OTHER)),
        (2, ("card", "absent.json")),
        (0, ("rules", "GEN-001")),
        (2, ("merge", DEMO, OTHER)),
        (2, ("prune", "absent.a2a.db")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_process_prints_the_same_as_the_function(
    code: int, words: tuple[object, ...], tmp_path: Path
) -> None:
    there, here = (
        run(tmp_path / "state", "a2a-inspect", *words),
        run_here(tmp_path / "state", *words),
    )
    assert (there.code, there.out, there.err) == (here.code, here.out, here.err)
    assert there.code == code
    assert there.out or there.err
