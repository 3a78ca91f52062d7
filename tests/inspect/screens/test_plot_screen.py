"""Plots on the screen."""

from __future__ import annotations

from pathlib import Path

from a2a_proxy.recording.cassette.file import read_cassette
from support_screen import SMALL, looking

DEMO = Path(__file__).resolve().parents[3] / "recordings" / "demo.a2a.jsonl"


async def test_a_time_range_is_chosen(tmp_path: Path) -> None:
    """Keys move over time; a zoom shows less of it, and can be taken back."""
    read_cassette(DEMO, tmp_path / "r.db")
    async with looking(tmp_path / "r.db", SMALL) as person:
        await person.sees("OPERATION")
        await person.types("L")
        await person.sees(
            "Plots", "34 frames", "FRAMES  at most", "BYTES", "▲", "P95", "SendStreaming", "100s"
        )
        await person.types("z")
        await person.sees("zoomed")
        await person.types("u")
        await person.until(lambda: person.misses("zoomed"), "all of it")
        await person.types("end", "shift+left")
        await person.sees("exchange began")
        await person.types(
            "home", "enter"
        )  # the first step is the agent card's and the first stream's
        await person.sees("OUTCOME", "GetAgentCard", "2 of 7", "only t>=2026-11-21T20:28:13")
        await person.types("L")
        await person.sees("Plots of t>=", "GetAgentCard")
        await person.types("escape", "escape")
        await person.sees("GetTask")
