"""Hide what stands at a path of a policy: strings and numbers in JSON, by their places. Keys and literals stay.

The walk never fails, and costs a hostile payload no more than its length: places deeper than any policy reaches are
not told apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from a2a_proxy.redaction.json_text import escape, unescape
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.redaction.paths import place

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\],]|-?\d[\d.eE+\-]*', re.S)
_DEEPEST = 100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

Label = Callable[[bytes], bytes]


class _Level:
    """An object or array that is open, and where it is."""

    __slots__ = ("index", "inside", "is_object", "key", "told", "wants_key")

    def __init__(self, is_object: bool, told: str, inside: bool) -> None:
        self.is_object = is_object
        self.wants_key = is_object
        self.key = ""
        self.index = 0
        self.told = told
        self.inside = inside
        """All of it is at a path."""

    def here(self) -> str:
        """Where its present value is: `$.a[0]`."""
        if not self.is_object:
            return f"{self.told}[{self.index}]"
        return f"{self.told}.{self.key}" if _NAME.match(self.key) else f'{self.told}["{self.key}"]'


def number_text(value: float) -> bytes:
    """A number as every encoding would write it, so that it gets one label."""
    return (str(int(value)) if value.is_integer() else repr(value)).encode()


def hide(data: bytes, paths: re.Pattern[str], label: Label) -> tuple[bytes, list[str]]:
    """The JSON text with what stands at these paths replaced, and where that was."""
    pieces: list[bytes] = []
    told: list[str] = []
    stack: list[_Level] = []
    done = 0
    for token in _TOKEN.finditer(data):
        mark = data[token.start()]
        if mark in b"{}[],":
            _structure(mark, stack, paths)
            continue
        if mark == 0x22 and stack and stack[-1].wants_key:
            stack[-1].key = unescape(token[0][1:-1]).decode("utf-8", "replace")[:128]
            stack[-1].wants_key = False
            continue
        where = _hit(stack, paths)
        new = _label(token[0], label) if where is not None else None
        if new is not None and where is not None:
            pieces += (data[done : token.start()], new)
            done = token.end()
            told.append(where)
    if not told:
        return data, told
    return b"".join((*pieces, data[done:])), told


def _hit(stack: list[_Level], paths: re.Pattern[str]) -> str | None:
    if not stack:
        return "$" if paths.match("") else None
    level = stack[-1]
    if level.inside:
        return level.here()
    if len(stack) > _DEEPEST:
        return None
    here = level.here()
    return here if paths.match(place(here)) else None


def _structure(mark: int, stack: list[_Level], paths: re.Pattern[str]) -> None:
    if mark in b"{[":
        if not stack:
            stack.append(_Level(mark == 0x7B, "$", False))
            return
        above = stack[-1]
        if len(stack) > _DEEPEST:
            stack.append(_Level(mark == 0x7B, above.told, above.inside))
            return
        here = above.here()
        stack.append(_Level(mark == 0x7B, here, above.inside or paths.match(place(here)) is not None))
    elif mark in b"}]":
        if stack:
            stack.pop()
    elif stack:
        stack[-1].index += 1
        stack[-1].wants_key = stack[-1].is_object


def _label(token: bytes, label: Label) -> bytes | None:
    """What to write instead of a string or a number; None where it has nothing to hide. Its end may be missing."""
    if token[:1] != b'"':
        try:
            return b'"' + label(number_text(float(token))) + b'"'
        except (ValueError, OverflowError):
            return b'"' + label(token) + b'"'
    whole = len(token) >= 2 and token.endswith(b'"')
    text = unescape(token[1:-1] if whole else token[1:])
    if not text or is_label(text):
        return None
    return b'"' + escape(label(text)) + (b'"' if whole else b"")
