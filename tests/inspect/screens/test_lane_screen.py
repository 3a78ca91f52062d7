"""The swimlane on the screen."""

from __future__ import annotations

from pathlib import Path

from a2a_inspect.widgets.lane_list import LaneList
from a2a_proxy.recording.cassette.file import read_cassette
from support_inspect import changes, live, request, status, writer
from support_screen import SMALL, looking

GENERATIONS = Path(__file__).resolve().parents[3] / "recordings" / "generations.a2a.jsonl"


async def test_a_lost_event_is_reached_from_its_call(tmp_path: Path) -> None:
    """`s` draws the task, `e` jumps to the finding, its full text is below, Enter opens its
    frame."""
    read_cassette(GENERATIONS, tmp_path / "r.db")
    async with looking(tmp_path / "r.db", SMALL) as person:
        await person.sees("OPERATION")
        await person.types("g", "g", "s")
        await person.sees(
            "Swimlane › task 3f7b1bdf", "SECONDS", "client", "├─ message user", "9 frames"
        )
        await person.types("e")
        await person.sees(
            "#1.4  127.0.0.1:44771",
            "error  A2A-GEN-001 generation 4 is missing: 3 is followed by 5",
        )
        await person.types("e", "e")  # the second one finds none
        await person.sees("#1  127.0.0.1:44771", "generation 4 missed")
        await person.types("E", "enter")
        await person.sees("Exchanges › #1 SendStreamingMessage", "▌     4", "KIND")
        await person.types("s")
        await person.sees("#1.4  127.0.0.1:44771 → client")
        await person.types("q")
        await person.sees("KIND")


async def test_the_swimlane_opens_at_the_shown_frame(tmp_path: Path) -> None:
    """Where all panes are seen it is chosen though the list of calls has the focus."""
    read_cassette(GENERATIONS, tmp_path / "r.db")
    async with looking(tmp_path / "r.db") as person:
        await person.sees("OPERATION")
        await person.types("g", "g", "e")
        await person.sees("Frame 4:")
        await person.types("s")
        await person.sees("#1.4  127.0.0.1:44771 → client")


async def test_the_swimlane_grows_with_the_task(tmp_path: Path) -> None:
    made = writer(tmp_path / "r.db")
    made.write([request(1)], changes=changes(live(1, events=0)))
    async with looking(tmp_path / "r.db") as person:
        await person.sees("Plan a day")
        await person.types("s")
        await person.sees("1 frame", "├─ message user")
        made.write([status(1, 1, "Halfway")], changes=changes(live(1, events=1)))
        await person.sees("2 frames", '◀─ status working "Halfway"')
        await person.types("G")
        rows = person.app.screen.query_one(LaneList)
        made.write([status(1, 2, "Done")], changes=changes(live(1, events=2)))
        await person.until(lambda: rows.cursor == 2, "the last row")
    made.close()
