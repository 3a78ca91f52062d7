"""Paths into payloads, the same for JSON and protobuf, as one expression over a canonical way of writing places.

`$.params.message.parts[*].text` begins at the root of a payload; `message.parts.text` fits at any depth. `..` stands
for any steps, `*` for one. An index may be left out. Names count without case and separators (`contextId`,
`context_id`), and all that is inside of a place belongs to it.

A place is written canonically as `/params/message/parts[0]/text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from a2a_proxy.redaction.secret_names import fold

_STEP = re.compile(r"""\.\.|\.?\*|\[(?:\*|\d+|"(?:[^"\\]|\\.)*"|'[^']*')\]|\.?[^.\[\]*$\s"']+""")
_TOLD = re.compile(r"""\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\[([^\]]*)\]|\.?([^.\[]+)""")
_STRUCT = re.compile(r"\.fields(?=\[)|\.values(?=[.\[]|\Z)")
"""Steps of a protobuf path that JSON has not: those of Struct and ListValue."""
_INSIDE = r"(?:[/\[].*)?\Z"
_INDICES = r"(?:\[\d+\])*"


class PathError(ValueError):
    """It is no path."""


def check_path(path: str) -> None:
    """Raises PathError where it is none."""
    _expression(path)


def compiled(paths: Iterable[str], members: Iterable[str] = ()) -> re.Pattern[str] | None:
    """An expression that matches each canonical place at one of these paths, or inside of it; None for no paths.

    `members` are names that fit at any depth, with `*` for any characters.
    """
    parts = [_expression(path) for path in paths]
    parts += [rf"(?:/.*)?/{wildcard(name)}(?:\[\d+\])*" for name in members]
    return re.compile(rf"(?:{'|'.join(parts)}){_INSIDE}", re.S) if parts else None


def wildcard(name: str) -> str:
    """An expression for a folded name, `*` being any characters of one."""
    return "[^/\\[]*".join(re.escape(_safe(piece)) for piece in name.split("*"))


def _safe(name: str) -> str:
    """A name without what separates places, folded."""
    return re.sub(r"[/\[\]]", "\0", fold(name))


@lru_cache(maxsize=1024)
def _expression(path: str) -> str:
    rest = path.removeprefix("$")
    steps = _steps(rest)
    made = "" if rest != path else r"(?:/.*)?"
    for step, after in zip(steps, (*steps[1:], ""), strict=True):
        made += _step(step)
        if not (step.startswith("[") or after[1:-1].isdigit() or step == ".."):
            made += _INDICES
    return made


def _steps(rest: str) -> list[str]:
    """The steps of a path without its root. Raises PathError."""
    steps: list[str] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            raise PathError(f"{rest[at:]!r} cannot be read")
        steps.append(found[0])
        at = found.end()
    if not steps or steps[-1] == "..":
        raise PathError("it names nothing")
    return steps


def _step(step: str) -> str:
    name = step.removeprefix(".") if step != ".." else step
    if name == "..":
        return r"(?:/[^/]+)*?"
    if name == "*":
        return r"/[^/\[]+"
    if name == "[*]":
        return _INDICES
    if name.startswith("[") and name[1:-1].isdigit():
        return rf"(?:\[{int(name[1:-1])}\]|(?!\[))"
    return f"/{re.escape(_safe(name[2:-2] if name.startswith('[') else name))}"


@lru_cache(maxsize=4096)
def place(told: str) -> str:
    """The canonical way of writing a place that a walker of JSON (`$.a[0]["b"]`) or protobuf (`a.fields[b]`) tells."""
    text = _STRUCT.sub("", told.removeprefix("$"))
    steps = []
    for index, quoted, key, name in _TOLD.findall(text):
        steps.append(f"[{index}]" if index else "/" + _safe(quoted or key or name))
    return "".join(steps)
