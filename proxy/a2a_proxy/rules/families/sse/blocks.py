"""An event's lines as `Frame.framing` keeps them (manual/protocol.md "Event stream format").

The value of each data line is U+0000, a real U+0000 is U+2400.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

DATA_MARK = "\0"
NUL_MARK = "\N{SYMBOL FOR NULL}"
BYTE_ORDER_MARK = b"\xef\xbb\xbf".decode("latin-1")
"""Framing is Latin-1 text: these are three characters of it."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_EMPTY_LINE = re.compile(r"(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r|\n)\Z")


def is_terminated(framing: str) -> bool:
    """The empty line came that makes clients take the event. True where the framing is not known."""
    return not framing or _EMPTY_LINE.search(framing) is not None


def block_fields(framing: str) -> Iterator[tuple[str, str]]:
    """Name and value of each line that is neither a comment nor empty; the BOM of the stream is no part of a name."""
    for line in _LINE_END.split(framing.removeprefix(BYTE_ORDER_MARK) if _starts_with_bom(framing) else framing):
        name, _, value = line.partition(":")
        if name:
            yield name, value.removeprefix(" ")


def field_values(framing: str, name: str) -> list[str]:
    """The values of one field."""
    return [value for found, value in block_fields(framing) if found == name]


def has_misplaced_bom(framing: str) -> bool:
    """A byte order mark stands before a line that is not the stream's first: it has become part of the field's name."""
    if BYTE_ORDER_MARK not in framing:
        return False
    lines = _LINE_END.split(framing.removeprefix(BYTE_ORDER_MARK) if _starts_with_bom(framing) else framing)
    return any(line.startswith(BYTE_ORDER_MARK) for line in lines)


def _starts_with_bom(framing: str) -> bool:
    """The block begins with the BOM of the stream: what follows was read as a line of its own."""
    first = _LINE_END.split(framing, maxsplit=1)[0]
    return first.startswith(BYTE_ORDER_MARK) and (DATA_MARK in first or not first.startswith(f"{BYTE_ORDER_MARK}data:"))
