"""Paths of the values replaced in one payload, limited in total size even for a hostile payload."""

NAME_CHARS = 128
"""Characters of one name in a path. A hostile name may have millions, and occur in a million
paths."""
_ROOM = 1 << 20
"""Characters of all paths of one payload, at most."""
EVERYWHERE = "$"
"""Path that represents all places beyond the limit."""


class ReplacedPlaces:
    """Paths of replaced values, each once, in order."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._room = _ROOM

    def __bool__(self) -> bool:
        return bool(self._paths)

    def add(self, path: str) -> None:
        """Add a path."""
        if self._room < 0 or path in self._paths:
            return
        self._room -= len(path)
        self._paths[path if self._room >= 0 else EVERYWHERE] = None

    def list_paths(self) -> list[str]:
        """Return all paths."""
        return list(self._paths)
