"""Coverage-guided fuzz of decoders, parsers and editors. `tests/benchmarks/decoders` calls it.

The targets are the property tests of the packages below: Atheris chooses the bytes from which
Hypothesis makes the values, and keeps those that reach new code. Many of these tests compare with
h2, h11, hyperframe, hpack or httpx-sse, or feed the same bytes in other pieces. The kept bytes of
each target stay in a folder: the next run continues with them.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PACKAGES = (
    "a2a_proto",
    "capture",
    "http",
    "protocol",
    "recording/cassette",
    "recording/query",
    "redaction",
    "relay/edits",
    "replay/convert",
    "replay/core",
    "wire",
)
DONE = re.compile(r"Done (\d+) runs|#(\d+)\s+\S+ cov: (\d+)")
_AUTOMATIC_FIXTURE = "autouse=True"
CRASH_LINES = 30
LONGEST_BYTES = 8192
"""Bytes that Hypothesis takes at most for one example."""
GRACE_SECONDS = 120.0
"""Time for the imports of a target, which Atheris instruments, and for its last example."""


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="tests/benchmarks/decoders", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="WORD",
        help="only targets whose name contains one of these words",
    )
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="time for all targets together (600)"
    )
    parser.add_argument(
        "--corpus", type=Path, default=Path("fuzz-corpus"), help="folder of the kept bytes"
    )
    parser.add_argument("--target", help=argparse.SUPPRESS)
    return parser.parse_args()


def targets() -> Iterator[str]:
    """Yield each property test that needs no fixture, as `FILE::NAME`."""
    for package in PACKAGES:
        for path in sorted((TESTS / package).rglob("test_*.py")):
            text = path.read_text()
            for node in [] if _AUTOMATIC_FIXTURE in text else ast.parse(text).body:
                if isinstance(node, ast.FunctionDef) and _is_property(node):
                    yield f"{path.relative_to(TESTS)}::{node.name}"


def _is_property(node: ast.FunctionDef) -> bool:
    """Return whether a test is decorated with `@given` and nothing that pytest must fill in."""
    for decorator in node.decorator_list:
        words = ast.unparse(decorator)
        if words.startswith("pytest.mark.parametrize"):
            return False
        if isinstance(decorator, ast.Call) and words.startswith("given("):
            given = len(decorator.args) + len(decorator.keywords)
            return given == len(node.args.args)
    return False


def fuzz(target: str, corpus: Path, seconds: float) -> None:
    """Fuzz one target in this process; does not return."""
    import atheris

    file, _, name = target.partition("::")
    sys.path[:0] = [str(TESTS), str((TESTS / file).parent)]
    with atheris.instrument_imports(include=["a2a_proxy", "a2a_proto"]):
        spec = importlib.util.spec_from_file_location("fuzz_target", TESTS / file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    run = getattr(module, name).hypothesis.fuzz_one_input
    crash = f"-artifact_prefix={corpus}/crash-"
    limits = [
        f"-max_total_time={seconds:.0f}",
        f"-max_len={LONGEST_BYTES}",
        "-timeout=60",
        "-rss_limit_mb=4096",
    ]
    atheris.Setup([sys.argv[0], *limits, crash, str(corpus)], lambda data: run(data) and None)
    atheris.Fuzz()


def play(target: str, folder: Path, seconds: float) -> tuple[int, int, str]:
    """Fuzz one target in a process of its own; return its runs, the reached edges, and the output
    of a failure."""
    corpus = folder / hashlib.sha256(target.encode()).hexdigest()[:12]
    corpus.mkdir(parents=True, exist_ok=True)
    (folder / f"{corpus.name}.txt").write_text(target + "\n")
    words = ["--target", target, "--corpus", str(corpus.resolve()), "--seconds", str(seconds)]
    try:
        done = subprocess.run(
            [sys.executable, __file__, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds + GRACE_SECONDS,
            check=False,
        )
        output, failed = done.stdout, done.returncode != 0
    except subprocess.TimeoutExpired as late:
        output, failed = f"no end after {late.timeout:.0f} s", True
    runs = coverage = 0
    for total, number, reached in DONE.findall(output):
        runs = int(total or number)
        coverage = int(reached or coverage)
    return runs, coverage, "\n".join(output.splitlines()[-CRASH_LINES:]) if failed else ""


def main() -> int:
    """Fuzz all targets and report; return 1 if one failed."""
    asked = arguments()
    if asked.target:
        fuzz(asked.target, asked.corpus, asked.seconds)
    chosen = [
        each for each in targets() if not asked.names or any(word in each for word in asked.names)
    ]
    if not chosen:
        sys.exit(f"no target contains {' or '.join(asked.names)}")
    seconds = max(1.0, asked.seconds / len(chosen))
    runs = failures = 0
    for target in chosen:
        count, coverage, failure = play(target, asked.corpus, seconds)
        runs, failures = runs + count, failures + bool(failure)
        print(f"{count:>9,} runs, {coverage:>5} edges  {target}", flush=True)
        if failure:
            print(f"FAILED {target}\n{failure}", flush=True)
    print(f"{len(chosen)} targets of {seconds:.0f} s each, {runs:,} runs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
