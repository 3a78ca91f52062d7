"""Measures of the source tree: size, names, words, structure and tests, each with its target.

.venv/bin/python tests/house/measures.py                the table
.venv/bin/python tests/house/measures.py --list         with the places behind each number
.venv/bin/python tests/house/measures.py --field NAME   product files naming a field of an exchange
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import grimp
import msgspec

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("proto", "proxy", "tui")
PACKAGES = ("a2a_proto", "a2a_proxy", "a2a_inspect")
TEXT = ("*.py", "*.md", "*.proto", "*.toml", "*.html")
BANNED_NAMES = ("_told", "_tell", "_place", "_asked")
MAX_COMPLEXITY = 15
SMALL_LINES = 58
MAX_PARAMETERS = 8
MAX_METHODS = 25
TOKENS = frozenset(
    {
        tokenize.NAME,
        tokenize.OP,
        tokenize.NUMBER,
        tokenize.STRING,
    }
)
_STRING_BEGINS, _STRING_ENDS = (
    getattr(tokenize, f"FSTRING_{name}", -1) for name in ("START", "END")
)
"""Python 3.12 and later divide a formatted string; it is counted as one string, as before."""
FIELD = "sent_traceparent"
"""A field of an exchange that the product learns, stores, shows and exports, and that has no other
meaning."""
LONG_DECLARATIONS = {("proxy/a2a_proxy/rules/define/rule.py", "rule")}
ONE_MODULE_EACH = {
    "a2a_inspect.cli": "command with options of its own, or group of commands",
    "a2a_inspect.check": "format of the report",
    "a2a_inspect.commands.segments": "part of the output: lines, JSON objects, media, marks",
    "a2a_inspect.dialogs": "dialog",
    "a2a_inspect.screens": "screen or controller",
}
"""Packages with one module for each member of a kind -> the kind."""

FREE_DECORATORS = {
    "property": "a noun by nature",
    "cached_property": "a noun by nature",
    "setter": "a property",
    "command": "the word that users type",
    "group": "the word that users type",
    "fixture": "the argument of a test",
    "contextmanager": "a noun: `with transaction(db):`",
}
"""Decorators of functions whose name is fixed or a noun -> the reason."""

FIXED_NAMES = {
    "compose": "Textual: widgets of a screen",
    "render": "Textual: content of a widget",
    "discover": "Textual: entries of the palette",
    "search": "Textual: entries of the palette",
    "Export": "gRPC: method of the stub for OTLP",
    "service": "gRPC: handler of a call",
    "emit": "logging.Handler",
    "readable": "io.RawIOBase",
    "seekable": "io.RawIOBase",
    "writable": "io.RawIOBase",
    "seek": "io.RawIOBase",
    "tell": "io.RawIOBase",
    "_missing_": "enum.Enum",
}
"""Methods whose name an interface outside of the project fixes -> the interface."""

NOTATION = (
    "proto/a2a_proto/pools.py",  # another distribution, imported as `a2a_proto.parse`
    "proxy/a2a_proxy/api/",  # users import it: `recording.exchanges()`
    "proxy/a2a_proxy/hooks/",  # users implement it: `Hook.start`
    "proxy/a2a_proxy/testing/live_recording.py",  # the same names as in `api`
    "proxy/a2a_proxy/rules/examples/objects.py",  # an A2A object: `send(taskId="t1")`
    "proxy/a2a_proxy/rules/examples/conversation.py",  # a call in an example: `rpc("GetTask", ...)`
)
"""Modules whose functions are read as nouns, and why."""

OBJECT_IS_THE_CLASS = {
    "save": "the state of the object",
    "restore": "an object from its saved state",
    "load": "the state of the object",
    "snapshot": "the current value of the object",
    "open": "its file or connection",
    "close": "its file or connection",
    "start": "its work",
    "run": "its work",
    "stop": "its work",
    "finish": "its work",
    "wait": "for its end",
    "kill": "its process",
    "cancel": "its call",
    "abort": "its connection, as a transport of asyncio",
    "feed": "bytes or events to a decoder or an editor",
    "tick": "the time, to an object that waits",
    "poll": "the source of the object",
    "parse": "an object from its text",
    "read": "its file",
    "write": "its file",
    "flush": "its buffer",
    "add": "a member to the collection",
    "append": "a member to the collection",
    "clear": "the collection",
}
"""Methods whose object is the instance or the class itself -> that object. Functions of modules
need the object."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Measure(msgspec.Struct):
    """One row of the table: a number, its target, and the places behind it."""

    name: str
    value: str
    target: str
    places: list[str] = []


@cache
def modules() -> dict[Path, ast.Module]:
    """Every module of the product, parsed."""
    paths = [path for source in SOURCES for path in sorted((ROOT / source).rglob("*.py"))]
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def nodes(kind: type | tuple[type, ...]) -> Iterator[tuple[Path, ast.AST]]:
    """Every node of a kind, with its module."""
    for path, tree in modules().items():
        yield from ((path, node) for node in ast.walk(tree) if isinstance(node, kind))


def module_name(path: Path) -> str:
    """`proxy/a2a_proxy/wire/sse.py` -> `a2a_proxy.wire.sse`."""
    parts = path.with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _tokens(path: Path) -> tuple[int, int]:
    """Return the number of tokens of a module, and the number of its lines that have code: no
    docstrings, comments or blank lines."""
    count, lines, first, depth = 0, set(), True, 0
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            is_docstring = first and token.type == tokenize.STRING
            if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                first = True
            elif token.type in TOKENS or token.type in (_STRING_BEGINS, _STRING_ENDS):
                first = False
                depth -= token.type == _STRING_ENDS
                count += not depth and token.type != _STRING_ENDS
                depth += token.type == _STRING_BEGINS
                if not is_docstring:
                    lines.update(range(token.start[0], token.end[0] + 1))
    return count, len(lines)


def product_tokens() -> Measure:
    """Names, operators, numbers and strings of the product."""
    found = sorted(((_tokens(ROOT / path)[0], path) for path in modules()), reverse=True)
    total = sum(count for count, _ in found)
    return Measure(
        "tokens of the product",
        f"{total:,}",
        "820,000",
        [f"{count:,}: {path}" for count, path in found],
    )


def test_tokens() -> Measure:
    """The same of the tests."""
    found = sorted(
        ((_tokens(path)[0], path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py")),
        reverse=True,
    )
    total = sum(count for count, _ in found)
    return Measure(
        "tokens of the tests", f"{total:,}", "less", [f"{count:,}: {path}" for count, path in found]
    )


def tokens_per_line() -> Measure:
    """Tokens of a line of product code."""
    counts, lines = zip(*(_tokens(ROOT / path) for path in modules()), strict=True)
    return Measure("tokens a line of code", f"{sum(counts) / sum(lines):.2f}", "8.2")


def packages() -> Measure:
    """Modules and packages of the product."""
    found = sorted(module_name(path) for path in modules() if path.name == "__init__.py")
    return Measure("modules, packages", f"{len(modules())}, {len(found)}", "less", found)


def state_methods() -> Measure:
    """Methods that save or restore the state of a decoder or of what is known."""
    found = [
        f"{path}:{node.lineno} {node.name}"
        for path, node in nodes(Function)
        if node.name in ("save", "restore")
    ]
    return Measure("`save` and `restore` methods", str(len(found)), "12", found)


def large_classes() -> Measure:
    """Classes with more than 25 methods."""
    found = []
    for path, node in nodes(ast.ClassDef):
        count = sum(isinstance(each, Function) for each in node.body)
        if count > MAX_METHODS:
            found.append((count, f"{count}: {path}:{node.lineno} {node.name}"))
    found.sort(reverse=True)
    return Measure(
        "classes with more than 25 methods", str(len(found)), "0", [place for _, place in found]
    )


def field_spread(field: str = FIELD) -> Measure:
    """Product files that name a field of an exchange, in code or in a string."""
    found = [
        str(path)
        for path in modules()
        if re.search(rf"\b{field}\b", (ROOT / path).read_text(encoding="utf-8"))
    ]
    return Measure(f"product files that name `{field}`", str(len(found)), "5", found)


def one_word_functions() -> Measure:
    """Functions with a one-word name, of those whose name should be a verb with its object.

    Left out are special methods, `main`, nested functions that are handed over as values, and what
    the tables `FREE_DECORATORS`, `FIXED_NAMES`, `NOTATION` and `OBJECT_IS_THE_CLASS` list.
    """
    total, places = 0, []
    for path, tree in modules().items():
        for function, owner in _named_functions(tree):
            if _has_free_name(path, function, owner):
                continue
            total += 1
            if "_" not in function.name.strip("_"):
                name = (
                    f"{owner.name}.{function.name}"
                    if isinstance(owner, ast.ClassDef)
                    else function.name
                )
                places.append(f"{path}:{function.lineno} {name}")
    value = f"{100 * len(places) / total:.1f} % of {total:,}"
    return Measure(
        "functions with a one-word name", value, "under 5 %: verbs with an object", places
    )


def _named_functions(
    node: ast.AST, owner: ast.AST | None = None
) -> Iterator[tuple[Function, ast.AST | None]]:
    """Yield each function with the class or function around it, or None at the level of the
    module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child, owner
        yield from _named_functions(
            child, child if isinstance(child, (ast.ClassDef, Function)) else owner
        )


def _has_free_name(path: Path, function: Function, owner: ast.AST | None) -> bool:
    """Whether the name of a function need not be a verb with its object."""
    name = function.name
    if name.startswith("__") or name == "main" or path.as_posix().startswith(NOTATION):
        return True
    decorators = {
        ast.unparse(each.func if isinstance(each, ast.Call) else each)
        for each in function.decorator_list
    }
    if any(each.rpartition(".")[2] in FREE_DECORATORS for each in decorators):
        return True
    if isinstance(owner, ast.ClassDef):
        return name in OBJECT_IS_THE_CLASS or name in FIXED_NAMES
    if isinstance(owner, Function):
        calls = {id(node.func) for node in ast.walk(owner) if isinstance(node, ast.Call)}
        uses = [node for node in ast.walk(owner) if isinstance(node, ast.Name) and node.id == name]
        return bool(decorators) or any(id(node) not in calls for node in uses)
    return False


def scattered_private_names() -> Measure:
    """Private function names that more than five modules define."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path, node in nodes(Function):
        if node.name.startswith("_") and not node.name.startswith("__"):
            found[node.name].add(path)
    many = {name: paths for name, paths in found.items() if len(paths) > 5}
    places = [
        f"{name}: {len(paths)} modules"
        for name, paths in sorted(many.items(), key=lambda item: -len(item[1]))
    ]
    return Measure(
        "private function names in more than 5 modules",
        str(len(many)),
        "0 for different things",
        places,
    )


def banned_function_names() -> Measure:
    """Definitions of the four names that once meant everything."""
    counts = dict.fromkeys(BANNED_NAMES, 0)
    for _, node in nodes(Function):
        if node.name in counts:
            counts[node.name] += 1
    return Measure(" / ".join(BANNED_NAMES), " / ".join(map(str, counts.values())), "0 / 0 / 3 / 0")


def repeated_class_names() -> Measure:
    """Class names that several modules define."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path, node in nodes(ast.ClassDef):
        found[node.name].add(path)
    many = {name: paths for name, paths in found.items() if len(paths) > 1}
    inside = [
        name for name, paths in many.items() if len({_package(path) for path in paths}) < len(paths)
    ]
    places = [
        f"{name}: {', '.join(map(str, sorted(paths)))}" for name, paths in sorted(many.items())
    ]
    return Measure(
        "class names in several modules (in one package)",
        f"{len(many)} ({len(inside)})",
        "0 in one package",
        places,
    )


def _package(path: Path) -> tuple[str, ...]:
    return path.parts[1:3]


def _count(pattern: str, *roots: str) -> tuple[int, list[str]]:
    expression = re.compile(pattern, re.IGNORECASE)
    places, total = [], 0
    for root in roots:
        start = ROOT / root
        files = (
            [start] if start.is_file() else [path for kind in TEXT for path in start.rglob(kind)]
        )
        for path in sorted(files):
            if path == Path(__file__).resolve():
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if hits := len(expression.findall(line)):
                    total += hits
                    places.append(f"{path.relative_to(ROOT)}:{number}")
    return total, places


def octets() -> Measure:
    """The word for bytes that is not used, except in keys of stored data and in names of columns
    and media types."""
    total, places = _count(
        r"(?<![\"_])octets?(?![\"_-])",
        *SOURCES,
        "tests",
        "README.md",
        "CHANGELOG.md",
        "recordings/README.md",
    )
    return Measure('the word "octet(s)"', str(total), "0", places)


def missing_documents() -> Measure:
    """References to documents that are not in the repository."""
    total, places = _count(
        r"\b(?:protocol )?sheet\b(?= ?[\d(,.:;]|, part| part)|design(?:\.md)? \d", *SOURCES, "tests"
    )
    return Measure("references to missing documents", str(total), "0", places)


def import_circles() -> Measure:
    """Groups of modules that import one another, type-only imports included."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    edges = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    groups = [sorted(group) for group in _components(edges) if len(group) > 1]
    size = sum(map(len, groups))
    return Measure(
        "import circles (modules in them)",
        f"{len(groups)} ({size})",
        "0",
        [", ".join(group) for group in groups],
    )


def _components(edges: dict[str, set[str]]) -> Iterator[set[str]]:
    """Strongly connected components, by Tarjan's algorithm without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for child in rest:
                if child not in index:
                    index[child] = low[child] = len(index)
                    stack.append(child)
                    on_stack.add(child)
                    work.append((child, iter(sorted(edges.get(child, ())))))
                    break
                if child in on_stack:
                    low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = set()
                    while node not in group:
                        group.add(stack.pop())
                    on_stack -= group
                    yield group


def screen_inheritance() -> Measure:
    """The longest chain of our own classes behind a screen, and how many methods it has."""
    classes = {node.name: node for _, node in nodes(ast.ClassDef)}

    def chain(name: str) -> list[str]:
        if name not in classes:
            return []
        bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name)]
        return [name, *max((chain(base) for base in bases), key=len, default=[])]

    longest = max((chain(name) for name in classes if name.endswith("Screen")), key=len)
    methods = sum(isinstance(node, Function) for name in longest for node in classes[name].body)
    return Measure(
        "screens: inheritance chain (methods)",
        f"{len(longest)} ({methods})",
        "2",
        [" < ".join(longest)],
    )


def small_modules() -> Measure:
    """Modules under 58 lines that could be folded into the one module that imports them.

    Left out are modules that must stay apart: an importer of another floor (the package of a
    contract) cannot take them, a module that is imported only inside functions or for types is
    loaded when it is needed, such as the module of a command, and the packages of `ONE_MODULE_EACH`
    keep a module for each member, however small.
    """
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    early = {
        (importer, name)
        for path, tree in modules().items()
        for importer, name in _early_imports(path, tree)
    }
    found = []
    for path in modules():
        lines = len((ROOT / path).read_text(encoding="utf-8").splitlines())
        name = module_name(path)
        if (
            path.name.startswith("__")
            or lines >= SMALL_LINES
            or name.rpartition(".")[0] in ONE_MODULE_EACH
        ):
            continue
        importers = graph.find_modules_that_directly_import(name)
        if (
            len(importers) == 1
            and (importer := min(importers), name) in early
            and _floor(importer) == _floor(name)
        ):
            found.append(f"{path}: {lines} lines")
    return Measure("small modules to fold into their importer", str(len(found)), "0", found)


def _early_imports(path: Path, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield pairs of the module and each name that it imports when it is loaded itself."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((module_name(path), f"{node.module}.{name.name}") for name in node.names)
            yield module_name(path), node.module
        elif isinstance(node, ast.Import):
            yield from ((module_name(path), name.name) for name in node.names)


def _floor(module: str) -> tuple[str, ...]:
    """`a2a_proxy.wire.sse` -> `a2a_proxy.wire`; the other distributions are one floor each."""
    parts = tuple(module.split("."))
    return parts[:2] if parts[0] == "a2a_proxy" else parts[:1]


def long_parameter_lists() -> Measure:
    """Functions with more than eight parameters, `self` and `cls` left out.

    `rules.define.rule.rule` is allowed: its keywords are the columns of the table of rules.
    """
    found = []
    for path, node in nodes(Function):
        arguments = node.args
        names = [
            each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        ]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        if count > MAX_PARAMETERS and (path.as_posix(), node.name) not in LONG_DECLARATIONS:
            found.append(f"{count}: {path}:{node.lineno} {node.name}")
    return Measure("functions with more than 8 parameters", str(len(found)), "0", found)


def complex_functions() -> Measure:
    """Functions of a cyclomatic complexity over 15, as ruff counts it."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "C901",
        "--output-format",
        "json",
        "--exit-zero",
    ]
    command += ["--config", f"lint.mccabe.max-complexity={MAX_COMPLEXITY}", *SOURCES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = []
    for row in json.loads(done.stdout):
        number = int(re.search(r"\((\d+) >", row["message"])[1])  # type: ignore[index]
        place = Path(row["filename"]).relative_to(ROOT)
        found.append((number, f"{number}: {place}:{row['location']['row']}"))
    found.sort(reverse=True)
    worst = found[0][0] if found else 0
    value = f"{len(found)} (worst {worst})"
    return Measure("functions of complexity over 15", value, "0", [place for _, place in found])


def untested_modules() -> Measure:
    """Modules of the product without a test module of the same path."""
    tests = {
        path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")
    }
    found, total = [], 0
    for path in modules():
        if path.name.startswith("__"):
            continue
        total += 1
        folder = "/".join(path.parts[2:-1])
        folder = f"inspect/{folder}".rstrip("/") if path.parts[0] == "tui" else folder
        if f"{folder}/test_{path.name}".lstrip("/") not in tests:
            found.append(str(path))
    return Measure(
        "modules without a test module of the same path",
        f"{len(found)} of {total}",
        "as documented",
        found,
    )


MEASURES: tuple[Callable[[], Measure], ...] = (
    product_tokens,
    test_tokens,
    tokens_per_line,
    packages,
    state_methods,
    large_classes,
    field_spread,
    one_word_functions,
    scattered_private_names,
    banned_function_names,
    repeated_class_names,
    octets,
    missing_documents,
    import_circles,
    screen_inheritance,
    small_modules,
    long_parameter_lists,
    complex_functions,
    untested_modules,
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the places behind each number")
    parser.add_argument(
        "--field", metavar="NAME", help="print the product files that name a field of an exchange"
    )
    options = parser.parse_args()
    rows = [field_spread(options.field)] if options.field else [measure() for measure in MEASURES]
    for row in rows:
        print(f"{row.name:50} {row.value:>16}   target: {row.target}")
        if options.list or options.field:
            print(*(f"    {place}" for place in row.places), sep="\n")


if __name__ == "__main__":
    main()
