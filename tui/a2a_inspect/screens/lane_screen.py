"""The swimlane of the task of an exchange. Enter returns to the main screen, to the frame under the
cursor."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

import msgspec
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from a2a_inspect.data.finding_counts import ending_words
from a2a_inspect.data.positions import PAGE
from a2a_inspect.data.source import RecordingSource
from a2a_inspect.lanes.layout import format_elapsed
from a2a_inspect.lanes.model import LaneRow, LaneRowKind
from a2a_inspect.widgets.key_line import KeyLine
from a2a_inspect.widgets.lane_list import LaneList
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_inspect.widgets.pane import ListHead, Pane
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key

if TYPE_CHECKING:
    from a2a_inspect.lanes.read import LaneConversation

_CHECK_INTERVAL = 0.5
"""Seconds between two checks of a recording that may grow."""
_PAUSE_FACTOR = 4
"""Pause before the next read, in durations of the last one, so that following never takes a whole
CPU."""
_MARK_KINDS = tuple(
    what
    for what in LaneRowKind
    if what not in (LaneRowKind.FRAME, LaneRowKind.PAUSE, LaneRowKind.TURN)
)

_Value = TypeVar("_Value")


class LaneFrameChosen(msgspec.Struct, frozen=True):
    """The frame that the user chose."""

    exchange: int
    """Key of the exchange."""
    seq: int


class LaneScreen(Screen[LaneFrameChosen | None]):
    """See the module."""

    DEFAULT_CSS = """
    LaneScreen { background: $background; }
    LaneScreen #lane-said { height: auto; max-height: 4; background: $surface; padding: 0 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,s", "leave", "Back", id="lanes.leave"),
    ]

    def __init__(self, source: RecordingSource, exchange: int, frame: int = 0) -> None:
        """`exchange` is a key, `frame` the id of one of its frames, or 0 for the first."""
        super().__init__()
        self._source = source
        self._exchange = exchange
        self._frame = frame
        self._list = LaneList(self._load_rows, id="lane-list")
        self._pane = Pane(ListHead(self._list), self._list, id="lanes")
        self._row_text = Static(id="lane-said", markup=False)
        self._conversation: LaneConversation | None = None
        self._version = (-1, 0)
        self._is_reading = False
        self._next_read = 0.0
        self._error = ""
        self._ending = ""

    def compose(self) -> ComposeResult:
        """Yield the list, and the full text of its selected row."""
        yield self._pane
        yield self._row_text
        yield KeyLine()

    def on_mount(self) -> None:
        """Read the recording, and check it regularly."""
        self._pane.title.text = "Swimlane"
        self._list.focus()
        self.set_interval(_CHECK_INTERVAL, self._start_read)
        self._start_read()

    def _start_read(self) -> None:
        if not self._is_reading and time.monotonic() >= self._next_read:
            self._is_reading = True
            self._read_conversation()

    @work(group="lanes")
    async def _read_conversation(self) -> None:
        try:
            began = time.monotonic()
            found = await self._ask_source(self._changed_conversation, None)
            if found is not None:
                self._ending = await self._read_ending()
                first = self._conversation is None
                self._conversation = found
                self._list.show_lanes(found.lanes, len(found.order))
                if first:
                    place = await self._ask_source(lambda _: found.row_index(self._frame), 0)
                    self._list.select_row(place)
                self.query_one(ListHead).refresh()
            self._next_read = time.monotonic() + _PAUSE_FACTOR * (time.monotonic() - began)
            self._update_title()
        finally:
            self._is_reading = False

    def _changed_conversation(self, recording: Recording) -> LaneConversation | None:
        """Return the conversation, or None if the recording has not changed. Imports late what few
        screens need."""
        from a2a_inspect.lanes.read import LaneConversation

        version = (recording.data_version(), self._source.until)
        if version == self._version:
            return None
        self._version = version
        return LaneConversation(recording, self._exchange, self._source.until)

    async def _read_ending(self) -> str:
        """Return why the exchange did not end well, as the list does; what is replayed has no end
        yet."""
        if self._source.until:
            return ""
        lines = await self._answer(self._source.read_lines([self._exchange]), [])
        return "".join(make_visible(ending_words(each, each.ending)) for each in lines)

    async def _load_rows(self, page: int) -> Sequence[LaneRow]:
        conversation = self._conversation
        if conversation is None:
            return []
        return await self._ask_source(lambda _: conversation.read_rows(page * PAGE, PAGE), [])

    async def _ask_source(self, question: Callable[[Recording], _Value], default: _Value) -> _Value:
        return await self._answer(self._source.run_query(question, default), default)

    async def _answer(self, query: Awaitable[_Value], default: _Value) -> _Value:
        try:
            answer = await query
            self._error = ""
        except RecordingError as wrong:
            answer, self._error = default, wrong.message
        return answer

    @on(LazyList.RowUnderCursor)
    @on(LazyList.Changed)
    def _update_title(self) -> None:
        conversation, row = self._conversation, self._list.current_row
        title = self._pane.title
        if conversation is not None:
            about = f"{conversation.title}  {self._ending}".rstrip()
            title.text = f"Swimlane › {about}"
            title.remark = (
                "following"
                if self._list.follow
                else text.format_count(conversation.order.frames, "frame")
            )
        if self._error:
            title.remark = make_visible(self._error)
        if isinstance(row, LaneRow) and conversation is not None:
            self._row_text.update(_full_row_text(row, [lane.name for lane in conversation.lanes]))

    @on(LaneList.MarkSearch)
    def _select_mark(self, message: LaneList.MarkSearch) -> None:
        if self._conversation is not None:
            found = self._conversation.order.next_mark(self._list.cursor, message.by, _MARK_KINDS)
            if found is None:
                self.notify("no more marks in this direction")
            else:
                self._list.select_row(found)

    @on(LazyList.Opened)
    def _choose_frame(self, message: LazyList.Opened) -> None:
        row = message.row
        if isinstance(row, LaneRow) and row.exchange:
            self.dismiss(LaneFrameChosen(make_key(row.session, row.exchange), max(row.seq, 0)))

    def action_leave(self) -> None:
        """Close the screen without choosing a frame."""
        self.dismiss(None)


def _full_row_text(row: LaneRow, lanes: Sequence[str]) -> str:
    """Return the text of a row without cuts: its place, direction, time and message."""
    if row.what is LaneRowKind.PAUSE:
        return f"no traffic for {text.format_duration(row.since_before)}"
    place = f"#{row.exchange}" + (f".{row.seq}" if row.seq >= 0 else "") if row.exchange else ""
    way = (
        f"{lanes[row.source]} → {lanes[row.target]}"
        if row.what is LaneRowKind.FRAME
        else lanes[row.source]
    )
    about = "  ".join(
        each
        for each in (
            place,
            make_visible(way),
            text.format_time(row.at),
            format_elapsed(row.since_start),
        )
        if each
    )
    return f"{about}\n{make_visible(row.text)}"
