"""A conversation as a diagram."""

from __future__ import annotations

from a2a_inspect.lanes.mermaid import diagram
from a2a_inspect.lanes.model import Lane, Part, Row, What
from a2a_proxy.model.frame import FrameKind

LANES = [Lane("client", Part.CLIENT), Lane("agent:1; drop", Part.AGENT)]


def test_a_diagram() -> None:
    """Messages, a broken stream, notes; nothing that a peer says is read as the language's own."""
    rows = [
        Row(What.FRAME, 0, 0, 0, 0, 1, "ask #1;\x1b <b>", 1, 1, 0, 5, FrameKind.REQUEST),
        Row(What.PAUSE, 0, 0, 2_000_000_000, 0, 0, "", 1, 0, -1),
        Row(What.FRAME, 0, 0, 0, 1, 0, "", 1, 1, 1, 6, FrameKind.EVENT),
        Row(What.FINDING, 0, 0, 0, 1, 1, "error  A2A-X-001", 1, 1, 1),
        Row(What.FRAME, 0, 0, 0, 1, 0, "agent broke off", 1, 1, 2, 7, FrameKind.CUT),
    ]
    assert list(diagram(LANES, rows)) == [
        "sequenceDiagram",
        "    actor L0 as client",
        "    participant L1 as agent:1#59; drop",
        "    L0->>L1: ask #35;1#59;␛ #lt;b#gt;",
        "    Note over L0,L1: 2.0 s of silence",
        "    L1-->>L0: (nothing)",
        "    Note over L1: error  A2A-X-001",
        "    L1-xL0: agent broke off",
    ]
