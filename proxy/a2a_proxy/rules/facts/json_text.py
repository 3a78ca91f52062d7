"""The place at which JSON text is not valid UTF-8."""

import json
from collections.abc import Iterator
from typing import Any

_MAX_SIZE = 1 << 20
"""Size in bytes up to which the member is searched; larger payloads would delay the recorder."""
_MAX_PATH = 200
"""Characters of a path, whose names are a peer's."""


def find_bad_member(data: bytes) -> str:
    """Return the path of the first member with bytes that are not valid UTF-8; empty if it is not
    found."""
    if len(data) > _MAX_SIZE:
        return ""
    try:
        return next(_bad_paths(json.loads(data.decode("utf-8", "surrogateescape")), ""), "")[
            :_MAX_PATH
        ]
    except (ValueError, RecursionError):
        return ""


def _bad_paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, str) and any("\udc80" <= each <= "\udcff" for each in value):
        yield path
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _bad_paths(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _bad_paths(inner, f"{path}[{index}]")
