"""Splits a body of bytes into server-sent events by the WHATWG rules, independent of HTTP.

The rules, by number, are in manual/protocol.md "Event stream format".

A recorder reports more than a browser dispatches: comments, blocks without data and an unfinished
last event are events here too, so that `rebuild_event` over all of them reproduces the stream byte
for byte.
"""

from __future__ import annotations

import hashlib
import re
from enum import IntEnum
from typing import Any

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.wire.body import MAX_BODY_SIZE, TRUNCATED_SIZE

BOM = b"\xef\xbb\xbf"
"""Dropped at the beginning of the stream."""

MAX_SINGLE_IDLE = 16
"""Consecutive idle blocks of one time that are events each; more of them are joined."""
MAX_IDLE_RUN = 1 << 16
"""Bytes after which joined idle blocks are an event."""

_LINE_ENDS = (b"\r\n", b"\n", b"\r")
_IDLE_BEGIN = (b":", b"\n", b"\r")
_FIELD = re.compile(rb"(?<![^\r\n])[^:\r\n]")
"""The first byte of a line that is neither a comment nor empty."""
_COMMENT = re.compile(rb"(?<![^\r\n]): ?([^\r\n]*)")
_CRLF_FRAMING = "data: \0\r\n\r\n"
_LF_FRAMING = "data: \0\n\n"
_NUL_SYMBOL = "\N{SYMBOL FOR NULL}"
_MAX_FIELD_NAME = 16
_MAX_RETRY_DIGITS = 15


class SseEvent(msgspec.Struct, gc=False):
    """One block of lines up to and including its empty line."""

    began: int
    """Time its first byte arrived, ns."""
    at: int
    """Time it was complete, ns: the earliest time a client could act on it."""
    start: int
    end: int
    """Byte range in its direction of the connection (framing of the carrier included)."""
    data: bytes
    """Values of its data lines, joined by LF; only their first bytes if `truncated`."""
    framing: str = _LF_FRAMING
    """The block as Latin-1 text, with each data line's value as U+0000 and a real U+0000 as U+2400.

    Empty if `truncated`.
    """
    lines: int = 1
    """Number of data lines."""
    dispatched: bool = True
    """Whether it has data: a client sees the event if it is also `complete`."""
    complete: bool = True
    """Whether the empty line arrived; clients drop an event without it (rule 8)."""
    event: str = ""
    """Value of the `event` field, empty if there is none."""
    id: str | None = None
    """Value of this block's own `id` field; None if there is none or its value contains U+0000
    (rule 7)."""
    retry: int | None = None
    """Milliseconds; None if there is no `retry` field or its value is not all digits."""
    comment: str = ""
    """Comment lines, joined by LF."""
    size: int = 0
    """Full size of the data, bytes."""
    truncated: bool = False
    sha256: bytes = b""
    """SHA-256 of the whole data if `truncated`; empty if unknown (restored in the middle of the
    event)."""


def rebuild_event(framing: str, data: bytes) -> bytes:
    """Return the exact bytes of an event that is not truncated."""
    pieces = framing.split("\0")
    values = iter(data.split(b"\n"))
    raw = [_encode_framing(pieces[0])]
    for piece in pieces[1:]:
        raw.append(next(values, b""))
        raw.append(_encode_framing(piece))
    return b"".join(raw)


def _encode_framing(text: str) -> bytes:
    return text.replace(_NUL_SYMBOL, "\0").encode("latin-1")


def _decode_framing(raw: bytes | bytearray) -> str:
    return raw.decode("latin-1").replace("\0", _NUL_SYMBOL)


class SseSplitter(State, tag="sse"):
    """Splits one stream. Of an event over `limit` bytes the first `keep` bytes of data are kept.

    A lone CR may be half of a CRLF, so an event that ends in CR is reported with the next byte, or
    by `finish`.

    A block that has only comments, or nothing, is idle. Agents send them one at a time, as
    heartbeats, and their times say that the agent lives; of many that arrive at one time the
    further ones are joined into one event, which is reported with the next byte that is not idle
    or has another time, or by `finish`.
    """

    limit: int = MAX_BODY_SIZE
    keep: int = TRUNCATED_SIZE
    _parts: list[bytes] = []
    """Bytes of the incomplete event."""
    _held: int = 0
    _at_start: bool = True
    """Whether nothing was read yet except a possible beginning of a BOM."""
    _possible_bom: bytes = b""
    _after_bom: bool = False
    """Whether the incomplete event begins with the BOM of the stream."""
    _in_line: bool = False
    """Whether the current line has bytes."""
    _after_cr: bool = False
    """Whether the last byte was a CR; an LF that follows belongs to it."""
    _completed_at: int = 0
    """Time the event that waits for that LF was complete, ns; 0 if no event waits."""
    _began: int = 0
    _start: int = 0
    _end: int = 0
    _long_event: _LongEvent | None = None
    _idle: int = 0
    """Consecutive idle blocks so far that were complete at `_idle_at`."""
    _idle_at: int = 0
    _joined: _IdleRun | None = None

    def feed(self, data: bytes, at: int, start: int, end: int, out: list[SseEvent]) -> None:
        """Read bytes of the body that arrived at `at` (ns) in the byte range `start` to `end` of
        their direction."""
        size = len(data)
        if self._at_start:
            data, start = self._skip_bom(data, at, start, end)
            size = len(data)
        # If the piece is not longer than its byte range, its bytes are at the end of the range,
        # after the framing.
        exact = end - start >= size
        base = end - size
        pos = 0
        if self._idle and not self._held and data.startswith(b"data: "):
            self._end_idle(out)
        if not self._held:
            while data.startswith(b"data: ", pos):
                newline = data.find(b"\n", pos)
                cr = data.find(b"\r", pos, newline) if newline >= 0 else -1
                if cr >= 0 and cr == newline - 1 and data.startswith(b"\r\n", newline + 1):
                    after, framing = newline + 3, _CRLF_FRAMING
                elif newline >= 0 and cr < 0 and data.startswith(b"\n", newline + 1):
                    cr, after, framing = newline, newline + 2, _LF_FRAMING
                else:
                    break
                if after - pos > self.limit:
                    break
                value = data[pos + 6 : cr]
                first = base + pos if exact and pos else start
                out.append(
                    SseEvent(
                        at,
                        at,
                        first,
                        base + after if exact else end,
                        value,
                        framing,
                        size=len(value),
                    )
                )
                pos = after
        if pos < size:
            self._read_lines(
                data[pos:], at, base + pos if exact and pos else start, end, exact, out
            )

    def finish(self, at: int, out: list[SseEvent]) -> None:
        """Report the remaining event: the stream ended at `at` (ns)."""
        if self._possible_bom:
            self._parts, self._held, self._possible_bom = (
                [self._possible_bom],
                len(self._possible_bom),
                b"",
            )
        if self._held:
            complete = self._completed_at > 0
            self._emit_event(self._completed_at or at, complete, out)
        self._end_idle(out)

    def _skip_bom(self, data: bytes, at: int, start: int, end: int) -> tuple[bytes, int]:
        """Hold the first bytes until they are known to be a BOM or not. Return the readable bytes
        and their offset."""
        if not self._possible_bom:
            self._began, self._start = at, start
        self._end = end
        lead = self._possible_bom + data
        if len(lead) < len(BOM) and BOM.startswith(lead):
            self._possible_bom = lead
            return b"", start
        self._at_start = False
        held, self._possible_bom = self._possible_bom, b""
        if lead.startswith(BOM):
            self._parts, self._held, self._after_bom = [BOM], len(BOM), True
            return lead[len(BOM) :], start
        if held:
            # These bytes only resembled a BOM; they begin the first line.
            self._parts, self._held, self._in_line = [held], len(held), True
        return data, start

    def _read_lines(
        self, data: bytes, at: int, start: int, end: int, exact: bool, out: list[SseEvent]
    ) -> None:
        """Read line by line; bytes.splitlines splits at CR, LF and CRLF only (rule 2)."""
        offset = end - len(data)
        if self._after_cr:
            self._after_cr = False
            lf = data.startswith(b"\n")
            if lf:
                self._keep_line(b"\n")
                self._end = offset + 1 if exact else end
                data, offset, start = data[1:], offset + 1, offset + 1 if exact else start
            if self._completed_at:
                self._emit_event(self._completed_at, True, out)
        if self._idle and at != self._idle_at:
            self._end_idle(out)
        for line in data.splitlines(keepends=True):
            offset += len(line)
            self._end = offset if exact else end
            if not self._held:
                self._began, self._start = at, start
                joins = self._idle >= MAX_SINGLE_IDLE and line in _LINE_ENDS
                if joins and (line != b"\r" or offset < end):
                    self._join_idle(line, out)
                    start = offset if exact else start
                    continue
            empty = not self._in_line and line in _LINE_ENDS
            self._keep_line(line)
            start = offset if exact else start
            last = line[-1]
            self._in_line = last not in b"\r\n"
            if last == 13 and offset == end:
                self._after_cr = True
                if empty:
                    self._completed_at = at
            elif empty:
                self._emit_event(at, True, out)

    def _keep_line(self, line: bytes) -> None:
        self._held += len(line)
        if self._long_event is not None:
            self._long_event.add(line)
            return
        self._parts.append(line)
        if self._held > self.limit:
            self._long_event = _LongEvent(self.keep, _hash=hashlib.sha256())
            for part in b"".join(self._parts)[len(BOM) if self._after_bom else 0 :].splitlines(
                keepends=True
            ):
                self._long_event.add(part)
            self._parts = []

    def _emit_event(self, at: int, complete: bool, out: list[SseEvent]) -> None:
        parts, long_event, bom = self._parts, self._long_event, self._after_bom
        self._parts, self._held, self._long_event = [], 0, None
        self._after_bom, self._in_line, self._completed_at = False, False, 0
        raw = parts[0] if len(parts) == 1 else b"".join(parts)
        is_idle = complete and raw[:1] in _IDLE_BEGIN and _FIELD.search(raw) is None
        if self._idle and not (is_idle and at == self._idle_at):
            self._end_idle(out)
        if self._idle >= MAX_SINGLE_IDLE:
            self._join_idle(raw, out)
            return
        event = long_event.make_event() if long_event is not None else _parse_event(raw, bom)
        event.began, event.at, event.start, event.end = self._began, at, self._start, self._end
        event.complete = complete
        out.append(event)
        if is_idle:
            self._idle, self._idle_at = self._idle + 1, at

    def _join_idle(self, raw: bytes, out: list[SseEvent]) -> None:
        """Join an idle block to those before it."""
        run = self._joined
        if run is None:
            run = self._joined = _IdleRun(self._began, self._start)
        run.raw += raw
        run.end = self._end
        if len(run.raw) >= MAX_IDLE_RUN:
            self._emit_joined(out)

    def _emit_joined(self, out: list[SseEvent]) -> None:
        """Report the joined blocks."""
        if (run := self._joined) is not None:
            self._joined = None
            comment = b"\n".join(_COMMENT.findall(run.raw)).decode("utf-8", "replace")
            out.append(
                SseEvent(
                    *(run.began, self._idle_at, run.start, run.end, b""),
                    framing=_decode_framing(run.raw),
                    lines=0,
                    dispatched=False,
                    comment=comment,
                )
            )

    def _end_idle(self, out: list[SseEvent]) -> None:
        """Report the joined blocks: others follow, or none."""
        self._emit_joined(out)
        self._idle = 0


class _IdleRun(State):
    """Joined idle blocks."""

    began: int
    start: int
    end: int = 0
    raw: bytearray = bytearray()


def _parse_event(raw: bytes, bom: bool) -> SseEvent:
    """Parse one whole block; the caller sets times and byte range."""
    event = SseEvent(0, 0, 0, 0, b"")
    framing: list[str] = []
    values: list[bytes] = []
    comments: list[bytes] = []
    if bom:
        framing.append(_decode_framing(BOM))
        raw = raw[len(BOM) :]
    for line in raw.splitlines(keepends=True):
        content = line.rstrip(b"\r\n")
        name, colon, value = content.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            values.append(value)
            prefix = line[: len(content) - len(value)]
            framing.append(f"{_decode_framing(prefix)}\0{_decode_framing(line[len(content) :])}")
            continue
        framing.append(_decode_framing(line))
        if colon and not name:
            comments.append(value)
        elif name:
            _set_field(event, name, value)
    event.data = b"\n".join(values)
    event.size = len(event.data)
    event.lines = len(values)
    event.dispatched = bool(values)
    event.framing = "".join(framing)
    event.comment = b"\n".join(comments).decode("utf-8", "replace")
    return event


def _set_field(event: SseEvent, name: bytes, value: bytes) -> None:
    """Set a field other than data; unknown fields are ignored (rule 4), the last one wins."""
    if name == b"event":
        event.event = value.decode("utf-8", "replace")
    elif name == b"id" and b"\0" not in value:
        event.id = value.decode("utf-8", "replace")
    elif name == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
        event.retry = int(value)


class _LinePart(IntEnum):
    """The part of a long event's line that the next byte belongs to."""

    FIELD = 0
    SPACE = 1
    VALUE = 2
    SKIP = 3


class _LongEvent(State):
    """An event over the limit: hashes and counts its data, keeps its beginning."""

    _keep: int
    _beginning: bytearray = bytearray()
    _size: int = 0
    _lines: int = 0
    _field: bytes = b""
    _line_part: _LinePart = _LinePart.FIELD
    _hash: Any = None
    """It cannot be saved: None after a restart."""

    def add(self, piece: bytes) -> None:
        """Read a line or a part of one. The LF of a CRLF may arrive alone, as an empty line, which
        has no data."""
        content = piece.rstrip(b"\r\n")
        if self._line_part is _LinePart.FIELD:
            content = self._read_field_name(content)
        if self._line_part is _LinePart.SPACE and content:
            content = content.removeprefix(b" ")
            self._line_part = _LinePart.VALUE
        if self._line_part is _LinePart.VALUE:
            self._add_value(content)
        if piece[-1] in b"\r\n":
            if self._line_part is _LinePart.FIELD and self._field == b"data":
                self._begin_data_line()
            self._field, self._line_part = b"", _LinePart.FIELD

    def make_event(self) -> SseEvent:
        """Return the event; the caller sets times and byte range."""
        return SseEvent(
            *(0, 0, 0, 0, bytes(self._beginning)),
            framing="",
            lines=self._lines,
            dispatched=self._lines > 0,
            size=self._size,
            truncated=True,
            sha256=self._hash.digest() if self._hash is not None else b"",
        )

    def _read_field_name(self, content: bytes) -> bytes:
        """Continue the field name and return the bytes of the value."""
        name, colon, value = content.partition(b":")
        self._field = (self._field + name)[:_MAX_FIELD_NAME]
        if not colon:
            return b""
        if self._field == b"data":
            self._begin_data_line()
            self._line_part = _LinePart.SPACE
            return value
        self._line_part = _LinePart.SKIP
        return b""

    def _begin_data_line(self) -> None:
        """Begin a data line."""
        if self._lines:
            self._add_value(b"\n")
        self._lines += 1

    def _add_value(self, data: bytes) -> None:
        self._size += len(data)
        if self._hash is not None:
            self._hash.update(data)
        if len(self._beginning) < self._keep:
            self._beginning += data[: self._keep - len(self._beginning)]
