"""Age of a cassette and its limit. Reads only the first line of the file; the current time is an
argument."""

import json
from datetime import timedelta
from pathlib import Path

from a2a_proxy.recording.query.kinds import InvalidValue, parse_length

_MAX_FIRST_LINE = 1 << 24
"""Maximum number of bytes of a first line; a longer one does not belong to a cassette."""


def parse_age(age: object) -> float:
    """Parse `max_age`: `"30d"`, `"12h"`, a timedelta, or a number of seconds. Raises ValueError."""
    if isinstance(age, timedelta):
        return age.total_seconds()
    if isinstance(age, int | float) and not isinstance(age, bool) and age > 0:
        return float(age)
    try:
        return parse_length(age if isinstance(age, str) else "") / 1e9
    except InvalidValue:
        raise ValueError(
            f"max_age {age!r} is not an age: write '30d', '12h' or a timedelta"
        ) from None


def recording_time(cassette: Path) -> float | None:
    """Return when the oldest session of a cassette was recorded, in seconds since the Unix epoch;
    None if the file has no time."""
    try:
        with cassette.open("rb") as file:
            header = json.loads(file.readline(_MAX_FIRST_LINE))
        return float(min(each["started"] for each in header["sessions"])) / 1e9
    except (OSError, ValueError, KeyError, TypeError):
        return None


def excess_age(cassette: Path, max_age: object, now: float) -> str:
    """Return the age in words if it is more than `max_age`, else an empty string. Raises
    ValueError."""
    limit, at = parse_age(max_age), recording_time(cassette)
    if at is None or now - at <= limit:
        return ""
    return f"{cassette.name} was recorded {_days_text(now - at)} ago, more than {_days_text(limit)}"


def _days_text(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if number != 1 else ''}"
    return f"{int(seconds)} s"
