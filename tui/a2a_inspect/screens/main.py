"""The main screen: a recording as lists of exchanges and frames, with the selected frame beside
them.

The screen creates the widgets and the controllers, passes messages of the widgets to the
controllers, and defines the order in which a new snapshot of the recording updates them. The keys
are in `keys.main_keys`. Pausing stops updates of the screen, not the recording.

The controllers, each of which uses only earlier ones:
- `reader`: queries of the source, and the poll
- `titles`: titles of the panes, breadcrumbs
- `panes`: layout, zoom, focus
- `selection`: the selected exchange and frame
- `filter`: the list of exchanges and its filter
- `branches`: the tree of the recording
- `navigation`: next frame, finding, match
- `columns`: the columns of the list
- `commands`: saved views and typed commands
- `row_actions`: mark, compare, copy, export, note, bookmark
- `resend`: send a call again
- `other_screens`: swimlane, findings by rule, plots, replay
"""

from collections.abc import Callable
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from a2a_inspect.data.source import RecordingSnapshot, RecordingSource
from a2a_inspect.data.tree import TreeBranch
from a2a_inspect.dialogs.filter_box import FilterBox
from a2a_inspect.keys.main_keys import MAIN_KEYS
from a2a_inspect.screens.actions import RowActions
from a2a_inspect.screens.columns import ListColumns
from a2a_inspect.screens.commands import Commands
from a2a_inspect.screens.filter import FilterController
from a2a_inspect.screens.main_controller import MainParts
from a2a_inspect.screens.navigation import Navigation
from a2a_inspect.screens.other_screens import OpenReplay, OtherScreens
from a2a_inspect.screens.panes import LAYOUT_CSS, Panes, make_panes
from a2a_inspect.screens.reader import POLL_INTERVAL, RecordingReader
from a2a_inspect.screens.resend import ResendController
from a2a_inspect.screens.selection import RowSelection
from a2a_inspect.screens.state import MainState, MainWidgets
from a2a_inspect.screens.titles import PaneTitles
from a2a_inspect.screens.tree import TreeController
from a2a_inspect.widgets.branch_tree import BranchTree
from a2a_inspect.widgets.breadcrumbs import Breadcrumbs
from a2a_inspect.widgets.detail import Detail
from a2a_inspect.widgets.exchange_list import ExchangeList
from a2a_inspect.widgets.frame_list import FrameList
from a2a_inspect.widgets.key_line import KeyLine
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_inspect.widgets.marks import RowMarks
from a2a_inspect.widgets.pane import ListHead
from a2a_inspect.widgets.summary import SummaryLine


class MainScreen(Screen[None]):
    """See the module."""

    DEFAULT_CSS = LAYOUT_CSS
    AUTO_FOCUS = "#exchange-list"
    """Not the tree, which is the first widget that can have the focus: each change of the focus
    restyles the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [*MAIN_KEYS]

    FIRST_KEYS: ClassVar[tuple[str, ...]] = (
        *("filter.use", "filter.find", "filter.complete", "filter.cancel", "filter.older"),
        *("list.open", "tree.open", "tree.close", "tree.choose", "frame.previous", "frame.next"),
        *("exchanges.filter", "view.lanes", "app.back", "view.copy"),
    )
    """Ids of the actions that the last line shows first."""

    def __init__(self, source: RecordingSource, open_replay: OpenReplay | None = None) -> None:
        super().__init__(classes="-at-exchanges")
        self.state = MainState()
        summary = SummaryLine(source.path)
        self.reader = RecordingReader(
            self,
            source,
            self.state,
            summary,
            on_new=self.show_snapshot,
            on_empty=lambda: self.panes.show_notice(),
        )
        marks = RowMarks()
        self.widgets = MainWidgets(
            summary=summary,
            breadcrumbs=Breadcrumbs(),
            marks=marks,
            exchanges=ExchangeList(
                lambda page: self.filter.load_exchanges(page),
                marks,
                source.files,
                id="exchange-list",
            ),
            frames=FrameList(self.reader.load_frames, marks, id="frame-list"),
            detail=Detail(source, id="detail"),
            tree=BranchTree(self.reader.load_branches, id="recording-tree"),
            filter_box=FilterBox(self.reader.complete_expression),
        )
        parts = MainParts(self, self.reader, self.state, self.widgets)
        panes = make_panes(self.widgets)
        self.titles = PaneTitles(parts, panes, lambda: self.filter.describe_list())
        self.panes = Panes(parts, panes, self.titles)
        self.selection = RowSelection(parts, self.titles)
        self.filter = FilterController(parts, self.titles, self.panes, self.selection)
        self.branches = TreeController(parts, self.panes, self.filter)
        self.navigation = Navigation(parts, self.panes, self.filter)
        self.columns = ListColumns(parts, self.filter)
        self.commands = Commands(parts, self.filter)
        self.row_actions = RowActions(parts, self.panes, self.filter)
        self.resend = ResendController(parts, self.panes)
        self.other_screens = OtherScreens(parts, self.filter, open_replay)

    def compose(self) -> ComposeResult:
        """Lay the widgets out. The classes are set first, so that nothing is styled twice."""
        self.panes.apply_size(self.app.size)
        yield self.widgets.summary
        yield self.widgets.breadcrumbs
        yield from self.panes.compose()
        yield self.widgets.filter_box
        yield KeyLine()

    def on_mount(self) -> None:
        """Begin to follow the recording."""
        self.filter.prepare_search()
        if not self.widgets.summary.replay:  # their cells are those of the end
            self.columns.restore_columns()
        self.widgets.exchanges.follow = True
        self.panes.show_notice()
        self.panes.focus_pane("exchanges")
        self.set_interval(POLL_INTERVAL, self.poll_recording)
        self.poll_recording()

    def on_unmount(self) -> None:
        """End all searches."""
        self.filter.close()

    # A new snapshot.

    def poll_recording(self) -> None:
        """Poll the recording, and update the search and the tree."""
        self.reader.start_poll()
        self.filter.follow_recording()
        self.branches.reread_if_stale()

    def show_snapshot(self) -> None:
        """Show the snapshot of the last poll, unless the display is paused."""
        found = None if self.widgets.summary.paused else self.state.take_pending()
        if found is None:
            self.titles.update_titles()
        else:
            before, now = found
            self.widgets.summary.snapshot, self.widgets.marks.notes = now, now.notes
            self.panes.show_notice()
            self.show_exchanges(before, now)
            self.selection.refresh_exchange()
        self.filter.show_found()

    def show_exchanges(self, before: RecordingSnapshot, now: RecordingSnapshot) -> None:
        """Show the list of exchanges of a new snapshot."""
        self.filter.show_exchanges(before, now)
        self.branches.is_stale = True

    # Messages of the widgets.

    def on_resize(self, event: events.Resize) -> None:
        """Lay the panes out again."""
        self.panes.apply_size(event.size)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Show the pane that has the focus now."""
        self.panes.note_focus(event)

    @on(LazyList.RowUnderCursor)
    def _follow_cursor(self, message: LazyList.RowUnderCursor) -> None:
        self.selection.follow_cursor(message)

    @on(LazyList.Opened)
    def _open_row(self, message: LazyList.Opened) -> None:
        self.panes.focus_pane("frames" if message.sender is self.widgets.exchanges else "frame")

    @on(LazyList.Changed)
    def _refresh_heads(self) -> None:
        for head in self.query(ListHead):
            head.refresh()
        self.titles.update_titles()

    @on(BranchTree.Chosen)
    def _narrow_to_branch(self, message: BranchTree.Chosen) -> None:
        if isinstance(message.branch, TreeBranch):
            self.branches.narrow_to_branch(message.branch)

    @on(Breadcrumbs.Clicked)
    def _edit_filter(self) -> None:
        self.filter.edit_whole()

    @on(FilterBox.Typed)
    def _filter_as_typed(self, message: FilterBox.Typed) -> None:
        self.filter.apply_typed(message.text.strip())

    @on(FilterBox.Used)
    def _use_filter(self, message: FilterBox.Used) -> None:
        self.filter.use_typed(message.text)

    @on(FilterBox.MatchSearch)
    def _find_matches(self, message: FilterBox.MatchSearch) -> None:
        self.navigation.find_typed(message.text)

    @on(FilterBox.Closed)
    def _restore_filter(self) -> None:
        self.filter.restore_filter()

    # Actions.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Tab to the filter's box while a filter is typed."""
        is_turn = action == "call" and parameters[0] == "panes.turn"
        return super().check_action(action, parameters) and not (
            is_turn and self.widgets.filter_box.is_open
        )

    def action_call(self, name: str, argument: int | str | None = None) -> Any:
        """Call a method of a controller by the name that the table of keys gives:
        `filter.open_box`."""
        method = self.find_method(name)
        return method() if argument is None else method(argument)

    def find_method(self, name: str) -> Callable[..., Any]:
        """Return the method of a controller that an action names. Raises AttributeError if there is
        no such method."""
        controller, _, method = name.partition(".")
        found: Callable[..., Any] = getattr(getattr(self, controller), method)
        return found

    def action_back(self) -> None:
        """Go to the pane before, and from the first one to a wider list."""
        if not self.panes.go_back():
            self.filter.widen_filter()

    def action_leave(self) -> None:
        """Go to the pane before, and from the first one quit."""
        if not self.panes.go_back():
            self.app.exit(0)

    def action_pause(self) -> None:
        """Hold the display, or continue with the current state of the recording."""
        self.widgets.summary.paused = not self.widgets.summary.paused
        self.show_snapshot()
