"""The bytes of a TCP connection in their order, from segments that are repeated, out of order (also
a response before its request), or missing."""

import heapq
from collections.abc import Iterator

import msgspec

from a2a_inspect.imports.tcp_segment import Segment
from a2a_proxy.model.wire import ChunkKind, ConnectionFacts, DialFacts, Direction

_MAX_WAITING = 16 << 20
"""Bytes behind a hole that are kept until it is filled."""
_PATIENCE = 1_000_000_000
"""Time in ns for which the capture may bring bytes that their receiver has already acknowledged."""
_MAX_FIRST_BYTES = 32
_HALF, _WHOLE = 1 << 31, 1 << 32


class TcpRecord(msgspec.Struct, frozen=True):
    """What happened in a connection: a journal record without its time."""

    kind: ChunkKind
    direction: Direction
    data: bytes = b""


class _Half:
    """One direction of a connection."""

    def __init__(self) -> None:
        self.next = -1
        """Number of the next byte, without wrapping; -1 before the beginning is known."""
        self.end = -1
        """Number of the byte behind the last one, from FIN; -1 before."""
        self.acknowledged = -1
        """Number of the byte that the receiver expects next, as it said last."""
        self.has_ended = False
        self.waiting_bytes = 0
        self._waiting: list[tuple[int, int, int, bytes]] = []
        """Number of the first byte, that of the byte that its sender expected, time, and the
        bytes."""
        self._hole_since = 0

    def begin(self, number: int) -> None:
        """Set the number of the first byte if it is not known yet."""
        if self.next < 0:
            self.next = number + _WHOLE  # so that a number before it is not negative

    def count(self, number: int) -> int:
        """Return a sequence number, which wraps around at 32 bits, as a number near that of the
        next byte."""
        return self.next + (number - self.next + _HALF) % _WHOLE - _HALF

    def add(self, number: int, expected: int, at: int, data: bytes) -> None:
        """Add the payload of a segment of time `at`, whose sender had received all bytes before
        `expected`."""
        heapq.heappush(self._waiting, (number, expected, at, data))
        self.waiting_bytes += len(data)

    @property
    def waits_for_other(self) -> bool:
        """Whether the next byte is there, and waits for the other direction."""
        return bool(self._waiting) and self._waiting[0][0] <= self.next

    @property
    def waits_since(self) -> int:
        """Time of the first piece."""
        return self._waiting[0][2]

    def free_piece(self) -> None:
        """Let the first piece wait no longer for the other direction."""
        number, _, at, piece = self._waiting[0]
        heapq.heapreplace(self._waiting, (number, -1, at, piece))

    def pop_ordered(self, other: "_Half") -> list[bytes]:
        """Return the pieces that are in order: in this direction, and behind those that their
        sender had received from the `other` one."""
        ordered: list[bytes] = []
        # A sender that has received fewer bytes, or all, did not mean what it acknowledged before.
        limit = other.end if other.end >= 0 else other.acknowledged
        while self._waiting and self._waiting[0][0] <= self.next:
            first, expected, _, piece = self._waiting[0]
            new = piece[self.next - first :]
            if new and min(expected, limit) > other.next + 1:  # FIN counts as one byte
                break
            heapq.heappop(self._waiting)
            self.waiting_bytes -= len(piece)
            self.next += len(new)
            if new:
                ordered.append(new)
            self._hole_since = 0
        return ordered

    @property
    def is_complete(self) -> bool:
        """Whether all bytes and FIN were captured, and its end was not reported yet."""
        return 0 <= self.end == self.next and not self.has_ended

    def is_hole_final(self, at: int, waiting_bytes: int) -> bool:
        """Return whether the bytes that are missing, for which `waiting_bytes` wait, can no longer
        be in the capture."""
        missing = self.count_missing()
        self._hole_since = (self._hole_since or at) if missing else 0
        if not missing:
            return False
        is_received = self.acknowledged >= self.next + missing
        return (is_received and at - self._hole_since > _PATIENCE) or waiting_bytes > _MAX_WAITING

    def count_missing(self) -> int:
        """Return the number of bytes of the first hole, also if nothing behind it was captured."""
        if self.next < 0:
            return 0
        if self._waiting:
            return max(self._waiting[0][0] - self.next, 0)
        if self.end >= 0:
            return max(self.end - self.next, 0)
        missing = self.acknowledged - self.next
        return missing if missing > 1 else 0  # FIN counts as one byte


class TcpConnection:
    """One connection. `feed` returns its records until it is closed, or until bytes are missing."""

    def __init__(self, client: str, server: str, at: int) -> None:
        self.client = client
        self.server = server
        self.opened = at
        self.first_bytes = b""
        """The first bytes of the client."""
        self.is_closed = False
        self.missing = 0
        """Bytes that are not in the capture."""
        self.early = 0
        """Segments that were captured before bytes that their sender had received."""
        self._halves = _Half(), _Half()
        self._syn = -1
        self._is_open = self._is_dialed = False

    def is_reused(self, segment: Segment) -> bool:
        """Return whether a segment begins another connection of the same addresses."""
        return (
            segment.is_syn
            and segment.acknowledged < 0
            and self._syn >= 0
            and segment.sequence != self._syn
        )

    def feed(self, segment: Segment) -> Iterator[TcpRecord]:
        """Yield the records that a segment of this connection causes."""
        direction = Direction.TO_AGENT if segment.source == self.client else Direction.TO_CLIENT
        half, other = self._halves[direction], self._halves[direction.other]
        if self.is_closed:
            return
        if segment.is_syn and segment.acknowledged < 0:
            self._syn = segment.sequence
        yield from self._begin_connection(direction, has_data=bool(segment.payload))
        half.begin((segment.sequence + segment.is_syn) % _WHOLE)
        expected = -1
        if segment.acknowledged >= 0:
            other.begin(segment.acknowledged)
            expected = other.count(segment.acknowledged)
            other.acknowledged = expected
        number = half.count((segment.sequence + segment.is_syn) % _WHOLE)
        if segment.is_fin:
            half.end = number + len(segment.payload) + segment.missing
        if segment.payload:
            half.add(number, expected, segment.at, segment.payload)
        yield from self._order_bytes(direction, has_data=bool(segment.payload))
        waiting = half.waiting_bytes + other.waiting_bytes
        if any(each.is_hole_final(segment.at, waiting) for each in self._halves):
            yield from self.finish()
            return
        for each in Direction:
            if self._halves[each].is_complete and not self._halves[each.other].count_missing():
                self._halves[each].has_ended = True
                yield TcpRecord(ChunkKind.EOF, each)
        if segment.is_reset and abs(number - half.next) <= _MAX_WAITING:
            if any(each.count_missing() for each in self._halves):
                yield from self.finish()
                return
            yield TcpRecord(ChunkKind.RESET, direction)
            yield from self._close_connection()
        elif half.has_ended and other.has_ended:
            yield from self._close_connection()

    def _order_bytes(
        self, direction: Direction, *, has_data: bool, is_at_end: bool = False
    ) -> Iterator[TcpRecord]:
        """Yield the bytes that are in order after a segment of `direction`, whose data may be what
        the other direction waits for; at the end of the connection all before the first hole."""
        early = direction.other if has_data else None
        idle = 0
        while True:
            pieces = self._halves[direction].pop_ordered(self._halves[direction.other])
            if pieces:
                data = b"".join(pieces)
                self.early += len(pieces) * (direction is early)
                if direction is Direction.TO_AGENT and len(self.first_bytes) < _MAX_FIRST_BYTES:
                    self.first_bytes += data[:_MAX_FIRST_BYTES]
                yield TcpRecord(ChunkKind.DATA, direction, data)
            idle = 0 if pieces else idle + 1
            direction = direction.other
            if idle < len(Direction):
                continue
            # Directions that wait for each other have acknowledged what was never sent.
            waiting = [each for each in Direction if self._halves[each].waits_for_other]
            if not waiting or (len(waiting) < len(Direction) and not is_at_end):
                return
            direction = min(waiting, key=lambda each: self._halves[each].waits_since)
            self._halves[direction].free_piece()
            early, idle = None, 0

    def _begin_connection(self, direction: Direction, *, has_data: bool) -> Iterator[TcpRecord]:
        """Yield the records of its beginning: it is open from its first segment, and dialed from
        the server's first."""
        if not self._is_open:
            self._is_open = True
            facts = ConnectionFacts(client=self.client, listen=self.server, upstream=self.server)
            yield TcpRecord(ChunkKind.OPEN, Direction.TO_AGENT, msgspec.json.encode(facts))
        if not self._is_dialed and (has_data or direction is Direction.TO_CLIENT):
            self._is_dialed = True
            dialed = DialFacts(self.server, self.server)
            yield TcpRecord(ChunkKind.DIALED, Direction.TO_AGENT, msgspec.json.encode(dialed))

    def finish(self) -> Iterator[TcpRecord]:
        """Yield the records of a connection whose end, or other bytes, are not in the capture."""
        if self.is_closed:
            return
        yield from self._order_bytes(Direction.TO_AGENT, has_data=False, is_at_end=True)
        missing = {each: self._halves[each].count_missing() for each in Direction}
        self.missing = sum(missing.values())
        for each in Direction:
            if missing[each] or (each is Direction.TO_CLIENT and not self.missing):
                yield TcpRecord(ChunkKind.LOST, each, b'{"bytes":%d}' % missing[each])
        yield from self._close_connection()

    def _close_connection(self) -> Iterator[TcpRecord]:
        self.is_closed = True
        yield TcpRecord(ChunkKind.CLOSED, Direction.TO_AGENT)
