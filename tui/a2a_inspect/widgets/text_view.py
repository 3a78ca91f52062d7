"""Lines of text of any number and length, wrapped to the width. Only visible rows are rendered.

The lines must have no control characters (`make_visible`); a `Paint` function sets the styles of a
line.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip

from a2a_inspect.dialogs.seek_box import SeekBox
from a2a_inspect.widgets.long_view import LongView
from a2a_proxy.protocol.text import make_visible

Paint = Callable[[str], list[tuple[int, str]]]
"""Function from a line to the start of each style, ascending:
`[(0, ""), (2, "text--name"), ...]`."""

TextPosition = tuple[int, int]
"""Line and first character."""

_MAX_MEASURED = 65_536
"""Characters: longer lines outside ASCII are wrapped without measuring every character."""


def paint_plain(_line: str) -> list[tuple[int, str]]:
    """Return no styles."""
    return [(0, "")]


class TextSearch:
    """A case-insensitive search for a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)

    def match_spans(self, line: str) -> list[tuple[int, int]]:
        """Return start and end of each match in the line; empty if the text is empty."""
        return [found.span() for found in self._pattern.finditer(line)] if self.text else []

    def next_position(
        self, lines: Sequence[str], start: TextPosition, by: int
    ) -> TextPosition | None:
        """Return the next match after this position (`by` 1) or before it (-1), wrapping around;
        None if none."""
        line, column = start
        here = [begin for begin, _ in self.match_spans(lines[line])] if line < len(lines) else []
        for begin in here[::by]:
            if begin * by > column * by:
                return line, begin
        for step in range(1, len(lines) + 1):
            number = (line + step * by) % len(lines)
            if found := self.match_spans(lines[number])[::by]:
                return number, found[0][0]
        return None


class TextView(LongView):
    """The view of text."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(
            "text--name",
            "text--string",
            "text--number",
            "text--word",
            "text--title",
            "text--dim",
            "text--found",
            "text--here",
        ),
    }

    DEFAULT_CSS = """
    TextView {
        height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
        background: $background; color: $foreground;
        &> .text--name { color: $text-primary; }
        &> .text--string { color: $text-success; }
        &> .text--number { color: $text-warning; }
        &> .text--word { color: $text-accent; }
        &> .text--title { text-style: bold; }
        &> .text--dim { color: $text-muted; }
        &> .text--found { text-style: reverse; }
        &> .text--here { text-style: bold reverse underline; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll_down", "Down", show=False, id="text.down"),
        Binding("k,up", "scroll_up", "Up", show=False, id="text.up"),
        Binding(
            "pagedown,ctrl+d,ctrl+f", "page_down", "Page down", show=False, id="text.page-down"
        ),
        Binding("pageup,ctrl+u", "page_up", "Page up", show=False, id="text.page-up"),
        Binding(
            "home",
            "scroll_home",
            "First",
            show=False,
            id="text.first",
            tooltip="first line; gg as well",
        ),
        Binding(
            "g",
            "first_at_two",
            "First",
            show=False,
            id="text.first-at-two",
            tooltip="pressed twice: first line",
        ),
        Binding("G,end", "scroll_end", "Last", show=False, id="text.last", tooltip="last line"),
        Binding(
            "slash", "seek", "Search", key_display="/", id="text.seek", tooltip="search this text"
        ),
        Binding("n", "sought(1)", "Next", show=False, id="text.next", tooltip="next match"),
        Binding(
            "N", "sought(-1)", "Previous", show=False, id="text.previous", tooltip="previous match"
        ),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: Sequence[str] = ()
        self._paint: Paint = paint_plain
        self._wrapped_rows: list[tuple[int, int, int, int]] = []
        """For each screen row: line, first and last character, indent."""
        self._search = TextSearch("")
        self._search_position: TextPosition | None = None
        """Position of the current match, if any."""

    @property
    def lines(self) -> Sequence[str]:
        """The displayed lines, unwrapped."""
        return self._lines

    def show_lines(
        self, lines: Sequence[str], paint: Paint = paint_plain, *, keep: bool = False
    ) -> None:
        """Show other lines from their beginning; with `keep` the same lines in a new state."""
        self._lines, self._paint = lines, paint
        self._wrap_lines()
        if not keep:
            self._search_position = None
            self.scroll_to(y=0, animate=False)
        self.refresh()

    def on_resize(self, _event: events.Resize) -> None:
        """Wrap the lines again."""
        self._wrap_lines()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render one row."""
        base, index = self.combine_styles(), self.scroll_offset.y + y
        if index >= len(self._wrapped_rows):
            return Strip.blank(self.size.width, base)
        number, first, last, indent = self._wrapped_rows[index]
        line = self._lines[number]
        segments = [Segment(" " * (indent + 1), base)]
        marks, spans = self._paint(line), self._search.match_spans(line)
        for (begin, name), (end, _) in zip(marks, [*marks[1:], (len(line), "")], strict=True):
            for left, right, found in split_at_spans(max(begin, first), min(end, last), spans):
                here = (
                    found
                    and self._search_position is not None
                    and self._search_position[0] == number
                    and left <= self._search_position[1] < right
                )
                also = ("text--here" if here else "text--found",) if found else ()
                names = (name, *also) if name else also
                segments.append(
                    Segment(line[left:right], self.combine_styles(*names) if names else base)
                )
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def action_first_at_two(self) -> None:
        """Go to the first line when the key has been pressed twice."""
        self.run_on_second_press(lambda: self.scroll_home(animate=False))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether search keys apply: without a search in this view they belong to the
        screen."""
        return (
            bool(self._search.text)
            if action == "sought"
            else super().check_action(action, parameters)
        )

    def action_seek(self) -> None:
        """Open the search input, and go to the first match from here."""
        self.app.push_screen(SeekBox(self._search.text), self._find_text)

    def _find_text(self, text: str | None) -> None:
        if text is None:
            return
        self._search, self._search_position = TextSearch(text), None
        self.refresh()
        if text:
            self.action_sought(1)

    def action_sought(self, by: int) -> None:
        """Go to the next or previous match, wrapping around the end."""
        top = self._wrapped_rows[self.scroll_offset.y] if self._wrapped_rows else (0, 0, 0, 0)
        at = self._search_position or (top[0], top[1] - 1)
        self._search_position = self._search.next_position(self._lines, at, by)
        if self._search_position is None:
            self.notify(make_visible(f"not found: {self._search.text}"), markup=False)
            return
        line, column = self._search_position
        row = next(
            y
            for y, (number, first, last, _) in enumerate(self._wrapped_rows)
            if number == line and first <= column < last
        )
        if not self.scroll_offset.y <= row < self.scroll_offset.y + self.size.height:
            self.scroll_to(y=max(row - self.size.height // 3, 0), animate=False, force=True)
        self.refresh()

    def _wrap_lines(self) -> None:
        width = max(self.size.width - 2, 8)
        self._wrapped_rows = [
            row
            for number, line in enumerate(self._lines)
            for row in _wrap_line(number, line, width)
        ]
        self.set_row_count(len(self._wrapped_rows))


def _wrap_line(number: int, line: str, width: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the rows of a line; rows after the first are indented slightly more than the line."""
    length = len(line)
    if length <= width and line.isascii():
        yield number, 0, length, 0
        return
    hang = min(length - len(line.lstrip(" ")) + 2, width // 2)
    is_measured = not line.isascii() and length <= _MAX_MEASURED
    wide = 1 if is_measured or line.isascii() else 2
    first = indent = 0
    while first < length:
        last = min(first + max((width - indent) // wide, 1), length)
        if is_measured:
            last = _row_end(line, first, width - indent)
        last = _break_after_word(line, first, last)
        yield number, first, last, indent
        first, indent = last, hang


def _row_end(line: str, first: int, width: int) -> int:
    """Return the end of a row of `width` cells; at least one character is in it."""
    for last in range(first, len(line)):
        width -= cell_len(line[last])
        if width < 0:
            return max(last, first + 1)
    return len(line)


def _break_after_word(line: str, first: int, last: int) -> int:
    """Return where to break a row that could extend to `last`: after a word, if one ends in the
    second half."""
    if last == len(line):
        return last
    space = line.rfind(" ", (first + last) // 2, last)
    return space + 1 if space >= 0 else last


def split_at_spans(
    begin: int, end: int, spans: Sequence[tuple[int, int]]
) -> list[tuple[int, int, bool]]:
    """Split a piece of a line into the parts inside the spans and the parts between them."""
    pieces: list[tuple[int, int, bool]] = []
    if begin >= end:
        return pieces
    for first, last in spans:
        if last <= begin or first >= end:
            continue
        if first > begin:
            pieces.append((begin, first, False))
        pieces.append((max(first, begin), min(last, end), True))
        begin = min(last, end)
    return [*pieces, (begin, end, False)] if begin < end else pieces
