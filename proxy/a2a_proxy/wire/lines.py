"""Lines of text that are no messages: an agent's stderr, and what stands between the messages of a pipe.

A line ends with LF or CRLF. Of one over the limit the beginning, the size and the hash are kept.
"""

from __future__ import annotations

from typing import Any

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.wire import Line, WireEvent
from a2a_proxy.wire.body import TRUNCATED_SIZE, BodyCollector


class LineCollector:
    """Collects one line."""

    __slots__ = ("_cr", "body", "done", "end", "ending")

    def __init__(self, limit: int = TRUNCATED_SIZE) -> None:
        self.body = BodyCollector(limit)
        """Without the line end; its span is that of the line."""
        self.ending = ""
        """`\\n`, `\\r\\n`, or nothing where there is none."""
        self.done = False
        self.end = 0
        """Where the line ends in its stream, line end included."""
        self._cr = False
        """A CR came last: it may belong to the line end."""

    def take_up_to_lf(self, data: bytes | bytearray, pos: int, at: int, offset: int) -> int:
        """Take from `pos`, which is at `offset` of the stream, up to and with LF. Gives the position after it."""
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
        """Nothing more comes: a CR that came last was part of the line."""
        if self._cr and not self.done:
            self.body.add(b"\r", at, self.end, self.end)

    def make_line(self, direction: Direction, at: int, *, stray: bool) -> Line:
        """What was collected."""
        body = self.body
        facts = (f"\0{self.ending}", body.size, body.truncated, body.sha256)
        return Line(direction, body.began, at, body.start, self.end, body.data, stray, *facts)

    def save(self) -> dict[str, object]:
        """Plain values for `restore`."""
        return {"body": self.body.save(), "end": self.end, "cr": self._cr}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> LineCollector:
        """The collector that gave `state`."""
        collector = cls()
        collector.body = BodyCollector.restore(state["body"])
        collector.end, collector._cr = state["end"], state["cr"]
        return collector


class LogLines:
    """The lines of stderr."""

    __slots__ = ("_line", "_offset")

    def __init__(self) -> None:
        self._line: LineCollector | None = None
        self._offset = 0

    def feed(self, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Bytes that came at `at` (ns); complete lines are appended to `out`."""
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
        """The agent is gone: what it wrote last may have no line end."""
        line, self._line = self._line, None
        if line is not None:
            line.finish(at)
            out.append(line.make_line(Direction.TO_CLIENT, at, stray=False))

    def save(self) -> dict[str, object]:
        """Plain values for `restore`."""
        return {"line": self._line and self._line.save(), "offset": self._offset}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> LogLines:
        """The lines that gave `state`."""
        lines = cls()
        lines._line = state["line"] and LineCollector.restore(state["line"])
        lines._offset = state["offset"]
        return lines
