"""Header blocks of messages on a pipe (manual/protocol.md "Stdio framing"): parsing, and
distinguishing them from other output."""

import re
from functools import lru_cache
from typing import NamedTuple

from a2a_proxy.model.wire import Headers

_FIELD_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,200}[ \t]{0,8}")
_KNOWN_FIELD = re.compile(rb"(?i)(?:content-|(?:x-)?a2a-|trace(?:parent|state)[ \t]*:)")
"""Start of the header fields that belong to this transport."""
NEXT_MESSAGE = re.compile(
    rb"(?i)content-(?:length[ \t]{0,8}:[ \t]{0,8}\d{1,18}"
    rb"|type[ \t]{0,8}:[ \t]{0,8}[\w.+/\-]{3,100}(?:[ \t]{0,8};[^\r\n]{0,100})?)[ \t]{0,8}\r?\n"
)
"""A field that may begin the next message; at most 300 bytes. It ends a line, so no valid JSON
contains it."""
_MAX_LENGTH_DIGITS = 18


class StdioHead(NamedTuple):
    """A complete header block."""

    size: int
    """Size of the block in bytes, including the empty line."""
    headers: Headers
    length: int
    """Value of Content-Length; -1 if it is absent or unreliable."""


def is_header_field(line: bytes) -> bool:
    """Whether the line is a header field."""
    name, colon, value = line.partition(b":")
    return (
        bool(colon)
        and _FIELD_NAME.fullmatch(name) is not None
        and b"\r" not in value.rstrip(b"\r\n")
    )


def may_begin_block(line: bytes) -> bool:
    """Whether the line, including its line end, may be the first line of a header block.

    A log line such as `INFO: started` has the form of a field too. A field that this transport does
    not define counts only if its line ends with CRLF and contains no field that the transport
    defines.
    """
    if not is_header_field(line):
        return False
    return _KNOWN_FIELD.match(line) is not None or (
        line.endswith(b"\r\n") and NEXT_MESSAGE.search(line) is None
    )


@lru_cache(256)
def parse_block(block: bytes) -> StdioHead:
    """Parse a header block: fields followed by an empty line."""
    parted = (line.partition(b":") for line in block.split(b"\n"))
    headers = tuple(
        (name.rstrip(b" \t"), value.strip(b" \t\r")) for name, colon, value in parted if colon
    )
    values = {value for name, value in headers if name.lower() == b"content-length"}
    value = values.pop() if len(values) == 1 else b""
    length = int(value) if value.isdigit() and len(value) <= _MAX_LENGTH_DIGITS else -1
    return StdioHead(len(block), headers, length)


@lru_cache(256)
def framing_of_block(block: bytes, size: int) -> str:
    """Return the block as recorded for a message with a content of `size` bytes
    (`wire.Framed.framing`)."""
    right, lines = b"%d" % size, []
    for line in block.split(b"\n"):
        name, colon, value = line.partition(b":")
        if value.strip(b" \t\r") == right and name.rstrip(b" \t").lower() == b"content-length":
            value = value.replace(right, b"\x01")
        lines.append(name + colon + value)
    return b"\n".join(lines).decode("latin-1") + "\0"
