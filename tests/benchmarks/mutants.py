"""A mutation run over the pure packages, the relay, the capture and the recorder. `tests/benchmarks/mutants` calls it.

Each mutant is one change that cosmic-ray makes to one module, in a copy of the project. The tests of that module (its
test module, or the test folder of its package) must fail; if they pass, the other test modules that import the module
and the tests of the whole package must. Survivors are printed as differences: each shows a missing test, or is
equivalent to the code and belongs in `equivalent_mutants.toml` with the reason.

A place of the code is drawn first, then one of its mutants: otherwise a binary operator, which has eleven replacements,
would be drawn eleven times as often as a condition.
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from enum import Enum
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
_OMITTED_OPERATORS = {
    r"Comparison.*_(Is_Eq|Eq_Is|IsNot_NotEq|NotEq_IsNot)": "members of enumerations, singletons, types, small"
    " integers and literal texts are equal if they are identical",
    r"Binary.*_BitOr_(Add|BitXor)": "the flags that are joined have distinct bits, so that sum and union are the same",
}
"""Regular expression of the end of an operator's name -> why its mutants are equivalent to the code."""
_LIMIT = re.compile(r"_?[A-Z0-9_]*(MAX_|_SECONDS|_PAUSES|_ATTEMPTS)[A-Z0-9_]*")
"""Constants whose numbers are not changed: nothing depends on whether a limit is one more or less. That there is a
limit is tested, with the constant."""
_OBSERVER_TESTS = ("tests/recorder", "tests/follower")
"""The tests of the packages that run `observer.py`."""
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
TARGET = 0.95
SECONDS = 180.0
"""Maximum seconds of the module's tests: an endless loop counts as found."""
PACKAGE_SECONDS = 300.0
"""Maximum seconds of the second stage. What it does not find in this time has survived."""


class Verdict(Enum):
    """What became of a mutant."""

    KILLED = "killed by the tests of the module"
    TIMEOUT = "stopped at the time limit, counted as killed"
    KILLED_BY_PACKAGE = "killed by other tests of the package"
    EQUIVALENT = "listed as equivalent"
    SURVIVED = "survived"


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mutant that behaves like the code."""

    module: str
    """Relative to `proxy/a2a_proxy`."""
    line: str
    """The line of the code, without indentation."""
    mutant: str
    """The line of the mutant, without indentation."""
    reason: str


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


def places_of(path: Path) -> list[list[Mutant]]:
    """Return the mutants of each place of a module, except those that are equivalent by construction."""
    tree = get_ast((ROOT / path).read_text("utf-8"))
    places: defaultdict[Any, list[Mutant]] = defaultdict(list)
    for name in operator_names():
        if name in _NEED_ARGUMENTS or any(re.search(f"{each}$", name) for each in _OMITTED_OPERATORS):
            continue
        operator, occurrence = get_operator(name)(), 0
        for node in ast_nodes(tree):
            for position in operator.mutation_positions(node):
                if not _is_annotation(node) and not _is_without_effect(node):
                    places[position].append(Mutant(path, name, occurrence))
                occurrence += 1
    return list(places.values())


def draw(places: list[list[Mutant]], count: int, seed: int) -> Iterator[tuple[Mutant, str, str]]:
    """Yield `count` mutants of different places, each with the text of its module before and after the change."""
    dice = random.Random(seed)
    for mutants in dice.sample(places, len(places)):
        if count == 0:
            return
        mutant = dice.choice(mutants)
        before = (ROOT / mutant.path).read_text("utf-8")
        after = mutate_code(before.encode(), get_operator(mutant.operator)(), mutant.occurrence)
        assert after is not None, mutant
        try:
            compile(after, str(mutant.path), "exec")
        except SyntaxError:  # the stars of a signature are no operators
            continue
        yield mutant, before, after
        count -= 1


def _is_without_effect(node: Any) -> bool:
    """Whether a node is in a block for type checkers, or a number of a constant that is a limit."""
    while node is not None:
        if node.type == "if_stmt" and node.children[1].get_code().strip() == "TYPE_CHECKING":
            return True
        if node.type == "expr_stmt" and _LIMIT.fullmatch(node.children[0].get_code().strip()):
            return True
        node = node.parent
    return False


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


def wider_tests_of(path: Path) -> list[str]:
    """Return other test modules that import a module, then the tests of its package."""
    name = re.compile(rf"\b{'.'.join(path.with_suffix('').parts[1:])}\b".replace(".", r"\."))
    package = Path("tests", path.parts[2])
    omitted = [ROOT / each for each in (package, "tests/benchmarks", "tests/e2e", "tests/house", "tests/peers")]
    importers = [
        str(test.relative_to(ROOT))
        for test in sorted((ROOT / "tests").rglob("test_*.py"))
        if not any(test.is_relative_to(each) for each in omitted) and name.search(test.read_text("utf-8"))
    ]
    tests = [*importers, *([str(package)] if (ROOT / package).is_dir() else _OBSERVER_TESTS)]
    return [each for each in tests if each not in tests_of(path)]


def judge(mutant: Mutant, after: str, copy: Path) -> Verdict:
    """Run the tests with the mutant."""
    target = copy / mutant.path
    before = target.read_text("utf-8")
    target.write_text(after, "utf-8")
    try:
        passed = _tests_pass(tests_of(mutant.path), SECONDS, copy)
        if passed is None:
            return Verdict.TIMEOUT
        if not passed:
            return Verdict.KILLED
        wider = wider_tests_of(mutant.path)
        found = bool(wider) and _tests_pass(wider, PACKAGE_SECONDS, copy) is False
        return Verdict.KILLED_BY_PACKAGE if found else Verdict.SURVIVED
    finally:
        target.write_text(before, "utf-8")


def _tests_pass(tests: list[str], seconds: float, copy: Path) -> bool | None:
    """Return whether tests pass; None if they did not end in time."""
    sources = os.pathsep.join(str(copy / name) for name in ("proto", "proxy", "tui"))
    environment = {
        **os.environ,
        "PYTHONPATH": sources,
        "PYTHONDONTWRITEBYTECODE": "1",
        "A2A_PROXY_STATE": str(copy / "state"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode == 0


def read_equivalents() -> dict[tuple[str, str, str], str]:
    """Return the reason of each mutant that is listed as equivalent; ends the program if a line no longer exists."""
    listed = msgspec.toml.decode(EQUIVALENT.read_bytes(), type=dict[str, list[Equivalent]])["mutants"]
    for each in listed:
        source = (ROOT / "proxy/a2a_proxy" / each.module).read_text("utf-8")
        if each.line not in map(str.strip, source.splitlines()):
            sys.exit(f"{EQUIVALENT.name}: {each.module} has no line `{each.line}`: change or delete the entry")
    return {(each.module, each.line, each.mutant): each.reason for each in listed}


def _changed_lines(before: str, after: str) -> tuple[str, str]:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next(((old.strip(), new.strip()) for old, new in pairs if old != new), ("", ""))


def main() -> int:
    """Draw mutants, test each, report; 1 if fewer than `TARGET` of those that are not equivalent are killed."""
    parser = argparse.ArgumentParser(prog="tests/benchmarks/mutants", description=__doc__)
    parser.add_argument("--mutants", type=int, default=600, metavar="N", help="how many (600)")
    parser.add_argument("--seed", type=int, default=1, help="draw others (1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="of modules whose path contains this")
    options = parser.parse_args()
    equivalents = read_equivalents()
    places = [place for path in modules() if options.only in str(path) for place in places_of(path)]
    print(f"{options.mutants} mutants, seed {options.seed}, of {len(places)} places", flush=True)
    verdicts: Counter[Verdict] = Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="a2a-mutants-") as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
        for mutant, before, after in draw(places, options.mutants, options.seed):
            key = ("/".join(mutant.path.parts[2:]), *_changed_lines(before, after))
            verdict = Verdict.EQUIVALENT if key in equivalents else judge(mutant, after, copy)
            verdicts[verdict] += 1
            if verdict in (Verdict.SURVIVED, Verdict.TIMEOUT):
                lines = difflib.unified_diff(
                    before.splitlines(), after.splitlines(), str(mutant.path), "mutant", lineterm="", n=1
                )
                print(f"{verdict.value}: {mutant.operator}", *lines, "", sep="\n", flush=True)
            if verdicts.total() % 10 == 0:
                spent = time.monotonic() - began
                print(f"{verdicts.total()} tested in {spent:.0f} s, {verdicts[Verdict.SURVIVED]} survived", flush=True)
    for verdict in Verdict:
        print(f"{verdicts[verdict]:5} {verdict.value}")
    share = 1 - verdicts[Verdict.SURVIVED] / max(verdicts.total() - verdicts[Verdict.EQUIVALENT], 1)
    print(f"killed {share:.1%} of those that are not equivalent; target {TARGET:.0%}")
    return 0 if share >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
