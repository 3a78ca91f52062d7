"""A conversation as a sequence diagram in Mermaid's language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from a2a_inspect.lanes.model import Lane, Part, Row, What
from a2a_proxy.cli import text
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.protocol.text import visible

_ESCAPED = str.maketrans({"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", "%": "#37;", "$": "#36;"})
"""What the language would read as its own: entities, ends of statements, tags, comments, formulas."""
_WRAP = re.compile(r"(?<=wrap):")
"""`wrap:` and `nowrap:` at the beginning of a text are for the language."""


def diagram(lanes: Sequence[Lane], rows: Iterable[Row]) -> Iterator[str]:
    """Line by line."""
    yield "sequenceDiagram"
    for number, lane in enumerate(lanes):
        part = "actor" if lane.part is Part.CLIENT else "participant"
        yield f"    {part} L{number} as {_plain(lane.name)}"
    for row in rows:
        yield f"    {_statement(row, len(lanes))}"


def _statement(row: Row, lanes: int) -> str:
    if row.what is What.FRAME:
        back = row.source > row.target
        arrow = "-x" if row.kind is FrameKind.CUT else "-->>" if back else "->>"
        return f"L{row.source}{arrow}L{row.target}: {_plain(row.text) or '(nothing)'}"
    if row.what in (What.PAUSE, What.TURN):
        words = row.text or f"{text.duration(row.since_before)} of silence"
        across = f"L0,L{lanes - 1}" if lanes > 1 else "L0"
        return f"Note over {across}: {_plain(words)}"
    return f"Note over L{row.source}: {_plain(row.text)}"


def _plain(words: str) -> str:
    return _WRAP.sub("#58;", visible(words).translate(_ESCAPED), count=1)
