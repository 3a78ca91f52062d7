"""The docstring of every package lists its modules in layers, and the layers agree with the
imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PROXY = _ROOT / "proxy/a2a_proxy"
_FEW = 3
"""Modules of a package that needs no list, at most."""
_CLAIM = "A module imports only modules of its own layer and of the layers below it."
_ITEM = re.compile(r"- `(\w+)`: \S")


def _modules(package: Path) -> set[str]:
    """Return the modules and sub-packages of a package."""
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in package.glob("*/__init__.py")}


def _large_packages() -> list[Path]:
    packages = [path.parent for path in sorted(_PROXY.glob("*/__init__.py"))]
    return [each for each in (*packages, _ROOT / "tui/a2a_inspect") if len(_modules(each)) > _FEW]


def _docstring(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""


def _layers(docstring: str) -> list[list[str]]:
    """Return the listed modules of each layer, from top to bottom. Blank lines separate layers."""
    layers = [
        [name[1] for name in map(_ITEM.match, part.splitlines()) if name]
        for part in docstring.split("\n\n")
    ]
    return [layer for layer in layers if layer]


def _imported(package: Path, module: str) -> set[str]:
    """Return the modules of the package that one of its modules imports, also for annotations and
    in functions."""
    folder = package / module
    files = list(folder.rglob("*.py")) if folder.is_dir() else [package / f"{module}.py"]
    return {name for file in files for name in _imported_names(file, package)} & (
        _modules(package) - {module}
    )


def _imported_names(file: Path, package: Path) -> Iterator[str]:
    """Yield the first name after the package's in each of its modules that the file imports."""
    base = ".".join(package.relative_to(_ROOT).parts[1:])
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        full: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Import):
            full = [each.name for each in node.names]
        yield from (
            name.removeprefix(f"{base}.").split(".")[0]
            for name in full
            if name.startswith(f"{base}.")
        )


@pytest.mark.parametrize("package", _large_packages(), ids=lambda path: path.name)
def test_the_docstring_lists_every_module(package: Path) -> None:
    """Every module is listed once, and every listed module exists."""
    listed = [name for layer in _layers(_docstring(package)) for name in layer]
    assert sorted(listed) == sorted(_modules(package)), (
        f"update the docstring of {package / '__init__.py'}"
    )


@pytest.mark.parametrize(
    "package",
    [each for each in _large_packages() if _CLAIM in _docstring(each)],
    ids=lambda p: p.name,
)
def test_imports_agree_with_the_layers(package: Path) -> None:
    """In packages whose docstring claims it, no module imports a module of a layer above its
    own."""
    layers = _layers(_docstring(package))
    level = {name: number for number, layer in enumerate(layers) for name in layer}
    upward = {
        (name, other)
        for name in level
        for other in _imported(package, name)
        if level[other] < level[name]
    }
    assert not upward
