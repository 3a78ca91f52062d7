"""Values that a column of the archive's tables can hold."""

from __future__ import annotations

from typing import Any

_TRACE_DIGITS = 32
_INT64 = range(-(1 << 63), 1 << 63)


def is_column_value(value: Any) -> bool:
    """Whether a column can hold the value."""
    if isinstance(value, str):
        if value.isascii():
            return True
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
    elif isinstance(value, tuple):
        return all(map(is_column_value, value))
    elif isinstance(value, int):
        return value in _INT64
    return True


def column_value(value: Any) -> Any:
    """Return the value if it is not empty and a column can hold it, else None."""
    return value if value and is_column_value(value) else None


def trace_id_of(traceparent: str) -> str:
    """Return the trace id of a W3C `traceparent`, or an empty string if it has no valid one."""
    words = traceparent.split("-")
    trace = words[1].lower() if len(words) > 1 else ""
    return trace if len(trace) == _TRACE_DIGITS and set(trace) <= set("0123456789abcdef") else ""
