"""What faults write toward a client: pieces that wait for their time, in order."""

from __future__ import annotations

from collections import deque

import msgspec


class TimedPiece(msgspec.Struct, frozen=True):
    """Bytes that are sent at a time."""

    ready: float
    """Monotonic seconds; 0 for at once."""
    data: bytes
    cut: str = ""
    """The text of the fault that ends the response after these bytes; empty if the response continues."""


class TimedQueue:
    """Pieces of one response, or of one direction of a connection."""

    def __init__(self) -> None:
        self._pieces: deque[TimedPiece] = deque()
        self._ready = 0.0
        self.size = 0
        """Bytes that wait."""

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @property
    def deadline(self) -> float | None:
        """When the first piece is due; None if none waits."""
        return self._pieces[0].ready if self._pieces else None

    def add(self, data: bytes, now: float, delay: float = 0.0, cut: str = "") -> None:
        """Add a piece that is due `delay` seconds after the piece before it, or after `now` if that is later."""
        self._ready = max(self._ready, now) + delay
        self._pieces.append(TimedPiece(self._ready, data, cut))
        self.size += len(data)

    def take_due(self, now: float) -> TimedPiece | None:
        """Remove and return the first piece if it is due, else None."""
        if not self._pieces or self._pieces[0].ready > now:
            return None
        piece = self._pieces.popleft()
        self.size -= len(piece.data)
        return piece

    def put_back(self, piece: TimedPiece) -> None:
        """Make a piece the first one again."""
        self._pieces.appendleft(piece)
        self.size += len(piece.data)

    def hasten(self) -> None:
        """Make all pieces due at once."""
        self._pieces = deque(msgspec.structs.replace(each, ready=0.0) for each in self._pieces)
