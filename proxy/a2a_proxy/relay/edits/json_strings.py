"""Find strings in JSON text by their place, so that they can be replaced with every other byte
unchanged."""

import re
from collections.abc import Callable, Sequence

import msgspec

ITEM = "["
"""The part of a path that is any item of an array. A member with this name is on no path."""

_OTHER_MEMBER = ""
_JSON_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],]', re.DOTALL)
_QUOTE, _COMMA, _OBJECT, _ARRAY = b'",{['


def find_strings(payload: bytes, paths: Sequence[list[str]]) -> list[tuple[int, int]]:
    """Return the byte ranges of the string values at these paths, quotes included, in valid JSON.

    A path has the name of each member, and ITEM for each array, from the outermost object to the
    value.
    """
    ends = frozenset(path[-1] for path in paths)
    spans: list[tuple[int, int]] = []
    path: list[str] = []
    """For each open object the name of the current member, for each open array ITEM."""
    name_next = False
    for token in _JSON_TOKEN.finditer(payload):
        start, end = token.span()
        first = payload[start]
        if first == _QUOTE:
            if name_next:
                name = msgspec.json.decode(payload[start:end], type=str)
                path[-1] = name if name != ITEM else _OTHER_MEMBER
                name_next = False
            elif path and path[-1] in ends and path in paths:
                spans.append((start, end))
        elif first in (_OBJECT, _ARRAY):
            path.append(ITEM if first == _ARRAY else _OTHER_MEMBER)
            name_next = first == _OBJECT
        elif first == _COMMA:
            name_next = path[-1] != ITEM
        else:
            path.pop()
            name_next = False
    return spans


def replace_strings(
    payload: bytes, paths: Sequence[list[str]], replace: Callable[[str], str | None]
) -> bytes | None:
    """Return valid JSON with other strings at these paths, or None if nothing changes. `replace`
    returns the new string, or None for the string unchanged."""
    parts: list[bytes] = []
    last = 0
    for start, end in find_strings(payload, paths):
        before = msgspec.json.decode(payload[start:end], type=str)
        after = replace(before)
        if after is not None and after != before:
            parts += (payload[last:start], msgspec.json.encode(after))
            last = end
    return b"".join((*parts, payload[last:])) if parts else None
