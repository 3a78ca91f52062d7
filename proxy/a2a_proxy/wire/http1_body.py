"""HTTP/1.1 bodies: how long one is (RFC 9112, 6.3), and counting its octets as they come. No body is kept here.

Pieces go out as they arrive; only a chunk-size line or a trailer section that is cut in two is held until it is whole.
"""

from __future__ import annotations

from enum import IntEnum

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.wire import Body, End, Head, HeadRole, WireEvent
from a2a_proxy.wire.http1_head import (
    HEAD_LIMIT,
    HeadError,
    Leniencies,
    ParsedHead,
    find_head_end,
    parse_trailers,
)

SIZE_LINE_LIMIT = 16 << 10
"""The longest chunk-size line with its extensions, octets; Node stops there too."""

_HEX = b"0123456789abcdefABCDEF"
_SIZE_DIGITS = 15
_SAMPLE = 8


class Phase(IntEnum):
    """What the next octet of a body belongs to."""

    DONE = 0
    LENGTH = 1
    UNTIL_EOF = 2
    SIZE = 3
    DATA = 4
    DATA_END = 5
    TRAILERS = 6


# Looking a member up in its class costs more than a global name, and this is asked for every piece.
_DONE, _LENGTH, _UNTIL_EOF, _SIZE, _DATA, _DATA_END, _TRAILERS = Phase


class BodyError(Exception):
    """Octets that are no part of a body; says where, what was expected, and what came."""

    def __init__(self, offset: int, expected: str, got: str) -> None:
        super().__init__(expected)
        self.offset = offset
        self.expected = expected
        self.got = got


def sample(octets: bytes | bytearray) -> str:
    """The first few octets as text, for a finding; few, because they may belong to a secret."""
    return repr(bytes(octets[:_SAMPLE]))[1:]


def request_framing(head: ParsedHead) -> tuple[Phase, int]:
    """How the body of a request is delimited, and its length in octets. Raises `HeadError`."""
    if head.codings:
        _one_framing(head)
        if head.codings[-1] != b"chunked":
            raise HeadError("a request whose last transfer coding is not chunked")
        return _SIZE, 0
    length = _length(head)
    return (_LENGTH, length) if length > 0 else (_DONE, 0)


def response_framing(head: ParsedHead, method: bytes) -> tuple[Phase, int]:
    """How the body of the response to a `method` request is delimited, and its length. Raises `HeadError`."""
    status = head.status
    if method == b"HEAD" or status in (204, 304) or status < 200:
        return _DONE, 0
    if method == b"CONNECT" and status < 300:
        return _DONE, 0
    if head.codings:
        _one_framing(head)
        return (_SIZE if head.codings[-1] == b"chunked" else _UNTIL_EOF), 0
    length = _length(head)
    if length < 0:
        return _UNTIL_EOF, 0
    return (_LENGTH if length else _DONE), length


def _one_framing(head: ParsedHead) -> None:
    # RFC 9112, 6.1: both together "ought to be handled as an error": the peers may disagree about where the body ends.
    if head.lengths:
        raise HeadError("Content-Length and Transfer-Encoding together")


def _length(head: ParsedHead) -> int:
    """The Content-Length, -1 where there is none. httptools has refused repeated and non-numeric ones."""
    return int(head.lengths[0]) if head.lengths else -1


class BodyReader:
    """Counts one body. `feed` is called until `phase` is DONE, or with UNTIL_EOF until the connection ends."""

    __slots__ = ("_began", "_lenient", "_rest", "_span", "direction", "left", "phase", "stream")

    def __init__(
        self, stream: int, direction: Direction, phase: Phase, left: int, span: int, lenient: Leniencies
    ) -> None:
        """Start a body of `left` octets (LENGTH only) at offset `span`."""
        self.stream = stream
        self.direction = direction
        self.phase = phase
        self.left = left
        self._span = span
        self._lenient = lenient
        self._rest = bytearray()
        self._began = 0

    def feed(self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]) -> int:
        """Take what belongs to the body from `data[pos:]`, whose first octet has offset `base + pos`.

        Returns the position after it. Raises `BodyError`.
        """
        size = len(data)
        while pos < size and (phase := self.phase):
            if phase is _DATA or phase is _LENGTH:
                pos = self._counted(data, pos, base, at, out)
            elif phase is _SIZE:
                pos = self._size(data, pos, base, at, out)
            elif phase is _DATA_END:
                pos = self._data_end(data, pos, base, at, out)
            elif phase is _UNTIL_EOF:
                self._emit(data[pos:], base + size, at, out)
                pos = size
            else:
                pos = self._trailers(data, pos, base, at, out)
        return pos

    def save(self) -> list[object]:
        """Plain values for `restore`."""
        return [
            self.stream,
            int(self.direction),
            int(self.phase),
            self.left,
            self._span,
            bytes(self._rest),
            self._began,
        ]

    @classmethod
    def restore(cls, state: tuple[int, int, int, int, int, bytes, int], lenient: Leniencies) -> BodyReader:
        """The reader that `save` was called on."""
        stream, direction, phase, left, span, rest, began = state
        reader = cls(stream, Direction(direction), Phase(phase), left, span, lenient)
        reader._rest += rest
        reader._began = began
        return reader

    def _emit(self, piece: bytes, end: int, at: int, out: list[WireEvent]) -> None:
        # The span reaches back to the end of the piece before: chunk framing belongs to the octets it announces.
        out.append(Body(self.stream, self.direction, at, self._span, end, piece))
        self._span = end

    def _end(self, offset: int, at: int, out: list[WireEvent]) -> None:
        self.phase = _DONE
        out.append(End(self.stream, self.direction, at, offset))

    def _counted(self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]) -> int:
        """Octets of which `left` are still to come."""
        end = pos + self.left
        if end > len(data):
            end = len(data)
        self.left -= end - pos
        self._emit(data[pos:end], base + end, at, out)
        if not self.left:
            if self.phase is _DATA:
                self.phase = _DATA_END
            else:
                self._end(base + end, at, out)
        return end

    def _size(self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]) -> int:
        """A chunk-size line: hexadecimal digits, extensions, line end."""
        newline = data.find(b"\n", pos)
        rest = self._rest
        if newline < 0 or rest:
            rest += data[pos : newline + 1] if newline >= 0 else data[pos:]
            if len(rest) > SIZE_LINE_LIMIT or newline < 0:
                return self._long_line(rest, base + len(data), len(data))
            line = bytes(rest)
            rest.clear()
        else:
            line = data[pos : newline + 1]
        start = base + newline + 1 - len(line)
        if len(line) > SIZE_LINE_LIMIT:
            return self._long_line(line, start + len(line), 0)
        self.left = self._read_size(line, start, at, out)
        self.phase = _DATA if self.left else _TRAILERS
        return newline + 1

    def _long_line(self, line: bytes | bytearray, end: int, position: int) -> int:
        """A size line that is not whole yet; refused where it is longer than any should be."""
        if len(line) > SIZE_LINE_LIMIT:
            raise BodyError(end - len(line), f"a chunk-size line of at most {SIZE_LINE_LIMIT} octets", sample(line))
        return position

    def _read_size(self, line: bytes, start: int, at: int, out: list[WireEvent]) -> int:
        digits = line[:-2]
        if line[-2:] == b"\r\n" and 0 < len(digits) <= _SIZE_DIGITS and not digits.strip(_HEX):
            return int(digits, 16)
        digits = line.partition(b";")[0].rstrip(b"\r\n")
        if digits.strip(_HEX):
            spaced, digits = digits, digits.rstrip(b" \t")
            if digits != spaced:
                self._tolerate("chunk_size_space", "space after the chunk size", at, start, start + len(line), out)
        if not digits or digits.strip(_HEX) or len(digits.lstrip(b"0")) > _SIZE_DIGITS:
            raise BodyError(start, "a chunk size in hexadecimal digits", sample(line))
        if line[-2:] != b"\r\n":
            self._tolerate("bare_lf", "bare LF after the chunk size", at, start, start + len(line), out)
        return int(digits, 16)

    def _data_end(self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]) -> int:
        """The line end after a chunk."""
        if not self._rest and data.startswith(b"\r\n", pos):
            self.phase = _SIZE
            return pos + 2
        offset = base + pos - len(self._rest)
        self._rest.append(data[pos])
        if self._rest == b"\r":
            return pos + 1
        if self._rest == b"\n":
            self._tolerate("bare_lf", "bare LF after a chunk", at, offset, offset + 1, out)
        elif self._rest != b"\r\n":
            raise BodyError(offset, "CRLF after a chunk", sample(self._rest[:1]))
        self._rest.clear()
        self.phase = _SIZE
        return pos + 1

    def _trailers(self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]) -> int:
        """The trailer section, nearly always just its empty line."""
        rest = self._rest
        if not rest:
            if data.startswith(b"\r\n", pos):
                self._end(base + pos + 2, at, out)
                return pos + 2
            self._began = at
        held = len(rest)
        rest += data[pos : pos + HEAD_LIMIT + 1]
        start = base + pos - held
        end = _section_end(rest, max(0, held - 2))
        if end > HEAD_LIMIT or (end < 0 and len(rest) >= HEAD_LIMIT):
            raise BodyError(start, f"a trailer section of at most {HEAD_LIMIT} octets", "more")
        if end < 0:
            return len(data)
        block = bytes(rest[:end])
        rest.clear()
        if block == b"\n":
            self._tolerate("bare_lf", "bare LF after the last chunk", at, start, start + 1, out)
        elif block != b"\r\n":
            self._fields(block, start, at, out)
        self._end(start + end, at, out)
        return pos + end - held

    def _fields(self, block: bytes, start: int, at: int, out: list[WireEvent]) -> None:
        try:
            parsed = parse_trailers(block)
        except HeadError as error:
            raise BodyError(start, "a trailer section", str(error)) from None
        end = start + len(block)
        out.append(Head(self.stream, self.direction, at, self._began, start, end, HeadRole.TRAILERS, parsed.headers))
        if parsed.leniency:
            self._tolerate(parsed.leniency, parsed.complaint, at, start, end, out)

    def _tolerate(self, what: str, reason: str, at: int, start: int, end: int, out: list[WireEvent]) -> None:
        self._lenient.report(what, reason, self.direction, at, start, end, out)


def _section_end(rest: bytearray, searched: int) -> int:
    """The offset after the empty line that ends a trailer section, -1 where it has not come."""
    if rest.startswith(b"\r\n"):
        return 2
    if rest.startswith(b"\n"):
        return 1
    return find_head_end(rest, searched)
