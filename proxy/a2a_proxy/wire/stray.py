"""Stray lines between the messages of a pipe: the first ones reported singly, the rest in blocks.

An agent that prints a line now and then shows where it does so. For an agent that floods the pipe
with text, a frame per line would make the recording many times as large as the text.
"""

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.wire import Direction, Line, WireEvent
from a2a_proxy.wire.body import BodyCollector
from a2a_proxy.wire.lines import LineCollector

MAX_SINGLE_LINES = 100
"""Number of consecutive lines that are reported singly."""
MAX_BLOCK_SIZE = 16 << 10
"""Bytes of further lines that are reported together."""


class StrayLines(State):
    """Stray lines of one direction. A block ends when it is full, at the next message, and at the
    end of the pipe."""

    direction: Direction = Direction.TO_AGENT
    _lines_in_row: int = 0
    """Lines since the last message, up to `MAX_SINGLE_LINES`."""
    _block: BodyCollector | None = None
    _ending: str = ""
    """Line end of the last line in the block."""

    def add(self, line: LineCollector, framed: bool, at: int, out: list[WireEvent]) -> None:
        """Add a whole line that arrived at `at` (ns).

        `framed` is True after a message with a header block, where an empty line is stray output;
        elsewhere an empty line means nothing.
        """
        body = line.body
        if self._block is None and not (framed or body.data.strip()):
            return
        if self._lines_in_row < MAX_SINGLE_LINES or body.truncated:
            self._flush_block(at, out)
            self._lines_in_row += self._lines_in_row < MAX_SINGLE_LINES
            out.append(line.make_line(self.direction, at, stray=True))
            return
        block = self._block = self._block or BodyCollector()
        block.add(self._ending.encode() + body.data, body.began, body.start, line.end)
        self._ending = line.ending
        if block.size >= MAX_BLOCK_SIZE:
            self._flush_block(at, out)

    def end_row(self, at: int, out: list[WireEvent]) -> None:
        """End the row of lines: something else follows at `at` (ns)."""
        self._flush_block(at, out)
        self._lines_in_row = 0

    def _flush_block(self, at: int, out: list[WireEvent]) -> None:
        block, ending = self._block, self._ending
        self._block, self._ending = None, ""
        if block is not None:
            place = (self.direction, block.began, at, block.start, block.end)
            out.append(Line(*place, block.data, stray=True, framing=f"\0{ending}", size=block.size))
