"""HTTP/1.1 bodies: determines their length (RFC 9112, 6.3) and counts their bytes as they arrive.
Keeps no body.

Pieces are emitted as they arrive; only a split chunk-size line or trailer section is held until it
is complete.
"""

from __future__ import annotations

from enum import IntEnum

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.wire import Body, Direction, End, Head, HeadRole, WireEvent
from a2a_proxy.wire.http1_head import (
    MAX_HEAD_SIZE,
    HeadError,
    Leniencies,
    ParsedHead,
    find_head_end,
    parse_trailers,
)

MAX_SIZE_LINE = 16 << 10
"""Longest chunk-size line with its extensions, bytes; the limit of Node too."""

_HEX_DIGITS = b"0123456789abcdefABCDEF"
_MAX_SIZE_DIGITS = 15
_SAMPLE_SIZE = 8


class Phase(IntEnum):
    """The part of a body that the next byte belongs to."""

    DONE = 0
    LENGTH = 1
    UNTIL_EOF = 2
    SIZE = 3
    DATA = 4
    DATA_END = 5
    TRAILERS = 6


# A member lookup in its class costs more than a global name, and it is needed for every piece.
_DONE, _LENGTH, _UNTIL_EOF, _SIZE, _DATA, _DATA_END, _TRAILERS = Phase


class BodyError(Exception):
    """Bytes that are not part of a body, with the offset, the expected content and the actual
    one."""

    def __init__(self, offset: int, expected: str, got: str) -> None:
        super().__init__(expected)
        self.offset = offset
        self.expected = expected
        self.got = got


def quote_sample(data: bytes | bytearray) -> str:
    """Return the first few bytes as text for a finding; few, because they may belong to a
    secret."""
    return repr(bytes(data[:_SAMPLE_SIZE]))[1:]


def request_framing(head: ParsedHead) -> tuple[Phase, int]:
    """Return how the body of a request is delimited, and its length in bytes. Raises
    `HeadError`."""
    if head.codings:
        _check_one_framing(head)
        if head.codings[-1] != b"chunked":
            raise HeadError("a request whose last transfer coding is not chunked")
        return _SIZE, 0
    length = _content_length(head)
    return (_LENGTH, length) if length > 0 else (_DONE, 0)


def response_framing(head: ParsedHead, method: bytes) -> tuple[Phase, int]:
    """Return how the body of the response to a `method` request is delimited, and its length.
    Raises `HeadError`."""
    status = head.status
    if method == b"HEAD" or status in (204, 304) or status < 200:
        return _DONE, 0
    if method == b"CONNECT" and status < 300:
        return _DONE, 0
    if head.codings:
        _check_one_framing(head)
        return (_SIZE if head.codings[-1] == b"chunked" else _UNTIL_EOF), 0
    length = _content_length(head)
    if length < 0:
        return _UNTIL_EOF, 0
    return (_LENGTH if length else _DONE), length


def _check_one_framing(head: ParsedHead) -> None:
    # RFC 9112, 6.1: both together "ought to be handled as an error", because the peers may disagree
    # about the body's end.
    if head.lengths:
        raise HeadError("Content-Length and Transfer-Encoding together")


def _content_length(head: ParsedHead) -> int:
    """Return the Content-Length, or -1 if there is none. httptools has rejected repeated and
    non-numeric ones."""
    return int(head.lengths[0]) if head.lengths else -1


class BodyReader(State):
    """Counts one body. Call `feed` until `phase` is DONE, or, for UNTIL_EOF, until the connection
    ends."""

    stream: int
    direction: Direction
    phase: Phase
    left: int
    """Bytes to come, of LENGTH or of a chunk."""
    _span: int
    """Offset of the next piece; at first, of the body."""
    leniencies: Leniencies
    """Those of the connection."""
    _partial: bytearray = bytearray()
    _began: int = 0

    def feed(self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]) -> int:
        """Consume the bytes of the body from `data[pos:]`, whose first byte has offset
        `base + pos`.

        Returns the position after them. Raises `BodyError`.
        """
        size = len(data)
        if self.phase is _SIZE and not self._partial:
            pos = self._read_whole_chunks(data, pos, base, at, out)
        while pos < size and (phase := self.phase):
            if phase is _DATA or phase is _LENGTH:
                pos = self._read_counted(data, pos, base, at, out)
            elif phase is _SIZE:
                pos = self._read_size_line(data, pos, base, at, out)
            elif phase is _DATA_END:
                pos = self._read_data_end(data, pos, base, at, out)
            elif phase is _UNTIL_EOF:
                self._emit_piece(data[pos:], base + size, at, out)
                pos = size
            else:
                pos = self._read_trailers(data, pos, base, at, out)
        return pos

    def _emit_piece(self, piece: bytes, end: int, at: int, out: list[WireEvent]) -> None:
        # The span begins at the end of the previous piece: chunk framing belongs to the bytes it
        # announces.
        out.append(Body(self.stream, self.direction, at, self._span, end, piece))
        self._span = end

    def _emit_end(self, offset: int, at: int, out: list[WireEvent]) -> None:
        self.phase = _DONE
        out.append(End(self.stream, self.direction, at, offset))

    def _read_whole_chunks(
        self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]
    ) -> int:
        """Read the chunks that are in `data` from size line to line end, as nearly all are, without
        a change of phase.

        Returns the position of the first chunk that is not, that has an extension, or that is the
        last one.
        """
        stream, direction, span = self.stream, self.direction, self._span
        while (newline := data.find(b"\r\n", pos, pos + _MAX_SIZE_DIGITS + 2)) > pos:
            digits = data[pos:newline]
            if digits.strip(_HEX_DIGITS):
                break
            first = newline + 2
            stop = first + int(digits, 16)
            if stop == first or data[stop : stop + 2] != b"\r\n":
                break
            end = base + stop
            out.append(Body(stream, direction, at, span, end, data[first:stop]))
            span, pos = end, stop + 2
        self._span = span
        return pos

    def _read_counted(self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]) -> int:
        """Consume bytes of a counted part, of which `left` are still to come."""
        end = pos + self.left
        if end > len(data):
            end = len(data)
        self.left -= end - pos
        self._emit_piece(data[pos:end], base + end, at, out)
        if not self.left:
            if self.phase is _DATA:
                self.phase = _DATA_END
            else:
                self._emit_end(base + end, at, out)
        return end

    def _read_size_line(
        self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]
    ) -> int:
        """Read a chunk-size line: hexadecimal digits, extensions, line end."""
        newline = data.find(b"\n", pos)
        rest = self._partial
        if newline < 0 or rest:
            rest += data[pos : newline + 1] if newline >= 0 else data[pos:]
            if len(rest) > MAX_SIZE_LINE or newline < 0:
                return self._check_size_line(rest, base + len(data), len(data))
            line = bytes(rest)
            rest.clear()
        else:
            line = data[pos : newline + 1]
        start = base + newline + 1 - len(line)
        if len(line) > MAX_SIZE_LINE:
            return self._check_size_line(line, start + len(line), 0)
        self.left = self._parse_size(line, start, at, out)
        self.phase = _DATA if self.left else _TRAILERS
        return newline + 1

    def _check_size_line(self, line: bytes | bytearray, end: int, position: int) -> int:
        """Return `position` for a size line that is incomplete. Raises `BodyError` if it is already
        too long."""
        if len(line) > MAX_SIZE_LINE:
            raise BodyError(
                end - len(line),
                f"a chunk-size line of at most {MAX_SIZE_LINE} bytes",
                quote_sample(line),
            )
        return position

    def _parse_size(self, line: bytes, start: int, at: int, out: list[WireEvent]) -> int:
        digits = line[:-2]
        if (
            line[-2:] == b"\r\n"
            and 0 < len(digits) <= _MAX_SIZE_DIGITS
            and not digits.strip(_HEX_DIGITS)
        ):
            return int(digits, 16)
        digits = line.partition(b";")[0].rstrip(b"\r\n")
        if digits.strip(_HEX_DIGITS):
            spaced, digits = digits, digits.rstrip(b" \t")
            if digits != spaced:
                self._report_leniency(
                    "chunk_size_space",
                    "space after the chunk size",
                    at,
                    start,
                    start + len(line),
                    out,
                )
        if not digits or digits.strip(_HEX_DIGITS) or len(digits.lstrip(b"0")) > _MAX_SIZE_DIGITS:
            raise BodyError(start, "a chunk size in hexadecimal digits", quote_sample(line))
        if line[-2:] != b"\r\n":
            self._report_leniency(
                "bare_lf", "bare LF after the chunk size", at, start, start + len(line), out
            )
        return int(digits, 16)

    def _read_data_end(
        self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]
    ) -> int:
        """Read the line end after a chunk."""
        if not self._partial and data.startswith(b"\r\n", pos):
            self.phase = _SIZE
            return pos + 2
        offset = base + pos - len(self._partial)
        self._partial.append(data[pos])
        if self._partial == b"\r":
            return pos + 1
        if self._partial == b"\n":
            self._report_leniency("bare_lf", "bare LF after a chunk", at, offset, offset + 1, out)
        elif self._partial != b"\r\n":
            raise BodyError(offset, "CRLF after a chunk", quote_sample(self._partial[:1]))
        self._partial.clear()
        self.phase = _SIZE
        return pos + 1

    def _read_trailers(
        self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]
    ) -> int:
        """Read the trailer section, which is nearly always just its empty line."""
        rest = self._partial
        if not rest:
            if data.startswith(b"\r\n", pos):
                self._emit_end(base + pos + 2, at, out)
                return pos + 2
            self._began = at
        held = len(rest)
        rest += data[pos : pos + MAX_HEAD_SIZE + 1]
        start = base + pos - held
        end = _find_section_end(rest, max(0, held - 2))
        if end > MAX_HEAD_SIZE or (end < 0 and len(rest) >= MAX_HEAD_SIZE):
            raise BodyError(start, f"a trailer section of at most {MAX_HEAD_SIZE} bytes", "more")
        if end < 0:
            return len(data)
        block = bytes(rest[:end])
        rest.clear()
        if block == b"\n":
            self._report_leniency(
                "bare_lf", "bare LF after the last chunk", at, start, start + 1, out
            )
        elif block != b"\r\n":
            self._emit_trailers(block, start, at, out)
        self._emit_end(start + end, at, out)
        return pos + end - held

    def _emit_trailers(self, block: bytes, start: int, at: int, out: list[WireEvent]) -> None:
        try:
            parsed = parse_trailers(block)
        except HeadError as error:
            raise BodyError(start, "a trailer section", str(error)) from None
        end = start + len(block)
        out.append(
            Head(
                self.stream,
                self.direction,
                at,
                self._began,
                start,
                end,
                HeadRole.TRAILERS,
                parsed.headers,
            )
        )
        if parsed.leniency:
            self._report_leniency(parsed.leniency, parsed.complaint, at, start, end, out)

    def _report_leniency(
        self, what: str, reason: str, at: int, start: int, end: int, out: list[WireEvent]
    ) -> None:
        self.leniencies.report_leniency(what, reason, self.direction, at, start, end, out)


def _find_section_end(section: bytearray, searched: int) -> int:
    """Return the offset after the empty line that ends a trailer section, or -1 if it has not
    arrived."""
    if section.startswith(b"\r\n"):
        return 2
    if section.startswith(b"\n"):
        return 1
    return find_head_end(section, searched)
