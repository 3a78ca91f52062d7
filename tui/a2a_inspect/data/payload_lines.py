"""A frame's payload as printable lines: canonical JSON if possible, else text, never control
characters."""

import json
import re
from collections.abc import Iterator
from typing import Any

from a2a_inspect.data.hexdump import hex_lines
from a2a_proxy.model.event import Part
from a2a_proxy.model.values import Exchange, Frame
from a2a_proxy.present import text
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.redaction.labels import is_withheld

_TEXT_SCHEMAS = ("json", "text", "trailers", "control")
"""Schemas of text payloads."""
_WITHHELD_WORDS = "payload not recorded"


def decoded_lines(frame: Frame, exchange: Exchange | None) -> Iterator[str]:
    """Yield the decoded payload as indented lines without control characters."""
    value = readable_payload(frame, exchange)
    if value is None:
        if is_withheld(frame):
            yield _WITHHELD_WORDS
        return
    for line in json_text(value).split("\n"):
        yield make_visible(line)


def raw_lines(frame: Frame) -> Iterator[str]:
    """Yield the payload as sent, without control characters: text as text, other payloads as a hex
    dump."""
    if is_withheld(frame):
        yield _WITHHELD_WORDS
    if frame.schema not in _TEXT_SCHEMAS:
        yield from hex_lines(frame.payload)
        return
    for line in frame.payload.splitlines():
        yield make_visible(line.decode("utf-8", "replace"))


def json_text(value: Any) -> str:
    """Return indented JSON; a string unchanged."""
    try:
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        return "nested too deeply to show"


def part_text(part: Part) -> str:
    """Return text and data as text, files by their name, type and size."""
    if part.text is not None:
        return part.text
    if part.data is not None:
        return json_text(part.data)
    about = " ".join(word for word in (part.filename, part.media_type) if word)
    if part.url is not None:
        return f"file {part.url} {about}"
    return f"file {about} {text.format_size(len(part.raw or '') * 3 // 4)}"


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)
_MAX_INDENT = 40
"""Levels of indentation; deeper levels are not indented further."""


def indent_json(data: bytes) -> Iterator[str]:
    """Yield the beginning of JSON, which may be cut anywhere, as indented lines without control
    characters."""
    depth, line = 0, ""
    for found in _TOKEN.finditer(data.decode("utf-8", "replace")):
        token = found[0]
        if token in "}]":
            if line.strip():
                yield make_visible(line)
            depth = max(depth - 1, 0)
            line = _make_indent(depth) + token
        elif token in "{[,":
            yield make_visible(line + token)
            depth += token != ","
            line = _make_indent(depth)
        else:
            line += ": " if token == ":" else token
    if line.strip():
        yield make_visible(line)


def _make_indent(depth: int) -> str:
    return "  " * min(depth, _MAX_INDENT)
