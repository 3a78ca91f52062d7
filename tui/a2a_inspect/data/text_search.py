"""Text search in lines: the matches of a line, and the next match from any position. Contains no widgets."""

from __future__ import annotations

import re
from collections.abc import Sequence

TextPosition = tuple[int, int]
"""Line and first character."""


class TextSearch:
    """A case-insensitive search for a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)

    def match_spans(self, line: str) -> list[tuple[int, int]]:
        """Return start and end of each match in the line; empty if the text is empty."""
        return [found.span() for found in self._pattern.finditer(line)] if self.text else []

    def next_position(self, lines: Sequence[str], start: TextPosition, by: int) -> TextPosition | None:
        """Return the next match after this position (`by` 1) or before it (-1), wrapping around; None if none."""
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


def split_at_spans(begin: int, end: int, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int, bool]]:
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
