"""A conversation as a diagram."""

from __future__ import annotations

import pytest

from a2a_inspect.lanes.mermaid import diagram_lines
from a2a_inspect.lanes.model import LaneRow, LaneRowKind, PartyLane, PartyRole
from a2a_proxy.model.values import FrameKind

LANES = [PartyLane("client", PartyRole.CLIENT), PartyLane("agent:1; drop", PartyRole.AGENT)]


def test_a_diagram() -> None:
    """Messages, a broken stream, notes; nothing that a peer says is read as the language's own."""
    rows = [
        LaneRow(
            LaneRowKind.FRAME,
            0,
            0,
            0,
            0,
            1,
            "ask #1;\x1b\n<b> $$x$$\n",
            1,
            1,
            0,
            5,
            FrameKind.REQUEST,
        ),
        LaneRow(LaneRowKind.PAUSE, 0, 0, 2_000_000_000, 0, 0, "", 1, 0, -1),
        LaneRow(LaneRowKind.FRAME, 0, 0, 0, 1, 0, "", 1, 1, 1, 6, FrameKind.EVENT),
        LaneRow(LaneRowKind.FINDING, 0, 0, 0, 1, 1, "error  A2A-X-001", 1, 1, 1),
        LaneRow(LaneRowKind.FRAME, 0, 0, 0, 1, 0, "agent broke off", 1, 1, 2, 7, FrameKind.CUT),
    ]
    assert list(diagram_lines(LANES, rows, len(rows))) == [
        "sequenceDiagram",
        "    actor L0 as client",
        "    participant L1 as agent:1#59; drop",
        "    L0->>L1: ask #35;1#59;␛ #lt;b#gt; #36;#36;x#36;#36;",
        "    Note over L0,L1: 2.0 s of silence",
        "    L1-->>L0: (nothing)",
        "    Note over L1: error A2A-X-001",
        "    L1-xL0: agent broke off",
    ]


@pytest.mark.parametrize("word", ["wrap", "nowrap"])
def test_wrap_commands_in_text_are_escaped(word: str) -> None:
    """The language takes `wrap:` at its beginning as a command, and away."""
    rows = [LaneRow(LaneRowKind.FRAME, 0, 0, 0, 0, 1, f"{word}: it", 1, 1, 0, 5, FrameKind.REQUEST)]
    assert list(diagram_lines(LANES, rows, len(rows)))[-1] == f"    L0->>L1: {word}#58; it"


def test_long_texts_are_broken_into_lines() -> None:
    """Lines of 48 characters, three at most: a diagram as wide as its longest text cannot be
    read."""
    rows = [LaneRow(LaneRowKind.FRAME, 0, 0, 0, 0, 1, "word; " * 40, 1, 1, 0, 5, FrameKind.REQUEST)]
    (line,) = list(diagram_lines(LANES, rows, 1))[3:]
    lines = line.partition(": ")[2].replace("#59;", ";").split("<br/>")
    assert [len(each) <= 48 for each in lines] == [True] * 3
    assert lines[-1].endswith("…")


def test_the_length_of_a_diagram_is_limited() -> None:
    """50,000 UTF-16 units; how many rows are left out stands at its end."""
    rows = [
        LaneRow(
            LaneRowKind.FRAME,
            0,
            0,
            0,
            0,
            1,
            f"{number} " + "😀" * 20,
            1,
            1,
            number,
            5,
            FrameKind.EVENT,
        )
        for number in range(2000)
    ]
    lines = list(diagram_lines(LANES, rows, 2000))
    assert 45_000 < len("\n".join(lines).encode("utf-16-le")) // 2 < 50_000
    drawn = sum("->>" in line for line in lines)
    assert (
        lines[-1] == f"    Note over L0,L1: {2000 - drawn} of 2000 "
        "rows are left out<br/>Mermaid draws no more"
    )
