"""JSON values as Python source: one line if they fit, else one member per line; unprintable
characters are escaped."""

from typing import Any

_MAX_LINE = 100
"""Maximum characters of a line."""


def python_literal(value: Any, indent: int = 0) -> str:
    """Return the source of a value of dicts, lists, tuples, strings, numbers, booleans and None."""
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
