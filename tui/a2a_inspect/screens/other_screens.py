"""Screens that the main screen opens on the recording: swimlane, findings by rule, plots,
replay."""

from collections.abc import Callable, Sequence

from a2a_inspect.data.finding_tree import FindingBranch
from a2a_inspect.data.source import FrameLine
from a2a_inspect.screens.filter import FilterController
from a2a_inspect.screens.lane_screen import LaneFrameChosen
from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_inspect.widgets.tab_line import TABS
from a2a_proxy.present import text
from a2a_proxy.recording.read.rows import ExchangeRow, make_key

OpenReplay = Callable[[Sequence[int] | None, int], None]
"""Opens a replay: the keys of the exchanges, None for all, and where it begins, ns since the epoch,
0: the first."""


class OtherScreens(MainController):
    """Opens them at the row under the cursor."""

    def __init__(
        self, parts: MainParts, list_filter: FilterController, open_replay: OpenReplay | None
    ) -> None:
        """`open_replay` is None in a replay: its screen is a main screen too, so this module cannot
        import it."""
        super().__init__(parts)
        self._filter = list_filter
        self._open_replay = open_replay

    def open_swimlane(self) -> None:
        """Open the swimlane of the exchange's task. A frame that is chosen there is selected
        here."""
        from a2a_inspect.screens.lane_screen import LaneScreen

        row = (
            self._widgets.exchanges.current_row
        )  # the panes below may lag a tenth of a second behind the cursor
        exchange = row.key if isinstance(row, ExchangeRow) else self._state.selected_exchange
        if exchange:
            line = self._widgets.frames.current_row
            frame = (
                line.row.id
                if isinstance(line, FrameLine) and line.row.exchange_key == exchange
                else 0
            )
            self.screen.app.push_screen(
                LaneScreen(self._source, exchange, frame), self._filter.reveal_frame
            )

    def open_findings(self) -> None:
        """Open the findings by rule. A finding that is chosen there is selected here, with its
        tab."""
        from a2a_inspect.screens.findings_screen import FindingsScreen

        count = text.format_count(self._state.snapshot.findings, "finding")
        self.screen.app.push_screen(
            FindingsScreen(self._reader.load_findings, f"{count} by rule"), self._show_finding
        )

    def _show_finding(self, finding: FindingBranch | None) -> None:
        if finding is None:
            return
        if not finding.exchange:
            self.show_message("this finding is about a connection: a2a-inspect check shows it")
            return
        self._filter.reveal_frame(
            LaneFrameChosen(make_key(finding.session, finding.exchange), finding.seq)
        )
        self._widgets.detail.action_tab(TABS.index("Findings"))

    def open_plots(self) -> None:
        """Open plots of the list. A time that is chosen there narrows the list."""
        from a2a_inspect.screens.plot_screen import PlotScreen

        plots = PlotScreen(self._source, self._filter.current.make_expression())
        self.screen.app.push_screen(plots, self._filter.add_expression)

    def open_replay(self) -> None:
        """Replay the list, from the exchange under the cursor, or from the beginning if the list
        follows its end."""
        rows = self._widgets.exchanges
        row = rows.current_row
        start = row.exchange.started if isinstance(row, ExchangeRow) and not rows.follow else 0
        if self._open_replay is not None:
            self._open_replay(self._filter.found_keys(), start)
