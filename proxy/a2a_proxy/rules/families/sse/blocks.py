"""The lines of an SSE event as stored in `Frame.framing` (manual/protocol.md "Event stream
format").

The value of each data line is replaced by U+0000; a real U+0000 is stored as U+2400.
"""

import re
from collections.abc import Iterator

DATA_MARK = "\0"
NUL_MARK = "\N{SYMBOL FOR NULL}"
BYTE_ORDER_MARK = b"\xef\xbb\xbf".decode("latin-1")
"""The UTF-8 byte order mark as three characters, because framing is Latin-1 text."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_EMPTY_LINE = re.compile(r"(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r|\n)\Z")
_SEQUENCE = re.compile(rf"[\s\x1e,\[\]{BYTE_ORDER_MARK}]*{DATA_MARK}")


def is_json_sequence(framing: str) -> bool:
    """Whether the event is JSON without fields, as no event stream has it."""
    return _SEQUENCE.match(framing) is not None


def is_terminated(framing: str) -> bool:
    """Whether the empty line that ends the event was received, without which clients discard it.
    True if the framing is unknown."""
    return not framing or is_json_sequence(framing) or _EMPTY_LINE.search(framing) is not None


def block_fields(framing: str) -> Iterator[tuple[str, str]]:
    """Yield the name and value of each line that is neither a comment nor empty. The byte order
    mark at the start of the stream is not part of a name."""
    if is_json_sequence(framing):
        return
    for line in _LINE_END.split(
        framing.removeprefix(BYTE_ORDER_MARK) if _starts_with_bom(framing) else framing
    ):
        name, _, value = line.partition(":")
        if name:
            yield name, value.removeprefix(" ")


def field_values(framing: str, name: str) -> list[str]:
    """Return the values of one field."""
    return [value for found, value in block_fields(framing) if found == name]


def has_misplaced_bom(framing: str) -> bool:
    """Whether a byte order mark precedes a line that is not the first of the stream, so that it is
    part of the field's name."""
    if BYTE_ORDER_MARK not in framing:
        return False
    lines = _LINE_END.split(
        framing.removeprefix(BYTE_ORDER_MARK) if _starts_with_bom(framing) else framing
    )
    return any(line.startswith(BYTE_ORDER_MARK) for line in lines)


def _starts_with_bom(framing: str) -> bool:
    """Whether the block begins with the byte order mark of the stream, which clients skip."""
    first = _LINE_END.split(framing, maxsplit=1)[0]
    return first.startswith(BYTE_ORDER_MARK) and (
        DATA_MARK in first or not first.startswith(f"{BYTE_ORDER_MARK}data:")
    )
