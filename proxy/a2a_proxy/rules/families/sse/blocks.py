"""An event's lines as `Frame.framing` keeps them (manual/protocol.md "Event stream format").

The value of each data line is U+0000, a real U+0000 is U+2400.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

DATA = "\0"
NUL = "\N{SYMBOL FOR NULL}"
BOM = b"\xef\xbb\xbf".decode("latin-1")
"""Framing is Latin-1 text: these are three characters of it."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_EMPTY_LINE = re.compile(r"(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r|\n)\Z")


def terminated(framing: str) -> bool:
    """The empty line came that makes clients take the event. True where the framing is not known."""
    return not framing or _EMPTY_LINE.search(framing) is not None


def fields(framing: str) -> Iterator[tuple[str, str]]:
    """Name and value of each line that is neither a comment nor empty; the BOM of the stream is no part of a name."""
    for line in _LINE_END.split(framing.removeprefix(BOM) if _leads(framing) else framing):
        name, _, value = line.partition(":")
        if name:
            yield name, value.removeprefix(" ")


def values(framing: str, name: str) -> list[str]:
    """The values of one field."""
    return [value for found, value in fields(framing) if found == name]


def misplaced_bom(framing: str) -> bool:
    """A byte order mark stands before a line that is not the stream's first: it has become part of the field's name."""
    if BOM not in framing:
        return False
    lines = _LINE_END.split(framing.removeprefix(BOM) if _leads(framing) else framing)
    return any(line.startswith(BOM) for line in lines)


def _leads(framing: str) -> bool:
    """The block begins with the BOM of the stream: what follows was read as a line of its own."""
    first = _LINE_END.split(framing, maxsplit=1)[0]
    return first.startswith(BOM) and (DATA in first or not first.startswith(f"{BOM}data:"))
