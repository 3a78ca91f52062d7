"""The selected exchange and frame: reads them, and shows them in their panes."""

from a2a_inspect.data.next_places import frame_index
from a2a_inspect.data.source import FrameLine
from a2a_inspect.screens.controller import run_in_background
from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_inspect.screens.reader import release_keys
from a2a_inspect.screens.titles import PaneTitles
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_proxy.recording.read.rows import ExchangeRow


class RowSelection(MainController):
    """Follows the cursors of both lists."""

    def __init__(self, parts: MainParts, titles: PaneTitles) -> None:
        super().__init__(parts)
        self._titles = titles

    def follow_cursor(self, message: LazyList.RowUnderCursor) -> None:
        """Show the row that is under the cursor of a list now."""
        row, state = message.row, self._state
        goal = state.pending_position[0] if state.pending_position is not None else 0
        if isinstance(row, ExchangeRow) and (row.key != state.selected_exchange or row.key == goal):
            if row.key != state.selected_exchange:
                self._widgets.frames.awaited_exchange = row.key
            state.selected_exchange = row.key
            self.show_exchange(row.key)
            release_keys(self.screen)
        elif isinstance(row, FrameLine) and row.row.id != state.selected_frame:
            state.selected_frame = row.row.id
            self._show_frame(row.row.id)
        self._titles.update_titles()

    def refresh_exchange(self) -> None:
        """Read the selected exchange again."""
        if self._state.selected_exchange:
            self.show_exchange(self._state.selected_exchange)

    @run_in_background("stream", exclusive=True)
    async def show_exchange(self, exchange: int) -> None:
        """Read an exchange, and show its frames."""
        state, widgets = self._state, self._widgets
        stream = await self._reader.answer_query(
            "stream", self._reader.source.read_stream(exchange), None
        )
        if stream is None:
            widgets.frames.awaited_exchange = 0
            return
        same = state.stream is not None and state.stream.row.key == exchange
        if not same:
            self.screen.workers.cancel_group(self.screen, "frame")
        state.stream = stream
        widgets.frames.show_stream(stream)
        widgets.detail.show_stream(stream, keep=same)
        if not same:
            state.selected_frame = 0
        if state.pending_position is not None and state.pending_position[0] == exchange:
            goal, state.pending_position = state.pending_position, None
            widgets.frames.select_row(
                await self._reader.run_query(
                    "frame", lambda recording: frame_index(recording, goal), 0
                )
            )
        self._titles.update_titles()

    @run_in_background("frame", exclusive=True)
    async def _show_frame(self, number: int) -> None:
        row = await self._reader.answer_query("frame", self._reader.source.read_frame(number), None)
        if row is not None and self._state.stream is not None:
            await self._widgets.detail.show(row.frame, self._state.stream)

    def clear(self) -> None:
        """Select nothing: no exchange is in the list."""
        self.screen.workers.cancel_group(self.screen, "stream")
        self.screen.workers.cancel_group(self.screen, "frame")
        self._state.selected_exchange = self._state.selected_frame = 0
        self._state.stream = None
        self._widgets.frames.clear()
        self._widgets.detail.show_stream(None, keep=False)
        self._titles.update_titles()
