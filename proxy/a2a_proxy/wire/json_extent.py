"""Finds the end of a JSON object or array byte by byte, for messages whose length is wrong or
missing.

Follows strings and brackets only, so it rejects only bytes that are certainly not JSON; accepted
bytes may be invalid.
"""

import re

from a2a_proxy.model.saved_state import State

_STRING_RUN = re.compile(rb'[^"\\\x00-\x1f]*')
_RUN_OUTSIDE_STRINGS = re.compile(rb"[\s0-9truefalsnE+\-.,:]*")
"""Blanks, numbers, `true`, `false`, `null`.

JSON has no other letters outside strings, which rules out header fields.
"""
_OPENING, _CLOSING = b"{[", b"}]"


class JsonExtent(State):
    """Reads one value. Never raises."""

    done: bool = False
    """Whether the value is complete."""
    broken: bool = False
    """Whether the bytes do not begin an object or array."""
    _depth: int = 0
    _in_string: bool = False
    _escaped: bool = False

    def feed(self, data: bytes | bytearray, pos: int, end: int) -> int:
        """Read from `pos` to `end`.

        Return the position after the value if `done`, of the fault if `broken`, else `end`.
        """
        while pos < end and not self.done and not self.broken:
            pos = (
                self._scan_string(data, pos, end)
                if self._in_string
                else self._scan_outside(data, pos, end)
            )
        return pos

    def _scan_string(self, data: bytes | bytearray, pos: int, end: int) -> int:
        if self._escaped:
            self._escaped = False
            return pos + 1
        found = _STRING_RUN.match(data, pos, end)
        assert found is not None
        pos = found.end()
        if pos == end:
            return pos
        byte = data[pos]
        if byte < 0x20:  # a line end inside a string: the value was truncated
            self.broken = True
            return pos
        self._in_string = byte != 0x22
        self._escaped = byte == 0x5C
        return pos + 1

    def _scan_outside(self, data: bytes | bytearray, pos: int, end: int) -> int:
        found = _RUN_OUTSIDE_STRINGS.match(data, pos, end)
        assert found is not None
        if not self._depth and found.group().strip():
            self.broken = True
            return pos
        pos = found.end()
        if pos == end:
            return pos
        byte = data[pos]
        if byte in _OPENING:
            self._depth += 1
        elif byte in _CLOSING and self._depth:
            self._depth -= 1
            self.done = not self._depth
        elif byte == 0x22 and self._depth:
            self._in_string = True
        else:
            self.broken = True
            return pos
        return pos + 1


def scan_value(data: bytes | bytearray) -> tuple[JsonExtent, int]:
    """Scan a JSON value at the beginning of `data`. Return the scan and the position after the
    scanned bytes."""
    extent = JsonExtent()
    return extent, extent.feed(data, 0, len(data))
