"""Mermaid itself draws each of our diagrams, whatever peers have sent."""

from __future__ import annotations

import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.data.frame_summary import flatten_line_ends
from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.mermaid import write_mermaid
from a2a_inspect.lanes.mermaid import diagram_lines
from a2a_inspect.lanes.model import LaneRow, LaneRowKind, PartyLane, PartyRole
from a2a_proxy.model.values import FrameKind
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from support_browser import Page, browsing

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / ".peers" / "mermaid" / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"
pytestmark = [
    pytest.mark.soak,
    pytest.mark.peers,
    pytest.mark.skipif(
        not PROGRAM.exists(), reason="Mermaid is missing: run `python tests/peers/setup.py mermaid`"
    ),
]
SAMPLES = sorted((ROOT / "recordings").glob("*.a2a.jsonl"))
HOSTILE = (
    *(
        "end",
        "loop x",
        "participant X",
        "activate L0",
        "%% comment",
        "%%{init: {}}%%",
        "->>",
        "L0->>L1: x",
        ": :",
    ),
    *(
        "a;b",
        "a#b",
        "#35;",
        "&amp;",
        "$$x$$",
        "`code`",
        "\\",
        "{ }",
        "@{ a: b }",
        "[x](y)",
        "wrap: no",
        "(nothing)",
    ),
    *(
        'say "hi"',
        "it's",
        "<b>bold</b>",
        "<br/>",
        "<script>document.title='owned'</script>",
        "emoji 😀",
    ),
    *("a\nNote over L0: owned", "\u202eright", "\t\x1b[31m"),
)
DRAW = """(async text => {
  const {svg} = await mermaid.render("drawn", text);
  document.body.innerHTML = svg;
  const said = name => [...document.querySelectorAll(name)].map(each => each.textContent);
  return {texts: said("text"), too_large: svg.includes("Maximum text size")};
})"""


@asynccontextmanager
async def program(folder: Path) -> AsyncIterator[Page]:
    """A page with Mermaid, as it is for who gives it no settings."""
    blank = folder / "blank.html"
    blank.write_text(f"<meta charset=utf-8><body><script src='{PROGRAM.as_uri()}'></script>")
    async with browsing() as browser:
        page = await browser.page()
        await page.go(blank.as_uri())
        await page.run("mermaid.initialize({startOnLoad: false})")
        yield page


async def drawn(page: Page, text: str) -> list[str]:
    """The texts of the drawing. Fails where it is none."""
    made: dict[str, Any] = await page.run(f"{DRAW}({json.dumps(text)})")
    assert not made["too_large"]
    texts: list[str] = made["texts"]
    return texts


async def test_all_samples_are_drawn(tmp_path: Path) -> None:
    """With a text for every message at least."""
    async with program(tmp_path) as page:
        for path in SAMPLES:
            stream = io.BytesIO()
            with open_recording_or_cassette(path) as recording:
                write_mermaid(ExportSelection(recording), stream)
            for text in re.findall(r"```mermaid\n(.*?)```", stream.getvalue().decode(), re.DOTALL):
                assert len(await drawn(page, text)) >= len(
                    re.findall(r"^    (?:L\d+-|Note)", text, re.MULTILINE)
                )


async def test_payload_text_is_not_interpreted(tmp_path: Path) -> None:
    """As the name of a party, in a message and in a note: it stands there as it was said."""
    async with program(tmp_path) as page:
        for word in HOSTILE:
            lanes = [PartyLane("client", PartyRole.CLIENT), PartyLane(word, PartyRole.AGENT)]
            rows = [_message(word), LaneRow(LaneRowKind.FINDING, 0, 0, 0, 1, 1, word, 1, 1, 1)]
            texts = await drawn(page, "\n".join(diagram_lines(lanes, rows, len(rows))))
            words = [each.split() for each in texts]
            assert words.count(flatten_line_ends(make_visible(word)).split()) == 4, (
                word
            )  # the party stands above and below
        assert await page.run("document.title") == ""
        assert not page.log


async def test_the_longest_diagram_is_drawn(tmp_path: Path) -> None:
    """With the words that tell of the rest."""
    lanes = [PartyLane("client", PartyRole.CLIENT), PartyLane("agent", PartyRole.AGENT)]
    rows = [_message(f"message {number} 😀") for number in range(3000)]
    async with program(tmp_path) as page:
        texts = await drawn(page, "\n".join(diagram_lines(lanes, rows, len(rows))))
    left_out = 3000 - sum(each.startswith("message") for each in texts)
    assert 0 < left_out < 3000
    assert f"{left_out} of 3000 rows are left out" in texts


def _message(text: str) -> LaneRow:
    return LaneRow(LaneRowKind.FRAME, 0, 0, 0, 0, 1, text, 1, 1, 0, 5, FrameKind.REQUEST)
