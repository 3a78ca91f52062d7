"""The tour in manual/architecture.md names what exists, and its floors are those of the
contracts."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "proxy/a2a_proxy/manual/architecture.md").read_text("utf-8")
_PACKAGES = "relay|capture|recorder|observer|wire|protocol|redaction|rules|recording|replay|cli"
_PLACES = sorted(set(re.findall(rf"`((?:{_PACKAGES})(?:\.\w+)+|rules/[\w/]+\.py)`", PAGE)))


def _module_and_names(place: str) -> tuple[Path, list[str]]:
    """Return the file of a dotted place in a2a_proxy, and the names that follow the module."""
    if place.endswith(".py"):
        return ROOT / "proxy/a2a_proxy" / place, []
    parts = place.split(".")
    for count in range(len(parts), 0, -1):
        path = ROOT / "proxy/a2a_proxy" / ("/".join(parts[:count]) + ".py")
        if path.exists():
            return path, parts[count:]
    raise AssertionError(f"no module of the name {place}")


@pytest.mark.parametrize("place", _PLACES)
def test_a_place_of_the_tour_exists(place: str) -> None:
    path, names = _module_and_names(place)
    body: list[ast.stmt] = ast.parse(path.read_text("utf-8")).body
    for name in names:
        found = [each for each in body if getattr(each, "name", "") == name]
        assert found, f"{path.name} has no {name}"
        body = getattr(found[0], "body", [])


def test_the_floors_are_those_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(
        each["layers"]
        for each in contracts
        if each["type"] == "layers" and "a2a_proto" in each["layers"]
    )
    floors = [sorted(re.findall(r"[\w.]+", layer)) for layer in reversed(layers)]
    rows = re.findall(r"^\| (\d+) \| `([\w.]+)` \|", PAGE, re.M)
    drawn: dict[int, list[str]] = {}
    for number, package in rows:
        drawn.setdefault(int(number), []).append(package)
    assert [sorted(drawn[number]) for number in sorted(drawn)] == floors
