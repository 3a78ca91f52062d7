"""Sizes as people write them."""

from __future__ import annotations

import re

from a2a_proxy.cli.errors import UserError


def octets(option: str, size: str) -> int:
    """A size as people write it (`500M`, `4GiB`, `65536`) in octets; K, M, G and T are powers of 1024.

    Raises:
        UserError: it is none, or 0.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", size.strip(), re.IGNORECASE | re.ASCII)
    number = int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) if found else 0
    if not number:
        raise UserError(f"{option}: {size!r} is no size", f"for example: {option} 4GiB")
    return number
