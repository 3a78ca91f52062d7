"""Splits a body into JSON objects where a peer sends them in place of server-sent
events: one a line (NDJSON), each after U+001E (RFC 7464), one after another, or in an array."""

from __future__ import annotations

import re
from base64 import b64decode

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.wire.body import BodyCollector
from a2a_proxy.wire.json_extent import JsonExtent
from a2a_proxy.wire.sse import BOM, SseEvent

_BETWEEN = re.compile(rb"[\s\x1e,\[\]\xef\xbb\xbf]*")
"""Blanks, separators, the brackets of an array, and the bytes of a byte order mark."""
_MAX_BETWEEN = 1024
"""Bytes between two values that are kept as their framing; more are an event without data."""
_JSON = re.compile(rb'\s*(?:\x1e|\{\s*["}]|\[\s*[{\[\]])')
_JSON_BEGIN = re.compile(rb"\s*[\[{]?\s*\Z")
_FIELD = re.compile(rb"(?:data|event|id|retry)?:")
_FIELDS = (b"data:", b"event:", b"id:", b"retry:")
_PAGES = (b"<!doctype", b"<html", b"<?xml")
_MAX_LAYERS = 2
_decode_string = msgspec.json.Decoder(str).decode


def unwrap_text(data: bytes) -> tuple[bytes, str]:
    """Return what a body contains that is as a whole a JSON string, base64, or base64 in a JSON
    string, and its form in words; the form of another body is empty."""
    forms: list[str] = []
    while len(forms) < _MAX_LAYERS and "base64" not in forms:
        text = data.strip()
        try:
            if text[:1] == b'"':
                data, form = _decode_string(text).encode(), "a JSON string"
            else:
                data, form = b64decode(text, validate=True), "base64"
        except ValueError:  # also of msgspec
            break
        forms.insert(0, form)
    return data, " in ".join(forms)


def guess_container(data: bytes) -> str:
    """Return what the first 1,024 bytes of a body show: `json`, `records` (RFC 7464), `sse`,
    `page`, `other`, or nothing if more bytes are needed."""
    head = data[:_MAX_BETWEEN]
    text = head.removeprefix(BOM)
    if found := _JSON.match(text):
        return "records" if found[0].endswith(b"\x1e") else "json"
    lines, words = text.lstrip(b"\r\n"), text.lstrip().lower()
    if _FIELD.match(lines):
        return "sse"
    if words.startswith(_PAGES):
        return "page"
    begins = (
        BOM.startswith(head)
        or _JSON_BEGIN.match(text)
        or any(each.startswith(lines) for each in _FIELDS)
        or any(each.startswith(words) for each in _PAGES)
    )
    return "" if begins and len(head) < _MAX_BETWEEN else "other"


class JsonSequence(State, tag="json"):
    """Splits one body. Its values are events as those of `SseSplitter`, with the bytes between
    them as their framing. What is no JSON is one event up to the end of the body."""

    count: int = 0
    """Complete values so far."""
    _between: bytes = b""
    """Bytes before the next value."""
    _extent: JsonExtent | None = None
    """The open value."""
    _body: BodyCollector = msgspec.field(default_factory=BodyCollector)
    _start: int = 0
    """Place of the first byte of this value, or of the bytes before it."""
    _end: int = 0

    @property
    def is_broken(self) -> bool:
        """Whether the open value is no JSON."""
        return self._extent is not None and self._extent.broken

    def feed(self, data: bytes, at: int, start: int, end: int, out: list[SseEvent]) -> None:
        """Read bytes of the body that arrived at `at` (ns) in the byte range `start` to `end` of
        their direction."""
        size = len(data)
        # If the piece is not longer than its byte range, its bytes are at the end of the range.
        exact = end - start >= size
        base, self._end = end - size, end
        pos = 0
        while pos < size:
            if self._extent is None:
                if not self._between:
                    self._start = base + pos if exact and pos else start
                found = _BETWEEN.match(data, pos, pos + _MAX_BETWEEN - len(self._between))
                assert found is not None
                pos, self._between = found.end(), self._between + found[0]
                if len(self._between) == _MAX_BETWEEN:
                    self._emit_between(at, base + pos if exact else end, out)
                    continue
                if pos == size:
                    return
                self._extent = JsonExtent()
            extent, first = self._extent, pos
            pos = extent.feed(data, pos, size)
            if extent.broken:
                pos = size
            self._body.add(data[first:pos], at, start, base + pos if exact else end)
            if extent.done:
                self._emit_value(at, True, out)

    def finish(self, at: int, out: list[SseEvent]) -> None:
        """Report the rest: the body ended at `at` (ns)."""
        if self._extent is not None:
            self._emit_value(at, False, out)
        elif self._between:
            self._emit_between(at, self._end, out)

    def _emit_between(self, at: int, end: int, out: list[SseEvent]) -> None:
        between, self._between = self._between.decode("latin-1"), b""
        out.append(SseEvent(at, at, self._start, end, b"", between, lines=0, dispatched=False))

    def _emit_value(self, at: int, complete: bool, out: list[SseEvent]) -> None:
        self.count += complete
        body, self._body, self._extent = self._body, BodyCollector(), None
        between, self._between = self._between.decode("latin-1"), b""
        data = body.data
        lines = data.count(b"\n") + 1  # `rebuild_event` puts each line in a place of its own
        framing = "" if body.truncated else between + "\n".join(["\0"] * lines)
        out.append(
            SseEvent(
                *(body.began, at, self._start, body.end, data, framing, lines),
                complete=complete,
                size=body.size,
                truncated=body.truncated,
                sha256=body.sha256,
            )
        )
