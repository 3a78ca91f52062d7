"""Decodes one direction of a pipe into messages and stray lines.

A message ends at its length. If its bytes up to there are not exactly one JSON value, the length is
wrong, and the end of the value counts instead: within the length, or beyond it (if the sender
counted characters). A header line of the next message within the length ends the message too,
because no JSON contains one. So the following messages are read in any case.
"""

import re

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.wire import (
    REASON_BROKE_OFF,
    REASON_CUT_SHORT,
    Direction,
    Framed,
    Headers,
    WireEvent,
)
from a2a_proxy.wire import stdio_head
from a2a_proxy.wire.body import MAX_BODY_SIZE, TRUNCATED_SIZE, BodyCollector
from a2a_proxy.wire.json_extent import JsonExtent, scan_value
from a2a_proxy.wire.lines import LineCollector
from a2a_proxy.wire.stdio_head import NEXT_MESSAGE, StdioHead
from a2a_proxy.wire.stray import StrayLines

MAX_HEADER_LINE = 8 << 10
"""Longest line of a header block, bytes; longer lines are stray output (or newline-delimited
JSON)."""
MAX_HEADER_BLOCK = 16 << 10
"""Largest header block, bytes."""
_MAX_BEYOND_LENGTH = 64 << 10
"""Bytes searched for the end of a message past its length, in addition to three times the length (4
bytes per character)."""
_MAX_NEXT_MATCH = 512
"""More bytes than any match of `NEXT_MESSAGE` has."""
_MAX_TRAILING_BLANKS = 64
"""Maximum number of blanks kept after a message on a line of its own."""
_MAX_MARKS = 1024
_BLANKS, _LINE_END = re.compile(rb"[ \t]*"), re.compile(rb"[ \t\r\n]*")

_decode_json = msgspec.json.Decoder(msgspec.Raw).decode


class _PipeBuffer(State):
    """Unprocessed bytes, with their arrival times and line ends. Positions are relative to the
    beginning of `data`, offsets to that of the direction."""

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


class PipeReader(State):
    """Reads one direction of a pipe. Never raises.

    Memory is bounded: by `MAX_BODY_SIZE` for a message, by `MAX_HEADER_BLOCK` for a header block.
    """

    direction: Direction
    limit: int = MAX_BODY_SIZE
    keep: int = TRUNCATED_SIZE
    _buffer: _PipeBuffer = msgspec.field(default_factory=_PipeBuffer)
    _framed: bool = False
    """Whether the previous message had a header block."""
    _stray_up_to: int = 0
    """Offset up to which lines are stray, whatever their content."""
    _not_single_up_to: int = 0
    """Offset up to which a line is not a single JSON value."""
    _head: StdioHead | None = None
    """Header of the current message; its block begins the buffer."""
    _scanned_up_to: int = 0
    """Offset up to which the content was searched for the next message."""
    _extent: JsonExtent | None = None
    """Finds the end of the value beyond the length, or without a length."""
    _extent_read_up_to: int = 0
    """Offset up to which `_extent` has read."""
    _bulk_body: BodyCollector | None = None
    """A message too large to be kept; `_bulk_left` bytes of it are still to come."""
    _bulk_left: int = 0
    _header_block: bytes = b""
    """Header block of the current message or, between messages, of the last one."""
    _long_line: LineCollector | None = None
    """A line too long to be examined."""
    _long_line_is_json: bool = False
    _strays: StrayLines = msgspec.field(default_factory=StrayLines)

    def __post_init__(self) -> None:
        self._strays.direction = self.direction

    @property
    def offset(self) -> int:
        """Number of bytes fed so far."""
        return self._buffer.offset

    def feed(self, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Read bytes that arrived at `at` (ns) and append complete events to `out`."""
        self._buffer.add(data, at)
        while self._buffer.data and self._read_step(at, False, out):
            pass

    def finish(self, at: int, out: list[WireEvent]) -> None:
        """Read the rest: no more bytes follow."""
        while (self._buffer.data or self._bulk_body or self._long_line) and self._read_step(
            at, True, out
        ):
            pass
        self._strays.end_row(at, out)

    # --- steps: each returns True if it consumed bytes or changed state

    def _read_step(self, at: int, last: bool, out: list[WireEvent]) -> bool:
        if self._bulk_body is not None:
            return self._take_bulk(self._bulk_body, at, last, out)
        if self._long_line is not None:
            return self._take_long_line(self._long_line, at, last, out)
        if self._extent is not None:
            return self._read_beyond_length(self._extent, at, last, out)
        if self._head is not None:
            return self._read_content(self._head, at, last, out)
        return self._read_beginning(at, last, out)

    def _read_beginning(self, at: int, last: bool, out: list[WireEvent]) -> bool:
        """Between messages: decide which kind of line or block begins here."""
        buf, lf = self._buffer.data, self._buffer.find_line_end()
        stop = lf + 1 or len(buf)
        first = bytes(buf[: min(stop, MAX_HEADER_LINE)]).lstrip(b" \t")[:1]
        json = first in (b"{", b"[") and first != b""
        if lf < 0 and not last and stop <= (self.limit if json else MAX_HEADER_LINE):
            return False
        if self._buffer.base < self._stray_up_to:
            self._take_stray_line(stop, at, out)
        elif stop > (self.limit if json else MAX_HEADER_LINE):
            self._long_line = LineCollector(BodyCollector(self.limit if json else self.keep))
            self._long_line_is_json = json
        elif json:
            self._read_json_line(stop, at, out)
        elif lf < 0 or not stdio_head.may_begin_block(bytes(buf[:stop])):
            self._take_stray_line(stop, at, out)
        else:
            return self._read_header(stop, at, last, out)
        return True

    def _read_header(self, first: int, at: int, last: bool, out: list[WireEvent]) -> bool:
        """Read a header block whose first line ends at `first`. If it is not a valid block, that
        line is stray."""
        buf, pos = self._buffer.data, first
        while True:
            lf = buf.find(b"\n", pos, pos + MAX_HEADER_LINE)
            if (
                lf < 0
                and len(buf) - pos < MAX_HEADER_LINE
                and len(buf) < MAX_HEADER_BLOCK
                and not last
            ):
                return False
            line = bytes(buf[pos : lf + 1])
            if line in (b"\r\n", b"\n"):
                break
            if lf < 0 or lf >= MAX_HEADER_BLOCK or not stdio_head.is_header_field(line):
                self._take_stray_line(first, at, out)
                return True
            pos = lf + 1
        self._header_block = bytes(buf[: lf + 1])
        head = self._head = stdio_head.parse_block(self._header_block)
        self._scanned_up_to = self._buffer.base + head.size
        if head.length < 0:
            self._follow_extent(head.size)
        return True

    def _read_content(self, head: StdioHead, at: int, last: bool, out: list[WireEvent]) -> bool:
        """Read the content up to its length."""
        buf, start = self._buffer.data, head.size
        stop = start + head.length
        cut = self._find_next_message(start, min(stop, start + self.limit, len(buf)))
        if cut < 0 and head.length > self.limit and len(buf) - start > self.limit:
            self._bulk_body, self._bulk_left = BodyCollector(self.limit, self.keep), head.length
            self._bulk_body.add(
                b"", self._buffer.first_byte_time(), self._buffer.base, self._buffer.base
            )
            self._buffer.drop_bytes(start)
            return True
        if cut < 0 and len(buf) < stop and not last:
            return False
        end = cut if cut >= 0 else min(stop, len(buf))
        content = bytes(buf[start:end])
        whole = cut < 0 and end == stop
        if whole and _is_one_json_value(content):
            self._emit_headed_message(content, end, at, out)
            return True
        extent, size = scan_value(content)
        if extent.done and (content[size:].strip() or not whole):
            self._emit_headed_message(content[:size], start + size, at, out)
        elif extent.broken or extent.done:
            broken = "" if whole else REASON_CUT_SHORT if cut >= 0 else REASON_BROKE_OFF
            self._emit_headed_message(content, end, at, out, broken)
        elif whole and not last:
            self._extent, self._extent_read_up_to = extent, self._buffer.base + end
            return len(buf) > end
        elif whole:
            self._follow_extent(end, extent)
        else:
            self._emit_headed_message(
                content, end, at, out, REASON_CUT_SHORT if cut >= 0 else REASON_BROKE_OFF
            )
        return True

    def _read_beyond_length(
        self, extent: JsonExtent, at: int, last: bool, out: list[WireEvent]
    ) -> bool:
        """Search for the end of the value beyond the length, or without a length."""
        assert self._head is not None
        buf, head = self._buffer.data, self._head
        start = head.size
        stop = start + max(head.length, 0)
        most = stop + min(
            3 * head.length + _MAX_BEYOND_LENGTH if head.length >= 0 else self.limit, self.limit
        )
        before = self._extent_read_up_to - self._buffer.base
        end = min(len(buf), most)
        pos = extent.feed(buf, before, end)
        self._extent_read_up_to = self._buffer.base + pos
        if extent.done:
            self._emit_headed_message(bytes(buf[start:pos]), pos, at, out)
        elif extent.broken or end == most or last:
            if head.length >= 0:
                self._emit_headed_message(
                    bytes(buf[start:stop]),
                    stop,
                    at,
                    out,
                    REASON_BROKE_OFF if last and not extent.broken else REASON_CUT_SHORT,
                )
            else:  # not a message, so its header block is stray too
                self._stray_up_to = self._buffer.base + head.size
                self._forget_message()
        else:
            return False
        return True

    def _follow_extent(self, pos: int, extent: JsonExtent | None = None) -> None:
        self._extent, self._extent_read_up_to = extent or JsonExtent(), self._buffer.base + pos

    def _find_next_message(self, start: int, end: int) -> int:
        """Return the position in the content at which the next message begins, or -1."""
        scanned = self._scanned_up_to - self._buffer.base
        if self._buffer.data.find(b"\n", scanned, end) < 0:
            self._scanned_up_to = max(self._scanned_up_to, self._buffer.base + end)
            return -1
        line = self._buffer.data.rfind(b"\n", start, scanned) + 1 or start
        found = NEXT_MESSAGE.search(self._buffer.data, max(line, scanned - _MAX_NEXT_MATCH), end)
        self._scanned_up_to = self._buffer.base + end
        return found.start() if found is not None else -1

    # --- lines

    def _read_json_line(self, stop: int, at: int, out: list[WireEvent]) -> None:
        """Read a line that begins like JSON: it may hold one message, several, or none."""
        buf = self._buffer.data
        start = _end_of_match(_BLANKS, buf, 0, stop)
        text = (
            b""
            if self._buffer.base < self._not_single_up_to
            else bytes(buf[start:stop]).rstrip(b" \t\r\n")
        )
        if not _is_one_json_value(text):
            self._not_single_up_to = self._buffer.base + stop
            extent = JsonExtent()
            text = bytes(buf[start : extent.feed(buf, start, stop)])
            if not extent.done or not _is_one_json_value(text):
                self._take_stray_line(stop, at, out)
                return
        end = start + len(text)
        if _end_of_match(_LINE_END, buf, end, stop) < stop or stop - end > _MAX_TRAILING_BLANKS:
            stop = end
        self._framed = False
        framing = f"{buf[:start].decode()}\0{buf[end:stop].decode()}"
        self._emit_message(text, (), framing, "", stop, at, out)
        self._buffer.drop_bytes(stop)

    def _take_stray_line(self, stop: int, at: int, out: list[WireEvent]) -> None:
        """Emit a line outside messages. It may end with a header field if its writer left out the
        line end."""
        found = (
            NEXT_MESSAGE.search(self._buffer.data, 1, stop)
            if self._buffer.base >= self._stray_up_to
            else None
        )
        if found is not None:
            stop = found.start()
        line = LineCollector(BodyCollector(self.keep))
        line.take_up_to_lf(
            self._buffer.data[:stop], 0, self._buffer.first_byte_time(), self._buffer.base
        )
        line.finish(at)
        self._strays.add(line, self._framed, at, out)
        self._buffer.drop_bytes(stop)

    def _take_long_line(
        self, line: LineCollector, at: int, last: bool, out: list[WireEvent]
    ) -> bool:
        """Consume a line too long to be examined."""
        if not line.end:
            line.body.add(b"", self._buffer.first_byte_time(), self._buffer.base, self._buffer.base)
        self._buffer.drop_bytes(line.take_up_to_lf(self._buffer.data, 0, at, self._buffer.base))
        if not (line.done or last):
            return False
        self._long_line = None
        line.finish(at)
        if not self._long_line_is_json:
            self._strays.add(line, self._framed, at, out)
            return True
        self._strays.end_row(at, out)
        body, facts = line.body, (line.body.size, True, line.body.sha256)
        place = (self.direction, body.began, at, body.start, line.end)
        out.append(Framed(*place, body.data[: self.keep], (), f"\0{line.ending}", "", *facts))
        return True

    # --- messages

    def _take_bulk(self, body: BodyCollector, at: int, last: bool, out: list[WireEvent]) -> bool:
        """Consume a message too large to be kept; its length is assumed to be right."""
        size = min(self._bulk_left, len(self._buffer.data))
        body.add(bytes(self._buffer.data[:size]), at, self._buffer.base, self._buffer.base + size)
        self._bulk_left -= size
        self._buffer.drop_bytes(size)
        if self._bulk_left and not last:
            return False
        assert self._head is not None
        self._strays.end_row(at, out)
        truncated = body.truncated
        data, facts = body.data[: self.keep], (body.size, True, body.sha256 if truncated else b"")
        place = (self.direction, body.began, at, body.start, body.end)
        framing = stdio_head.framing_of_block(self._header_block, body.size)
        out.append(
            Framed(
                *place,
                data,
                self._head.headers,
                framing,
                REASON_BROKE_OFF if self._bulk_left else "",
                *facts,
            )
        )
        self._framed = True
        self._forget_message()
        return True

    def _emit_headed_message(
        self, content: bytes, end: int, at: int, out: list[WireEvent], broken: str = ""
    ) -> None:
        """Emit a message with a header block that ends at `end`."""
        assert self._head is not None
        self._framed = True
        # If the message is broken, its length may be right or wrong: it is recorded unchanged.
        framing = stdio_head.framing_of_block(self._header_block, -1 if broken else len(content))
        self._emit_message(content, self._head.headers, framing, broken, end, at, out)
        self._buffer.drop_bytes(end)
        self._forget_message()

    def _emit_message(
        self,
        data: bytes,
        headers: Headers,
        framing: str,
        broken: str,
        end: int,
        at: int,
        out: list[WireEvent],
    ) -> None:
        self._strays.end_row(at, out)
        place = (
            self.direction,
            self._buffer.first_byte_time(),
            at,
            self._buffer.base,
            self._buffer.base + end,
        )
        out.append(Framed(*place, data, headers, framing, broken, len(data)))

    def _forget_message(self) -> None:
        self._head = self._extent = self._bulk_body = None


def _end_of_match(pattern: re.Pattern[bytes], data: bytearray, start: int, end: int) -> int:
    """Return the end of the pattern's match at `start`, or `start` if it does not match."""
    found = pattern.match(data, start, end)
    return found.end() if found is not None else start


def _is_one_json_value(content: bytes) -> bool:
    """Whether the content is exactly one JSON value."""
    try:
        _decode_json(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
