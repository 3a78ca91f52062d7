"""Octets as offsets, hexadecimal and text; any number of them, only the rows on the screen are rendered."""

from __future__ import annotations

from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip

from a2a_inspect.hexdump import hex_row
from a2a_inspect.screen.text_view import TextView


class HexView(TextView):
    """A hex dump of exactly the octets that were stored."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._octets = b""
        self._per_row = 16

    def dump(self, octets: bytes) -> None:
        """Show these octets from their beginning."""
        self._octets = octets
        self._wrap()
        self.scroll_to(y=0, animate=False)
        self.refresh()

    def _wrap(self) -> None:
        self._per_row = 16 if self.size.width >= 78 else 8
        self.virtual_size = Size(self.size.width, -(-len(self._octets) // self._per_row))

    def render_line(self, y: int) -> Strip:
        """One row: `00000010  7b 22 69 64 …  {"id…`."""
        base = self.rich_style
        offset = (self.scroll_offset.y + y) * self._per_row
        row = self._octets[offset : offset + self._per_row]
        if not row:
            return Strip.blank(self.size.width, base)
        dim, text = (self.get_visual_style(name).rich_style for name in ("text--dim", "text--string"))
        groups, characters = hex_row(row, self._per_row)
        segments = [
            Segment(f" {offset:08x}  ", dim),
            Segment(f"{groups}  ", base),
            Segment(characters, text),
        ]
        return Strip(segments).adjust_cell_length(self.size.width, base)
