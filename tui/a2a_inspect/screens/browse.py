"""The screen: exchanges above, the frames of the chosen one below, the chosen frame beside them.

On a small terminal one of the three at a time. Here messages of the widgets become questions to the `Source`, and its
answers become their state; pausing holds back answers, it stops no recording.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from a2a_inspect.data.next_places import FramePosition, frame_index
from a2a_inspect.data.notes import note_words
from a2a_inspect.data.source import ExchangeStream, FrameLine, RecordingSnapshot, RecordingSource
from a2a_inspect.data.tree import TreeBranch, TreePage, read_children
from a2a_inspect.screens.keys_in_order import KeysInOrder
from a2a_inspect.screens.lane_screen import LaneFrameChosen
from a2a_inspect.screens.layout import LAYOUT_CSS
from a2a_inspect.screens.titles import empty_notice, exchange_title, list_remark, rows_above
from a2a_inspect.widgets.breadcrumbs import Breadcrumbs, breadcrumb_path
from a2a_inspect.widgets.detail import Detail
from a2a_inspect.widgets.exchange_list import ExchangeList
from a2a_inspect.widgets.frame_list import FrameList
from a2a_inspect.widgets.key_line import KeyLine
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_inspect.widgets.marks import RowMarks
from a2a_inspect.widgets.pane import ListHead, Pane
from a2a_inspect.widgets.recording_tree import RecordingTree
from a2a_inspect.widgets.summary import SummaryLine
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.rows import ExchangeRow, split_key
from a2a_proxy.recording.write.note_writer import NotePlace

POLL_INTERVAL = 0.1
"""Seconds."""
_MIN_WIDE_COLUMNS, _MIN_WIDE_ROWS = 120, 30
"""Cells from which the panes stand side by side."""
PANES = ("exchanges", "frames", "frame")

_Value = TypeVar("_Value")


class BrowseScreen(Screen[None]):
    """See the module."""

    DEFAULT_CSS = LAYOUT_CSS
    AUTO_FOCUS = "#exchange-list"
    """Not the first that could have it, the tree: each change of the focus styles all that is on the screen anew."""

    def __init__(self, source: RecordingSource) -> None:
        super().__init__(classes="-at-exchanges")
        self._source = source
        self._summary = SummaryLine(source.path)
        self._marks = RowMarks()
        self._exchanges = ExchangeList(self._load_exchanges, self._marks, source.files, id="exchange-list")
        self._frames = FrameList(self._load_frames, self._marks, id="frame-list")
        self._detail = Detail(source, id="detail")
        self._tree = RecordingTree(self._load_branches)
        notice = Static(id="notice", markup=False)
        self._panes = {
            "tree": Pane(self._tree, id="tree"),
            "exchanges": Pane(ListHead(self._exchanges), self._exchanges, notice, id="exchanges"),
            "frames": Pane(ListHead(self._frames), self._frames, id="frames"),
            "frame": Pane(self._detail, id="frame"),
        }
        self._snapshot = RecordingSnapshot()
        self._pending_snapshot: RecordingSnapshot | None = None
        self._is_polling = False
        self._has_answer = False
        """The source has said once what there is."""
        self._errors: dict[str, str] = {}
        self._selected_exchange = 0
        self._stream: ExchangeStream | None = None
        self._selected_frame = 0
        self._pending_position: FramePosition | None = None
        """The frame to go to as soon as its exchange is there."""
        self._breadcrumbs = Breadcrumbs()
        self.is_small = True
        """There is room for one pane at a time only."""

    def compose(self) -> ComposeResult:
        """The layout; its classes first, so that nothing has to be styled twice."""
        self._apply_size(self.app.size)
        yield self._summary
        yield self._breadcrumbs
        with Horizontal(id="all"):
            yield self._panes["tree"]
            with Vertical(id="lists"):
                yield self._panes["exchanges"]
                with Container(id="lower"):
                    yield self._panes["frames"]
                    yield self._panes["frame"]
        yield KeyLine()

    def on_mount(self) -> None:
        """Begin to follow."""
        self._exchanges.follow = True
        self._show_notice()
        self._focus_pane("exchanges")
        self.set_interval(POLL_INTERVAL, self._start_poll)
        self._start_poll()

    def on_resize(self, event: events.Resize) -> None:
        """One pane or all."""
        self._apply_size(event.size)

    def _apply_size(self, size: Size) -> None:
        self.switch_classes({"-low": size.height < _MIN_WIDE_ROWS})
        self.is_small = size.width < _MIN_WIDE_COLUMNS or size.height < _MIN_WIDE_ROWS
        self._apply_layout(size.width)

    def _apply_layout(self, width: int) -> None:  # noqa: ARG002 - for subclasses
        """Say by classes what is shown."""
        self.switch_classes({"-single": self.is_small})

    def switch_classes(self, classes: dict[str, bool]) -> None:
        """Give or take classes. Styles are worked out once for all of them: each time takes as long as a paint."""
        if any(self.has_class(name) != given for name, given in classes.items()):
            for name, given in classes.items():
                self.set_class(given, name, update=False)
            self.update_node_styles()

    # Reading.

    def _start_poll(self) -> None:
        if not self._is_polling:
            self._is_polling = True
            self._poll_source()

    @work(group="poll")
    async def _poll_source(self) -> None:
        try:
            snapshot = await self._await_answer("poll", self._source.poll(), None)
            first, self._has_answer = not self._has_answer, True
            if snapshot is not None:
                self._pending_snapshot = snapshot
                self._apply_snapshot()
            elif first:
                self._show_notice()
        finally:
            self._is_polling = False

    async def _await_answer(self, topic: str, question: Awaitable[_Value], default: _Value) -> _Value:
        """An answer of the source; where it cannot read, say why, until it can, and go on with nothing."""
        try:
            answer = await question
            self._errors.pop(topic, None)
        except RecordingError as trouble:
            answer = default
            self._errors[topic] = trouble.message
            self._release_keys()
        self._summary.trouble = next(iter(self._errors.values()), "")
        return answer

    async def _load_exchanges(self, page: int) -> Sequence[ExchangeRow]:
        return await self._await_answer("exchanges", self._source.exchanges(page), [])

    async def _load_branches(self, branch: TreeBranch | None, after: int | None) -> TreePage:
        return await self._await_answer(
            "tree", self._source.ask(lambda r: read_children(r, branch, after), TreePage()), TreePage()
        )

    async def _load_frames(self, exchange: int, page: int) -> Sequence[FrameLine]:
        return await self._await_answer("frames", self._source.frames(exchange, page), [])

    def _apply_snapshot(self) -> None:
        """Show what the last poll found, unless the display is paused."""
        now = self._pending_snapshot
        if now is None or self._summary.paused:
            self._update_titles()
            return
        before, self._snapshot, self._pending_snapshot = self._snapshot, now, None
        self._summary.snapshot, self._marks.notes = now, now.notes
        self._show_notice()
        self._show_exchanges(before, now)
        if self._selected_exchange:
            self._show_exchange(self._selected_exchange)

    def _show_exchanges(self, before: RecordingSnapshot, now: RecordingSnapshot) -> None:
        """Show the list of exchanges as it is now."""
        self._exchanges.show(now, now.exchanges, above=rows_above(before, now, self._exchanges.cursor))

    @work(group="stream", exclusive=True)
    async def _show_exchange(self, exchange: int) -> None:
        stream = await self._await_answer("stream", self._source.stream(exchange), None)
        if stream is None:
            self._frames.awaited_exchange = 0
            return
        same = self._stream is not None and self._stream.row.key == exchange
        if not same:
            self.workers.cancel_group(self, "frame")
        self._stream = stream
        self._frames.show(stream)
        self._detail.show_stream(stream, keep=same)
        if not same:
            self._selected_frame = 0
        if self._pending_position is not None and self._pending_position[0] == exchange:
            goal, self._pending_position = self._pending_position, None
            index = await self._await_answer("frame", self._source.ask(lambda r: frame_index(r, goal), 0), 0)
            self._frames.select(index)
        self._update_titles()

    @work(group="frame", exclusive=True)
    async def _show_frame(self, number: int) -> None:
        row = await self._await_answer("frame", self._source.frame(number), None)
        if row is not None and self._stream is not None:
            await self._detail.show(row.frame, self._stream)

    # What the widgets say.

    @on(LazyList.Moved)
    def _show_row_under_cursor(self, message: LazyList.Moved) -> None:
        row = message.row
        goal = self._pending_position[0] if self._pending_position is not None else 0
        if isinstance(row, ExchangeRow) and (row.key != self._selected_exchange or row.key == goal):
            if row.key != self._selected_exchange:
                self._frames.awaited_exchange = row.key
            self._selected_exchange = row.key
            self._show_exchange(self._selected_exchange)
            self._release_keys()
        elif isinstance(row, FrameLine) and row.row.id != self._selected_frame:
            self._selected_frame = row.row.id
            self._show_frame(row.row.id)
        self._update_titles()

    @on(LazyList.Opened)
    def _enter_row(self, message: LazyList.Moved) -> None:
        self._focus_pane("frames" if message.sender is self._exchanges else "frame")

    @on(LazyList.Changed)
    def _refresh_heads(self) -> None:
        for head in self.query(ListHead):
            head.refresh()
        self._update_titles()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The pane with the focus is the one that a small terminal shows."""
        inside = {name: pane in event.widget.ancestors for name, pane in self._panes.items()}
        if any(inside.values()):
            self.switch_classes({f"-at-{name}": yes for name, yes in inside.items()})
        self._update_titles()

    def reveal(self, frame: LaneFrameChosen | None) -> None:
        """Put the cursor on a frame of any exchange; without one, stay."""
        if frame is not None:
            self._go_to(frame.exchange, frame.seq)
            self._focus_pane("frames")

    def _release_keys(self) -> None:
        """There is something that a key can mean, or there will be nothing."""
        if isinstance(self.app, KeysInOrder):
            self.app.release_keys()

    # Words.

    def _show_notice(self) -> None:
        empty = self._has_answer and not self._snapshot.exchanges
        self._exchanges.placeholder = "" if self._has_answer else "  opening"
        self.switch_classes({"-empty": empty})
        if empty:
            self.query_one("#notice", Static).update(empty_notice(self._source, self._snapshot))
            self._release_keys()
        elif self.focused is None:  # the lists were hidden by the notice: that takes the focus away
            self._focus_pane(self._focused_pane())

    def _update_titles(self) -> None:
        frames = self._frames
        titles = {"tree": "Tree", "exchanges": "Exchanges", "frames": "Frames", "frame": "Frame"}
        if self._stream is not None:
            titles["frames"] = exchange_title(self._stream)
        if self.has_class("-single") and self._stream is not None:
            titles["frames"] = f"Exchanges › {titles['frames']}"
            titles["frame"] = f"Exchanges › #{self._stream.row.exchange.id} › Frame"
        if isinstance(line := frames.current_row, FrameLine):
            titles["frame"] = f"{titles['frame']} {line.row.frame.seq}: {line.text}"
        line = line if isinstance(line, FrameLine) else None
        self._breadcrumbs.where = breadcrumb_path(self._stream, line, len(self._snapshot.sessions))
        remarks = {"exchanges": self._exchanges_remark(), "frames": list_remark(frames, 0), "frame": self._note_words()}
        if self.has_class("-single"):  # the frame's pane, which has the note, is not seen
            remarks["exchanges"] = "  ".join(filter(None, (self._note_words(frame=False), remarks["exchanges"])))
        for name, pane in self._panes.items():
            pane.title.text, pane.title.remark = titles[name], remarks.get(name, "")

    def _exchanges_remark(self) -> str:
        """What stands beside the title of the list of exchanges."""
        late = self._pending_snapshot.exchanges - self._snapshot.exchanges if self._pending_snapshot is not None else 0
        return list_remark(self._exchanges, late)

    def _note_words(self, *, frame: bool = True) -> str:
        """What was noted about the frame, or about its exchange."""
        session, exchange = split_key(self._selected_exchange)
        line, notes = self._frames.current_row, self._marks.notes
        spot = NotePlace(session, exchange, line.row.frame.seq) if frame and isinstance(line, FrameLine) else None
        note = (notes.get(spot) if spot is not None else None) or notes.get(NotePlace(session, exchange))
        return note_words(note) if note is not None else ""

    def show_message(self, message: str, *, is_error: bool = False) -> None:
        """A note that goes by itself."""
        self.notify(make_visible(message), severity="error" if is_error else "information", markup=False)

    # Panes.

    async def _list_index(self, exchange: int) -> int | None:
        """Where an exchange stands in the list; None where it is not in it."""
        return await self._await_answer("exchanges", self._source.exchange_index(exchange), 0)

    @work(group="go", exclusive=True)
    async def _go_to(self, exchange: int, seq: int = -1) -> None:
        """Put the cursor on an exchange, and on a frame of it."""
        index = await self._list_index(exchange)
        if index is None:
            return
        self._pending_position = (exchange, seq) if seq >= 0 else None
        self._exchanges.select(index)
        if exchange == self._selected_exchange:
            self._show_exchange(exchange)

    def _clear_panes(self) -> None:
        """No exchange is in the list: none is shown."""
        self.workers.cancel_group(self, "stream")
        self.workers.cancel_group(self, "frame")
        self._selected_exchange = self._selected_frame = 0
        self._stream = None
        self._frames.clear()
        self._detail.show_stream(None, keep=False)
        self._update_titles()

    def _focus_pane(self, name: str) -> None:
        self.switch_classes({f"-at-{each}": each == name for each in self._panes})
        targets: dict[str, Widget] = {
            "tree": self._tree,
            "exchanges": self._exchanges,
            "frames": self._frames,
            "frame": self._detail.current_view,
        }
        targets[name].focus()

    def _focused_pane(self) -> str:
        return next((name for name in self._panes if self.has_class(f"-at-{name}")), "exchanges")

    def _focused_pane_index(self) -> int:
        return next((at for at, name in enumerate(PANES) if self.has_class(f"-at-{name}")), 0)
