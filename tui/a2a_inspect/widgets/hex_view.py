"""Any number of bytes as offsets, hexadecimal and text. Only visible rows are rendered."""

from rich.segment import Segment
from textual.strip import Strip

from a2a_inspect.data.frame_bytes import FrameBytes
from a2a_inspect.data.hexdump import hex_row
from a2a_inspect.widgets.text_view import TextView


class HexView(TextView):
    """A hex dump; if not all bytes are payload, the payload is in brackets."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._frame_bytes = FrameBytes()
        self._caption = ""
        self._per_row = 16

    def show_bytes(self, frame_bytes: FrameBytes, caption: str = "", *, keep: bool = False) -> None:
        """Show these bytes below a caption; with `keep` the same bytes and more."""
        self._frame_bytes, self._caption = frame_bytes, caption
        self._wrap_lines()
        if not keep:
            self.scroll_to(y=0, animate=False)
        self.refresh()

    @property
    def frame_bytes(self) -> FrameBytes:
        """The displayed bytes."""
        return self._frame_bytes

    @property
    def _caption_rows(self) -> int:
        return 1 if self._caption else 0

    def _wrap_lines(self) -> None:
        self._per_row = 16 if self.size.width >= 78 else 8
        self.set_row_count(self._caption_rows - -len(self._frame_bytes.data) // self._per_row)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable text search, because bytes are not text: `/` remains the key of the list."""
        return (
            super().check_action(action, parameters) if action not in ("seek", "sought") else False
        )

    def render_line(self, y: int) -> Strip:
        """Render one row: `00000010  7b 22 69 64 …  {"id…`."""
        base, row = self.combine_styles(), self.scroll_offset.y + y - self._caption_rows
        dim = self.combine_styles("text--dim")
        if row < 0:
            return Strip([Segment(f" {self._caption}", dim)]).adjust_cell_length(
                self.size.width, base
            )
        offset = row * self._per_row
        raw = self._frame_bytes.data[offset : offset + self._per_row]
        if not raw:
            return Strip.blank(self.size.width, base)
        groups, text = hex_row(raw, self._per_row)
        string = self.combine_styles("text--string")
        line = mark_payload_bounds(f"  {groups} ", self._frame_bytes, offset, len(raw))
        parts = [Segment(f" {offset:08x}", dim), Segment(line, base), Segment(f" {text}", string)]
        return Strip(parts).adjust_cell_length(self.size.width, base)


def mark_payload_bounds(groups: str, frame_bytes: FrameBytes, offset: int, count: int) -> str:
    """Return a row's hexadecimal (two spaces before, one after) with brackets where the payload
    begins and ends."""
    begins, ends = frame_bytes.find_bounds()
    if not begins:
        return groups
    row = list(groups)
    for at in range(count):
        place = 2 + at * 3 + at // 8
        if offset + at in begins:
            row[place - 1] = "["
        if offset + at + 1 in ends:
            row[place + 2] = "]"
    return "".join(row)
