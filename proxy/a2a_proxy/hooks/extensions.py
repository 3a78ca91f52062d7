"""Loads the extensions that plug-ins describe: entry points, and objects that the user names as
`module:NAME`."""

import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from typing import Any

import msgspec

from a2a_proxy.protocol.extensions import Extension

EXTENSION_GROUP = "a2a_proxy.extensions"
"""The entry-point group in which packages name their extensions."""
EXTENSIONS_VARIABLE = "A2A_PROXY_EXTENSIONS"
"""The environment variable with the user's extensions: `module:NAME`, separated by commas."""


class ExtensionPlugin(msgspec.Struct, frozen=True):
    """An extension of a plug-in, or why it cannot be used."""

    reference: str
    """`module:NAME`."""
    package: str
    """Name and version of the package; empty if the user named it."""
    extension: Extension | None = None
    failure: str = ""


def load_extensions(named: str | None = None) -> list[ExtensionPlugin]:
    """Return the extensions of the user, then those of packages. Runs the code of their modules;
    raises nothing.

    `named` takes the place of the environment variable.
    """
    words = os.environ.get(EXTENSIONS_VARIABLE, "") if named is None else named
    references = [(word.strip(), "") for word in words.split(",") if word.strip()]
    return [_load(*each) for each in (*references, *_installed())]


def _installed() -> Iterator[tuple[str, str]]:
    for entry in sorted(entry_points(group=EXTENSION_GROUP)):
        yield (
            entry.value,
            f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "",
        )


def _load(reference: str, package: str) -> ExtensionPlugin:
    try:
        return ExtensionPlugin(reference, package, _read_extension(reference))
    except Exception as failure:  # the code of a plug-in
        words = (
            str(failure)
            if isinstance(failure, _PluginError)
            else f"{type(failure).__name__}: {failure}"
        )
        return ExtensionPlugin(reference, package, failure=words)


class _PluginError(Exception):
    """The named object is not an extension."""


def _read_extension(reference: str) -> Extension:
    module, _, name = reference.partition(":")
    if not (module and name):
        raise _PluginError("write it as module:NAME")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last, so that it shadows no other module
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, Extension):
        raise _PluginError(f"{name} is not an Extension")
    names = ("uris", "metadata", "members", "media_types")
    wrong = [each for each in names if not _is_tuple_of_texts(getattr(found, each))]
    if wrong:
        raise _PluginError(f"{wrong[0]} is not a tuple of texts that are not empty")
    return found


def _is_tuple_of_texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, str) and each for each in value)


def usable_extensions(plugins: Iterable[ExtensionPlugin]) -> tuple[Extension, ...]:
    """Return the extensions of the plug-ins that could be loaded."""
    return tuple(each.extension for each in plugins if each.extension is not None)
