"""The difference on the screen, driven by keys and read as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.app import InspectApp
from a2a_inspect.data.source import RecordingSource
from a2a_inspect.dialogs.choose_recording import recordings_beside
from a2a_inspect.screens.compare import compare_with_another
from support_inspect import sample
from support_screen import LARGE, SMALL, Person, looking

DEMO = Path(__file__).parents[3] / "recordings" / "demo.a2a.jsonl"


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_a_call_is_compared_with_the_previous_one(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """`D` on the last of three calls; the second ended in an error. n and N go from one to the
    next, s swaps the sides, a shows what does not count, q goes back."""
    async with looking(sample(tmp_path / "r.db"), size) as person:
        await person.sees("3 exchanges")
        await person.types("D")
        await person.sees(
            "r.db",
            "#2  |  #3",
            "different: 3 differences",
            "- of 3",
            "TASK_NOT_FOUND",
            "Question [2]",
            "Question [3]",
        )
        sides = any("Question [2]" in line and "Question [3]" in line for line in person.lines)
        assert sides == (size == LARGE)
        await person.types("n", "n")
        await person.sees("2 of 3", "▌")
        await person.types("N", "N")
        await person.sees("3 of 3")
        await person.types("s")
        await person.sees("#3  |  #2", "- of 3")
        await person.types("a")
        await person.sees("all fields")
        await person.types("q")
        await person.sees("OPERATION")


async def test_marks(tmp_path: Path) -> None:
    """The marked call and the one under the cursor; two frames, of which only payloads are
    compared."""
    async with looking(sample(tmp_path / "r.db")) as person:
        await person.sees("3 exchanges")
        await person.types("g", "g", "m", "G", "D")
        await person.sees("#1  |  #3", "Question [1]")
        await person.types("q", "g", "g", "m", "enter", "j", "m", "j", "m", "D")
        await person.sees("#1.1  |  #1.2", "different: 1 difference", "Thinking", "Nearly")


async def test_without_a_second_call_there_is_a_message(tmp_path: Path) -> None:
    app = InspectApp(RecordingSource(sample(tmp_path / "r.db", 1)))
    async with app.run_test(size=LARGE, notifications=True) as pilot:
        person = Person(app, pilot)
        await person.sees("1 exchange")
        await person.types("D")
        await person.sees("Nothing to compare")


async def test_another_recording_from_the_palette(tmp_path: Path) -> None:
    """Recordings of the same folder are offered; other files are refused."""
    sample(tmp_path / "r.db")
    sample(tmp_path / "other.db", 4)
    (tmp_path / "none.db").write_text(
        "this is no database, and is quite a bit longer than one line " * 20
    )
    async with looking(tmp_path / "r.db", SMALL) as person:
        await person.sees("3 exchanges")
        await person.types("ctrl+p", *"compare")
        await person.sees("Compare this recording with another one")
        await person.types("enter")
        await person.sees("Compare with", "other.db", "none.db")
        await names(person, tmp_path / "other.db")
        await person.sees("r.db  |  other.db", "different: of 4 calls 1 only right, 3 the same")
        await person.types("q")
        compare_with_another(person.app.screen, tmp_path / "r.db")  # type: ignore[arg-type]
        await person.sees("Compare with")
        await names(person, tmp_path / "none.db")
        await person.reads("none.db is not a recording name another file")


async def names(person: Person, path: Path) -> None:
    """Put a name into the box."""
    await person.types("tab")
    await person.writes(str(path))
    await person.types("enter")


def test_recordings_of_a_folder(tmp_path: Path) -> None:
    """The newest first; a folder that is not there has none."""
    for name in ("a.db", "b.a2a.jsonl", "c.txt"):
        (tmp_path / name).write_text("")

    assert sorted(path.name for path, _ in recordings_beside(tmp_path / "x")) == [
        "a.db",
        "b.a2a.jsonl",
    ]
    assert [path.name for path, _ in recordings_beside(tmp_path / "a.db")] == ["b.a2a.jsonl"]
    assert recordings_beside(tmp_path / "none" / "x") == []
