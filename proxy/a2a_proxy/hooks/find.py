"""From the name that a user typed to the class: an entry point, or `module:Class`."""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import msgspec

from a2a_proxy.hooks.hook import ENTRY_POINT_GROUP

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_MAX_NAMES_SHOWN = 5
LIST_COMMAND = "a2a-inspect hooks"
"""The command that lists what is installed."""


class HookError(Exception):
    """A hook cannot be used. `hint` says what to do next."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InstalledHook(msgspec.Struct, frozen=True, order=True):
    """A hook that a package brings along."""

    name: str
    reference: str
    """`module:Class`."""
    package: str
    """Name and version of the package; empty where it does not say."""


def installed_hooks() -> list[InstalledHook]:
    """All hooks that packages name in the entry-point group, by name. None of their code is run."""
    return sorted(
        InstalledHook(each.name, each.value, _package_name(each)) for each in entry_points(group=ENTRY_POINT_GROUP)
    )


def _package_name(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""


def check_hook(name: str) -> None:
    """Is there such a hook, as far as that can be told without running its code?

    Raises:
        HookError: there is none.
    """
    module = _resolve_reference(name).partition(":")[0].partition(".")[0]
    known = module in sys.builtin_module_names or PathFinder.find_spec(module, [*sys.path, os.getcwd()]) is not None
    if not known:
        raise HookError(f"hook {name}: there is no module {module}", f"put the folder of {module} on PYTHONPATH")


def load_hook(name: str) -> Callable[[], Any]:
    """The class, or whatever else makes the hook when it is called. Runs the module's code, and raises what that does.

    Raises:
        HookError: there is no such hook.
    """
    module, _, attribute = _resolve_reference(name).partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last, so that it hides nothing
    target: Any = importlib.import_module(module)
    for part in attribute.split("."):
        target = _get_member(name, target, part)
    if not callable(target):
        raise HookError(f"hook {name}: {attribute} is no class", "name a class that is called without arguments")
    made: Callable[[], Any] = target
    return made


def _get_member(name: str, owner: Any, part: str) -> Any:
    try:
        return getattr(owner, part)
    except AttributeError:
        near = difflib.get_close_matches(part, [each for each in dir(owner) if each[0] != "_"], _MAX_NAMES_SHOWN, 0.4)
        hint = f"near to it: {', '.join(near)}" if near else "check the name after the colon"
        raise HookError(f"hook {name}: {owner.__name__} has no {part}", hint) from None


def _resolve_reference(name: str) -> str:
    """`module:Class` of a name. Raises HookError."""
    if ":" in name:
        if not _REFERENCE.fullmatch(name):
            raise HookError(f"hook {name!r} is no name of a class", "write it as module:Class")
        return name
    references = {each.name: each.reference for each in installed_hooks()}
    if name in references:
        return references[name].partition("[")[0].strip()
    near = difflib.get_close_matches(name, references, _MAX_NAMES_SHOWN, 0.4)
    if near:
        raise HookError(f"there is no hook {name!r}; near to it: {', '.join(near)}", f"see all: {LIST_COMMAND}")
    hint = (
        f"see what is installed: {LIST_COMMAND}"
        if references
        else "none is installed; of a script, name the class: module:Class"
    )
    raise HookError(f"there is no hook {name!r}", hint)
