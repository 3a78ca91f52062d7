"""What faults write toward a client: pieces that wait for their time, in order."""

from collections import deque

import msgspec
from msgspec.structs import replace

from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.edit import UNLIMITED, EditFact

HOLD_SECONDS = 30.0
"""Seconds that a request, the beginning of an event, or the events of a swap are held."""
PIECE_WORK = 3
"""Units of the budget of an editor for a piece that is sent."""
LEAST_WORK = 512
"""Units of work that may be done to send pieces although the budget is spent: more than it takes to
send the pieces that the same budget has made."""


class TimedPiece(msgspec.Struct, frozen=True):
    """Bytes that are sent at a time."""

    ready: float
    """Monotonic seconds; 0 for at once."""
    data: bytes | memoryview
    cut: str = ""
    """The text of the fault that ends the response after these bytes; empty if the response
    continues."""
    most: int = UNLIMITED
    """Bytes that are sent together at most."""
    is_chunk: bool = False
    """Whether they are sent as a chunk of HTTP/1.1."""


class TimedQueue:
    """Pieces of one response, or of one direction of a connection."""

    def __init__(self) -> None:
        self._pieces: deque[TimedPiece] = deque()
        self._ready = 0.0
        self._is_late = False
        """Whether all pieces are due at once."""
        self.size = 0
        """Bytes that wait."""

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @property
    def deadline(self) -> float | None:
        """When the first piece is due; None if none waits."""
        return (0.0 if self._is_late else self._pieces[0].ready) if self._pieces else None

    def add(
        self,
        data: bytes,
        now: float,
        delay: float = 0.0,
        cut: str = "",
        most: int = 0,
        *,
        is_chunk: bool = False,
    ) -> None:
        """Add a piece that is due `delay` seconds after the piece before it, or after `now` if that
        is later. At most `most` bytes of it are sent together; 0 for any number."""
        self._ready = max(self._ready, now) + delay
        self._pieces.append(TimedPiece(self._ready, data, cut, most or UNLIMITED, is_chunk))
        self.size += len(data)

    def take_due(self, now: float, most: int = UNLIMITED) -> TimedPiece | None:
        """Remove and return the first piece if it is due, or its first `most` bytes; None if
        nothing may be sent."""
        pieces = self._pieces
        if not pieces or (pieces[0].ready > now and not self._is_late):
            return None
        piece = pieces[0]
        size, most = len(piece.data), min(most, piece.most)
        if size <= most:
            self.size -= size
            return pieces.popleft()
        if most <= 0:
            return None
        data = memoryview(piece.data)  # whose slices are not copies
        pieces[0] = replace(piece, data=data[most:])
        self.size -= most
        return replace(piece, data=data[:most], cut="")

    def hasten(self) -> None:
        """Make all pieces due at once."""
        self._is_late = True


def note_late(direction: Direction) -> EditFact:
    """Return the note about bytes that are sent without faults because they were held for
    HOLD_SECONDS."""
    return note_faultless(direction, f"it was not complete after {HOLD_SECONDS:g} s")


def note_faultless(direction: Direction, reason: str) -> EditFact:
    """Return the note about a message that is forwarded without faults."""
    return EditFact(direction, "untouched", 0, {"reason": reason, "what": "fault"})
