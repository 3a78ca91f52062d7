"""A mutation run over the pure packages, the relay, the capture and the recorder. `tests/benchmarks/mutants` calls it.

Each mutant is one change that cosmic-ray makes to one module, in a copy of the project. The tests of that module (its
test module, or the test folder of its package) must fail. Survivors are printed as differences: each is equivalent to
the code, or shows a missing test.
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "model",
    "wire",
    "protocol",
    "redaction",
    "rules",
    "observer.py",
    "relay",
    "capture",
    "recorder",
    "replay/core",
)
"""Packages of `proxy/a2a_proxy`. `rules/families` is omitted: `tests/mutations` changes conversations for each rule."""
COPIED = ("proto", "proxy", "tui", "tests", "recordings", "pyproject.toml", "README.md")
_NEED_ARGUMENTS = {"core/VariableReplacer", "core/VariableInserter"}
TARGET = 0.95
SECONDS = 180.0
"""Maximum seconds of the tests of one mutant: an endless loop counts as found."""


class Mutant(msgspec.Struct, frozen=True):
    """One change of one module."""

    path: Path
    """Relative to the project."""
    operator: str
    occurrence: int


def modules() -> list[Path]:
    """Return the modules that are mutated, relative to the project."""
    found: list[Path] = []
    for name in PACKAGES:
        place = ROOT / "proxy/a2a_proxy" / name
        found += [place] if place.is_file() else sorted(place.rglob("*.py"))
    relative = [path.relative_to(ROOT) for path in found]
    return [path for path in relative if path.name != "__init__.py" and "families" not in path.parts]


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module, except those that change only an annotation."""
    tree = get_ast((ROOT / path).read_text("utf-8"))
    for name in operator_names():
        if name in _NEED_ARGUMENTS:
            continue
        operator, occurrence = get_operator(name)(), 0
        for node in ast_nodes(tree):
            for _ in operator.mutation_positions(node):
                if not _is_annotation(node):
                    yield Mutant(path, name, occurrence)
                occurrence += 1


def _is_annotation(node: Any) -> bool:
    """Whether a node of the syntax tree is inside an annotation, which no program evaluates here."""
    while node.parent is not None:
        parent = node.parent
        before = parent.children[parent.children.index(node) - 1] if parent.children[0] is not node else None
        if parent.type in ("annassign", "tfpdef", "funcdef") and before is not None and before.type == "operator":
            return before.value in (":", "->") and node.type != "suite"
        node = parent
    return False


def tests_of(path: Path) -> list[str]:
    """Return the test module of a module if there is one, otherwise the test folder of its package."""
    folder = Path("tests", *path.parts[2:-1])
    module = folder / f"test_{path.stem}.py"
    if (ROOT / module).exists():
        return [str(module)]
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    return [str(folder)]


def survives(mutant: Mutant, copy: Path) -> tuple[bool, str]:
    """Return whether the tests pass with the mutant, and the change as a difference."""
    target = copy / mutant.path
    before = target.read_text("utf-8")
    after = mutate_code(before.encode(), get_operator(mutant.operator)(), mutant.occurrence)
    assert after is not None, mutant
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(mutant.path), "mutant", lineterm="", n=1)
    target.write_text(after, "utf-8")
    try:
        return _tests_pass(mutant.path, copy), "\n".join(lines)
    finally:
        target.write_text(before, "utf-8")


def _tests_pass(path: Path, copy: Path) -> bool:
    sources = os.pathsep.join(str(copy / name) for name in ("proto", "proxy", "tui"))
    environment = {
        **os.environ,
        "PYTHONPATH": sources,
        "PYTHONDONTWRITEBYTECODE": "1",
        "A2A_PROXY_STATE": str(copy / "state"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests_of(path)]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> int:
    """Draw mutants, test each, report; 1 if fewer than `TARGET` are killed."""
    parser = argparse.ArgumentParser(prog="tests/benchmarks/mutants", description=__doc__)
    parser.add_argument("--mutants", type=int, default=600, metavar="N", help="how many (600)")
    parser.add_argument("--seed", type=int, default=1, help="draw others (1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="of modules whose path contains this")
    options = parser.parse_args()
    every = [one for path in modules() if options.only in str(path) for one in mutants_of(path)]
    drawn = random.Random(options.seed).sample(every, min(options.mutants, len(every)))
    print(f"{len(drawn)} of {len(every)} mutants, seed {options.seed}", flush=True)
    survivors, began = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="a2a-mutants-") as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
        for number, mutant in enumerate(drawn, 1):
            survived, difference = survives(mutant, copy)
            if survived:
                survivors.append(difference)
                print(f"survived: {mutant.operator}\n{difference}\n", flush=True)
            if number % 10 == 0:
                spent = time.monotonic() - began
                print(f"{number} tested in {spent:.0f} s, {len(survivors)} survived", flush=True)
    killed = 1 - len(survivors) / max(len(drawn), 1)
    print(f"killed {killed:.1%} of {len(drawn)}; target {TARGET:.0%}")
    return 0 if killed >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
