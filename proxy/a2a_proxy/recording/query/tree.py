"""An expression as a tree of values, and back to text."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec


class Op(StrEnum):
    """How a field is compared. `!=` is the negation of `=`."""

    HAS = ":"
    """What the field's kind makes of it: contains, begins with, is."""
    MATCHES = "~"
    IS = "="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


COMPARISONS = (Op.LESS, Op.AT_MOST, Op.MORE, Op.AT_LEAST)


class Number(msgspec.Struct, frozen=True):
    """A number as it was written, and in the field's unit: ns, bytes, or none."""

    text: str
    value: int


class WordValue(msgspec.Struct, frozen=True):
    """One word of those that a field knows, by its canonical name."""

    text: str
    keys: tuple[int | str, ...]
    """What stands in the recording."""


class TimeValue(msgspec.Struct, frozen=True):
    """A point in time as it was written."""

    text: str
    base: str
    """From when `ns` counts: `epoch`, `day` (midnight before the session began, local) or `session`."""
    ns: int
    span: int
    """How long what was written lasts: `12:30` is a minute."""


class Range(msgspec.Struct, frozen=True):
    """`a..b`, both ends included; times up to the end of the second one."""

    low: Number | TimeValue
    high: Number | TimeValue


class Anything(msgspec.Struct, frozen=True):
    """`*`: the field is there."""


Value = str | Number | WordValue | TimeValue | Range | Anything


class Match(msgspec.Struct, frozen=True):
    """One field compared with one value."""

    field: str
    """A name in `fields`, or a JSON path in canonical spelling: `$.params.message`."""
    op: Op
    value: Value
    side: str = ""
    """`req`, `resp`, or both."""


class Not(msgspec.Struct, frozen=True):
    """Where the other is not so."""

    item: Node


class And(msgspec.Struct, frozen=True):
    """All of them; everything where there is none."""

    items: tuple[Node, ...] = ()


class Or(msgspec.Struct, frozen=True):
    """At least one of them; always two or more."""

    items: tuple[Node, ...]


Node = Match | Not | And | Or

BARE = re.compile(r"[^\s\"'()\\*]+")
"""Values that need no quotes."""
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_text(node: Node) -> str:
    """The expression in its shortest regular spelling: what `parse` makes this tree of."""
    if isinstance(node, Or):
        return " OR ".join(_group_text(item) if isinstance(item, Or) else to_text(item) or "()" for item in node.items)
    if isinstance(node, And):
        return " ".join(_group_text(item) if isinstance(item, And | Or) else to_text(item) for item in node.items)
    if isinstance(node, Not):
        return "-" + (_group_text(node.item) if isinstance(node.item, And | Or) else to_text(node.item))
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
    """A text as a value: in quotes where it could be read as anything else."""
    if BARE.fullmatch(text) and text[0] not in "<>=~!" and ".." not in text:
        return text
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _escape_character(c)) for c in text) + '"'


def _escape_character(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
