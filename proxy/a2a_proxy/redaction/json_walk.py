"""Walk the bytes of JSON text and replace strings, and numbers with a secret's name, in place. All
other bytes stay.

The walk never fails: in text that ends early or is not JSON, everything that looks like a string is
walked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from a2a_proxy.redaction.json_position import DEEPEST, JsonLevel, format_path, update_levels
from a2a_proxy.redaction.payload_paths import canonicalize_place
from a2a_proxy.redaction.replaced_places import ReplacedPlaces
from a2a_proxy.redaction.scope import (
    ROOT,
    Scope,
    has_siblings,
    inner_scope,
    item_name,
    judged_name,
    sibling_names,
)
from a2a_proxy.redaction.secret_names import NUMBER, fold_name, member_kind

TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\],]|-?\d[\d.eE+\-]*', re.S)
"""A string, possibly without its end, or a punctuation mark, or a number."""
_LAST: Final = re.compile(rb"\s*(?:\]|\Z)")

Replace = Callable[[bytes, str | None, bool], bytes | None]
"""Called with a string's decoded bytes or a number, the name by which it is judged, and whether the
text ends inside it. Returns the replacement, or None if the value stays."""


def is_valid_json(data: bytes) -> bool:
    """Whether the data is complete and well-formed JSON."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
        data.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def unescape_json(inner: bytes) -> bytes:
    """Decode the text between the quotes of a JSON string. Text with invalid escapes is returned
    unchanged."""
    if b"\\" not in inner:
        return inner
    try:
        return msgspec.json.decode(b'"' + inner + b'"', type=str).encode("utf-8", "surrogatepass")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return inner


def escape_json(text: bytes) -> bytes:
    """Encode bytes as the text between the quotes of a JSON string."""
    return msgspec.json.encode(text.decode("utf-8", "replace"))[1:-1]


def number_text(value: float) -> bytes:
    """Return a number in the form used for all encodings, so that it gets one label."""
    return (str(int(value)) if value.is_integer() else repr(value)).encode()


def normalize_number(token: bytes) -> bytes:
    """Return a JSON number in the form of `number_text`; whole numbers keep all their digits."""
    if token.isdigit():
        return token
    try:
        return number_text(float(token))
    except (ValueError, OverflowError):
        return token


def redact_json(
    data: bytes, replace: Replace, spared: re.Pattern[str] | None = None, scope: Scope = ROOT
) -> tuple[bytes, list[str]]:
    """Return the text with secrets replaced, and their paths, such as
    `$.params.message.parts[0].text`.

    Values at `spared` places (`payload_paths`) stay. `scope` is the scope of the whole text.
    """
    pieces: list[bytes] = []
    told = ReplacedPlaces()
    stack: list[JsonLevel] = []
    done = 0
    siblings = _find_sibling_names(data) if has_siblings(data) else {}
    for token in TOKEN.finditer(data):
        at = token.start()
        mark = data[at]
        level = stack[-1] if stack else None
        if mark in b"}],":
            update_levels(mark, stack)
            continue
        own = level.key if level is not None and level.is_object else None
        own = siblings.get(at, own)
        if mark in b"{[":
            opened = inner_scope(level.scope if level is not None else scope, own, mark == 0x7B)
            update_levels(mark, stack)
            stack[-1].scope = (
                opened._replace(secret=None) if at in siblings and own is None else opened
            )
            continue
        is_key = level is not None and level.wants_key
        if mark != 0x22:
            name = None if is_key or level is None else judged_name(level.scope, own)
            if name is None or not member_kind(name) & NUMBER:
                continue
            start, end = token.span()
            new = replace(normalize_number(token[0]), name, False)
        else:
            start, end, cut = _find_inner_span(token, data)
            text = unescape_json(data[start:end])
            if level is None or is_key:
                name = None
            else:
                if not level.is_object:
                    own = _item_name(
                        stack,
                        text,
                        pair=level.index == 1 and _LAST.match(data, token.end()) is not None,
                    )
                    level.before = text.decode("utf-8", "replace")
                name = judged_name(level.scope, own)
            new = replace(text, name, cut)
            if level is not None and is_key:
                level.key = (text if new is None else new).decode("utf-8", "replace")
                level.wants_key = False
        if new is not None and (
            spared is None
            or len(stack) > DEEPEST
            or not spared.match(canonicalize_place(format_path(stack)))
        ):
            pieces += (
                data[done:start],
                escape_json(new) if mark == 0x22 else b'"' + escape_json(new) + b'"',
            )
            done = end
            told.add(format_path(stack))
    if not pieces:
        return data, told.list_paths()
    pieces.append(data[done:])
    return b"".join(pieces), told.list_paths()


def _item_name(stack: list[JsonLevel], text: bytes, *, pair: bool) -> str | None:
    array = stack[-2].key if len(stack) > 1 and stack[-2].is_object else None
    return item_name(stack[-1].before, text, array if len(stack) > 1 else "", pair=pair)


def _find_sibling_names(data: bytes) -> dict[int, str | None]:
    """Return the start of each value judged by another name than its own, with that name
    (`scope.sibling_names`)."""
    found: dict[int, str | None] = {}
    stack: list[_Members] = []
    for token in TOKEN.finditer(data):
        at = token.start()
        mark = data[at]
        members = stack[-1] if stack else None
        if mark in b"}]":
            if stack:
                found.update(stack.pop().find_renamed_values())
        elif mark == 0x2C:
            if members is not None:
                members.key = None
        elif members is not None and members.is_object and members.key is None:
            if mark == 0x22:
                start, end, _ = _find_inner_span(token, data)
                members.key = fold_name(unescape_json(data[start:end]).decode("utf-8", "replace"))
        else:
            if members is not None and members.key is not None:
                text = None
                if mark == 0x22:
                    start, end, _ = _find_inner_span(token, data)
                    text = unescape_json(data[start:end]).decode("utf-8", "replace")
                members.texts[members.key] = text
                members.at[members.key] = at
            if mark in b"{[":
                stack.append(_Members(mark == 0x7B, at))
    while stack:
        found.update(stack.pop().find_renamed_values())
    return found


class _Members:
    """The members of an open object or array."""

    def __init__(self, is_object: bool, start: int) -> None:
        self.is_object = is_object
        self.start = start
        self.key: str | None = None
        """The folded name of the next value, or None before a name and in an array."""
        self.texts: dict[str, str | None] = {}
        self.at: dict[str, int] = {}
        """Byte offsets of the values."""

    def find_renamed_values(self) -> Iterator[tuple[int, str | None]]:
        """Yield the start of each value judged by another name, with that name; also of a model's
        token object."""
        names = sibling_names(self.texts)
        yield from ((self.at[member], name) for member, name in names.items() if member in self.at)
        if "token" in names:
            yield self.start, None


def _find_inner_span(token: re.Match[bytes], data: bytes) -> tuple[int, int, bool]:
    start, end = token.span()
    if end - start >= 2 and data[end - 1] == 0x22:
        return start + 1, end - 1, False
    return start + 1, len(data), True
