"""Parse sizes and durations written by the user."""

import re

from a2a_proxy.model.errors import UserError


def parse_size(option: str, size: str) -> int:
    """Return a size (`500M`, `4GiB`, `65536`) in bytes; K, M, G and T are powers of 1024.

    Raises:
        UserError: it is not a size, or 0.
    """
    found = re.fullmatch(
        r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", size.strip(), re.IGNORECASE | re.ASCII
    )
    number = int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) if found else 0
    if not number:
        raise UserError(f"{option}: {size!r} is not a size", f"for example: {option} 4GiB")
    return number


def parse_duration(option: str, text: str, min_seconds: int = 0) -> int:
    """Return a duration (`30d`, `12h`, `1.5m`) in ns; `option` is the option's name, for messages.

    Raises:
        UserError: it is not a duration, or shorter than `min_seconds` seconds.
    """
    from a2a_proxy.recording.query import kinds

    try:
        length = kinds.parse_length(text)
    except kinds.InvalidValue:
        raise UserError(f"{option}: {text!r} is not a duration", _DURATION_HINT) from None
    if length < min_seconds * 1_000_000_000:
        raise UserError(
            f"{option}: {text} is too short", f"at least {min_seconds}s; {_DURATION_HINT}"
        )
    return length


_DURATION_HINT = "write a number and its unit: 90s, 5m, 1.5h, 30d, 2w"
