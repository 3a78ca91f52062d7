"""Find where HTTP/1 messages of one direction begin and end (RFC 9112 6.3).

`HeadScanner`, `ChunkScanner`, `body_framing` and `is_bodiless` read what peers accept.
`Http1Scanner` and the functions for heads refuse bytes that two parsers could read differently, so
that they stay unchanged.
"""

import re
from enum import IntEnum

from a2a_proxy.model.saved_state import State

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
_EMPTY_LINE = re.compile(rb"\n\r?\n")
_SIZE_LINE = re.compile(rb"[0-9A-Fa-f]{1,15}[ \t]*(?:;[^\r\n\0]*)?\r\n")
_HEX_DIGITS = b"0123456789abcdefABCDEF"
_MAX_SIZE_DIGITS = 15
_SAMPLE_SIZE = 8
_SIZE_SPACE = "chunk_size_space"
_NO_SIZE, _BARE_LF_LINE = "a chunk size that is not a number", "a bare LF in the chunked coding"


class Http1Error(Exception):
    """Bytes that are not understood; the text describes them. In a chunked body also the position
    of the first of them in the data (negative if it is in earlier data), and what was expected
    there."""

    def __init__(self, text: str, start: int = 0, expected: str = "", got: str = "") -> None:
        super().__init__(text)
        self.start = start
        self.expected = expected
        self.got = got


def quote_sample(data: bytes | bytearray) -> str:
    """Return the first few bytes as text for a finding; few, because they may belong to a
    secret."""
    return repr(bytes(data[:_SAMPLE_SIZE]))[1:]


def body_framing(length: bytes | None, coding: bytes | None, otherwise: int) -> int:
    """Return how a body is delimited: its length in bytes, `CHUNKED` or `UNTIL_CLOSE`.

    `length` is the value of Content-Length, a number; `coding` the last transfer coding, in lower
    case; `otherwise` the result without both: 0 for requests, `UNTIL_CLOSE` for responses. Raises
    Http1Error.
    """
    if coding is not None:
        # RFC 9112, 6.1: both together "ought to be handled as an error", because the peers may
        # disagree about the body's end.
        if length is not None:
            raise Http1Error("Content-Length and Transfer-Encoding together")
        if coding == b"chunked":
            return CHUNKED
        if not otherwise:
            raise Http1Error("a request whose last transfer coding is not chunked")
        return otherwise
    return otherwise if length is None else int(length)


def is_bodiless(status: int, *, to_head: bool) -> bool:
    """Return whether a response has no body whatever its fields say; `to_head`: it answers a
    HEAD."""
    return to_head or status < 200 or status in (204, 304)


def header_field(head: bytes, name: bytes) -> bytes | None:
    """Return the value of a header field (`name` in lower case), or None if it is absent. Raises
    Http1Error if it occurs twice."""
    low = head.lower()
    sought = b"\r\n" + name + b":"
    at = low.find(sought)
    if at < 0:
        return None
    if low.find(sought, at + 2) >= 0:
        raise Http1Error(f"two {name.decode()} fields")
    start = at + len(sought)
    return head[start : head.index(b"\r\n", start)].strip(b" \t")


def _parse_framing(head: bytes, otherwise: int) -> int:
    length, coding = header_field(head, b"content-length"), header_field(head, b"transfer-encoding")
    if length is not None and (not length.isdigit() or len(length) > 18):
        raise Http1Error("a Content-Length that is not a number")
    if coding is not None and (coding := coding.lower()) != b"chunked":
        raise Http1Error("a transfer coding other than chunked")
    return body_framing(length, coding, otherwise)


def _refuse_head(head: bytes, kind: str) -> Http1Error:
    return Http1Error(
        "a bare LF in a head" if _BARE_LF.search(head) else f"a malformed {kind} head"
    )


def parse_request_head(head: bytes) -> tuple[bytes, bytes, int]:
    """Return method, target and framing of a request. Raises Http1Error."""
    found = _REQUEST.fullmatch(head)
    if found is None:
        raise _refuse_head(head, "request")
    framing = _parse_framing(head, 0)
    if framing == CHUNKED and head[: head.index(b"\r\n")].endswith(
        b"HTTP/1.0"
    ):  # RFC 9112 6.1: faulty framing
        raise Http1Error("Transfer-Encoding with HTTP/1.0")
    return found[1], found[2], framing


def parse_response_head(head: bytes, to_head: bool) -> tuple[int, int]:
    """Return status and framing of a response; `to_head`: it answers a HEAD. Raises
    Http1Error."""
    found = _RESPONSE.fullmatch(head)
    if found is None:
        raise _refuse_head(head, "response")
    status = int(found[1])
    framing = _parse_framing(head, UNTIL_CLOSE)
    return status, 0 if is_bodiless(status, to_head=to_head) else framing


def _find_head_end(buffer: bytes | bytearray, start: int = 0) -> int:
    """Return the offset after the first empty line at or after `start`, or -1 if there is none
    yet."""
    found = _EMPTY_LINE.search(buffer, start)
    return found.end() if found is not None else -1


class HeadScanner(State):
    """Collects a head up to its empty line.

    Lines may end in CRLF or, as many peers tolerate, in a bare LF (RFC 9112, 2.2).
    """

    max_size: int
    """Bytes of the longest head."""
    held: bytearray = bytearray()
    """Bytes of an incomplete head."""

    def scan(self, data: bytes, pos: int) -> tuple[bytes, int]:
        """Return the head that continues at `data[pos:]`, empty if it is not complete, and the
        position up to which bytes were read. Raises Http1Error."""
        held, before = self.held, len(self.held)
        if not before and (end := _find_head_end(data, pos)) >= 0:
            head = data[pos:end]
        else:
            held += data[pos : pos + self.max_size + 1]
            size = _find_head_end(held, max(0, before - 2))
            if size < 0 and len(held) <= self.max_size:
                return b"", len(data)
            head, end = bytes(held if size < 0 else held[:size]), pos + size - before
            held.clear()
        if len(head) > self.max_size:
            raise Http1Error("a head that is too long", pos - before)
        return head, end


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


class ChunkPhase(IntEnum):
    """The part of a chunked body that the next byte belongs to."""

    SIZE = 0
    DATA = 1
    DATA_END = 2
    TRAILERS = 3


# A member lookup in its class costs more than a global name, and it is needed for every chunk.
_SIZE, _DATA, _DATA_END, TRAILERS = ChunkPhase


class ChunkScanner(State):
    """Finds the data of a chunked body up to its trailers (RFC 9112 7.1)."""

    max_line: int
    """Bytes of the longest line."""
    phase: ChunkPhase = _SIZE
    doubts: list[tuple[str, str, int]] = []
    """What two parsers could read differently in the last line that was read: the name of the
    leniency (empty for one that all peers have), a description, and the size of the line. The
    caller clears them."""
    _left: int = 0
    """Bytes of the current chunk that have not arrived."""
    _line: bytearray = bytearray()
    """Bytes of an incomplete line."""

    def scan(self, data: bytes, pos: int, pieces: list[tuple[int, int]], most: int) -> int:
        """Append start and end of the data of chunks in `data[pos:]` to `pieces`, at most up to
        `most`.

        Returns the position up to which bytes were read. It is less than the size of `data` after
        `most` pieces, after a line with doubts, and where the trailers begin. Raises Http1Error.
        """
        size, phase = len(data), self.phase
        while pos < size and len(pieces) < most:
            if phase is _SIZE:
                newline = data.find(b"\r\n", pos, pos + _MAX_SIZE_DIGITS + 2)
                if newline <= pos or self._line or (digits := data[pos:newline]).strip(_HEX_DIGITS):
                    pos = self._scan_size_line(data, pos)
                else:
                    first = newline + 2
                    stop = first + int(digits, 16)
                    if stop > first and data.startswith(b"\r\n", stop):  # as nearly all chunks
                        pieces.append((first, stop))
                        pos = stop + 2
                        continue
                    pos = first
                    self._begin_chunk(stop - first)
            elif phase is _DATA:
                stop = min(pos + self._left, size)
                pieces.append((pos, stop))
                self._left -= stop - pos
                pos = stop
                if not self._left:
                    self.phase = _DATA_END
            elif phase is _DATA_END:
                pos = self._scan_data_end(data, pos)
            else:
                break
            if self.doubts:
                break
            phase = self.phase
        return pos

    def is_chunk(self, data: bytes) -> bool:
        """Return whether the data is exactly one chunk of the body, which then need not be
        scanned."""
        end = data.find(b"\r\n", 0, _MAX_SIZE_DIGITS + 2)
        return (
            end > 0
            and self.phase is _SIZE
            and not self._line
            and not (digits := data[:end]).strip(_HEX_DIGITS)
            and len(data) - end - 4 == int(digits, 16) > 0
            and data.endswith(b"\r\n")
        )

    def _begin_chunk(self, size: int) -> None:
        self._left = size
        self.phase = _DATA if size else TRAILERS

    def _scan_size_line(self, data: bytes, pos: int) -> int:
        """Read a size line that has more than digits or is not all in `data`."""
        end = data.find(b"\n", pos) + 1 or len(data)
        line = self._line
        line += data[pos:end]
        start = end - len(line)
        if len(line) > self.max_line:
            expected = f"a chunk-size line of at most {self.max_line} bytes"
            text = "a line of the chunked coding that is too long"
            raise Http1Error(text, start, expected, quote_sample(line))
        if line.endswith(b"\n"):
            spaced = bytes(line).partition(b";")[0].rstrip(b"\r\n")
            digits = spaced.rstrip(b" \t")
            is_size = digits and not digits.strip(_HEX_DIGITS)
            if not is_size or len(digits.lstrip(b"0")) > _MAX_SIZE_DIGITS:
                expected = "a chunk size in hexadecimal digits"
                raise Http1Error(_NO_SIZE, start, expected, quote_sample(line))
            if digits != spaced:
                self._doubt(_SIZE_SPACE, "space after the chunk size", line)
            if not line.endswith(b"\r\n"):
                self._doubt("bare_lf", "bare LF after the chunk size", line)
            elif _SIZE_LINE.fullmatch(line) is None:
                self._doubt("", _NO_SIZE, line)
            line.clear()
            self._begin_chunk(int(digits, 16))
        return end

    def _scan_data_end(self, data: bytes, pos: int) -> int:
        """Read the line end after a chunk."""
        line = self._line
        if line or not data.startswith(b"\r\n", pos):
            line.append(data[pos])
            pos += 1
            if line == b"\r":
                return pos
            if line == b"\n":
                self._doubt("bare_lf", "bare LF after a chunk", line)
            elif line != b"\r\n":
                text = "no line end after a chunk"
                start = pos - len(line)
                raise Http1Error(text, start, "CRLF after a chunk", quote_sample(line[:1]))
            line.clear()
        else:
            pos += 2
        self.phase = _SIZE
        return pos

    def _doubt(self, what: str, reason: str, line: bytearray) -> None:
        self.doubts.append((what, reason, len(line)))


class Http1Scanner:
    """Divides one direction into parts. Call `read_part` until the bytes are used up."""

    __slots__ = (
        "_chunks",
        "_framing",
        "_heads",
        "_left",
        "_line",
        "_trailers_apart",
        "head",
        "pieces",
        "trailer",
    )

    def __init__(self, *, trailers_apart: bool = False) -> None:
        """Create the scanner. With `trailers_apart` the lines after the chunks are parts of their
        own, of which the empty one is the last."""
        self.head = self.trailer = b""
        self.pieces: list[tuple[int, int]] = []
        """Start and end of the data in the last part of a chunked body."""
        self._trailers_apart = trailers_apart
        self._heads = HeadScanner(MAX_HEAD_BYTES)
        self._framing: int | None = None
        self._left = 0
        self._chunks = ChunkScanner(MAX_LINE_BYTES)
        self._line = b""

    @property
    def is_between_messages(self) -> bool:
        """Whether no byte of the next message has arrived."""
        return self._framing is None and not self._heads.held

    @property
    def is_until_close(self) -> bool:
        """Whether the body ends with the connection."""
        return self._framing == UNTIL_CLOSE

    def begin_body(self, framing: int) -> bool:
        """Set the framing of the body after the head. Return True if there is no body, and the next
        head follows."""
        self._framing, self._left = (framing or None), framing
        if framing == CHUNKED:
            self._chunks = ChunkScanner(MAX_LINE_BYTES)
        return self._framing is None

    def read_part(self, data: bytes, start: int) -> tuple[MessagePart, int]:
        """Return the kind of the part that begins at `start`, and where it ends. Raises
        Http1Error."""
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

    def skip_part(self, data: bytes) -> bool:
        """Read bytes inside a body, of a chunked one a whole chunk. Return False, with nothing
        read, for other bytes."""
        framing = self._framing
        if framing == CHUNKED:
            return self._chunks.is_chunk(data)
        if framing is None or (framing >= 0 and len(data) >= self._left):
            return False
        self._left -= len(data)
        return True

    def _body_part(self, end: int, *, done: bool) -> tuple[MessagePart, int]:
        if done:
            self._framing = None
        return (MessagePart.BODY_END if done else MessagePart.BODY), end

    def _next_head(self, data: bytes, start: int) -> tuple[MessagePart, int]:
        before = len(self._heads.held)
        self.head, end = self._heads.scan(data, start)
        # A peer that waits for an answer to such a line must not wait for the end of a head.
        if not self.head and _BARE_LF.search(self._heads.held, before):
            raise Http1Error("a bare LF in a head")
        return (MessagePart.HEAD_END if self.head else MessagePart.HEAD), end

    def _next_chunked(self, data: bytes, start: int) -> tuple[MessagePart, int]:
        self.pieces, chunks = [], self._chunks
        if chunks.phase is TRAILERS:
            return self._next_trailer(data, start)
        at = chunks.scan(data, start, self.pieces, CHUNKS_AT_ONCE)
        if chunks.doubts:
            for what, reason, _ in chunks.doubts:
                if what != _SIZE_SPACE:
                    raise Http1Error(_BARE_LF_LINE if what else reason)
            chunks.doubts.clear()
        if chunks.phase is TRAILERS and not self._trailers_apart:
            return self._next_trailer(data, at)
        return MessagePart.BODY, at

    def _next_trailer(self, data: bytes, at: int) -> tuple[MessagePart, int]:
        end = data.find(b"\n", at) + 1 or len(data)
        self.trailer, line = b"", self._line + data[at:end]
        self._line = line
        if len(line) > MAX_LINE_BYTES:
            raise Http1Error("a trailer that is too long")
        if line.endswith(b"\n"):
            if self._trailers_apart and line != b"\r\n" and _FIELD_LINE.fullmatch(line) is None:
                raise Http1Error("a malformed trailer")
            if not line.endswith(b"\r\n"):
                raise Http1Error(_BARE_LF_LINE)
            self.trailer, self._line = line, b""
            if line == b"\r\n":
                self._framing = None
        if self._trailers_apart:
            return MessagePart.TRAILER, end
        return (MessagePart.BODY if self._framing else MessagePart.BODY_END), end


def decode_chunked(body: bytes) -> bytes:
    """Return the data of a whole chunked body that an Http1Scanner has scanned, without
    trailers."""
    return split_chunked(body)[0]


def split_chunked(body: bytes) -> tuple[bytes, bytes]:
    """Return the data of such a body, and its bytes after the line of the last chunk: trailers and
    the empty line."""
    chunks, at = ChunkScanner(len(body)), 0
    pieces: list[tuple[int, int]] = []
    while at < len(body) and chunks.phase is not TRAILERS:
        at = chunks.scan(body, at, pieces, len(body))
        chunks.doubts.clear()
    return b"".join([body[start:end] for start, end in pieces]), body[at:]
