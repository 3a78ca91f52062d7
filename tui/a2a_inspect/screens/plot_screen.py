"""Plots: frames and bytes over time with findings marked, and the duration of calls.

Enter returns to the main screen with a filter for the selected time.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

import msgspec
from rich.segment import Segment
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from a2a_inspect.data.source import RecordingSource
from a2a_inspect.plots.cursor import PlotCursor
from a2a_inspect.plots.layout import StyledLine, plot_lines, step_words, table_lines
from a2a_inspect.plots.measures import Histogram, read_histogram
from a2a_inspect.plots.sums import RecordingTotals, compute_totals, whole_recording
from a2a_inspect.plots.written import PLAIN_VARIABLE
from a2a_inspect.widgets.key_line import KeyLine
from a2a_inspect.widgets.pane import Pane
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording

_CHECK_INTERVAL = 0.5
"""Seconds between two checks of a recording that may grow."""
_PAUSE_FACTOR = 4
"""Pause before the next read, in durations of the last one."""
_STYLE_NAMES = ("bar", "chosen", "cursor", "dim", "strong", "bad", "warn")


class PlotData(msgspec.Struct, frozen=True):
    """Data of the plots."""

    histogram: Histogram | None
    totals: RecordingTotals


class PlotLines(Widget):
    """Lines of styled text."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"plot--{name}" for name in _STYLE_NAMES}

    DEFAULT_CSS = """
    PlotLines { background: $background; color: $foreground; height: auto; }
    PlotLines > .plot--bar { color: $primary; }
    PlotLines > .plot--chosen { color: $accent; background: $foreground 12%; text-style: bold; }
    PlotLines > .plot--cursor { color: $accent; text-style: bold; }
    PlotLines > .plot--dim { color: $text-muted; }
    PlotLines > .plot--strong { text-style: bold; }
    PlotLines > .plot--bad { color: $text-error; text-style: bold; }
    PlotLines > .plot--warn { color: $text-warning; text-style: bold; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: Sequence[StyledLine] = ()

    def show_lines(self, lines: Sequence[StyledLine]) -> None:
        """Replace the lines."""
        self._lines = lines
        self.styles.height = len(lines)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        line = self._lines[y] if y < len(self._lines) else []
        styles = {name: self.get_visual_style(name).rich_style for _, name in line if name}
        segments = [
            Segment(words, styles.get(name, self.rich_style)) for words, name in line if words
        ]
        return Strip([Segment(" ", self.rich_style), *segments]).adjust_cell_length(
            self.size.width, self.rich_style
        )


class PlotScreen(Screen[str]):
    """See the module. Returns the selected time as a filter expression, or an empty string if none
    was selected."""

    DEFAULT_CSS = """
    PlotScreen { background: $background; }
    PlotScreen #plot-said { height: 1; background: $surface; padding: 0 1; }
    PlotScreen #plot-table { height: 1fr; scrollbar-size-vertical: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Earlier", key_display="←", id="plot.earlier"),
        Binding("right,l", "move(1)", "Later", key_display="→", id="plot.later"),
        Binding(
            "shift+left,H",
            "extend(-1)",
            "Choose",
            key_display="⇧←",
            id="plot.extend-earlier",
            tooltip="select more, to the left",
        ),
        Binding("shift+right,L", "extend(1)", "Choose", show=False, id="plot.extend-later"),
        Binding("home", "move(-1000000)", "First", show=False, id="plot.first"),
        Binding("end", "move(1000000)", "Last", show=False, id="plot.last"),
        Binding("z", "zoom", "Zoom", id="plot.zoom", tooltip="show only the selected time"),
        Binding("u", "widen", "Widen", id="plot.widen", tooltip="undo the last zoom"),
        Binding(
            "enter",
            "choose",
            "Filter",
            priority=True,
            id="plot.choose",
            tooltip="list the exchanges that began in this time",
        ),
        Binding("escape,q", "leave", "Back", id="plot.leave"),
    ]

    FIRST_KEYS: ClassVar[tuple[str, ...]] = (
        "plot.earlier",
        "plot.later",
        "plot.zoom",
        "plot.choose",
        "plot.leave",
    )

    def __init__(self, source: RecordingSource, where: str = "") -> None:
        """`where` is a filter expression: only matching exchanges are shown."""
        super().__init__()
        # A source of its own: its sums are slow, and queries of other screens must not wait for
        # them.
        self._source = RecordingSource(source.path, files=source.files, later=True)
        self._where = where
        self._plot = PlotLines(id="plot")
        self._table = PlotLines(id="plot-rows")
        self._step_text = Static(id="plot-said", markup=False)
        self._pane = Pane(
            self._plot, self._step_text, VerticalScroll(self._table, id="plot-table"), id="plots"
        )
        self._cursor = PlotCursor()
        self._data: PlotData | None = None
        self._version = -1
        self._is_stale = False
        self._is_reading = False
        self._next_read = 0.0
        self._is_plain = PLAIN_VARIABLE in os.environ

    def compose(self) -> ComposeResult:
        """Yield the plots above, the table of calls below."""
        yield self._pane
        yield KeyLine()

    def on_mount(self) -> None:
        """Read the recording, and check it regularly."""
        self._pane.title.text = "Plots"
        self._pane.title.remark = "reading"
        self.query_one(VerticalScroll).focus()
        self.set_interval(_CHECK_INTERVAL, self._start_read)

    def on_unmount(self) -> None:
        """Close the file."""
        self._source.close()

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002 - the width is read where it is used
        """Read again: the width determines the steps."""
        self._read_again()

    def _read_again(self) -> None:
        """Read again as soon as possible."""
        self._is_stale, self._next_read = True, 0.0
        self._start_read()

    def _start_read(self) -> None:
        if not self._is_reading and time.monotonic() >= self._next_read:
            self._is_reading = True
            self._read_data()

    @work(group="plots")
    async def _read_data(self) -> None:
        began, trouble = time.monotonic(), ""
        try:
            again = True
            while again:
                anyway, self._is_stale = self._is_stale, False
                self._set_data(await self._source.run_query(self._data_question(anyway), None))
                again = self._is_stale  # resized or zoomed meanwhile
        except RecordingError as wrong:
            trouble = wrong.message
        finally:
            self._is_reading = False
        self._next_read = time.monotonic() + _PAUSE_FACTOR * (time.monotonic() - began)
        self._draw_plots(trouble)

    def _data_question(self, force: bool) -> Callable[[Recording], PlotData | None]:
        """Return a query for the data; it returns None if the recording has not changed, unless
        `force` is set."""
        most, within = max(self._plot_width, 1), self._cursor.visible_range

        def read(recording: Recording) -> PlotData | None:
            version = recording.data_version()
            if version == self._version and not force:
                return None
            self._version = version
            parts = whole_recording(recording)
            return PlotData(
                read_histogram(parts, self._where, most, within), compute_totals(parts, self._where)
            )

        return read

    def _set_data(self, data: PlotData | None) -> None:
        if data is not None:
            self._data = data
            if data.histogram is not None:
                self._cursor = self._cursor.clip_to_scale(data.histogram.scale)

    @property
    def _plot_width(self) -> int:
        return self.size.width - 3

    @property
    def _plot_size(self) -> tuple[int, int]:
        """Columns and lines of the plots: at most half of the screen, so that the table has
        room."""
        return self._plot_width, max(12, min(self.size.height // 2, 26))

    def _draw_plots(self, error: str = "") -> None:
        data, title = self._data, self._pane.title
        title.text = "Plots" + (f" of {self._where}" if self._where else "")
        if error:
            title.remark = make_visible(error)
        if data is None:
            return
        if data.histogram is None:
            title.remark = "nothing was recorded" if not self._where else "nothing matches"
            return
        if not error:
            shift = "zoomed  " if self._cursor.zooms else ""
            title.remark = shift + text.format_count(data.histogram.frames, "frame")
        self._plot.show_lines(
            list(plot_lines(data.histogram, self._cursor, self._plot_size, plain=self._is_plain))
        )
        self._step_text.update(make_visible(step_words(data.histogram, self._cursor)))
        self._table.show_lines(
            list(table_lines(data.totals, self._plot_width, plain=self._is_plain))
        )

    def _set_cursor(self, cursor: PlotCursor) -> None:
        self._cursor = cursor
        self._draw_plots()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if self._data is not None and self._data.histogram is not None:
            self._set_cursor(self._cursor.move_by(by, self._data.histogram.scale))

    def action_extend(self, by: int) -> None:
        """Move the cursor, and extend the selection to it."""
        if self._data is not None and self._data.histogram is not None:
            self._set_cursor(self._cursor.move_by(by, self._data.histogram.scale, extend=True))

    def action_zoom(self) -> None:
        """Show only the selected time."""
        if self._data is not None and self._data.histogram is not None:
            self._cursor = self._cursor.zoom_in(self._data.histogram.scale)
            self._read_again()

    def action_widen(self) -> None:
        """Undo the last zoom."""
        if self._cursor.zooms:
            self._cursor = self._cursor.zoom_out()
            self._read_again()

    def action_choose(self) -> None:
        """Close the screen, and filter by the selected time."""
        if self._data is None or self._data.histogram is None:
            return
        self.dismiss(self._data.histogram.scale.make_expression(*self._cursor.selected))

    def action_leave(self) -> None:
        """Close the screen without a filter."""
        self.dismiss("")
