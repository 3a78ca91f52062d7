"""Paths into payloads, the same for JSON and protobuf, compiled to one regular expression over
canonical places.

`$.params.message.parts[*].text` starts at the root of a payload; `message.parts.text` matches at
any depth. `..` is any number of steps, `*` one step. An index may be omitted. Case and separators
of names are ignored (`contextId`, `context_id`), and a path includes everything inside the place
that it names.

The canonical form of a place is `/params/message/parts[0]/text`.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from a2a_proxy.redaction.secret_names import fold_name

_STEP = re.compile(r"""\.\.|\.?\*|\[(?:\*|\d+|"(?:[^"\\]|\\.)*"|'[^']*')\]|\.?[^.\[\]*$\s"']+""")
_PLACE_STEP = re.compile(r"""\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\[([^\]]*)\]|\.?([^.\[]+)""")
_STRUCT = re.compile(r"\.fields(?=\[)|\.values(?=[.\[]|\Z)")
"""Steps of a protobuf path that JSON lacks: the fields of Struct and ListValue."""
_INSIDE = r"(?:[/\[].*)?\Z"
_INDICES = r"(?:\[\d+\])*"


class PathError(ValueError):
    """A text that is not a path."""


def check_path(path: str) -> None:
    """Check the syntax of a path. Raises PathError if it is invalid."""
    _make_path_expression(path)


def compile_paths(paths: Iterable[str], members: Iterable[str] = ()) -> re.Pattern[str] | None:
    """Return a pattern that matches each canonical place at or inside one of these paths; None if
    there are no paths.

    `members` are names that match at any depth, with `*` for any characters.
    """
    parts = [_make_path_expression(path) for path in paths]
    parts += [rf"(?:/.*)?/{make_wildcard_expression(name)}(?:\[\d+\])*" for name in members]
    return re.compile(rf"(?:{'|'.join(parts)}){_INSIDE}", re.S) if parts else None


def make_wildcard_expression(name: str) -> str:
    """Return a regular expression for a folded name in which `*` matches any characters."""
    return "[^/\\[]*".join(re.escape(_fold_safely(piece)) for piece in name.split("*"))


def _fold_safely(name: str) -> str:
    """Return the folded name without the characters that separate steps."""
    return re.sub(r"[/\[\]]", "\0", fold_name(name))


@lru_cache(maxsize=1024)
def _make_path_expression(path: str) -> str:
    rest = path.removeprefix("$")
    steps = _split_path(rest)
    made = "" if rest != path else r"(?:/.*)?"
    for step, after in zip(steps, (*steps[1:], ""), strict=True):
        made += _make_step_expression(step)
        if not (step.startswith("[") or after[1:-1].isdigit() or step == ".."):
            made += _INDICES
    return made


def _split_path(rest: str) -> list[str]:
    """Split a path without its root into steps. Raises PathError if it is invalid."""
    steps: list[str] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            raise PathError(f"{rest[at:]!r} is not a step")
        steps.append(found[0])
        at = found.end()
    if not steps or steps[-1] == "..":
        raise PathError("it does not name a value")
    return steps


def _make_step_expression(step: str) -> str:
    name = step.removeprefix(".") if step != ".." else step
    if name == "..":
        return r"(?:/[^/]+)*?"
    if name == "*":
        return r"/[^/\[]+"
    if name == "[*]":
        return _INDICES
    if name.startswith("[") and name[1:-1].isdigit():
        return rf"(?:\[{int(name[1:-1])}\]|(?!\[))"
    return f"/{re.escape(_fold_safely(name[2:-2] if name.startswith('[') else name))}"


@lru_cache(maxsize=4096)
def canonicalize_place(path: str) -> str:
    """Return the canonical form of a place from the walk of JSON (`$.a[0]["b"]`) or protobuf
    (`a.fields[b]`)."""
    text = _STRUCT.sub("", path.removeprefix("$"))
    steps = []
    for index, quoted, key, name in _PLACE_STEP.findall(text):
        steps.append(f"[{index}]" if index else "/" + _fold_safely(quoted or key or name))
    return "".join(steps)
