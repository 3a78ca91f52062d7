"""Places of what was replaced in a payload: told in full where that is reasonable, bounded whatever the payload is."""

from __future__ import annotations

NAME_CHARS = 128
"""Characters of one name in a path. A hostile one may have millions, and be part of a million paths."""
_ROOM = 1 << 20
"""Characters of all paths of one payload."""
EVERYWHERE = "$"
"""Stands for all places that there was no room for."""


class ReplacedPlaces:
    """The places, each once, in order."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._room = _ROOM

    def __bool__(self) -> bool:
        return bool(self._paths)

    def add(self, path: str) -> None:
        """One more."""
        if self._room < 0 or path in self._paths:
            return
        self._room -= len(path)
        self._paths[path if self._room >= 0 else EVERYWHERE] = None

    def paths(self) -> list[str]:
        """All of them."""
        return list(self._paths)
