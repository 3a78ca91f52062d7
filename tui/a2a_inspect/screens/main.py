"""The screen of a recording: what its keys do. What it shows, and how that is read, is in `browse`."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from a2a_inspect.data.source import FrameLine
from a2a_inspect.screens.browse import PANES
from a2a_inspect.screens.tree import TreeScreen
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_inspect.widgets.marks import MarkedRow
from a2a_inspect.widgets.tab_line import TABS
from a2a_proxy.recording.read.rows import ExchangeRow


class MainScreen(TreeScreen):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape",
            "back",
            "Back",
            id="app.back",
            tooltip="to the pane before; from the first: a wider list",
        ),
        Binding("tab", "turn(1)", "Next pane", show=False, priority=True, id="pane.next"),
        Binding("shift+tab", "turn(-1)", "Previous pane", show=False, priority=True, id="pane.previous"),
        Binding("[", "frame(-1)", "Previous frame", show=False, id="frame.previous", tooltip="previous frame"),
        Binding("]", "frame(1)", "Next frame", show=False, id="frame.next", tooltip="next frame"),
        Binding("s", "lanes", "Swimlane", id="view.lanes", tooltip="the task's messages as arrows between its parties"),
        Binding("L", "plots", "Plots", show=False, id="view.plots", tooltip="frames and bytes over time, latencies"),
        Binding("space", "replay", "Replay", show=False, id="view.replay", tooltip="see it happen again, with a clock"),
        Binding("m", "mark", "Mark", id="view.mark", tooltip="mark the exchange or frame, or take its mark away"),
        Binding("p", "pause", "Pause", id="view.pause", tooltip="hold the display, or go on; recording goes on anyway"),
        Binding("D", "diff", "Diff", id="view.diff", tooltip="what differs from the marked, or last, call"),
        Binding("q", "leave", "Quit", id="app.leave", tooltip="go back, and from the first pane out"),
        *(
            Binding(
                str(tab + 1),
                f"tab({tab})",
                name,
                show=False,
                id=f"tab.{name.lower()}",
                tooltip=f"the frame's tab {name}",
            )
            for tab, name in enumerate(TABS)
        ),
    ]

    FIRST_KEYS: ClassVar[tuple[str, ...]] = (
        *("filter.use", "filter.find", "filter.complete", "filter.cancel", "filter.older"),
        *("list.open", "tree.open", "tree.close", "tree.choose", "frame.previous", "frame.next"),
        *("exchanges.filter", "view.lanes", "app.back", "view.copy"),
    )
    """What the last line shows first, by the ids of the actions."""

    def action_back(self) -> None:
        """To the pane before; from the first one to a wider list."""
        if self._focused_pane() == "tree":
            self._focus_pane("exchanges")
        elif self._focused_pane_index():
            self._focus_pane(PANES[self._focused_pane_index() - 1])
        else:
            self.widen_filter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a filter is typed, Tab is for its box."""
        return super().check_action(action, parameters) and not (action == "turn" and self._box.is_open)

    def action_leave(self) -> None:
        """Back, and from the first pane out."""
        if self._focused_pane() != "exchanges":
            self.action_back()
        else:
            self.app.exit(0)

    def action_turn(self, by: int) -> None:
        """To the pane beside."""
        if not self.has_class("-empty"):
            panes = self.tab_panes()
            self._focus_pane(panes[(panes.index(self._focused_pane()) + by) % len(panes)])

    def action_frame(self, by: int) -> None:
        """Another frame of the same exchange, from any pane."""
        self._frames.action_move(by)

    def action_tab(self, tab: int) -> None:
        """A tab of the frame, from any pane."""
        self._detail.action_tab(tab)

    def marked_rows(self) -> list[MarkedRow]:
        """What is marked, the oldest mark first."""
        return self._marks.marked_rows()

    def action_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away."""
        here = self._row_under_cursor()
        if here is not None:
            self._marks.toggle(here)
        rows: LazyList = self._frames if self._focused_pane_index() else self._exchanges
        rows.refresh()

    def _row_under_cursor(self) -> MarkedRow | None:
        """What is under the cursor."""
        row = (self._frames if self._focused_pane_index() else self._exchanges).current_row
        if isinstance(row, ExchangeRow):
            return MarkedRow(row.key)
        return MarkedRow(row.row.exchange_key, row.row.id) if isinstance(row, FrameLine) else None

    def action_diff(self) -> None:
        """What differs between two that are marked, the marked one and this, or this and its like before."""
        from a2a_inspect.screens.compare import compare_from

        compare_from(self, self._source, self.marked_rows(), self._row_under_cursor())

    def action_lanes(self) -> None:
        """The swimlane of the exchange's task; whoever opens a row there comes back to that frame."""
        from a2a_inspect.screens.lane_screen import LaneScreen

        row = self._exchanges.current_row  # what is shown below may be a tenth of a second behind the cursor
        exchange = row.key if isinstance(row, ExchangeRow) else self._selected_exchange
        if exchange:
            line = self._frames.current_row
            frame = line.row.id if isinstance(line, FrameLine) and line.row.exchange_key == exchange else 0
            self.app.push_screen(LaneScreen(self._source, exchange, frame), self.reveal)

    def action_plots(self) -> None:
        """Plots of what the list shows; a time that is chosen there narrows it."""
        from a2a_inspect.screens.plot_screen import PlotScreen

        self.app.push_screen(PlotScreen(self._source, self.narrowing.expression()), self.narrow_to)

    def action_replay(self) -> None:
        """What the list shows, as it happened: from the exchange under the cursor, or from the beginning."""
        from a2a_inspect.screens.replay_screen import ReplayScreen  # which is a main screen itself

        row = self._exchanges.current_row
        began = row.exchange.started if isinstance(row, ExchangeRow) and not self._exchanges.follow else 0
        self.app.push_screen(ReplayScreen(self._source, self.found_keys, began))

    def action_pause(self) -> None:
        """Hold the display, or show what has come."""
        self._summary.paused = not self._summary.paused
        self._apply_snapshot()
