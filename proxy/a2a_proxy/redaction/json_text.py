"""Walk JSON text by its octets and replace strings in place; everything else stays octet for octet.

The walk never fails: text that ends early, or is no JSON at all, is walked as far as its strings go.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from a2a_proxy.redaction.json_place import DEEPEST, Level, path, step
from a2a_proxy.redaction.paths import place
from a2a_proxy.redaction.told import Told

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\],]', re.S)

Replace = Callable[[bytes, str | None, bool], bytes | None]
"""A string's decoded octets, the name of the member it is the value of, and whether the text ends inside it; gives what
to put there instead, or None."""


def valid(data: bytes) -> bool:
    """Whether this is JSON, whole and well-formed."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
        data.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def unescape(inner: bytes) -> bytes:
    """The octets a JSON string stands for, given what is between its quotes. Broken escapes stay as they are."""
    if b"\\" not in inner:
        return inner
    try:
        return msgspec.json.decode(b'"' + inner + b'"', type=str).encode("utf-8", "surrogatepass")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return inner


def escape(text: bytes) -> bytes:
    """What goes between the quotes for these octets."""
    return msgspec.json.encode(text.decode("utf-8", "replace"))[1:-1]


def walk(data: bytes, replace: Replace, spared: re.Pattern[str] | None = None) -> tuple[bytes, list[str]]:
    """The text with strings replaced, and the paths of those replaced: `$.params.message.parts[0].text`.

    What stands at a `spared` place (`paths`) stays.
    """
    pieces: list[bytes] = []
    told = Told()
    stack: list[Level] = []
    done = 0
    for token in _TOKEN.finditer(data):
        mark = data[token.start()]
        if mark != 0x22:
            step(mark, stack)
            continue
        start, end, cut = _inner(token, data)
        level = stack[-1] if stack else None
        is_key = level is not None and level.wants_key
        raw = data[start:end]
        text = unescape(raw)
        name = None if level is None or is_key or not level.is_object else level.key
        new = replace(text, name, cut)
        if level is not None and is_key:
            level.key = (text if new is None else new).decode("utf-8", "replace")
            level.wants_key = False
        if new is not None and (spared is None or len(stack) > DEEPEST or not spared.match(place(path(stack)))):
            pieces += (data[done:start], escape(new))
            done = end
            told.add(path(stack))
    if not pieces:
        return data, told.paths()
    pieces.append(data[done:])
    return b"".join(pieces), told.paths()


def _inner(token: re.Match[bytes], data: bytes) -> tuple[int, int, bool]:
    start, end = token.span()
    if end - start >= 2 and data[end - 1] == 0x22:
        return start + 1, end - 1, False
    return start + 1, len(data), True
