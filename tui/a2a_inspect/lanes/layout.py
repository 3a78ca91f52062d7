"""Rows of a swimlane as text of a fixed width: columns of the lanes, arrows between them,
truncation.

`fit_text` makes the text of peers visible. Styles are names of component classes of the list
(`list--...`).
"""

import re
from collections.abc import Sequence

import msgspec
from rich.cells import cell_len

from a2a_inspect.data.finding_counts import SEVERITIES
from a2a_inspect.lanes.model import LaneRow, LaneRowKind, PartyLane
from a2a_inspect.widgets.columns import fit_text
from a2a_proxy.model.values import FrameKind
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible

StyledCells = list[tuple[str, str]]
"""Text and the name of its style."""

_START_CELLS, _PAUSE_CELLS = 9, 8
MARGIN = _START_CELLS + 1 + _PAUSE_CELLS + 2
"""Cells of the two time columns."""
_PLACE_CELLS, _MIN_WIDTH_FOR_PLACES = 8, 100
"""Cells of the exchange and frame number, and the width in cells from which it is shown."""
MIN_LANE_WIDTH = 16
"""Minimum cells between two lanes: an arrow with a word."""
_LIFELINE, _PAUSED_LIFELINE = "│", "┊"

_KIND_STYLES = {
    FrameKind.ERROR: "list--bad",
    FrameKind.UNDECODABLE: "list--bad",
    FrameKind.CUT: "list--warn",
    FrameKind.COMMENT: "list--dim",
    FrameKind.END: "list--dim",
    FrameKind.LOG: "list--dim",
}
_DIM_KINDS = frozenset({FrameKind.END, FrameKind.COMMENT, FrameKind.CONTROL, FrameKind.LOG})
_MARK_SIGNS = {
    LaneRowKind.PAUSE: (_PAUSED_LIFELINE, "list--dim"),
    LaneRowKind.TURN: ("┼", "list--dim"),
    LaneRowKind.WAIT: ("?", "list--live"),
    LaneRowKind.MISSED: ("≠", "list--warn"),
    LaneRowKind.INTERRUPTION: ("×", "list--warn"),
    LaneRowKind.HANDOFF: ("»", "list--strong"),
    LaneRowKind.FINDING: ("!", "list--warn"),
}

_GENERATION_MARK = re.compile(r'"?[ ]\[generation [0-9]+(?:, final)?\]\Z')
_MIN_WORD_CELLS = 16
"""Minimum cells of a message's words before the mark of its generation."""


class LaneGeometry(msgspec.Struct, frozen=True):
    """Columns of the lanes."""

    width: int
    lanes: tuple[PartyLane, ...]
    columns: tuple[int, ...]
    """Column in cells of each drawn lane. If not all lanes fit, the last column stands for all
    folded ones."""

    @property
    def margin(self) -> int:
        """Cells before the first lane."""
        return MARGIN + (_PLACE_CELLS if self.width >= _MIN_WIDTH_FOR_PLACES else 0)

    @property
    def end(self) -> int:
        """The cell after the last drawn one: that of the last lane, or the full width with a single
        lane."""
        return (
            self.columns[-1] + 1
            if len(self.columns) > 1
            else max(self.width, self.margin + MIN_LANE_WIDTH + 1)
        )

    @property
    def folded_count(self) -> int:
        """Number of lanes that share the last column; 0 if each has its own."""
        return len(self.lanes) - len(self.columns) + 1 if len(self.lanes) > len(self.columns) else 0

    def find_column(self, lane: int) -> int:
        """Return the column of a lane, in cells."""
        return self.columns[min(lane, len(self.columns) - 1)]

    def is_folded(self, lane: int) -> bool:
        """Return whether the lane has no column of its own."""
        return bool(self.folded_count) and lane >= len(self.columns) - 1


def make_geometry(width: int, lanes: Sequence[PartyLane]) -> LaneGeometry:
    """Spread the lanes over `width` cells; lanes that do not fit share the last column."""
    first = MARGIN + (_PLACE_CELLS if width >= _MIN_WIDTH_FOR_PLACES else 0)
    last = max(width - 1, first + MIN_LANE_WIDTH)
    count = min(len(lanes), 1 + (last - first) // MIN_LANE_WIDTH)
    steps = max(count - 1, 1)
    return LaneGeometry(
        width, tuple(lanes), tuple(first + (last - first) * n // steps for n in range(count))
    )


def lane_head(geometry: LaneGeometry) -> str:
    """Return the names of the lanes, each at its column."""
    names = [make_visible(lane.name) for lane in geometry.lanes[: len(geometry.columns)]]
    if geometry.folded_count:
        names[-1] = f"+{geometry.folded_count} others"
    line = f"{'SECONDS':>{_START_CELLS}} {'AFTER':>{_PAUSE_CELLS}}  FRAME"[: geometry.margin - 1]
    for number, (name, place) in enumerate(zip(names, geometry.columns, strict=True)):
        line = _append_lane_name(line, name, place, number, geometry)
    return line


def _append_lane_name(
    line: str, name: str, column: int, number: int, geometry: LaneGeometry
) -> str:
    """Append a name: the first begins at its lane, the last ends at its lane, the others are
    centred on theirs."""
    room = (
        geometry.columns[1] - geometry.columns[0]
        if len(geometry.columns) > 1
        else geometry.width - column
    ) - 2
    name = fit_text(name, min(cell_len(name), max(room, 1)))
    length = cell_len(name)
    begin = (
        column
        if not number
        else column - length + 1
        if number == len(geometry.columns) - 1
        else column - length // 2
    )
    return line + " " * max(begin - cell_len(line), 1) + name


def paint_row(row: LaneRow, geometry: LaneGeometry) -> StyledCells:
    """Return the cells of one row."""
    if row.what is LaneRowKind.FRAME:
        return [*_time_cells(row, geometry), *(_paint_message(row, geometry))]
    sign, style = _MARK_SIGNS[row.what]
    style = SEVERITIES[row.severity] if row.severity is not None else style
    line = sign if row.what in (LaneRowKind.PAUSE, LaneRowKind.TURN) else _LIFELINE
    lane = _draw_lifelines(geometry, geometry.columns[0], geometry.end, line)
    about = geometry.find_column(row.source) - geometry.columns[0]
    lane = lane[:about] + sign + lane[about + 1 :]
    room = max(len(lane) - 4, 0)
    words = _row_words(row)
    label = fit_text(words, min(cell_len(make_visible(words)), room))
    if row.what in (LaneRowKind.PAUSE, LaneRowKind.TURN):
        left = (room - cell_len(label)) // 2
        return [(" " * geometry.margin, ""), *_overlay_label(lane, label, 2 + left, style)]
    return [
        (f"{sign:>{_START_CELLS}}{' ':{geometry.margin - _START_CELLS}}", style),
        *_overlay_label(lane, label, 2, style),
    ]


def _row_words(row: LaneRow) -> str:
    if row.what is LaneRowKind.PAUSE:
        return f"{text.format_duration(row.since_before)} of silence"
    return row.text


def _overlay_label(lifelines: str, label: str, column: int, style: str) -> StyledCells:
    """Write the words over the lifelines, which remain visible on both sides."""
    after = lifelines[column + cell_len(label) :]
    start = lifelines[: column - 1] + " "
    return [
        (start, "list--dim"),
        (label, style),
        (" " + after[1:] if len(after) > 1 else after, "list--dim"),
    ]


def _time_cells(row: LaneRow, geometry: LaneGeometry) -> StyledCells:
    before = text.format_duration(row.since_before) if row.since_start else ""
    before = f"+{before}" if before else ""
    pause = before if len(before) <= _PAUSE_CELLS else ""  # the pause row above shows it
    place = (
        fit_text(f"#{row.exchange}.{row.seq}", _PLACE_CELLS - 1) + " "
        if geometry.margin > MARGIN
        else ""
    )
    return [
        (
            f"{format_elapsed(row.since_start):>{_START_CELLS}} {pause:>{_PAUSE_CELLS}}  {place}",
            "list--dim",
        )
    ]


def format_elapsed(ns: int) -> str:
    """Return the time since the start: seconds with milliseconds, hours for long times."""
    seconds = ns / 1e9
    if abs(seconds) < 10_000:
        return f"{seconds:+.3f}"
    minutes, rest = divmod(int(seconds), 60)
    return f"+{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _paint_message(row: LaneRow, geometry: LaneGeometry) -> StyledCells:
    a, b = geometry.find_column(row.source), geometry.find_column(row.target)
    first, last = geometry.columns[0], geometry.end
    style = _KIND_STYLES.get(row.kind or FrameKind.EVENT, "")
    if a == b:
        return _paint_self_message(row, geometry, style)
    low, high = min(a, b), max(a, b)
    span = _arrow_cells(_message_label(row, geometry), high - low - 1, row, rightwards=a < b)
    way = "list--out" if a < b else "list--in"
    cells: StyledCells = [(_draw_lifelines(geometry, first, low), "list--dim")]
    cells.append((_arrow_tail(row, a < b) if a < b else "│", "list--dim"))
    cells += [(piece, style or (way if arrow else "")) for piece, arrow in span]
    cells.append(("│" if a < b else _arrow_tail(row, a < b), "list--dim"))
    cells.append((_draw_lifelines(geometry, high + 1, last), "list--dim"))
    return [each for each in cells if each[0]]


def _arrow_tail(row: LaneRow, rightwards: bool) -> str:
    if row.kind in _DIM_KINDS:
        return "│"
    return "├" if rightwards else "┤"


def _arrow_cells(
    label: str, room: int, row: LaneRow, *, rightwards: bool
) -> list[tuple[str, bool]]:
    """Return shaft, label, shaft and head in exactly `room` cells; True marks parts of the
    arrow."""
    shaft = "╌" if row.kind in _DIM_KINDS else "─"
    head = "✕" if row.kind is FrameKind.CUT else "▶" if rightwards else "◀"
    space = max(room - 5, 0)  # two cells of shaft, two spaces, the head
    visible_label = _shorten_label(label, space)
    if not visible_label:
        return [(shaft * (room - 1) + head if rightwards else head + shaft * (room - 1), True)]
    rest = shaft * (room - cell_len(visible_label) - 4)
    if rightwards:
        return [(f"{shaft} ", True), (visible_label, False), (f" {rest}{head}", True)]
    return [(f"{head}{shaft} ", True), (visible_label, False), (f" {rest}", True)]


def _shorten_label(label: str, room: int) -> str:
    """Return the visible text in at most `room` cells. The mark of a generation stays and the words
    before it are shortened, unless they would get fewer than `_MIN_WORD_CELLS`.
    """
    label = make_visible(label)
    length = cell_len(label)
    mark = _GENERATION_MARK.search(label)
    if length > room and mark is not None and room - len(mark[0]) >= _MIN_WORD_CELLS:
        return fit_text(label[: mark.start()], room - len(mark[0])) + mark[0]
    return fit_text(label, min(length, room))


def _message_label(row: LaneRow, geometry: LaneGeometry) -> str:
    """Return the text of the message, with the name of a party that has no column."""
    if geometry.is_folded(row.source):
        return f"[{geometry.lanes[row.source].name}] {row.text}"
    if geometry.is_folded(row.target):
        return f"[{geometry.lanes[row.target].name}] {row.text}"
    return row.text


def _paint_self_message(row: LaneRow, geometry: LaneGeometry, style: str) -> StyledCells:
    """Paint a message with both ends in one column: the text is next to it."""
    at = geometry.find_column(row.source) - geometry.columns[0]
    lane = _draw_lifelines(geometry, geometry.columns[0], geometry.end)
    names = f"{geometry.lanes[row.source].name} → {geometry.lanes[row.target].name}"
    words = f"{names}: {row.text}" if row.source != row.target else row.text
    room = max(at, len(lane) - at - 1) - 2
    if room < 1:
        return [("●", style)]
    label = _shorten_label(words, room)
    if at < len(lane) - at - 1:
        after = lane[at + cell_len(label) + 2 :]
        return [(lane[:at], "list--dim"), ("● ", ""), (label, style), (after, "list--dim")]
    before = lane[: at - cell_len(label) - 1]
    return [(before, "list--dim"), (label, style), (" ●", ""), (lane[at + 1 :], "list--dim")]


def _draw_lifelines(geometry: LaneGeometry, begin: int, end: int, sign: str = _LIFELINE) -> str:
    return "".join(sign if cell in geometry.columns else " " for cell in range(begin, end))
