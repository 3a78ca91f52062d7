"""JSON values as Python source: in one line where they fit, else one member a line; everything unprintable escaped."""

from __future__ import annotations

from typing import Any

_MAX_LINE = 100
"""Characters of a line."""


def python_literal(value: Any, indent: int = 0) -> str:
    """The source of a value of dicts, lists, tuples, texts, numbers, booleans and None."""
    flat = repr(value)
    if len(flat) + indent <= _MAX_LINE or not value or not isinstance(value, dict | list):
        return flat
    deeper = indent + 4
    if isinstance(value, dict):
        lines = [f"{name!r}: {python_literal(each, deeper)}" for name, each in value.items()]
    else:
        lines = [python_literal(each, deeper) for each in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    inside = "".join(f"{' ' * deeper}{line},\n" for line in lines)
    return f"{begin}\n{inside}{' ' * indent}{end}"
