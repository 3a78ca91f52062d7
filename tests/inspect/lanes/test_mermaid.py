"""A conversation as a diagram."""

from __future__ import annotations

import pytest

from a2a_inspect.lanes.mermaid import diagram
from a2a_inspect.lanes.model import Lane, Part, Row, What
from a2a_proxy.model.frame import FrameKind

LANES = [Lane("client", Part.CLIENT), Lane("agent:1; drop", Part.AGENT)]


def test_a_diagram() -> None:
    """Messages, a broken stream, notes; nothing that a peer says is read as the language's own."""
    rows = [
        Row(What.FRAME, 0, 0, 0, 0, 1, "ask #1;\x1b <b> $$x$$", 1, 1, 0, 5, FrameKind.REQUEST),
        Row(What.PAUSE, 0, 0, 2_000_000_000, 0, 0, "", 1, 0, -1),
        Row(What.FRAME, 0, 0, 0, 1, 0, "", 1, 1, 1, 6, FrameKind.EVENT),
        Row(What.FINDING, 0, 0, 0, 1, 1, "error  A2A-X-001", 1, 1, 1),
        Row(What.FRAME, 0, 0, 0, 1, 0, "agent broke off", 1, 1, 2, 7, FrameKind.CUT),
    ]
    assert list(diagram(LANES, rows)) == [
        "sequenceDiagram",
        "    actor L0 as client",
        "    participant L1 as agent:1#59; drop",
        "    L0->>L1: ask #35;1#59;␛ #lt;b#gt; #36;#36;x#36;#36;",
        "    Note over L0,L1: 2.0 s of silence",
        "    L1-->>L0: (nothing)",
        "    Note over L1: error  A2A-X-001",
        "    L1-xL0: agent broke off",
    ]


@pytest.mark.parametrize("word", ["wrap", "nowrap"])
def test_a_text_is_not_wrapped_by_what_it_says(word: str) -> None:
    """The language takes `wrap:` at its beginning as a command, and away."""
    rows = [Row(What.FRAME, 0, 0, 0, 0, 1, f"{word}: it", 1, 1, 0, 5, FrameKind.REQUEST)]
    assert list(diagram(LANES, rows))[-1] == f"    L0->>L1: {word}#58; it"
