"""The header block of a message on a pipe (manual/protocol.md "Stdio framing"): reading it, and telling one from other
output."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from a2a_proxy.model.wire import Headers

_FIELD_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,200}[ \t]{0,8}")
_KNOWN_FIELD = re.compile(rb"(?i)(?:content-|(?:x-)?a2a-|trace(?:parent|state)[ \t]*:)")
"""How the fields of a header block begin that belong to this transport."""
NEXT_MESSAGE = re.compile(
    rb"(?i)content-(?:length[ \t]{0,8}:[ \t]{0,8}\d{1,18}"
    rb"|type[ \t]{0,8}:[ \t]{0,8}[\w.+/\-]{3,100}(?:[ \t]{0,8};[^\r\n]{0,100})?)[ \t]{0,8}\r?\n"
)
"""A field with which the next message may begin; 300 bytes at most. It ends a line, so no valid JSON has it."""
_MAX_LENGTH_DIGITS = 18


class StdioHead(NamedTuple):
    """A complete header block."""

    size: int
    """Bytes of it, with the empty line."""
    headers: Headers
    length: int
    """What Content-Length says; -1 where there is none, or none to rely on."""


def is_header_field(line: bytes) -> bool:
    """The line is a header field."""
    name, colon, value = line.partition(b":")
    return bool(colon) and _FIELD_NAME.fullmatch(name) is not None and b"\r" not in value.rstrip(b"\r\n")


def may_begin_block(line: bytes) -> bool:
    """The line, with its end, may be the first of a header block. A log line such as `INFO: started` looks like a
    field too: one that this transport does not have counts only where its line ends with CRLF, and where no field that
    it has is in it."""
    if not is_header_field(line):
        return False
    return _KNOWN_FIELD.match(line) is not None or (line.endswith(b"\r\n") and NEXT_MESSAGE.search(line) is None)


@lru_cache(256)
def parse_block(block: bytes) -> StdioHead:
    """Read a block: fields, then an empty line."""
    parted = (line.partition(b":") for line in block.split(b"\n"))
    headers = tuple((name.rstrip(b" \t"), value.strip(b" \t\r")) for name, colon, value in parted if colon)
    values = {value for name, value in headers if name.lower() == b"content-length"}
    value = values.pop() if len(values) == 1 else b""
    length = int(value) if value.isdigit() and len(value) <= _MAX_LENGTH_DIGITS else -1
    return StdioHead(len(block), headers, length)


@lru_cache(256)
def framing_of_block(block: bytes, size: int) -> str:
    """The block as it is kept of a message with a content of `size` bytes (`wire.Framed.framing`)."""
    right, lines = b"%d" % size, []
    for line in block.split(b"\n"):
        name, colon, value = line.partition(b":")
        if value.strip(b" \t\r") == right and name.rstrip(b" \t").lower() == b"content-length":
            value = value.replace(right, b"\x01")
        lines.append(name + colon + value)
    return b"\n".join(lines).decode("latin-1") + "\0"
