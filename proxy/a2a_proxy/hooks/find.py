"""Resolves the name of a hook as typed by the user: an entry point, or `module:Class`."""

import difflib
import importlib
import os
import re
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from typing import Any

import msgspec

from a2a_proxy.hooks.hook import ENTRY_POINT_GROUP
from a2a_proxy.model.errors import UserError

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_MAX_NAMES_SHOWN = 5
LIST_COMMAND = "a2a-inspect plugins"
"""The command that lists the installed hooks."""


class HookError(UserError):
    """A hook cannot be used. `hint` names the next step."""


class InstalledHook(msgspec.Struct, frozen=True, order=True):
    """A hook provided by an installed package."""

    name: str
    reference: str
    """`module:Class`."""
    package: str
    """Name and version of the package; empty if unknown."""


def installed_hooks() -> list[InstalledHook]:
    """Return all hooks that packages name in the entry-point group, by name. Runs none of their
    code."""
    return sorted(
        InstalledHook(
            each.name,
            each.value,
            f"{each.dist.name} {each.dist.version}" if each.dist is not None else "",
        )
        for each in entry_points(group=ENTRY_POINT_GROUP)
    )


def check_hook(name: str) -> None:
    """Check that a hook exists, as far as possible without running its code.

    Raises:
        HookError: the hook does not exist.
    """
    module = _resolve_reference(name).partition(":")[0].partition(".")[0]
    known = (
        module in sys.builtin_module_names
        or PathFinder.find_spec(module, [*sys.path, os.getcwd()]) is not None
    )
    if not known:
        raise HookError(
            f"hook {name}: no module is named {module}", f"put the folder of {module} on PYTHONPATH"
        )


def load_hook(name: str) -> Callable[[], Any]:
    """Return the class, or any other callable that creates the hook. Runs the module's code and
    raises its exceptions.

    Raises:
        HookError: the hook does not exist.
    """
    module, _, attribute = _resolve_reference(name).partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last, so that it shadows no other module
    target: Any = importlib.import_module(module)
    for part in attribute.split("."):
        target = _get_member(name, target, part)
    if not callable(target):
        raise HookError(
            f"hook {name}: {attribute} is not a class",
            "name a class that is called without arguments",
        )
    made: Callable[[], Any] = target
    return made


def _get_member(name: str, owner: Any, part: str) -> Any:
    try:
        return getattr(owner, part)
    except AttributeError:
        near = difflib.get_close_matches(
            part, [each for each in dir(owner) if each[0] != "_"], _MAX_NAMES_SHOWN, 0.4
        )
        hint = f"similar names: {', '.join(near)}" if near else "check the name after the colon"
        raise HookError(f"hook {name}: {owner.__name__} has no {part}", hint) from None


def _resolve_reference(name: str) -> str:
    """Return `module:Class` for a name. Raises HookError."""
    if ":" in name:
        if not _REFERENCE.fullmatch(name):
            raise HookError(f"hook {name!r} does not name a class", "write it as module:Class")
        return name
    references = {each.name: each.reference for each in installed_hooks()}
    if name in references:
        return references[name].partition("[")[0].strip()
    near = difflib.get_close_matches(name, references, _MAX_NAMES_SHOWN, 0.4)
    if near:
        raise HookError(
            f"no hook is named {name!r}; similar: {', '.join(near)}",
            f"list all hooks: {LIST_COMMAND}",
        )
    hint = (
        f"list the installed hooks: {LIST_COMMAND}"
        if references
        else "no hooks are installed; for a script, name the class: module:Class"
    )
    raise HookError(f"no hook is named {name!r}", hint)
