"""Paths that a comparison leaves out, as users write them: `$.message.metadata`, `parts[*].data`,
`headers.x-team`."""

import re
from collections.abc import Sequence
from typing import Any

from a2a_proxy.recording.difference.fields import DifferenceRow, Path

_PATH_STEP = re.compile(r"""\.?([A-Za-z_][\w-]*)|\[(\d+|\*)\]|\["([^"]*)"\]|\.?(\*)""")
_ANY_STEP = "*"


class PathError(ValueError):
    """Text that is not a path into a message."""


def parse_path(words: str) -> Path:
    """Parse a path: `$.status.message` from the root, or `artifacts[*].parts`, `text`, `headers`
    anywhere.

    Raises PathError if it cannot be parsed.
    """
    rest = words.removeprefix("$")
    steps: list[str | int] = ["$"] if rest != words else []
    while rest:
        found = _PATH_STEP.match(rest)
        if found is None:
            raise PathError(words)
        name = next(group for group in found.groups() if group is not None)
        steps.append(int(name) if name.isdigit() and found[2] else name)
        rest = rest[found.end() :]
    if not steps or steps == ["$"]:
        raise PathError(words)
    return tuple(steps)


def is_at_path(row: DifferenceRow, place: Path) -> bool:
    """Whether a difference is at a path or below it. The first step may be the name of an
    `ExchangePart`."""
    path = row.left or row.right or ()
    if place[0] == str(row.part) and _has_prefix(path, place[1:]):
        return True
    if place[0] == "$":
        return _has_prefix(path, place[1:])
    return any(_has_prefix(path[first:], place) for first in range(len(path)))


def without_paths(value: Any, places: Sequence[Path]) -> Any:
    """Return a JSON value without the members at these paths. List items become null, so that the
    others stay where they are."""
    return _without_paths(value, places, ()) if places else value


def _without_paths(value: Any, places: Sequence[Path], at: Path) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_paths(item, places, (*at, name))
            for name, item in value.items()
            if not any(_ends_at(each, (*at, name)) for each in places)
        }
    if isinstance(value, list):
        return [
            None
            if any(_ends_at(each, (*at, index)) for each in places)
            else _without_paths(item, places, (*at, index))
            for index, item in enumerate(value)
        ]
    return value


def _ends_at(place: Path, path: Path) -> bool:
    if place[0] == "$":
        return len(path) == len(place) - 1 and _has_prefix(path, place[1:])
    return len(path) >= len(place) and _has_prefix(path[len(path) - len(place) :], place)


def _has_prefix(path: Path, prefix: Path) -> bool:
    return len(path) >= len(prefix) and all(
        step in (_ANY_STEP, has) for has, step in zip(path, prefix, strict=False)
    )
