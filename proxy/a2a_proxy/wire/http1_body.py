"""HTTP/1.1 bodies: counts their bytes as they arrive. Keeps no body.

Pieces are emitted as they arrive; only a split chunk-size line or trailer section is held until it
is complete.
"""

import msgspec

from a2a_proxy.http.h1 import CHUNKED, TRAILERS, UNTIL_CLOSE, ChunkScanner, HeadScanner, Http1Error
from a2a_proxy.model.saved_state import State
from a2a_proxy.model.wire import Body, Direction, End, Head, HeadRole, WireEvent
from a2a_proxy.wire.http1_head import (
    MAX_HEAD_SIZE,
    HeadError,
    Leniencies,
    ParsedHead,
    parse_trailers,
)

MAX_SIZE_LINE = 16 << 10
"""Longest chunk-size line with its extensions, bytes; the limit of Node too."""


class BodyReader(State):
    """Counts one body. Call `feed` until `left` is 0, or, for `UNTIL_CLOSE`, until the connection
    ends."""

    stream: int
    direction: Direction
    left: int
    """Bytes to come, `CHUNKED` or `UNTIL_CLOSE`."""
    _span: int
    """Offset of the next piece; at first, of the body."""
    leniencies: Leniencies
    """Those of the connection."""
    _chunks: ChunkScanner = msgspec.field(default_factory=lambda: ChunkScanner(MAX_SIZE_LINE))
    _trailers: HeadScanner | None = None
    """The trailer section, if it has begun."""
    _began: int = 0

    def feed(self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]) -> int:
        """Consume the bytes of the body from `data[pos:]`, whose first byte has offset
        `base + pos`.

        Returns the position after them. Raises `Http1Error`.
        """
        if self.left != CHUNKED:
            return self._read_counted(data, pos, base, at, out)
        chunks, size = self._chunks, len(data)
        while True:
            pieces: list[tuple[int, int]] = []
            try:
                pos = chunks.scan(data, pos, pieces, size)
            finally:
                # The span begins at the end of the previous piece: chunk framing belongs to the
                # bytes it announces.
                stream, direction, span = self.stream, self.direction, self._span
                for first, stop in pieces:
                    end = base + stop
                    out.append(Body(stream, direction, at, span, end, data[first:stop]))
                    span = end
                self._span = span
            if chunks.doubts:
                self._report_doubts(chunks.doubts, base + pos, at, out)
            if pos == size:
                return pos
            if chunks.phase is TRAILERS:
                return self._read_trailers(data, pos, base, at, out)

    def _report_doubts(
        self, doubts: list[tuple[str, str, int]], end: int, at: int, out: list[WireEvent]
    ) -> None:
        for what, reason, size in doubts:
            if what:
                self._report_leniency(what, reason, at, end - size, end, out)
        doubts.clear()

    def _read_counted(self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]) -> int:
        left = self.left
        stop = len(data) if left == UNTIL_CLOSE else min(pos + left, len(data))
        end = base + stop
        out.append(Body(self.stream, self.direction, at, self._span, end, data[pos:stop]))
        self._span = end
        if left > 0:
            self.left = left - (stop - pos)
            if not self.left:
                self._emit_end(end, at, out)
        return stop

    def _emit_end(self, offset: int, at: int, out: list[WireEvent]) -> None:
        self.left = 0
        out.append(End(self.stream, self.direction, at, offset))

    def _read_trailers(
        self, data: bytes, pos: int, base: int, at: int, out: list[WireEvent]
    ) -> int:
        """Read the trailer section, which is nearly always just its empty line."""
        if self._trailers is None:
            if data.startswith(b"\r\n", pos):
                self._emit_end(base + pos + 2, at, out)
                return pos + 2
            # The section begins after an LF, so that it can be an empty line and nothing else.
            self._trailers = HeadScanner(MAX_HEAD_SIZE + 1, bytearray(b"\n"))
            self._began = at
        try:
            block, end = self._trailers.scan(data, pos)
        except Http1Error as error:
            error.start += 1
            error.expected = f"a trailer section of at most {MAX_HEAD_SIZE} bytes"
            error.got = "more"
            raise
        if not block:
            return end
        block = block[1:]
        start = base + end - len(block)
        if block == b"\n":
            self._report_leniency(
                "bare_lf", "bare LF after the last chunk", at, start, start + 1, out
            )
        elif block != b"\r\n":
            try:
                parsed = parse_trailers(block)
            except HeadError as error:
                text = "malformed trailers"
                raise Http1Error(text, start - base, "a trailer section", str(error)) from None
            self._emit_trailers(parsed, start, start + len(block), at, out)
        self._emit_end(base + end, at, out)
        return end

    def _emit_trailers(
        self, parsed: ParsedHead, start: int, end: int, at: int, out: list[WireEvent]
    ) -> None:
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
