"""Replace the JSON values at the paths of a policy: strings and numbers. Keys, `true`, `false` and
`null` stay.

The walk never fails, and its cost is proportional to the length of the payload, even of a hostile
one: places deeper than `DEEPEST` are not distinguished.
"""

import re
from collections.abc import Callable

from a2a_proxy.redaction.json_position import DEEPEST, JsonLevel, format_path, update_levels
from a2a_proxy.redaction.json_walk import TOKEN, escape_json, normalize_number, unescape_json
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.redaction.payload_paths import canonicalize_place
from a2a_proxy.redaction.replaced_places import ReplacedPlaces

Label = Callable[[bytes], bytes]


def hide_json_values(data: bytes, paths: re.Pattern[str], label: Label) -> tuple[bytes, list[str]]:
    """Return the JSON text with the values at these paths replaced, and the paths of the replaced
    values."""
    pieces: list[bytes] = []
    told = ReplacedPlaces()
    stack: list[JsonLevel] = []
    done = 0
    for token in TOKEN.finditer(data):
        mark = data[token.start()]
        if mark in b"{}[],":
            inside = mark in b"{[" and _matches_path(stack, paths)
            update_levels(mark, stack)
            if inside:
                stack[-1].inside = True
            continue
        if mark == 0x22 and stack and stack[-1].wants_key:
            stack[-1].key = unescape_json(token[0][1:-1]).decode("utf-8", "replace")
            stack[-1].wants_key = False
            continue
        new = _label_scalar(token[0], label) if _matches_path(stack, paths) else None
        if new is not None:
            pieces += (data[done : token.start()], new)
            done = token.end()
            told.add(format_path(stack))
    if not told:
        return data, []
    return b"".join((*pieces, data[done:])), told.list_paths()


def _matches_path(stack: list[JsonLevel], paths: re.Pattern[str]) -> bool:
    """Whether the next value is at one of the paths."""
    if not stack:
        return paths.match("") is not None
    if stack[-1].inside:
        return True
    return len(stack) <= DEEPEST and paths.match(canonicalize_place(format_path(stack))) is not None


def _label_scalar(token: bytes, label: Label) -> bytes | None:
    """Return the replacement of a string or number, or None if it stays: empty, or a label. Its end
    may be missing."""
    if token[:1] != b'"':
        return b'"' + label(normalize_number(token)) + b'"'
    whole = len(token) >= 2 and token.endswith(b'"')
    text = unescape_json(token[1:-1] if whole else token[1:])
    if not text or is_label(text):
        return None
    return b'"' + escape_json(label(text)) + (b'"' if whole else b"")
