"""Tests on payloads: text, JSON paths, parts, metadata and extensions. Pure functions that accept
any bytes."""

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from a2a_proxy.recording.query.tree import Op

MAX_PATTERN_SECONDS = 0.25
"""Time limit of a pattern for one text, in seconds."""

_MAX_DEPTH = 100
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9 _.,:;=+*()-]*")
"""Characters that JSON encoders never escape."""
_ESCAPED = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PATH_STEP = re.compile(r"\.([A-Za-z0-9_*-]+)|\[(\d+|\*)\]|\[(\"(?:[^\"\\]|\\.)*\")\]")
DECIMAL = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?")
_OPAQUE = frozenset({"data", "metadata"})
"""Members whose content belongs to the peer: parts or metadata in them are not A2A's."""


class TooSlow(Exception):
    """A pattern took too long on a text. `str()` is the pattern."""


@lru_cache(64)
def _compile_pattern(pattern: str) -> Any:
    import regex

    return regex.compile(pattern)


def matches_pattern(pattern: str, text: str) -> bool:
    """Whether the pattern matches. Raises TooSlow after MAX_PATTERN_SECONDS."""
    try:
        return _compile_pattern(pattern).search(text, timeout=MAX_PATTERN_SECONDS) is not None
    except TimeoutError:
        raise TooSlow(pattern) from None


def matches_string(op: str, operand: str, text: str) -> bool:
    """Whether a text matches by operator. `:` ignores case."""
    if op == Op.MATCHES:
        return matches_pattern(operand, text)
    if op == Op.IS:
        return text == operand
    return operand.casefold() in text.casefold() if op == Op.HAS else bool(text)


def matches_text(op: str, operand: str, payload: bytes) -> bool:
    """Whether the payload's text on the wire matches. `:` also finds text that JSON has escaped."""
    if op == Op.HAS and operand.isascii():
        if operand.lower().encode() in payload.lower():
            return True
        if _PLAIN_TEXT.fullmatch(operand) or b"\\" not in payload:
            return False
    text = payload.decode("utf-8", "replace")
    if matches_string(op, operand, text):
        return True
    return op == Op.HAS and "\\" in text and matches_string(op, operand, _unescape_json(text))


def _unescape_json(text: str) -> str:
    plain = _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else _LETTERS.get(m[2], m[2]), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@lru_cache(64)
def path_steps(path: str) -> tuple[str | int | None, ...]:
    """Return the steps of a canonical path: names, indexes, and None for any."""
    match: list[str | int | None] = []
    for name, position, quoted in _PATH_STEP.findall(path):
        if name == "*" or position == "*":
            match.append(None)
        elif position:
            match.append(int(position))
        else:
            match.append(json.loads(quoted) if quoted else name)
    return tuple(match)


def values_at_path(value: Any, path: tuple[str | int | None, ...]) -> Iterator[Any]:
    """Yield the values at a path. A member is found by its name, else by the same name in camelCase
    or snake_case."""
    if not path:
        yield value
        return
    first, rest = path[0], path[1:]
    if first is None:
        inside = (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        )
        for each in inside:
            yield from values_at_path(each, rest)
    elif isinstance(first, int):
        if isinstance(value, list) and first < len(value):
            yield from values_at_path(value[first], rest)
    elif isinstance(value, dict):
        name = next(
            (each for each in (first, _to_camel(first), _to_snake(first)) if each in value), None
        )
        if name is not None:
            yield from values_at_path(value[name], rest)


def _to_camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in tail)


def _to_snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), name)


def matches_leaf(op: str, operand: str, value: Any) -> bool:
    """Whether a JSON value matches: texts as texts, numbers as numbers; `true`, `false`, `null` as
    words."""
    if op == "*":
        return True
    if isinstance(value, dict | list):
        return False
    if op in _ORDERS:
        return _matches_order(op, operand, value)
    if isinstance(value, str):
        return matches_string(op, operand, value)
    if op == Op.MATCHES:
        return matches_pattern(operand, _leaf_text(value))
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and DECIMAL.fullmatch(operand)
    ):
        return value == _parse_number(operand)
    return operand == _leaf_text(value)


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    Op.LESS: lambda a, b: a < b,
    Op.AT_MOST: lambda a, b: a <= b,
    Op.MORE: lambda a, b: a > b,
    Op.AT_LEAST: lambda a, b: a >= b,
}


def _matches_order(op: str, operand: str, value: Any) -> bool:
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        value = _parse_number(value)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not DECIMAL.fullmatch(operand)
    ):
        return False
    return _ORDERS[op](value, _parse_number(operand))


def _parse_number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _leaf_text(value: Any) -> str:
    return json.dumps(value)


def find_parts(value: Any, depth: int = _MAX_DEPTH) -> Iterator[dict[str, Any]]:
    """Yield the parts of all messages and artifacts, in any dialect."""
    if isinstance(value, dict) and depth:
        for name, member in value.items():
            if name in ("parts", "content") and isinstance(member, list):
                yield from (each for each in member if isinstance(each, dict))
            elif name not in _OPAQUE:
                yield from find_parts(member, depth - 1)
    elif isinstance(value, list) and depth:
        for each in value:
            yield from find_parts(each, depth - 1)


_RAW_MEMBERS = ("raw", "bytes", "fileWithBytes", "file_with_bytes")
_URL_MEMBERS = ("url", "uri", "fileWithUri", "file_with_uri")
_MIME_MEMBERS = ("mediaType", "media_type", "mimeType", "mime_type")
_PART_MEMBERS = {
    "part": ("parts", "content"),
    "text": ("text",),
    "data": ("data",),
    "raw": _RAW_MEMBERS,
    "url": _URL_MEMBERS,
}
_PART_MEMBERS |= {
    "file": (*_RAW_MEMBERS, *_URL_MEMBERS),
    "mime": _MIME_MEMBERS,
    "meta": ("metadata",),
    "ext": ("extensions",),
}
_QUOTED_MEMBERS = {
    what: tuple(f'"{name}"'.encode() for name in names) for what, names in _PART_MEMBERS.items()
}


def has_any_name(what: str, data: bytes) -> bool:
    """Whether JSON contains a member name that the part or facet needs, or an escape that may hide
    one."""
    return any(name in data for name in _QUOTED_MEMBERS[what]) or b"\\u" in data


def part_kind(part: dict[str, Any]) -> str:
    """Return `text`, `data`, `raw` or `url`, or an empty string for any other part."""
    file = part.get("file")
    inside = file if isinstance(file, dict) else part
    if "text" in part or "data" in part:
        return "text" if "text" in part else "data"
    if any(name in inside for name in _RAW_MEMBERS):
        return "raw"
    return "url" if any(name in inside for name in _URL_MEMBERS) else ""


def find_facets(what: str, value: Any) -> Iterator[str]:
    """Yield all media types of parts, extension URIs, or members of metadata as `key: value`."""
    if what == "mime":
        for part in find_parts(value):
            file = part.get("file")
            for holder in (part, file if isinstance(file, dict) else {}):
                yield from (
                    holder[name] for name in _MIME_MEMBERS if isinstance(holder.get(name), str)
                )
    else:
        yield from (_find_metadata if what == "meta" else _find_extensions)(value, _MAX_DEPTH)


def _find_metadata(value: Any, depth: int) -> Iterator[str]:
    for name, member in _object_members(value):
        if name == "metadata" and isinstance(member, dict):
            for key, inner in member.items():
                yield f"{key}: {inner if isinstance(inner, str) else json.dumps(inner)}"
        elif depth and name != "data":
            yield from _find_metadata(member, depth - 1)


def _find_extensions(value: Any, depth: int) -> Iterator[str]:
    for name, member in _object_members(value):
        if name == "extensions" and isinstance(member, list):
            for each in member:
                uri = each.get("uri") if isinstance(each, dict) else each
                if isinstance(uri, str):
                    yield uri
        elif depth and name not in _OPAQUE:
            yield from _find_extensions(member, depth - 1)


def _object_members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from (("", each) for each in value)
