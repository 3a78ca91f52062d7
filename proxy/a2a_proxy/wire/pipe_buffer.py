"""Unprocessed bytes of one direction of a pipe, with their offsets, arrival times and line ends."""

from __future__ import annotations

from a2a_proxy.model.saved_state import State

_MAX_MARKS = 1024


class PipeBuffer(State):
    """The bytes are in `data`. Positions are relative to its beginning, offsets to the beginning of
    the direction."""

    data: bytearray = bytearray()
    base: int = 0
    """Offset of the first byte of `data`."""
    _marks: list[tuple[int, int]] = []
    """(offset, ns): the bytes from that offset on arrived at that time."""
    _lf: int = -1
    """Offset of the next LF, -1 if unknown."""
    _searched: int = 0
    """Offset up to which an LF was searched for."""

    @property
    def offset(self) -> int:
        """Number of bytes added so far."""
        return self.base + len(self.data)

    def add(self, data: bytes, at: int) -> None:
        """Add bytes that arrived at `at` (ns)."""
        marks = self._marks
        if not marks or marks[-1][1] != at:
            marks.append((self.offset, at))
            if (
                len(marks) > _MAX_MARKS
            ):  # with so many pieces, some arrival times become slightly too early
                del marks[1::2]
        self.data += data

    def first_byte_time(self) -> int:
        """Return the arrival time of the first byte, ns."""
        marks = self._marks
        return next((at for offset, at in reversed(marks) if offset <= self.base), marks[0][1])

    def drop_bytes(self, size: int) -> None:
        """Remove the first `size` bytes."""
        del self.data[:size]
        self.base += size
        marks = self._marks
        while len(marks) > 1 and marks[1][0] <= self.base:
            del marks[0]

    def find_line_end(self) -> int:
        """Return the position of the first LF, or -1. No byte is searched twice."""
        if self._lf < self.base:
            found = self.data.find(b"\n", max(0, self._searched - self.base))
            self._lf = self.base + found if found >= 0 else -1
            self._searched = self._lf + 1 if found >= 0 else self.offset
        return self._lf - self.base if self._lf >= 0 else -1
