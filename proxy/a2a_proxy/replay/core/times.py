"""Shifting of recorded timestamps to the time of the replay."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from a2a_proxy.recording.difference.fields import MAX_DEPTH, OPAQUE

_TIMESTAMP_FIELDS = frozenset({"timestamp", "createdAt", "createdTime", "lastModified"})
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?")
_MAX_FRACTION_DIGITS = 9
"""Maximum number of digits of a fraction of a second."""


def shift_times(value: Any, by: int) -> Any:
    """Return a message with each A2A timestamp shifted by `by` ns; `data` and `metadata` of the peers are unchanged."""
    return _shift_member(value, "", by, 0)


def _shift_member(value: Any, name: str, by: int, depth: int) -> Any:
    if depth > MAX_DEPTH or name in OPAQUE:
        return value
    if isinstance(value, dict):
        return {key: _shift_member(item, key, by, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_shift_member(item, name, by, depth + 1) for item in value]
    return _shift_timestamp(value, by) if name in _TIMESTAMP_FIELDS and isinstance(value, str) else value


def _shift_timestamp(stamp: str, by: int) -> str:
    """Return an RFC 3339 timestamp shifted, with the same number of digits; any other text unchanged."""
    found = _TIMESTAMP.fullmatch(stamp)
    if found is None:
        return stamp
    whole, digits, zone = found[1], found[2] or "", found[3] or ""
    nanos = int(digits.ljust(_MAX_FRACTION_DIGITS, "0")) + by
    seconds, rest = divmod(nanos, 1_000_000_000)
    try:
        moved = datetime.fromisoformat(whole).replace(tzinfo=UTC) + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return stamp
    fraction = f".{rest:09d}"[: len(digits) + 1] if digits else ""
    return f"{moved:%Y-%m-%dT%H:%M:%S}{fraction}{zone}"
