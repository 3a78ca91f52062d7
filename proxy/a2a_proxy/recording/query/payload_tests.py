"""What a payload is asked: its text, a JSON path, its parts, metadata and extensions. Pure; any octets may come."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from a2a_proxy.recording.query.tree import Op

LIMIT_SECONDS = 0.25
"""The most that a pattern may take for one text."""

_DEPTH = 100
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:;=+*()-]*")
"""Characters that no JSON encoder escapes."""
_ESCAPED = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_STEP = re.compile(r"\.([A-Za-z0-9_*-]+)|\[(\d+|\*)\]|\[(\"(?:[^\"\\]|\\.)*\")\]")
DECIMAL = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?")
_OPAQUE = frozenset({"data", "metadata"})
"""Members whose content is the peer's own: no parts or metadata of A2A are in them."""


class TooSlow(Exception):
    """A pattern takes too long on a text; `str()` is the pattern."""


@lru_cache(64)
def _compiled(pattern: str) -> Any:
    import regex

    return regex.compile(pattern)


def matches(pattern: str, text: str) -> bool:
    """Raises TooSlow instead of taking longer than LIMIT_SECONDS."""
    try:
        return _compiled(pattern).search(text, timeout=LIMIT_SECONDS) is not None
    except TimeoutError:
        raise TooSlow(pattern) from None


def string(op: str, wanted: str, text: str) -> bool:
    """A text by operator, `:` in any case."""
    if op == Op.MATCHES:
        return matches(wanted, text)
    if op == Op.IS:
        return text == wanted
    return wanted.casefold() in text.casefold() if op == Op.HAS else bool(text)


def text_has(op: str, wanted: str, payload: bytes) -> bool:
    """The payload's text, as it is on the wire; `:` finds what JSON has escaped as well."""
    if op == Op.HAS and wanted.isascii():
        if wanted.lower().encode() in payload.lower():
            return True
        if _PLAIN.fullmatch(wanted) or b"\\" not in payload:
            return False
    text = payload.decode("utf-8", "replace")
    if string(op, wanted, text):
        return True
    return op == Op.HAS and "\\" in text and string(op, wanted, _unescaped(text))


def _unescaped(text: str) -> str:
    plain = _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else _LETTERS.get(m[2], m[2]), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@lru_cache(64)
def steps(path: str) -> tuple[str | int | None, ...]:
    """The steps of a canonical path: names, positions, None for any."""
    found: list[str | int | None] = []
    for name, position, quoted in _STEP.findall(path):
        if name == "*" or position == "*":
            found.append(None)
        elif position:
            found.append(int(position))
        else:
            found.append(json.loads(quoted) if quoted else name)
    return tuple(found)


def at_path(value: Any, path: tuple[str | int | None, ...]) -> Iterator[Any]:
    """What stands there. A member is found by its name, else by the same name in camelCase or snake_case."""
    if not path:
        yield value
        return
    first, rest = path[0], path[1:]
    if first is None:
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for each in inside:
            yield from at_path(each, rest)
    elif isinstance(first, int):
        if isinstance(value, list) and first < len(value):
            yield from at_path(value[first], rest)
    elif isinstance(value, dict):
        name = next((each for each in (first, _camel(first), _snake(first)) if each in value), None)
        if name is not None:
            yield from at_path(value[name], rest)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in tail)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), name)


def leaf(op: str, wanted: str, value: Any) -> bool:
    """One JSON value by operator: texts as texts, numbers as numbers; `true`, `false`, `null`."""
    if op == "*":
        return True
    if isinstance(value, dict | list):
        return False
    if op in _ORDERS:
        return _ordered(op, wanted, value)
    if isinstance(value, str):
        return string(op, wanted, value)
    if op == Op.MATCHES:
        return matches(wanted, _written(value))
    if isinstance(value, int | float) and not isinstance(value, bool) and DECIMAL.fullmatch(wanted):
        return value == _number(wanted)
    return wanted == _written(value)


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    Op.LESS: lambda a, b: a < b,
    Op.AT_MOST: lambda a, b: a <= b,
    Op.MORE: lambda a, b: a > b,
    Op.AT_LEAST: lambda a, b: a >= b,
}


def _ordered(op: str, wanted: str, value: Any) -> bool:
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        value = _number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not DECIMAL.fullmatch(wanted):
        return False
    return _ORDERS[op](value, _number(wanted))


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _written(value: Any) -> str:
    return json.dumps(value)


def parts(value: Any, depth: int = _DEPTH) -> Iterator[dict[str, Any]]:
    """The parts of all messages and artifacts, in any dialect."""
    if isinstance(value, dict) and depth:
        for name, member in value.items():
            if name in ("parts", "content") and isinstance(member, list):
                yield from (each for each in member if isinstance(each, dict))
            elif name not in _OPAQUE:
                yield from parts(member, depth - 1)
    elif isinstance(value, list) and depth:
        for each in value:
            yield from parts(each, depth - 1)


_RAW = ("raw", "bytes", "fileWithBytes", "file_with_bytes")
_URL = ("url", "uri", "fileWithUri", "file_with_uri")
_MIME = ("mediaType", "media_type", "mimeType", "mime_type")
_NAMES = {"part": ("parts", "content"), "text": ("text",), "data": ("data",), "raw": _RAW, "url": _URL}
_NAMES |= {"file": (*_RAW, *_URL), "mime": _MIME, "meta": ("metadata",), "ext": ("extensions",)}
_QUOTED = {what: tuple(f'"{name}"'.encode() for name in names) for what, names in _NAMES.items()}


def names_any(what: str, octets: bytes) -> bool:
    """JSON has a member without which there is no such part or facet; or it may hide one behind escapes."""
    return any(name in octets for name in _QUOTED[what]) or b"\\u" in octets


def part_kind(part: dict[str, Any]) -> str:
    """`text`, `data`, `raw` or `url`; empty where it is none of them."""
    file = part.get("file")
    inside = file if isinstance(file, dict) else part
    if "text" in part or "data" in part:
        return "text" if "text" in part else "data"
    if any(name in inside for name in _RAW):
        return "raw"
    return "url" if any(name in inside for name in _URL) else ""


def facet(what: str, value: Any) -> Iterator[str]:
    """All media types of parts, extension URIs, or members of metadata as `key: value`."""
    if what == "mime":
        for part in parts(value):
            file = part.get("file")
            for holder in (part, file if isinstance(file, dict) else {}):
                yield from (holder[name] for name in _MIME if isinstance(holder.get(name), str))
    else:
        yield from (_metadata if what == "meta" else _extensions)(value, _DEPTH)


def _metadata(value: Any, depth: int) -> Iterator[str]:
    for name, member in _members(value):
        if name == "metadata" and isinstance(member, dict):
            for key, inner in member.items():
                yield f"{key}: {inner if isinstance(inner, str) else json.dumps(inner)}"
        elif depth and name != "data":
            yield from _metadata(member, depth - 1)


def _extensions(value: Any, depth: int) -> Iterator[str]:
    for name, member in _members(value):
        if name == "extensions" and isinstance(member, list):
            for each in member:
                uri = each.get("uri") if isinstance(each, dict) else each
                if isinstance(uri, str):
                    yield uri
        elif depth and name not in _OPAQUE:
            yield from _extensions(member, depth - 1)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from (("", each) for each in value)
