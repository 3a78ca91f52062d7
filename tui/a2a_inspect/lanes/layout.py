"""Rows of a swimlane as text of a fixed width: where the lanes stand, arrows between them, what is cut where.

Text of peers passes `visible` in `fit`. Styles are names of component classes of the list (`list--...`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.cells import cell_len

from a2a_inspect.data.finding_counts import SEVERITIES
from a2a_inspect.lanes.model import LaneRow, PartyLane, RowKind
from a2a_inspect.widgets.columns import fit
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible

Painted = list[tuple[str, str]]
"""Text and the name of its style."""

_START, _BEFORE = 9, 8
MARGIN = _START + 1 + _BEFORE + 2
"""Cells of the two times."""
_PLACE, _WIDE = 8, 100
"""Cells of the exchange and frame, and from how many cells on they are told."""
NARROWEST = 16
"""Cells between two lanes: an arrow with a word."""
_PLAIN, _WAITING = "│", "┊"

_KINDS = {
    FrameKind.ERROR: "list--bad",
    FrameKind.UNDECODABLE: "list--bad",
    FrameKind.CUT: "list--warn",
    FrameKind.COMMENT: "list--dim",
    FrameKind.END: "list--dim",
    FrameKind.LOG: "list--dim",
}
_FAINT = frozenset({FrameKind.END, FrameKind.COMMENT, FrameKind.CONTROL, FrameKind.LOG})
_SIGNS = {
    RowKind.PAUSE: (_WAITING, "list--dim"),
    RowKind.TURN: ("┼", "list--dim"),
    RowKind.WAIT: ("?", "list--live"),
    RowKind.MISSED: ("≠", "list--warn"),
    RowKind.INTERRUPTION: ("×", "list--warn"),
    RowKind.HANDOFF: ("»", "list--strong"),
    RowKind.FINDING: ("!", "list--warn"),
}


class Geometry(msgspec.Struct, frozen=True):
    """Where lanes stand."""

    width: int
    lanes: tuple[PartyLane, ...]
    places: tuple[int, ...]
    """Cell of each lane that is drawn. Where not all fit, the last one stands for all that are folded."""

    @property
    def margin(self) -> int:
        """Cells before the first lane."""
        return MARGIN + (_PLACE if self.width >= _WIDE else 0)

    @property
    def end(self) -> int:
        """The cell after the last one that is drawn in: the last lane, or where there is one only, all."""
        return self.places[-1] + 1 if len(self.places) > 1 else max(self.width, self.margin + NARROWEST + 1)

    @property
    def folded(self) -> int:
        """How many lanes share the last column; 0 where each has its own."""
        return len(self.lanes) - len(self.places) + 1 if len(self.lanes) > len(self.places) else 0

    def place(self, lane: int) -> int:
        """The cell of a lane."""
        return self.places[min(lane, len(self.places) - 1)]

    def hidden(self, lane: int) -> bool:
        """It has no column of its own."""
        return bool(self.folded) and lane >= len(self.places) - 1


def geometry(width: int, lanes: Sequence[PartyLane]) -> Geometry:
    """Spread the lanes over so many cells; those that do not fit fold into the last column."""
    first = MARGIN + (_PLACE if width >= _WIDE else 0)
    last = max(width - 1, first + NARROWEST)
    count = min(len(lanes), 1 + (last - first) // NARROWEST)
    steps = max(count - 1, 1)
    return Geometry(width, tuple(lanes), tuple(first + (last - first) * n // steps for n in range(count)))


def head(of: Geometry) -> str:
    """The names of the lanes, each at its own."""
    names = [make_visible(lane.name) for lane in of.lanes[: len(of.places)]]
    if of.folded:
        names[-1] = f"+{of.folded} others"
    line = f"{'SECONDS':>{_START}} {'AFTER':>{_BEFORE}}  FRAME"[: of.margin - 1]
    for number, (name, place) in enumerate(zip(names, of.places, strict=True)):
        line = _named(line, name, place, number, of)
    return line


def _named(line: str, name: str, place: int, number: int, of: Geometry) -> str:
    """The first name begins at its lane, the last one ends there, others stand around theirs."""
    room = (of.places[1] - of.places[0] if len(of.places) > 1 else of.width - place) - 2
    name = fit(name, min(cell_len(name), max(room, 1)))
    length = cell_len(name)
    begin = place if not number else place - length + 1 if number == len(of.places) - 1 else place - length // 2
    return line + " " * max(begin - cell_len(line), 1) + name


def paint(row: LaneRow, of: Geometry) -> Painted:
    """One row in all its cells."""
    if row.what is RowKind.FRAME:
        return [*_times(row, of), *(_message(row, of))]
    sign, style = _SIGNS[row.what]
    style = SEVERITIES[row.severity] if row.severity is not None else style
    line = sign if row.what in (RowKind.PAUSE, RowKind.TURN) else _PLAIN
    lane = _lifelines(of, of.places[0], of.end, line)
    about = of.place(row.source) - of.places[0]
    lane = lane[:about] + sign + lane[about + 1 :]
    room = max(len(lane) - 4, 0)
    words = _words(row)
    said = fit(words, min(cell_len(make_visible(words)), room))
    if row.what in (RowKind.PAUSE, RowKind.TURN):
        left = (room - cell_len(said)) // 2
        return [(" " * of.margin, ""), *_laid(lane, said, 2 + left, style)]
    return [(f"{sign:>{_START}}{' ':{of.margin - _START}}", style), *_laid(lane, said, 2, style)]


def _words(row: LaneRow) -> str:
    if row.what is RowKind.PAUSE:
        return f"{text.duration(row.since_before)} of silence"
    return row.text


def _laid(lane: str, said: str, at: int, style: str) -> Painted:
    """The words over the lifelines, which go on beside them."""
    after = lane[at + cell_len(said) :]
    begun = lane[: at - 1] + " "
    return [(begun, "list--dim"), (said, style), (" " + after[1:] if len(after) > 1 else after, "list--dim")]


def _times(row: LaneRow, of: Geometry) -> Painted:
    before = text.duration(row.since_before) if row.since_start else ""
    before = f"+{before}" if before else ""
    shown = before if len(before) <= _BEFORE else ""  # the pause above says it
    place = fit(f"#{row.exchange}.{row.seq}", _PLACE - 1) + " " if of.margin > MARGIN else ""
    return [(f"{moment(row.since_start):>{_START}} {shown:>{_BEFORE}}  {place}", "list--dim")]


def moment(ns: int) -> str:
    """Time since the start: seconds to the millisecond, hours where it is long."""
    seconds = ns / 1e9
    if abs(seconds) < 10_000:
        return f"{seconds:+.3f}"
    minutes, rest = divmod(int(seconds), 60)
    return f"+{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _message(row: LaneRow, of: Geometry) -> Painted:
    a, b = of.place(row.source), of.place(row.target)
    first, last = of.places[0], of.end
    style = _KINDS.get(row.kind or FrameKind.EVENT, "")
    if a == b:
        return _at_one(row, of, style)
    low, high = min(a, b), max(a, b)
    span = _arrow(_label(row, of), high - low - 1, row, rightwards=a < b)
    way = "list--out" if a < b else "list--in"
    painted: Painted = [(_lifelines(of, first, low), "list--dim")]
    painted.append((_tail(row, a < b) if a < b else "│", "list--dim"))
    painted += [(piece, style or (way if arrow else "")) for piece, arrow in span]
    painted.append(("│" if a < b else _tail(row, a < b), "list--dim"))
    painted.append((_lifelines(of, high + 1, last), "list--dim"))
    return [each for each in painted if each[0]]


def _tail(row: LaneRow, rightwards: bool) -> str:
    if row.kind in _FAINT:
        return "│"
    return "├" if rightwards else "┤"


def _arrow(label: str, room: int, row: LaneRow, *, rightwards: bool) -> list[tuple[str, bool]]:
    """Shaft, label, shaft and head, in exactly this many cells; True for what is arrow."""
    shaft = "╌" if row.kind in _FAINT else "─"
    head = "✕" if row.kind is FrameKind.CUT else "▶" if rightwards else "◀"
    space = max(room - 5, 0)  # two of shaft, two spaces, the head
    said = fit(label, min(cell_len(make_visible(label)), space))
    if not said:
        return [(shaft * (room - 1) + head if rightwards else head + shaft * (room - 1), True)]
    rest = shaft * (room - cell_len(said) - 4)
    if rightwards:
        return [(f"{shaft} ", True), (said, False), (f" {rest}{head}", True)]
    return [(f"{head}{shaft} ", True), (said, False), (f" {rest}", True)]


def _label(row: LaneRow, of: Geometry) -> str:
    """What it says, with the names of those that have no column."""
    if of.hidden(row.source):
        return f"[{of.lanes[row.source].name}] {row.text}"
    if of.hidden(row.target):
        return f"[{of.lanes[row.target].name}] {row.text}"
    return row.text


def _at_one(row: LaneRow, of: Geometry, style: str) -> Painted:
    """Both ends are in one column: words beside it."""
    at = of.place(row.source) - of.places[0]
    lane = _lifelines(of, of.places[0], of.end)
    names = f"{of.lanes[row.source].name} → {of.lanes[row.target].name}"
    words = f"{names}: {row.text}" if row.source != row.target else row.text
    room = max(at, len(lane) - at - 1) - 2
    if room < 1:
        return [("●", style)]
    said = fit(words, min(cell_len(make_visible(words)), room))
    if at < len(lane) - at - 1:
        after = lane[at + cell_len(said) + 2 :]
        return [(lane[:at], "list--dim"), ("● ", ""), (said, style), (after, "list--dim")]
    before = lane[: at - cell_len(said) - 1]
    return [(before, "list--dim"), (said, style), (" ●", ""), (lane[at + 1 :], "list--dim")]


def _lifelines(of: Geometry, begin: int, end: int, sign: str = _PLAIN) -> str:
    return "".join(sign if cell in of.places else " " for cell in range(begin, end))
