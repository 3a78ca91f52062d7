"""One direction of a pipe: octets in, messages and stray lines out.

A message ends where its length says. Where it does not hold exactly one JSON value there, the length is wrong, and the
value's own end counts: within the length, or beyond it (somebody counted characters). A header line of the next message
within it ends it too, since no JSON has one. So the messages that follow are read in any case.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.wire import BROKE_OFF, CUT_SHORT, Framed, Headers, WireEvent
from a2a_proxy.wire import stdio_head
from a2a_proxy.wire.body import KEEP, LIMIT, BodyCollector
from a2a_proxy.wire.json_extent import JsonExtent, extent_of
from a2a_proxy.wire.lines import LineCollector
from a2a_proxy.wire.pipe_buffer import PipeBuffer
from a2a_proxy.wire.stdio_head import NEXT, StdioHead
from a2a_proxy.wire.stray import StrayLines

LINE_LIMIT = 8 << 10
"""The longest line of a header block, octets; longer ones are stray output (or newline-delimited JSON)."""
BLOCK_LIMIT = 16 << 10
"""The largest header block."""
_BEYOND = 64 << 10
"""How far past its length a message is looked for its end, beside three times its length (4 octets a character)."""
_REACH = 512
"""Octets: longer than anything that `NEXT` matches."""
_TAIL = 64
"""Blanks after a message on a line of its own that are kept with it."""
_BLANKS, _LINE_END = re.compile(rb"[ \t]*"), re.compile(rb"[ \t\r\n]*")

_is_json = msgspec.json.Decoder(msgspec.Raw).decode


class PipeReader:
    """Never raises. What is held is bounded: by `LIMIT` for a message, by `BLOCK_LIMIT` for a header block."""

    def __init__(self, direction: Direction, limit: int = LIMIT, keep: int = KEEP) -> None:
        self._direction = direction
        self._limit, self._keep = limit, keep
        self._octets = PipeBuffer()
        self._framed = False
        """The message before had a header block."""
        self._stray_block = 0
        """Offset up to which lines are stray, whatever they look like."""
        self._several = 0
        """Offset up to which a line is no single JSON value."""
        self._head: StdioHead | None = None
        """Of the message that is being read; its block begins the buffer."""
        self._scanned = 0
        """Offset up to which the content was searched for the next message."""
        self._extent: JsonExtent | None = None
        """Reads on beyond the length, or where there is none."""
        self._read = 0
        """Offset up to which it has read."""
        self._bulk: BodyCollector | None = None
        """A message too large to be kept; how much of it is to come: `_left`."""
        self._left = 0
        self._block = b""
        """Its header block, or that of the message given last."""
        self._line: LineCollector | None = None
        """A line too long to be looked at."""
        self._line_is_json = False
        self._strays = StrayLines(direction)

    @property
    def offset(self) -> int:
        """Octets so far."""
        return self._octets.offset

    def feed(self, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Octets that came at `at` (ns); what is complete is appended to `out`."""
        self._octets.add(data, at)
        while self._octets.data and self._step(at, False, out):
            pass

    def finish(self, at: int, out: list[WireEvent]) -> None:
        """Nothing more comes."""
        while (self._octets.data or self._bulk or self._line) and self._step(at, True, out):
            pass
        self._strays.message(at, out)

    # --- steps: each gives True where it took something away ------------------------------------------------------

    def _step(self, at: int, last: bool, out: list[WireEvent]) -> bool:
        if self._bulk is not None:
            return self._take_bulk(self._bulk, at, last, out)
        if self._line is not None:
            return self._take_line(self._line, at, last, out)
        if self._extent is not None:
            return self._beyond(self._extent, at, last, out)
        if self._head is not None:
            return self._content(self._head, at, last, out)
        return self._begin(at, last, out)

    def _begin(self, at: int, last: bool, out: list[WireEvent]) -> bool:
        """Between messages: what comes?"""
        buf, lf = self._octets.data, self._octets.line_end()
        stop = lf + 1 or len(buf)
        first = bytes(buf[: min(stop, LINE_LIMIT)]).lstrip(b" \t")[:1]
        json = first in (b"{", b"[") and first != b""
        if lf < 0 and not last and stop <= (self._limit if json else LINE_LIMIT):
            return False
        if self._octets.base < self._stray_block:
            self._stray(stop, at, out)
        elif stop > (self._limit if json else LINE_LIMIT):
            self._line = LineCollector(self._limit if json else self._keep)
            self._line_is_json = json
        elif json:
            self._json_line(stop, at, out)
        elif lf < 0 or not stdio_head.begins(bytes(buf[:stop])):
            self._stray(stop, at, out)
        else:
            return self._header(stop, at, last, out)
        return True

    def _header(self, first: int, at: int, last: bool, out: list[WireEvent]) -> bool:
        """A header block, its first line ends at `first`. Where it is none, that line is stray."""
        buf, pos = self._octets.data, first
        while True:
            lf = buf.find(b"\n", pos, pos + LINE_LIMIT)
            if lf < 0 and len(buf) - pos < LINE_LIMIT and len(buf) < BLOCK_LIMIT and not last:
                return False
            line = bytes(buf[pos : lf + 1])
            if line in (b"\r\n", b"\n"):
                break
            if lf < 0 or lf >= BLOCK_LIMIT or not stdio_head.is_field(line):
                self._stray(first, at, out)
                return True
            pos = lf + 1
        self._block = bytes(buf[: lf + 1])
        head = self._head = stdio_head.read(self._block)
        self._scanned = self._octets.base + head.size
        if head.length < 0:
            self._read_on(head.size)
        return True

    def _content(self, head: StdioHead, at: int, last: bool, out: list[WireEvent]) -> bool:
        """The content, up to its length."""
        buf, start = self._octets.data, head.size
        stop = start + head.length
        cut = self._next(start, min(stop, start + self._limit, len(buf)))
        if cut < 0 and head.length > self._limit and len(buf) - start > self._limit:
            self._bulk, self._left = BodyCollector(self._limit, self._keep), head.length
            self._bulk.add(b"", self._octets.began(), self._octets.base, self._octets.base)
            self._octets.drop(start)
            return True
        if cut < 0 and len(buf) < stop and not last:
            return False
        end = cut if cut >= 0 else min(stop, len(buf))
        content = bytes(buf[start:end])
        whole = cut < 0 and end == stop
        if whole and _valid(content):
            self._give(content, end, at, out)
            return True
        extent, size = extent_of(content)
        if extent.done and (content[size:].strip() or not whole):
            self._give(content[:size], start + size, at, out)
        elif extent.broken or extent.done:
            broken = "" if whole else CUT_SHORT if cut >= 0 else BROKE_OFF
            self._give(content, end, at, out, broken)
        elif whole and not last:
            self._extent, self._read = extent, self._octets.base + end
            return len(buf) > end
        elif whole:
            self._read_on(end, extent)
        else:
            self._give(content, end, at, out, CUT_SHORT if cut >= 0 else BROKE_OFF)
        return True

    def _beyond(self, extent: JsonExtent, at: int, last: bool, out: list[WireEvent]) -> bool:
        """Past the length, or without one: where does the value end?"""
        assert self._head is not None
        buf, head = self._octets.data, self._head
        start = head.size
        stop = start + max(head.length, 0)
        most = stop + min(3 * head.length + _BEYOND if head.length >= 0 else self._limit, self._limit)
        before = self._read - self._octets.base
        end = min(len(buf), most)
        pos = extent.feed(buf, before, end)
        self._read = self._octets.base + pos
        if extent.done:
            self._give(bytes(buf[start:pos]), pos, at, out)
        elif extent.broken or end == most or last:
            if head.length >= 0:
                self._give(
                    bytes(buf[start:stop]), stop, at, out, BROKE_OFF if last and not extent.broken else CUT_SHORT
                )
            else:  # no message at all: its block is stray too
                self._stray_block = self._octets.base + head.size
                self._reset()
        else:
            return False
        return True

    def _read_on(self, pos: int, extent: JsonExtent | None = None) -> None:
        self._extent, self._read = extent or JsonExtent(), self._octets.base + pos

    def _next(self, start: int, end: int) -> int:
        """Where the next message begins within the content, -1 where it does not."""
        seen = self._scanned - self._octets.base
        if self._octets.data.find(b"\n", seen, end) < 0:
            self._scanned = max(self._scanned, self._octets.base + end)
            return -1
        line = self._octets.data.rfind(b"\n", start, seen) + 1 or start
        found = NEXT.search(self._octets.data, max(line, seen - _REACH), end)
        self._scanned = self._octets.base + end
        return found.start() if found is not None else -1

    # --- lines --------------------------------------------------------------------------------------------------

    def _json_line(self, stop: int, at: int, out: list[WireEvent]) -> None:
        """A line that begins as JSON does: one message, or several, or none."""
        buf = self._octets.data
        start = _place(_BLANKS, buf, 0, stop)
        text = b"" if self._octets.base < self._several else bytes(buf[start:stop]).rstrip(b" \t\r\n")
        if not _valid(text):
            self._several = self._octets.base + stop
            extent = JsonExtent()
            text = bytes(buf[start : extent.feed(buf, start, stop)])
            if not extent.done or not _valid(text):
                self._stray(stop, at, out)
                return
        end = start + len(text)
        if _place(_LINE_END, buf, end, stop) < stop or stop - end > _TAIL:
            stop = end
        self._framed = False
        framing = f"{buf[:start].decode()}\0{buf[end:stop].decode()}"
        self._message(text, (), framing, "", stop, at, out)
        self._octets.drop(stop)

    def _stray(self, stop: int, at: int, out: list[WireEvent]) -> None:
        """A line outside every message; a header field may stand at its end, where its writer forgot the line's."""
        found = NEXT.search(self._octets.data, 1, stop) if self._octets.base >= self._stray_block else None
        if found is not None:
            stop = found.start()
        line = LineCollector(self._keep)
        line.take(self._octets.data[:stop], 0, self._octets.began(), self._octets.base)
        line.finish(at)
        self._strays.add(line, self._framed, at, out)
        self._octets.drop(stop)

    def _take_line(self, line: LineCollector, at: int, last: bool, out: list[WireEvent]) -> bool:
        """A line too long to be looked at."""
        if not line.end:
            line.body.add(b"", self._octets.began(), self._octets.base, self._octets.base)
        self._octets.drop(line.take(self._octets.data, 0, at, self._octets.base))
        if not (line.done or last):
            return False
        self._line = None
        line.finish(at)
        if not self._line_is_json:
            self._strays.add(line, self._framed, at, out)
            return True
        self._strays.message(at, out)
        body, facts = line.body, (line.body.size, True, line.body.sha256)
        place = (self._direction, body.began, at, body.start, line.end)
        out.append(Framed(*place, body.data[: self._keep], (), f"\0{line.ending}", "", *facts))
        return True

    # --- messages -----------------------------------------------------------------------------------------------

    def _take_bulk(self, body: BodyCollector, at: int, last: bool, out: list[WireEvent]) -> bool:
        """A message too large to be kept: its length is believed."""
        size = min(self._left, len(self._octets.data))
        body.add(bytes(self._octets.data[:size]), at, self._octets.base, self._octets.base + size)
        self._left -= size
        self._octets.drop(size)
        if self._left and not last:
            return False
        assert self._head is not None
        self._strays.message(at, out)
        truncated = body.truncated
        data, facts = body.data[: self._keep], (body.size, True, body.sha256 if truncated else b"")
        place = (self._direction, body.began, at, body.start, body.end)
        framing = stdio_head.framing(self._block, body.size)
        out.append(Framed(*place, data, self._head.headers, framing, BROKE_OFF if self._left else "", *facts))
        self._framed = True
        self._reset()
        return True

    def _give(self, content: bytes, end: int, at: int, out: list[WireEvent], broken: str = "") -> None:
        """A message with a header block, which ends at `end`."""
        assert self._head is not None
        self._framed = True
        # A length of which nobody knows whether it is right stays as it is.
        framing = stdio_head.framing(self._block, -1 if broken else len(content))
        self._message(content, self._head.headers, framing, broken, end, at, out)
        self._octets.drop(end)
        self._reset()

    def _message(
        self, data: bytes, headers: Headers, framing: str, broken: str, end: int, at: int, out: list[WireEvent]
    ) -> None:
        self._strays.message(at, out)
        place = (self._direction, self._octets.began(), at, self._octets.base, self._octets.base + end)
        out.append(Framed(*place, data, headers, framing, broken, len(data)))

    def _reset(self) -> None:
        self._head = self._extent = self._bulk = None

    # --- across a restart -----------------------------------------------------------------------------------------

    def save(self) -> dict[str, object]:
        """Plain values for `restore`."""
        return {
            "limits": [self._limit, self._keep],
            "octets": self._octets.save(),
            "framed": self._framed,
            "stray_block": self._stray_block,
            "block": self._block if self._head is not None else b"",
            "several": self._several,
            "scanned": self._scanned,
            "extent": self._extent and self._extent.save(),
            "read": self._read,
            "bulk": self._bulk and self._bulk.save(),
            "left": self._left,
            "line": self._line and self._line.save(),
            "line_is_json": self._line_is_json,
            "strays": self._strays.save(),
        }

    @classmethod
    def restore(cls, direction: Direction, state: dict[str, Any]) -> PipeReader:
        """The reader that gave `state`."""
        reader = cls(direction, *state["limits"])
        reader._octets = PipeBuffer.restore(state["octets"])
        reader._framed, reader._stray_block = state["framed"], state["stray_block"]
        reader._several = state["several"]
        reader._block = state["block"]
        reader._head = stdio_head.read(state["block"]) if state["block"] else None
        reader._scanned, reader._read = state["scanned"], state["read"]
        reader._extent = state["extent"] and JsonExtent.restore(state["extent"])
        reader._bulk = state["bulk"] and BodyCollector.restore(state["bulk"])
        reader._left = state["left"]
        reader._line = state["line"] and LineCollector.restore(state["line"])
        reader._line_is_json = state["line_is_json"]
        reader._strays = StrayLines.restore(direction, state["strays"])
        return reader


def _place(pattern: re.Pattern[bytes], data: bytearray, start: int, end: int) -> int:
    """Where what matches from `start` on ends."""
    found = pattern.match(data, start, end)
    return found.end() if found is not None else start


def _valid(content: bytes) -> bool:
    """It is exactly one JSON value."""
    try:
        _is_json(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
