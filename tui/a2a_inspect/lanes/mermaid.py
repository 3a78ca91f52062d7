"""A conversation as a Mermaid sequence diagram."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from a2a_inspect.data.frame_summary import flatten_line_ends
from a2a_inspect.lanes.model import LaneRow, LaneRowKind, PartyLane, PartyRole
from a2a_proxy.model.values import FrameKind
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible

_ENTITY_ESCAPES = str.maketrans(
    {"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", "%": "#37;", "$": "#36;"}
)
"""Escapes of characters that Mermaid would interpret: entities, ends of statements, tags, comments,
formulas."""
_WRAP_PREFIX = re.compile(r"(?<=wrap):")
"""`wrap:` and `nowrap:` at the beginning of a text are Mermaid keywords."""
_MAX_DIAGRAM = 48_000
"""UTF-16 units of a diagram: by default Mermaid draws no diagram of more than 50,000."""
_MAX_LINE, _MAX_LINES = 48, 3
"""Characters of a line, lines of a text."""


def diagram_lines(lanes: Sequence[PartyLane], rows: Iterable[LaneRow], count: int) -> Iterator[str]:
    """Yield the lines of the diagram; if not all `count` rows fit, a last note has the number of
    omitted rows."""
    yield "sequenceDiagram"
    rest = _MAX_DIAGRAM
    for number, lane in enumerate(lanes):
        part = "actor" if lane.role is PartyRole.CLIENT else "participant"
        line = f"    {part} L{number} as {_escape_label(lane.name)}"
        rest -= _utf16_units(line)
        yield line
    for number, row in enumerate(rows):
        line = f"    {_row_statement(row, len(lanes))}"
        rest -= _utf16_units(line)
        if rest < 0:
            words = f"{count - number} of {count} rows are left out<br/>Mermaid draws no more"
            yield f"    Note over {_lane_range(len(lanes))}: {words}"
            return
        yield line


def _utf16_units(line: str) -> int:
    return len(line.encode("utf-16-le", "replace")) // 2 + 1


def _lane_range(lanes: int) -> str:
    return f"L0,L{lanes - 1}" if lanes > 1 else "L0"


def _row_statement(row: LaneRow, lanes: int) -> str:
    if row.what is LaneRowKind.FRAME:
        back = row.source > row.target
        arrow = "-x" if row.kind is FrameKind.CUT else "-->>" if back else "->>"
        return f"L{row.source}{arrow}L{row.target}: {_escape_label(row.text) or '(nothing)'}"
    if row.what in (LaneRowKind.PAUSE, LaneRowKind.TURN):
        words = row.text or f"{text.format_duration(row.since_before)} of silence"
        return f"Note over {_lane_range(lanes)}: {_escape_label(words)}"
    return f"Note over L{row.source}: {_escape_label(row.text)}"


def _escape_label(label: str) -> str:
    lines = textwrap.wrap(
        flatten_line_ends(make_visible(label)), _MAX_LINE, max_lines=_MAX_LINES, placeholder="…"
    )
    return _WRAP_PREFIX.sub(
        "#58;", "<br/>".join(line.translate(_ENTITY_ESCAPES) for line in lines), count=1
    )
