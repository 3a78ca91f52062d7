"""Colours for one line of indented JSON. The text is never changed; a colour may be wrong for cut JSON."""

from __future__ import annotations

import re

_MEMBER_NAME = re.compile(r'( *)("(?:[^"\\]|\\.){0,200}")(: )?')
_LITERALS = ("true", "false", "null")


def paint_json(line: str) -> list[tuple[int, str]]:
    """Return where a name, string, number or word begins, with its style."""
    found = _MEMBER_NAME.match(line)
    if found is None or not found[3]:
        begin = len(line) - len(line.lstrip(" "))
        return [(0, ""), *_paint_value(line, begin)]
    return [(0, ""), (found.start(2), "text--name"), (found.end(2), ""), *_paint_value(line, found.end())]


def _paint_value(line: str, begin: int) -> list[tuple[int, str]]:
    first = line[begin : begin + 1]
    if first == '"':
        end = len(line) - line.endswith(",")
        return [(begin, "text--string"), (end, "")]
    if first.isdigit() or first == "-":
        return [(begin, "text--number"), (len(line) - line.endswith(","), "")]
    return [(begin, "text--word")] if line.startswith(_LITERALS, begin) else []
