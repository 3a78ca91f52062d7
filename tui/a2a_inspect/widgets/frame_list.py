"""The list of an exchange's frames."""

from collections.abc import Awaitable, Callable, Sequence

from a2a_inspect.data.source import ExchangeStream, FrameLine
from a2a_inspect.widgets.columns import ListColumn
from a2a_inspect.widgets.found_column import FINDINGS_COLUMN
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_inspect.widgets.marks import RowMarks, with_signs
from a2a_proxy.model.values import FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.present import text
from a2a_proxy.recording.write.note_writer import NotePlace

_STYLES = {
    FrameKind.ERROR: "list--bad",
    FrameKind.CUT: "list--warn",
    FrameKind.UNDECODABLE: "list--bad",
    FrameKind.COMMENT: "list--dim",
    FrameKind.END: "list--dim",
}


class FrameList(LazyList):
    """The frames of one exchange, both directions in one order."""

    def __init__(
        self,
        load_page: Callable[[int, int], Awaitable[Sequence[FrameLine]]],
        marks: RowMarks,
        *,
        id: str,
    ) -> None:
        super().__init__(
            [
                ListColumn(
                    "FRAME", 6, self._number_cell, right=True, style=self._number_style, drop=1
                ),
                ListColumn("+SECONDS", 8, self._time_cell, right=True, style="list--dim"),
                ListColumn("", 1, direction_arrow, style=direction_style),
                FINDINGS_COLUMN,
                ListColumn("KIND", 8, frame_kind, style=frame_kind_style, drop=2),
                ListColumn("WHAT", 24, lambda line: line.text, grow=1, style=text_style),
                ListColumn(
                    "SIZE",
                    9,
                    lambda line: text.format_size(line.row.frame.size),
                    right=True,
                    style="list--dim",
                    drop=3,
                ),
            ],
            id=id,
        )
        self._load_page = load_page
        self._marks = marks
        self.stream: ExchangeStream | None = None
        """The exchange of the listed frames."""
        self.awaited_exchange = 0
        """Key of the exchange whose frames are being loaded; 0: none."""

    @property
    def is_settled(self) -> bool:
        """Whether the selected exchange's frames are listed, so that keys apply to them."""
        return super().is_settled and not self.awaited_exchange

    def show_stream(self, stream: ExchangeStream) -> None:
        """Show another exchange, or a new state of the same one. A live exchange is followed from
        the start."""
        if self.stream is None or self.stream.row.key != stream.row.key:
            self.clear_rows(follow=not stream.row.exchange.closed)
        self.stream = stream
        if stream.row.key == self.awaited_exchange:
            self.awaited_exchange = 0
        self.update_total(stream.frames)

    def clear(self) -> None:
        """Show no exchange."""
        self.stream = None
        self.awaited_exchange = 0
        self.clear_rows(follow=False)

    async def load_page(self, page: int) -> Sequence[FrameLine]:
        """Return one page."""
        return await self._load_page(self.stream.row.key, page) if self.stream is not None else []

    def _number_cell(self, line: FrameLine) -> str:
        frame = line.row.frame
        note_sign = self._marks.note_sign(NotePlace(line.row.session, frame.exchange, frame.seq))
        return with_signs(str(frame.seq), self._is_marked(line), note_sign)

    def _number_style(self, line: FrameLine) -> str:
        return "list--strong" if self._is_marked(line) else "list--dim"

    def _is_marked(self, line: FrameLine) -> bool:
        return self._marks.is_frame_marked(line.row.exchange_key, line.row.id)

    def _time_cell(self, line: FrameLine) -> str:
        began = self.stream.row.exchange.started if self.stream is not None else line.row.frame.at
        return f"{(line.row.frame.at - began) / 1e9:+.3f}"


def direction_arrow(line: FrameLine) -> str:
    """Return the arrow to the agent or to the client."""
    return "→" if line.row.frame.direction is Direction.TO_AGENT else "←"


def direction_style(line: FrameLine) -> str:
    """Return the style of the arrow."""
    return "list--out" if line.row.frame.direction is Direction.TO_AGENT else "list--in"


def frame_kind(line: FrameLine) -> str:
    """Return the kind in one word."""
    return line.row.frame.kind.name.lower()


def frame_kind_style(line: FrameLine) -> str:
    """Return the style of the kind."""
    return _STYLES.get(line.row.frame.kind, "list--dim")


def text_style(line: FrameLine) -> str:
    """Return the style of the summary: errors are highlighted, frames without content are
    dimmed."""
    return _STYLES.get(line.row.frame.kind, "")
