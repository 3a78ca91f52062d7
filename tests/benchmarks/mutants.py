"""A mutation run over the pure packages, the relay, the capture and the recorder.
`tests/benchmarks/mutants` calls it.

Each mutant is one change that cosmic-ray makes to one module, in a copy of the project. The tests
of that module (its test module, or the test folder of its package) must fail; if they pass, the
tests of the other packages must. Survivors are printed as differences: each shows a missing test,
or is equivalent to the code and belongs in `equivalent_mutants.toml` with the reason.

All tests run once first, without mutants, to learn which execute which lines. A mutant is then
judged by those that execute its statement and, of its own package, by those that start other
processes, whose lines are not known. The quickest run first, as many as fit into `BUDGET_SECONDS`.

A place of the code is drawn first, then one of its mutants: otherwise a binary operator, which has
eleven replacements, would be drawn eleven times as often as a condition.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import coverage
import hypothesis  # noqa: F401  # imported here once, not again for each mutant
import msgspec
import pytest
import pytest_aiohttp.plugin  # noqa: F401
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "model",
    "http",
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
"""Packages of `proxy/a2a_proxy`. `rules/families` is omitted: `tests/mutations` changes
conversations for each rule."""
_PACKAGE = Path("proxy/a2a_proxy")
COPIED = ("proto", "proxy", "tui", "tests", "recordings", "pyproject.toml", "README.md")
_NEED_ARGUMENTS = {"core/VariableReplacer", "core/VariableInserter"}
_OMITTED_OPERATORS = {
    (
        r"Comparison.*_(Is_Eq|Eq_Is"
        r"|IsNot_NotEq|NotEq_IsNot)"
    ): "members of enumerations, singletons, types, small"
    " integers and literal texts are equal if they are identical",
    r"Binary.*_BitOr_(Add|BitXor)": (
        "the flags that are joined have distinct bits, so that sum and union are the same"
    ),
}
"""Regular expression of the end of an operator's name -> why its mutants are equivalent to the
code."""
_CHANGED_NODES = {
    *(
        "comparison",
        "number",
        "keyword",
        "if_stmt",
        "test",
        "factor",
        "not_test",
        "decorator",
        "for_stmt",
    ),
    *("except_clause", "while_stmt", "assert_stmt"),
}
"""Types of nodes of the syntax tree that operators change, besides `operator`: to ask 250 operators
about each name would take minutes."""
_PUNCTUATION = {".", ",", ":", "=", "(", ")", "[", "]", "{", "}", "->"}
_LIMIT = re.compile(
    r"_?[A-Z0-9_]*(MAX_|_SECONDS|_PAUSES|_ATTEMPTS|_WIDTH|_CACHED|_AT_ONCE)[A-Z0-9_]*"
)
"""Constants whose numbers are not changed: nothing depends on whether a limit is one more or less.
That there is a limit is tested, with the constant."""
_CONFIGURATION = {"gc", "frozen", "slots"}
"""Arguments of a class that change speed, or forbid assignments, which mypy finds."""
_TESTS = (
    *(f"tests/{name}" for name in PACKAGES if name != "observer.py"),
    *(
        "tests/test_observer.py",
        "tests/inspect/commands/test_rules.py",
        "tests/recording/tools/test_scan.py",
    ),
)
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
TARGET = 0.95
BUDGET_SECONDS = 30.0
"""Seconds that the tests of one stage take without a mutant. What none of them finds has survived,
although a slower test might find it."""
_SPARE_SECONDS = 60.0
"""Seconds that tests may take longer than three times what they take without a mutant. An endless
loop counts as found."""


class Verdict(Enum):
    """What became of a mutant."""

    KILLED = "killed by the tests of the module"
    TIMEOUT = "stopped at the time limit, counted as killed"
    KILLED_BY_OTHERS = "killed by tests of other modules"
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
    line: int


def modules() -> list[Path]:
    """Return the modules that are mutated, relative to the project."""
    found: list[Path] = []
    for name in PACKAGES:
        place = _PACKAGE / name
        found += [place] if place.is_file() else sorted(place.rglob("*.py"))
    return [path for path in found if path.name != "__init__.py" and "families" not in path.parts]


def places_of(path: Path) -> list[list[Mutant]]:
    """Return the mutants of each place of a module, except those that are equivalent by
    construction."""
    nodes = [
        node
        for node in ast_nodes(get_ast(path.read_text("utf-8")))
        if node.type in _CHANGED_NODES
        or (node.type == "operator" and node.value not in _PUNCTUATION)
    ]
    places: defaultdict[Any, list[Mutant]] = defaultdict(list)
    for name in operator_names():
        if name in _NEED_ARGUMENTS or any(
            re.search(f"{each}$", name) for each in _OMITTED_OPERATORS
        ):
            continue
        operator, occurrence = get_operator(name)(), 0
        for node in nodes:
            for position in operator.mutation_positions(node):
                if not _is_annotation(node) and not _is_without_effect(node):
                    places[position].append(Mutant(path, name, occurrence, position[0][0]))
                occurrence += 1
    return list(places.values())


def draw(places: list[list[Mutant]], count: int, seed: int) -> Iterator[tuple[Mutant, str, str]]:
    """Yield `count` mutants of different places, each with the text of its module before and after
    the change."""
    dice = random.Random(seed)
    for mutants in dice.sample(places, len(places)):
        if count == 0:
            return
        mutant = dice.choice(mutants)
        before = mutant.path.read_text("utf-8")
        after = mutate_code(before.encode(), get_operator(mutant.operator)(), mutant.occurrence)
        assert after is not None, mutant
        try:
            compile(after, str(mutant.path), "exec")
        except SyntaxError:  # the stars of a signature are no operators
            continue
        yield mutant, before, after
        count -= 1


def _is_without_effect(node: Any) -> bool:
    """Whether a node is in a block for type checkers, the decorator of an abstract method, which
    mypy checks, the size of a cache, the number of a constant that is a limit, a length in the
    table of key formats, which are facts that a test could only repeat, or one of
    `_CONFIGURATION`."""
    if (
        node.type == "operator" and node.parent.type == "parameters"
    ):  # the star before keyword arguments
        return True
    if (
        node.type == "number"
        and node.parent.type == "arglist"
        and "KeyFormat" in node.parent.parent.parent.get_code()
    ):
        return True
    while node is not None:
        if node.type == "argument" and node.children[0].get_code().strip() in _CONFIGURATION:
            return True
        if node.type == "decorator" and node.children[1].get_code().startswith(
            ("lru_cache", "abstractmethod")
        ):
            return True
        if node.type == "if_stmt" and node.children[1].get_code().strip() == "TYPE_CHECKING":
            return True
        if node.type == "expr_stmt" and _LIMIT.fullmatch(node.children[0].get_code().strip()):
            return True
        node = node.parent
    return False


def _is_annotation(node: Any) -> bool:
    """Whether a node of the syntax tree is inside an annotation, which no program evaluates
    here."""
    while node.parent is not None:
        parent = node.parent
        before = (
            parent.children[parent.children.index(node) - 1]
            if parent.children[0] is not node
            else None
        )
        if (
            parent.type in ("annassign", "tfpdef", "funcdef")
            and before is not None
            and before.type == "operator"
        ):
            return before.value in (":", "->") and node.type != "suite"
        node = parent
    return False


def tests_of(path: Path) -> Path:
    """Return the test module of a module if there is one, otherwise the test folder of its
    package."""
    folder = Path("tests", *path.parts[2:-1])
    module = folder / f"test_{path.stem}.py"
    if module.exists():
        return module
    while not folder.is_dir():
        folder = folder.parent
    return folder


class Measurement(msgspec.Struct):
    """What the tests do without mutants. A test is a function of a test module, with all its
    parameters."""

    seconds: dict[str, float] = {}
    """Of each test."""
    failed: set[str] = set()
    """Tests that fail without mutants. They are not used."""
    lines: dict[str, dict[int, set[str]]] = {}
    """Module -> line -> the tests that execute it."""
    starters: set[str] = set()
    """Tests that start processes."""

    def tests_at(self, path: Path, line: int) -> set[str]:
        """Return the tests that execute the statement at a line; for a statement that is executed
        before the tests, or once for all, those that execute any function of the module, or else
        those of the module."""
        lines, statement = self.lines.get(str(path), {}), _lines_of_statement(path, line)
        executed = [each for each in statement if each in lines]
        tests = {test for each in executed for test in lines[each]}
        if not tests and (executed or not statement):
            tests = {test for each in lines.values() for test in each}
            return tests or {test for test in self.seconds if _is_in(tests_of(path), test)}
        return tests


class _Recorder:
    """A plugin of pytest that measures tests."""

    def __init__(self, lines: coverage.Coverage, measurement: Measurement) -> None:
        self._lines = lines
        self._measurement = measurement
        self._test = ""
        sys.addaudithook(self._note_process)

    def _note_process(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in ("subprocess.Popen", "os.posix_spawn", "os.fork"):
            self._measurement.starters.add(self._test)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._test, began = _name_of(item), time.monotonic()
        self._lines.switch_context(self._test)
        try:
            return (yield)
        finally:
            spent = time.monotonic() - began
            self._measurement.seconds[self._test] = (
                self._measurement.seconds.get(self._test, 0.0) + spent
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._measurement.failed.add(self._test)


class _Selection:
    """A plugin of pytest that runs the chosen tests, in their order."""

    def __init__(self, tests: list[str]) -> None:
        self._rank = {test: rank for rank, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if _name_of(item) in self._rank),
            key=lambda item: self._rank[_name_of(item)],
        )


def _name_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def measure() -> Measurement:
    """Run all tests without a mutant."""
    result = Path("measurement")
    _run_in_child(lambda: _measure(result), None)
    return msgspec.json.decode(result.read_bytes(), type=Measurement)


def _measure(result: Path) -> int:
    lines = coverage.Coverage(data_file=None, source=[str(_PACKAGE.resolve())], config_file=False)
    measurement = Measurement()
    with lines.collect():
        pytest.main(["-q", "-p", "no:cacheprovider", *_TESTS], [_Recorder(lines, measurement)])
    for path in modules():
        contexts = lines.get_data().contexts_by_lineno(str(path.resolve()))
        measurement.lines[str(path)] = {line: set(tests) - {""} for line, tests in contexts.items()}
    result.write_bytes(msgspec.json.encode(measurement))
    return 0


@cache
def _lines_of_statement(path: Path, line: int) -> range:
    """Return the lines of the statement at a line, without the body of a compound statement; none
    if the statement is outside functions or in one whose results are cached."""
    found = range(0)
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            if any("cache" in ast.unparse(each) for each in function.decorator_list):
                continue
            for node in (each for statement in function.body for each in ast.walk(statement)):
                if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
                    body = getattr(node, "body", None)
                    first = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
                    last = body[0].lineno - 1 if body else getattr(node, "end_lineno", first)
                    if first <= line <= max(first, last) and (
                        not found or len(found) > max(first, last) - first
                    ):
                        found = range(first, max(first, last) + 1)
    return found


def judge(mutant: Mutant, after: str, measurement: Measurement) -> Verdict:
    """Run the tests with the mutant."""
    package = Path("tests", mutant.path.parts[2])
    starters = {test for test in measurement.starters if _is_in(package, test)}
    tests = (measurement.tests_at(mutant.path, mutant.line) | starters) - measurement.failed
    first = {test for test in tests if _is_in(tests_of(mutant.path), test)}
    before = mutant.path.read_text("utf-8")
    mutant.path.write_text(after, "utf-8")
    try:
        for chosen, verdict in ((first, Verdict.KILLED), (tests - first, Verdict.KILLED_BY_OTHERS)):
            status = _run_tests(chosen, measurement)
            if status is None:
                return Verdict.TIMEOUT
            if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                return verdict
        return Verdict.SURVIVED
    finally:
        mutant.path.write_text(before, "utf-8")


def _is_in(place: Path, test: str) -> bool:
    """Return whether a test is in a test module or folder."""
    return Path(test.partition("::")[0]).is_relative_to(place)


def _run_tests(chosen: set[str], measurement: Measurement) -> int | None:
    """Return the exit status of pytest; None if the tests did not end in time."""
    if not chosen:
        return pytest.ExitCode.NO_TESTS_COLLECTED
    tests: list[str] = []
    total = 0.0
    for test in sorted(chosen, key=measurement.seconds.__getitem__):
        total += measurement.seconds[test]
        if tests and total > BUDGET_SECONDS:
            break
        tests.append(test)
    command = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        *dict.fromkeys(test.partition("::")[0] for test in tests),
    ]
    seconds = _SPARE_SECONDS + 3 * total
    return _run_in_child(lambda: pytest.main(command, [_Selection(tests)]), seconds)


def _run_in_child(work: Callable[[], int], seconds: float | None) -> int | None:
    """Return what `work` returns in a child of this process, which has imported what the tests need
    already."""

    def run() -> None:
        os.setsid()
        sources = [str(Path(name).resolve()) for name in ("proto", "proxy", "tui")]
        sys.path[:0] = sources
        sys.dont_write_bytecode = True
        os.environ["PYTHONPATH"] = os.pathsep.join(sources)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["A2A_PROXY_STATE"] = str(Path("state").resolve())
        with Path("output").open("w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        os._exit(work())

    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    assert child.pid is not None
    child.join(seconds)
    status = child.exitcode
    with suppress(
        ProcessLookupError
    ):  # it, if it has not ended, and processes that its tests did not end
        os.killpg(child.pid, signal.SIGKILL)
    child.join()
    return status


def read_equivalents() -> dict[tuple[str, str, str], str]:
    """Return the reason of each mutant that is listed as equivalent; ends the program if a line no
    longer exists."""
    listed = msgspec.toml.decode(EQUIVALENT.read_bytes(), type=dict[str, list[Equivalent]])[
        "mutants"
    ]
    for each in listed:
        source = (_PACKAGE / each.module).read_text("utf-8")
        if each.line not in map(str.strip, source.splitlines()):
            sys.exit(
                f"{EQUIVALENT.name}: {each.module} has no line "
                f"`{each.line}`: change or delete the entry"
            )
    return {(each.module, each.line, each.mutant): each.reason for each in listed}


def _changed_lines(before: str, after: str) -> tuple[str, str]:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next(((old.strip(), new.strip()) for old, new in pairs if old != new), ("", ""))


def main() -> int:
    """Draw mutants, test each, report; 1 if fewer than `TARGET` of those that are not equivalent
    are killed."""
    parser = argparse.ArgumentParser(prog="tests/benchmarks/mutants", description=__doc__)
    parser.add_argument("--mutants", type=int, default=600, metavar="N", help="how many (600)")
    parser.add_argument("--seed", type=int, default=1, help="draw others (1)")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="of modules whose path contains this"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="a2a-mutants-") as folder:
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, Path(folder, name))
        os.chdir(folder)
        return _run(options.mutants, options.seed, options.only)


def _run(count: int, seed: int, only: str) -> int:
    """Test mutants of the copy, which is the working directory."""
    equivalents = read_equivalents()
    places = [place for path in modules() if only in str(path) for place in places_of(path)]
    print(f"{count} mutants, seed {seed}, of {len(places)} places", flush=True)
    verdicts: Counter[Verdict] = Counter()
    began = time.monotonic()
    measurement = measure()
    print(
        f"{len(measurement.seconds)} tests measured in {time.monotonic() - began:.0f} s", flush=True
    )
    for test in sorted(measurement.failed):
        print(f"not used, because it fails without a mutant: {test}", flush=True)
    for mutant, before, after in draw(places, count, seed):
        key = ("/".join(mutant.path.parts[2:]), *_changed_lines(before, after))
        verdict = Verdict.EQUIVALENT if key in equivalents else judge(mutant, after, measurement)
        verdicts[verdict] += 1
        if verdict in (Verdict.SURVIVED, Verdict.TIMEOUT):
            lines = difflib.unified_diff(
                before.splitlines(),
                after.splitlines(),
                str(mutant.path),
                "mutant",
                lineterm="",
                n=1,
            )
            print(f"{verdict.value}: {mutant.operator}", *lines, "", sep="\n", flush=True)
        if verdicts.total() % 10 == 0:
            spent = time.monotonic() - began
            counts = ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict)
            print(f"{verdicts.total()} tested in {spent:.0f} s: {counts}", flush=True)
    for verdict in Verdict:
        print(f"{verdicts[verdict]:5} {verdict.value}")
    share = 1 - verdicts[Verdict.SURVIVED] / max(verdicts.total() - verdicts[Verdict.EQUIVALENT], 1)
    print(f"killed {share:.1%} of those that are not equivalent; target {TARGET:.0%}")
    return 0 if share >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
