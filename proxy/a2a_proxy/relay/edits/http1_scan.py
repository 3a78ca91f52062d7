"""Find where HTTP/1 messages of one direction begin and end (RFC 9112 6.3).

Less than a parser: bytes that two parsers could read differently are not understood here, and stay
unchanged.
"""

from __future__ import annotations

import re
from enum import IntEnum

MAX_HEAD_BYTES = 64 * 1024
MAX_LINE_BYTES = 4096
"""Bytes of the longest line of the chunked coding."""
CHUNKS_AT_ONCE = 4
"""Chunks that one call of `Http1Scanner.read_part` handles at most, so that a caller with a budget
can stop."""

PART_WORK = 12
"""Units of the budget of an editor for each part of a message."""
HEAD_SHIFT = 2
"""A head costs one more unit for each 2 ** HEAD_SHIFT bytes."""

CHUNKED, UNTIL_CLOSE = -1, -2
"""Framings without a length."""

_FIELD_LINES = rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n)*\r\n"
_REQUEST = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([^ \r\n\0]+) HTTP/1\.[01]\r\n" + _FIELD_LINES
)
_RESPONSE = re.compile(rb"HTTP/1\.[01] ([1-9][0-9][0-9])(?: [^\r\n\0]*)?\r\n" + _FIELD_LINES)
_FIELD_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n")
_BARE_LF = re.compile(rb"(?<!\r)\n")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n\0]*)?\r\n")


class Http1ScanError(Exception):
    """Bytes that this scanner does not understand; the text describes them."""


def header_field(head: bytes, name: bytes) -> bytes | None:
    """Return the value of a header field (`name` in lower case), or None if it is absent. Raises
    Http1ScanError if it occurs twice."""
    low = head.lower()
    sought = b"\r\n" + name + b":"
    at = low.find(sought)
    if at < 0:
        return None
    if low.find(sought, at + 2) >= 0:
        raise Http1ScanError(f"two {name.decode()} fields")
    start = at + len(sought)
    return head[start : head.index(b"\r\n", start)].strip(b" \t")


def _parse_framing(head: bytes, otherwise: int) -> int:
    length, coding = header_field(head, b"content-length"), header_field(head, b"transfer-encoding")
    if coding is not None:
        if length is not None:
            raise Http1ScanError("Content-Length with Transfer-Encoding")
        if coding.lower() != b"chunked":
            raise Http1ScanError("a transfer coding other than chunked")
        return CHUNKED
    if length is None:
        return otherwise
    if not length.isdigit() or len(length) > 18:
        raise Http1ScanError("a Content-Length that is not a number")
    return int(length)


def parse_request_head(head: bytes) -> tuple[bytes, bytes, int]:
    """Return method, target and framing of a request. Raises Http1ScanError."""
    found = _REQUEST.fullmatch(head)
    if found is None:
        raise Http1ScanError("a malformed request head")
    framing = _parse_framing(head, 0)
    if framing == CHUNKED and head[: head.index(b"\r\n")].endswith(
        b"HTTP/1.0"
    ):  # RFC 9112 6.1: faulty framing
        raise Http1ScanError("Transfer-Encoding with HTTP/1.0")
    return found[1], found[2], framing


def parse_response_head(head: bytes, to_head: bool) -> tuple[int, int]:
    """Return status and framing of a response; `to_head`: it answers a HEAD. Raises
    Http1ScanError."""
    found = _RESPONSE.fullmatch(head)
    if found is None:
        raise Http1ScanError("a malformed response head")
    status = int(found[1])
    framing = _parse_framing(head, UNTIL_CLOSE)
    return status, 0 if to_head or status < 200 or status in (204, 304) else framing


class MessagePart(IntEnum):
    """Kind of a part of a message."""

    HEAD = 0
    """Bytes of a head that is not complete yet."""
    HEAD_END = 1
    """The last bytes of a head; `Http1Scanner.head` is the whole head, and `begin_body` must be
    called."""
    BODY = 2
    """Bytes of a body, framing included."""
    BODY_END = 3
    """The last bytes of a body."""
    TRAILER = 4
    """Bytes of a line after the chunks; `Http1Scanner.trailer` is the line if it is complete, else
    empty."""


class _Chunk(IntEnum):
    SIZE = 0
    DATA = 1
    DATA_END = 2
    TRAILERS = 3


class Http1Scanner:
    """Divides one direction into parts. Call `read_part` until the bytes are used up."""

    __slots__ = (
        "_buffer",
        "_chunk",
        "_framing",
        "_left",
        "_line",
        "_trailers_apart",
        "head",
        "trailer",
    )

    def __init__(self, *, trailers_apart: bool = False) -> None:
        """Create the scanner. With `trailers_apart` the lines after the chunks are parts of their
        own, of which the empty one is the last."""
        self.head = self.trailer = b""
        self._trailers_apart = trailers_apart
        self._buffer = bytearray()
        self._framing: int | None = None
        self._left = 0
        self._chunk = _Chunk.SIZE
        self._line = b""

    @property
    def is_between_messages(self) -> bool:
        """Whether no byte of the next message has arrived."""
        return self._framing is None and not self._buffer

    @property
    def is_until_close(self) -> bool:
        """Whether the body ends with the connection."""
        return self._framing == UNTIL_CLOSE

    def begin_body(self, framing: int) -> bool:
        """Set the framing of the body after the head. Return True if there is no body, and the next
        head follows."""
        self._framing, self._left = (framing or None), framing
        self._chunk, self._line = _Chunk.SIZE, b""
        return self._framing is None

    def read_part(self, data: bytes, start: int) -> tuple[MessagePart, int]:
        """Return the kind of the part that begins at `start`, and where it ends. Raises
        Http1ScanError."""
        framing = self._framing
        if framing is None:
            return self._next_head(data, start)
        if framing == UNTIL_CLOSE:
            return MessagePart.BODY, len(data)
        if framing == CHUNKED:
            return self._next_chunked(data, start)
        end = min(len(data), start + self._left)
        self._left -= end - start
        return self._body_part(end, done=not self._left)

    def _body_part(self, end: int, *, done: bool) -> tuple[MessagePart, int]:
        if done:
            self._framing = None
        return (MessagePart.BODY_END if done else MessagePart.BODY), end

    def _next_head(self, data: bytes, start: int) -> tuple[MessagePart, int]:
        buffer = self._buffer
        if not buffer:
            end = data.find(b"\r\n\r\n", start) + 4
            if end > 3:
                return self._complete_head(data[start:end], end)
        before = len(buffer)
        buffer += data[start : start + MAX_HEAD_BYTES + 4 - before]
        at = buffer.find(b"\r\n\r\n", max(0, before - 3))
        if at >= 0:
            head = bytes(buffer[: at + 4])
            buffer.clear()
            return self._complete_head(head, start + len(head) - before)
        if _BARE_LF.search(buffer, max(0, before - 1)):
            raise Http1ScanError("a bare LF in a head")
        if len(buffer) > MAX_HEAD_BYTES:
            raise Http1ScanError("a head that is too long")
        return MessagePart.HEAD, len(data)

    def _complete_head(self, head: bytes, end: int) -> tuple[MessagePart, int]:
        if len(head) > MAX_HEAD_BYTES:
            raise Http1ScanError("a head that is too long")
        self.head = head
        return MessagePart.HEAD_END, end

    def _next_chunked(self, data: bytes, start: int) -> tuple[MessagePart, int]:
        at, chunks, size = start, 0, len(data)
        while at < size and chunks < CHUNKS_AT_ONCE:
            if self._chunk is _Chunk.DATA:
                taken = min(self._left, size - at)
                at, self._left = at + taken, self._left - taken
                if not self._left:
                    self._chunk = _Chunk.DATA_END
                    chunks += 1
                    if data.startswith(b"\r\n", at):
                        at, self._chunk = at + 2, _Chunk.SIZE
                continue
            if self._chunk is _Chunk.TRAILERS and self._trailers_apart:
                return (MessagePart.BODY, at) if at > start else self._next_trailer(data, at)
            end = data.find(b"\n", at) + 1 or size
            self._line += data[at:end]
            at = end
            if len(self._line) > MAX_LINE_BYTES:
                raise Http1ScanError("a line of the chunked coding that is too long")
            if self._line.endswith(b"\n") and self._end_line():
                return self._body_part(at, done=True)
        return MessagePart.BODY, at

    def _next_trailer(self, data: bytes, at: int) -> tuple[MessagePart, int]:
        end = data.find(b"\n", at) + 1 or len(data)
        self.trailer, line = b"", self._line + data[at:end]
        self._line = line
        if len(line) > MAX_LINE_BYTES:
            raise Http1ScanError("a trailer that is too long")
        if line.endswith(b"\n"):
            if line != b"\r\n" and _FIELD_LINE.fullmatch(line) is None:
                raise Http1ScanError("a malformed trailer")
            self.trailer = line
            if self._end_line():
                self._framing = None
        return MessagePart.TRAILER, end

    def _end_line(self) -> bool:
        """Handle a complete line of the chunked coding. Return True if it is the last one."""
        line, self._line = self._line, b""
        if not line.endswith(b"\r\n"):
            raise Http1ScanError("a bare LF in the chunked coding")
        if self._chunk is _Chunk.TRAILERS:
            return line == b"\r\n"
        if self._chunk is _Chunk.DATA_END:
            if line != b"\r\n":
                raise Http1ScanError("no line end after a chunk")
            self._chunk = _Chunk.SIZE
            return False
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise Http1ScanError("a chunk size that is not a number")
        self._left = int(found[1], 16)
        self._chunk = _Chunk.DATA if self._left else _Chunk.TRAILERS
        return False


class ChunkReader:
    """Takes the data out of a chunked body, whose parts an `Http1Scanner` has scanned."""

    __slots__ = ("_left", "_line")

    def __init__(self) -> None:
        self._left = 0
        """Bytes of the current chunk that have not arrived; -1 after the last chunk."""
        self._line = b""

    def feed(self, body: bytes, end: int) -> list[tuple[bytes, int]]:
        """Return the data of a part of the body, each piece with the offset after it. `end`: the
        offset after `body`."""
        pieces, at, base = [], 0, end - len(body)
        while at < len(body) and self._left >= 0:
            if self._left:
                taken = min(self._left, len(body) - at)
                pieces.append((body[at : at + taken], base + at + taken))
                at, self._left = at + taken, self._left - taken
                continue
            stop = body.find(b"\n", at) + 1 or len(body)
            self._line += body[at:stop]
            at = stop
            if self._line.endswith(b"\n"):
                line, self._line = self._line.strip(), b""
                if line:  # not the line end after the data of a chunk
                    self._left = int(line.partition(b";")[0], 16) or -1
        return pieces


def decode_chunked(body: bytes) -> bytes:
    """Return the data of a whole chunked body that an Http1Scanner has scanned, without
    trailers."""
    return split_chunked(body)[0]


def split_chunked(body: bytes) -> tuple[bytes, bytes]:
    """Return the data of such a body, and its bytes after the line of the last chunk: trailers and
    the empty line."""
    parts: list[bytes] = []
    at = 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end].partition(b";")[0], 16)
        if not size:
            return b"".join(parts), body[end + 2 :]
        parts.append(body[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
