"""Expressions as a tree of values, and their formatting as text."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec


class Op(StrEnum):
    """Comparison operators of fields. `!=` is the negation of `=`."""

    HAS = ":"
    """Depends on the kind of the field: contains, begins with, or equals."""
    MATCHES = "~"
    IS = "="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


COMPARISONS = (Op.LESS, Op.AT_MOST, Op.MORE, Op.AT_LEAST)


class Number(msgspec.Struct, frozen=True):
    """A number as it was typed, and its value in the field's unit: ns, bytes, or none."""

    text: str
    value: int


class WordValue(msgspec.Struct, frozen=True):
    """A word of a field's closed list, by its canonical name."""

    text: str
    keys: tuple[int | str, ...]
    """The stored values that it matches."""


class TimeValue(msgspec.Struct, frozen=True):
    """A point in time as it was typed."""

    text: str
    base: str
    """The origin of `ns`: `epoch`, `day` (local midnight before the session began) or `session`."""
    ns: int
    span: int
    """Length of the typed time in ns: `12:30` is a minute."""


class Range(msgspec.Struct, frozen=True):
    """`a..b`, both ends included. The range of times ends at the end of `high`."""

    low: Number | TimeValue
    high: Number | TimeValue


class Anything(msgspec.Struct, frozen=True):
    """`*`: the field is present."""


Value = str | Number | WordValue | TimeValue | Range | Anything


class Match(msgspec.Struct, frozen=True):
    """A comparison of one field with one value."""

    field: str
    """A name in `fields`, or a JSON path in canonical spelling: `$.params.message`."""
    op: Op
    value: Value
    side: str = ""
    """`req`, `resp`, or empty for both."""


class Not(msgspec.Struct, frozen=True):
    """The negation of `item`."""

    item: Node


class And(msgspec.Struct, frozen=True):
    """True if all items are; true without items."""

    items: tuple[Node, ...] = ()


class Or(msgspec.Struct, frozen=True):
    """True if at least one item is. Has two or more items."""

    items: tuple[Node, ...]


Node = Match | Not | And | Or

BARE = re.compile(r"[^\s\"'()\\*]+")
"""Values that need no quotes."""
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_text(node: Node) -> str:
    """Return the expression in its shortest canonical spelling. `parse` restores the tree from
    it."""
    if isinstance(node, Or):
        return " OR ".join(
            _group_text(item) if isinstance(item, Or) else to_text(item) or "()"
            for item in node.items
        )
    if isinstance(node, And):
        return " ".join(
            _group_text(item) if isinstance(item, And | Or) else to_text(item)
            for item in node.items
        )
    if isinstance(node, Not):
        return "-" + (
            _group_text(node.item) if isinstance(node.item, And | Or) else to_text(node.item)
        )
    side = f"{node.side}." if node.side else ""
    return f"{side}{node.field}{node.op}{_value_text(node.value)}"


def _group_text(node: Node) -> str:
    return f"({to_text(node)})"


def _value_text(value: Value) -> str:
    if isinstance(value, Anything):
        return "*"
    if isinstance(value, Range):
        return f"{value.low.text}..{value.high.text}"
    return value.text if not isinstance(value, str) else quote_text(value)


def quote_text(text: str) -> str:
    """Return a text as a value, quoted if it could be parsed as anything else."""
    if BARE.fullmatch(text) and text[0] not in "<>=~!" and ".." not in text:
        return text
    return (
        '"'
        + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _escape_character(c)) for c in text)
        + '"'
    )


def _escape_character(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
