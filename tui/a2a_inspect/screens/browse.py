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

from a2a_inspect.data.next_places import Place, frame_index
from a2a_inspect.data.notes import note_words
from a2a_inspect.data.source import ExchangeStream, FrameLine, RecordingSnapshot, RecordingSource
from a2a_inspect.data.tree import TreeBranch, TreePage, children
from a2a_inspect.screens.keys_in_order import KeysInOrder
from a2a_inspect.screens.lane_screen import LaneFrameChosen
from a2a_inspect.screens.layout import LAYOUT
from a2a_inspect.screens.titles import above, exchange_title, remark, waiting
from a2a_inspect.widgets.breadcrumbs import Breadcrumbs, way
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
from a2a_proxy.recording.write.note_writer import NotePlace as Spot

POLL = 0.1
"""Seconds."""
_WIDE, _HIGH = 120, 30
"""Cells from which the panes stand side by side."""
PANES = ("exchanges", "frames", "frame")

_Value = TypeVar("_Value")


class Browse(Screen[None]):
    """See the module."""

    DEFAULT_CSS = LAYOUT
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
        self._shown = RecordingSnapshot()
        self._held: RecordingSnapshot | None = None
        self._polling = False
        self._answered = False
        """The source has said once what there is."""
        self._troubles: dict[str, str] = {}
        self._chosen = 0
        self._stream: ExchangeStream | None = None
        self._frame = 0
        self._goal: Place | None = None
        """The frame to go to as soon as its exchange is there."""
        self._crumbs = Breadcrumbs()
        self.small = True
        """There is room for one pane at a time only."""

    def compose(self) -> ComposeResult:
        """The layout; its classes first, so that nothing has to be styled twice."""
        self._sized(self.app.size)
        yield self._summary
        yield self._crumbs
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
        self._enter("exchanges")
        self.set_interval(POLL, self._tick)
        self._tick()

    def on_resize(self, event: events.Resize) -> None:
        """One pane or all."""
        self._sized(event.size)

    def _sized(self, size: Size) -> None:
        self.classed({"-low": size.height < _HIGH})
        self.small = size.width < _WIDE or size.height < _HIGH
        self._lay_out(size.width)

    def _lay_out(self, width: int) -> None:  # noqa: ARG002 - for subclasses
        """Say by classes what is shown."""
        self.classed({"-single": self.small})

    def classed(self, classes: dict[str, bool]) -> None:
        """Give or take classes. Styles are worked out once for all of them: each time takes as long as a paint."""
        if any(self.has_class(name) != given for name, given in classes.items()):
            for name, given in classes.items():
                self.set_class(given, name, update=False)
            self.update_node_styles()

    # Reading.

    def _tick(self) -> None:
        if not self._polling:
            self._polling = True
            self._poll()

    @work(group="poll")
    async def _poll(self) -> None:
        try:
            snapshot = await self._asked("poll", self._source.poll(), None)
            first, self._answered = not self._answered, True
            if snapshot is not None:
                self._held = snapshot
                self._apply()
            elif first:
                self._show_notice()
        finally:
            self._polling = False

    async def _asked(self, about: str, question: Awaitable[_Value], nothing: _Value) -> _Value:
        """An answer of the source; where it cannot read, say why, until it can, and go on with nothing."""
        try:
            answer = await question
            self._troubles.pop(about, None)
        except RecordingError as trouble:
            answer = nothing
            self._troubles[about] = trouble.message
            self._ready()
        self._summary.trouble = next(iter(self._troubles.values()), "")
        return answer

    async def _load_exchanges(self, page: int) -> Sequence[ExchangeRow]:
        return await self._asked("exchanges", self._source.exchanges(page), [])

    async def _load_branches(self, of: TreeBranch | None, after: int | None) -> TreePage:
        return await self._asked("tree", self._source.ask(lambda r: children(r, of, after), TreePage()), TreePage())

    async def _load_frames(self, exchange: int, page: int) -> Sequence[FrameLine]:
        return await self._asked("frames", self._source.frames(exchange, page), [])

    def _apply(self) -> None:
        """Show what the last poll found, unless the display is paused."""
        now = self._held
        if now is None or self._summary.paused:
            self._retitle()
            return
        before, self._shown, self._held = self._shown, now, None
        self._summary.snapshot, self._marks.notes = now, now.notes
        self._show_notice()
        self._grown(before, now)
        if self._chosen:
            self._choose(self._chosen)

    def _grown(self, before: RecordingSnapshot, now: RecordingSnapshot) -> None:
        """Show the list of exchanges as it is now."""
        self._exchanges.show(now, now.exchanges, above=above(before, now, self._exchanges.cursor))

    @work(group="stream", exclusive=True)
    async def _choose(self, exchange: int) -> None:
        stream = await self._asked("stream", self._source.stream(exchange), None)
        if stream is None:
            self._frames.awaited = 0
            return
        same = self._stream is not None and self._stream.row.key == exchange
        if not same:
            self.workers.cancel_group(self, "frame")
        self._stream = stream
        self._frames.show(stream)
        self._detail.show_stream(stream, keep=same)
        if not same:
            self._frame = 0
        if self._goal is not None and self._goal[0] == exchange:
            goal, self._goal = self._goal, None
            index = await self._asked("frame", self._source.ask(lambda r: frame_index(r, goal), 0), 0)
            self._frames.select(index)
        self._retitle()

    @work(group="frame", exclusive=True)
    async def _choose_frame(self, number: int) -> None:
        row = await self._asked("frame", self._source.frame(number), None)
        if row is not None and self._stream is not None:
            await self._detail.show(row.frame, self._stream)

    # What the widgets say.

    @on(LazyList.Moved)
    def _moved(self, message: LazyList.Moved) -> None:
        row = message.row
        goal = self._goal[0] if self._goal is not None else 0
        if isinstance(row, ExchangeRow) and (row.key != self._chosen or row.key == goal):
            if row.key != self._chosen:
                self._frames.awaited = row.key
            self._chosen = row.key
            self._choose(self._chosen)
            self._ready()
        elif isinstance(row, FrameLine) and row.row.id != self._frame:
            self._frame = row.row.id
            self._choose_frame(row.row.id)
        self._retitle()

    @on(LazyList.Opened)
    def _opened(self, message: LazyList.Moved) -> None:
        self._enter("frames" if message.sender is self._exchanges else "frame")

    @on(LazyList.Changed)
    def _changed(self) -> None:
        for head in self.query(ListHead):
            head.refresh()
        self._retitle()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The pane with the focus is the one that a small terminal shows."""
        inside = {name: pane in event.widget.ancestors for name, pane in self._panes.items()}
        if any(inside.values()):
            self.classed({f"-at-{name}": yes for name, yes in inside.items()})
        self._retitle()

    def reveal(self, chosen: LaneFrameChosen | None) -> None:
        """Put the cursor on a frame of any exchange; without one, stay."""
        if chosen is not None:
            self._go_to(chosen.exchange, chosen.seq)
            self._enter("frames")

    def _ready(self) -> None:
        """There is something that a key can mean, or there will be nothing."""
        if isinstance(self.app, KeysInOrder):
            self.app.release()

    # Words.

    def _show_notice(self) -> None:
        empty = self._answered and not self._shown.exchanges
        self._exchanges.placeholder = "" if self._answered else "  opening"
        self.classed({"-empty": empty})
        if empty:
            self.query_one("#notice", Static).update(waiting(self._source, self._shown))
            self._ready()
        elif self.focused is None:  # the lists were hidden by the notice: that takes the focus away
            self._enter(self._at_pane())

    def _retitle(self) -> None:
        frames = self._frames
        titles = {"tree": "Tree", "exchanges": "Exchanges", "frames": "Frames", "frame": "Frame"}
        if self._stream is not None:
            titles["frames"] = exchange_title(self._stream)
        if self.has_class("-single") and self._stream is not None:
            titles["frames"] = f"Exchanges › {titles['frames']}"
            titles["frame"] = f"Exchanges › #{self._stream.row.exchange.id} › Frame"
        if isinstance(line := frames.row, FrameLine):
            titles["frame"] = f"{titles['frame']} {line.row.frame.seq}: {line.text}"
        line = line if isinstance(line, FrameLine) else None
        self._crumbs.where = way(self._stream, line, len(self._shown.sessions))
        remarks = {"exchanges": self._remark(), "frames": remark(frames, 0), "frame": self._noted()}
        if self.has_class("-single"):  # the frame's pane, which has the note, is not seen
            remarks["exchanges"] = "  ".join(filter(None, (self._noted(frame=False), remarks["exchanges"])))
        for name, pane in self._panes.items():
            pane.title.text, pane.title.remark = titles[name], remarks.get(name, "")

    def _remark(self) -> str:
        """What stands beside the title of the list of exchanges."""
        late = self._held.exchanges - self._shown.exchanges if self._held is not None else 0
        return remark(self._exchanges, late)

    def _noted(self, *, frame: bool = True) -> str:
        """What was noted about the frame, or about its exchange."""
        session, exchange = split_key(self._chosen)
        line, notes = self._frames.row, self._marks.notes
        spot = Spot(session, exchange, line.row.frame.seq) if frame and isinstance(line, FrameLine) else None
        note = (notes.get(spot) if spot is not None else None) or notes.get(Spot(session, exchange))
        return note_words(note) if note is not None else ""

    def say(self, words: str, *, wrong: bool = False) -> None:
        """A note that goes by itself."""
        self.notify(make_visible(words), severity="error" if wrong else "information", markup=False)

    # Panes.

    async def _index(self, exchange: int) -> int | None:
        """Where an exchange stands in the list; None where it is not in it."""
        return await self._asked("exchanges", self._source.index(exchange), 0)

    @work(group="go", exclusive=True)
    async def _go_to(self, exchange: int, seq: int = -1) -> None:
        """Put the cursor on an exchange, and on a frame of it."""
        index = await self._index(exchange)
        if index is None:
            return
        self._goal = (exchange, seq) if seq >= 0 else None
        self._exchanges.select(index)
        if exchange == self._chosen:
            self._choose(exchange)

    def _choose_nothing(self) -> None:
        """No exchange is in the list: none is shown."""
        self.workers.cancel_group(self, "stream")
        self.workers.cancel_group(self, "frame")
        self._chosen = self._frame = 0
        self._stream = None
        self._frames.leave()
        self._detail.show_stream(None, keep=False)
        self._retitle()

    def _enter(self, name: str) -> None:
        self.classed({f"-at-{each}": each == name for each in self._panes})
        targets: dict[str, Widget] = {
            "tree": self._tree,
            "exchanges": self._exchanges,
            "frames": self._frames,
            "frame": self._detail.view,
        }
        targets[name].focus()

    def _at_pane(self) -> str:
        return next((name for name in self._panes if self.has_class(f"-at-{name}")), "exchanges")

    def _where(self) -> int:
        return next((at for at, name in enumerate(PANES) if self.has_class(f"-at-{name}")), 0)
