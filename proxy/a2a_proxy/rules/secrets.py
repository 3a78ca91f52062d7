"""Where in a payload something looks like a credential, redacted or not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from a2a_proxy.redaction.names import secret_member
from a2a_proxy.redaction.patterns import find, suspicious

_LABEL = re.compile(r"redacted-[0-9a-f]{12}")
_DEPTH = 32
"""How deep is looked."""


def secrets(value: Any, skip: frozenset[str] = frozenset()) -> Iterator[str]:
    """Paths of the strings that are, or have in them, a label of the redaction or what it would replace.

    Members named in `skip` are left out, with all that is in them. A finding about such a place must not name it as
    its `path`: what stands at a redacted place is judged by nobody, that something does is another matter.
    """
    return (path for path, name, text in _texts(value, "", "", skip, _DEPTH) if _is_secret(name, text))


def _is_secret(name: str, text: str) -> bool:
    data = text.encode("utf-8", "surrogatepass")
    return bool(_LABEL.search(text) or secret_member(name) or (suspicious(data) and find(data)))


def _texts(value: Any, path: str, name: str, skip: frozenset[str], depth: int) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, str):
        if value:
            yield path, name, value
    elif depth and isinstance(value, dict):
        for key, item in value.items():
            if key not in skip:
                yield from _texts(item, f"{path}.{key}" if path else key, key, skip, depth - 1)
    elif depth and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]", "", skip, depth - 1)
