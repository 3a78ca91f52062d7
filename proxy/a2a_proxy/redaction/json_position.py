"""The current position in a JSON text, complete or cut, that is walked token by token."""

import re

import msgspec

from a2a_proxy.redaction.replaced_places import NAME_CHARS
from a2a_proxy.redaction.scope import ROOT

DEEPEST = 100
"""Levels that are distinguished. A policy hides or keeps deeper values only together with the
values around them."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class JsonLevel:
    """An open object or array."""

    __slots__ = ("before", "index", "inside", "is_object", "key", "scope", "wants_key")

    def __init__(self, is_object: bool, inside: bool = False) -> None:
        self.is_object = is_object
        self.wants_key = is_object
        self.key = ""
        self.index = 0
        self.inside = inside
        """Whether everything in it is at a place that the policy names."""
        self.scope = ROOT
        self.before = ""
        """The last item of an array, if it is a string."""


def update_levels(mark: int, stack: list[JsonLevel]) -> None:
    """Update the open levels after one of `{}[],`."""
    if mark in b"{[":
        stack.append(JsonLevel(mark == 0x7B, bool(stack) and stack[-1].inside))
    elif mark in b"}]":
        if stack:
            stack.pop()
    elif stack:
        stack[-1].index += 1
        stack[-1].wants_key = stack[-1].is_object


def format_path(stack: list[JsonLevel]) -> str:
    """Return the path of the current value, such as `$.params.message.parts[0].text`, cut after
    `DEEPEST` levels."""
    return "$" + "".join(map(_format_step, stack[:DEEPEST]))


def _format_step(level: JsonLevel) -> str:
    if not level.is_object:
        return f"[{level.index}]"
    key = level.key[:NAME_CHARS]
    return f".{key}" if _PLAIN.match(key) else f"[{msgspec.json.encode(key).decode()}]"
