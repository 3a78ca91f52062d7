"""Lines of text outside messages: an agent's stderr, and stray output between the messages of a
pipe.

A line ends with LF or CRLF. Of a line above the limit the beginning, the size and the hash are
kept.
"""

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.wire import Direction, Line, WireEvent
from a2a_proxy.wire.body import TRUNCATED_SIZE, BodyCollector


class LineCollector(State):
    """Collects one line."""

    body: BodyCollector = msgspec.field(default_factory=lambda: BodyCollector(TRUNCATED_SIZE))
    """The line without its line end; its byte range includes the line end."""
    ending: str = ""
    """`\\n`, `\\r\\n`, or empty if the line has no line end."""
    done: bool = False
    end: int = 0
    """Byte offset after the line, line end included."""
    _cr: bool = False
    """Whether the last byte was a CR, which may belong to the line end."""

    def take_up_to_lf(self, data: bytes | bytearray, pos: int, at: int, offset: int) -> int:
        """Consume bytes from `pos`, at byte `offset` of the stream, up to and including LF.

        Return the position after them.
        """
        lf = data.find(b"\n", pos)
        stop = len(data) if lf < 0 else lf
        piece = bytes(data[pos:stop])
        if piece and self._cr:
            piece = b"\r" + piece
        self._cr = piece.endswith(b"\r") if piece else self._cr
        place = offset + stop - pos
        self.body.add(piece[:-1] if piece and self._cr else piece, at, offset, place)
        self.end = place + (lf >= 0)
        if lf >= 0:
            self.done = True
            self.ending = "\r\n" if self._cr else "\n"
            return lf + 1
        return stop

    def finish(self, at: int) -> None:
        """End the line without LF: a final CR was part of the line."""
        if self._cr and not self.done:
            self.body.add(b"\r", at, self.end, self.end)

    def make_line(self, direction: Direction, at: int, *, stray: bool) -> Line:
        """Return the collected line as an event."""
        body = self.body
        facts = (f"\0{self.ending}", body.size, body.truncated, body.sha256)
        return Line(direction, body.began, at, body.start, self.end, body.data, stray, *facts)


class LogLines(State):
    """The lines of stderr."""

    _line: LineCollector | None = None
    _offset: int = 0

    def feed(self, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Read bytes that arrived at `at` (ns) and append complete lines to `out`."""
        pos = 0
        while pos < len(data):
            line = self._line or LineCollector()
            after = line.take_up_to_lf(data, pos, at, self._offset)
            self._offset += after - pos
            pos = after
            self._line = None if line.done else line
            if line.done:
                out.append(line.make_line(Direction.TO_CLIENT, at, stray=False))

    def finish(self, at: int, out: list[WireEvent]) -> None:
        """Emit the last line, which may have no line end: the agent has exited."""
        line, self._line = self._line, None
        if line is not None:
            line.finish(at)
            out.append(line.make_line(Direction.TO_CLIENT, at, stray=False))
