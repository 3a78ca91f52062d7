"""The promised surface of the programs: `manual/promises.md`.
`.venv/bin/python tests/support_promises.py` adds what is new to `tests/data/promises.json`; it
removes nothing, because a removal breaks a promise."""

from __future__ import annotations

import contextlib
import inspect as introspection
import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import click

from a2a_inspect.cli.main import cli as inspect
from a2a_proxy import api, hooks
from a2a_proxy.cli.main import cli as proxy
from a2a_proxy.rules.define.catalogue import all_rules, omitted_rules
from a2a_proxy.testing import plugin
from support_cli import run_here

ROOT = Path(__file__).parents[1]
PROMISES = ROOT / "tests/data/promises.json"
_LOSSY, _DEMO, _AGENTS = (
    ROOT / f"recordings/{name}.a2a.jsonl" for name in ("lossy", "demo", "three-agents")
)
_OUTPUTS: dict[str, tuple[object, ...]] = {
    "check": ("check", _LOSSY, "--format", "json"),
    "diff": ("diff", _LOSSY, _DEMO, "--json"),
    "keys": ("keys", "--json"),
    "lanes": ("lanes", _LOSSY, "--json"),
    "ls": ("ls", _LOSSY, "--json"),
    "rules": ("rules", "--json"),
    "segments": ("segments", _AGENTS, "--json"),
    "show": ("show", _LOSSY, "--json"),
    "stats": ("stats", _LOSSY, "--json"),
    "tail": ("tail", _LOSSY, "--json"),
}
"""Commands whose JSON is promised, and the recordings that show all of their members."""

_STORAGE = {"block", "offset"}
"""Columns of views that say where a payload is stored, which changes."""


def surface() -> dict[str, Any]:
    """Return the names that users depend on, by kind: each leaf is a sorted list."""
    return {
        "options": {**dict(_options("a2a-proxy", proxy)), **dict(_options("a2a-inspect", inspect))},
        "choices": {**dict(_choices("a2a-proxy", proxy)), **dict(_choices("a2a-inspect", inspect))},
        "json": _json_members(),
        "views": _views(),
        "api": {name: _members(getattr(api, name)) for name in api.__all__},
        "hooks": {name: _members(getattr(hooks, name)) for name in hooks.__all__},
        "plugin": _plugin(),
        "rules": {"ids": sorted({*all_rules(), *omitted_rules()})},
    }


def missing(promised: Any, found: Any, place: str = "") -> Iterator[str]:
    """Yield the place of each promise that is not found."""
    if isinstance(promised, Mapping):
        for name, part in promised.items():
            if name in found:
                yield from missing(part, found[name], f"{place}/{name}")
            else:
                yield f"{place}/{name}"
    else:
        yield from (f"{place}/{name}" for name in promised if name not in found)


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, each in sorted(command.commands.items()):
            if not each.hidden:
                yield from _commands(f"{path} {name}", each)


def _visible(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option) and not each.hidden]


def _options(path: str, command: click.Command) -> Iterator[tuple[str, list[str]]]:
    """Yield each command with its options."""
    for name, each in _commands(path, command):
        yield (
            name,
            sorted(
                {
                    word
                    for option in _visible(each)
                    for word in (*option.opts, *option.secondary_opts)
                }
            ),
        )


def _choices(path: str, command: click.Command) -> Iterator[tuple[str, list[str]]]:
    """Yield each option that has fixed values."""
    for name, each in _commands(path, command):
        for option in _visible(each):
            if isinstance(option.type, click.Choice):
                yield f"{name} {option.opts[0]}", sorted(map(str, option.type.choices))


def _json_members() -> dict[str, list[str]]:
    """Return the members of the objects that each command prints."""
    found = {}
    with tempfile.TemporaryDirectory() as state:
        for name, words in _OUTPUTS.items():
            out = run_here(Path(state), *words).out
            try:
                objects = [json.loads(out)]
            except ValueError:
                objects = [json.loads(line) for line in out.splitlines()]
            found[name] = sorted({member for each in objects for member in each})
    return found


def _views() -> dict[str, list[str]]:
    """Return the columns of the views of a recording. `ident_text` serves other views only."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.a2a.db"
        run_here(Path(folder), "cassette", "read", _LOSSY, path)
        with contextlib.closing(sqlite3.connect(path)) as database:
            names = {
                name
                for (name,) in database.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'view'"
                )
            }
            rows = {
                name: database.execute(f"PRAGMA table_info({name})").fetchall()
                for name in sorted(names - {"ident_text"})
            }
            return {
                name: sorted({row[1] for row in columns} - _STORAGE)
                for name, columns in rows.items()
            }


def _members(found: object) -> list[str]:
    """Return the public members of a class: methods, properties and fields. Of anything else,
    none."""
    if not introspection.isclass(found):
        return []
    own = {
        name
        for each in found.__mro__
        if each.__module__.startswith("a2a_proxy")
        for name in vars(each)
    }
    return sorted(name for name in own | set(_hints(found)) if not name.startswith("_"))


def _hints(found: type) -> Mapping[str, object]:
    with contextlib.suppress(NameError):
        return get_type_hints(found)
    return {}


class _Options:
    """Stands in for the parser of pytest and for its groups: collects names."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def getgroup(self, *_: object) -> _Options:
        return self

    def addoption(self, name: str, *_: object, **__: object) -> None:
        self.names.append(name)

    addini = addoption


def _plugin() -> dict[str, list[str]]:
    options = _Options()
    plugin.pytest_addoption(options)  # type: ignore[arg-type]
    return {
        "fixtures": sorted(
            name for name in vars(plugin) if name.startswith("a2a_") and name != "a2a_proxy"
        ),
        "options": sorted(options.names),
    }


def _merged(old: Any, new: Any) -> Any:
    if isinstance(new, Mapping):
        return {
            name: _merged(old.get(name, {}), new.get(name, {})) for name in sorted({*old, *new})
        }
    return sorted({*old, *new})


def main() -> int:
    """Add the new names to the file."""
    old = json.loads(PROMISES.read_text()) if PROMISES.exists() else {}
    PROMISES.write_text(json.dumps(_merged(old, surface()), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
