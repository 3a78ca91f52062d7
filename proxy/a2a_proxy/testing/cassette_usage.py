"""Cassettes of the collected tests; markers without effect and cassettes without a test."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from a2a_proxy.testing.cassette_paths import SUFFIX, default_cassette, folder_of, named_cassette
from a2a_proxy.testing.plugin_state import MARKER


def cassettes_of(node: pytest.Item) -> list[Path]:
    """Return the cassettes of a test: those of its markers, or the one by convention."""
    names = [name for marker in node.iter_markers(MARKER) for name in marker.args]
    if names:
        return [named_cassette(node.path, str(name)) for name in dict.fromkeys(names)]
    chain = [each.name for each in node.listchain() if isinstance(each, pytest.Class)]
    return [default_cassette(node.path, [*chain, node.name])]


def warn_idle_markers(items: Iterable[pytest.Item]) -> None:
    """Warn about tests that have cassettes but no agent to replay them."""
    for item in items:
        own = any(each.name == MARKER for each in item.own_markers)
        if own and not {"a2a_agent", "a2a_live"} & set(getattr(item, "fixturenames", ())):
            item.warn(
                pytest.PytestWarning(
                    f"{MARKER} has no effect here: the test does not use the fixture a2a_agent"
                )
            )


def find_orphans(arguments: Iterable[str], items: Iterable[pytest.Item]) -> Iterator[Path]:
    """Yield the cassettes in the folders of collected modules that none of their tests uses.

    A module of which only some tests were selected by their ids is left out.
    """
    partly = {Path(each.partition("::")[0]).name for each in arguments if "::" in each}
    used: set[Path] = set()
    folders: set[Path] = set()
    for item in items:
        if "a2a_agent" in getattr(item, "fixturenames", ()):
            used |= set(cassettes_of(item))
        if item.path.name not in partly:
            folders.add(folder_of(item.path))
    for folder in sorted(folders):
        yield from (path for path in sorted(folder.glob(f"*{SUFFIX}")) if path not in used)
