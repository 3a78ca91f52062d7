"""All long checks, one after another, and one table of their results. `tests/benchmarks/nightly`
calls it.

The results are kept in a file after each check: the same command continues a run that was
interrupted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2]
KILLS = 500
SECONDS = {"soak": 3600.0, "fuzz": 3600.0, "decoders": 3600.0}
"""Duration of those checks that have one, at `--scale 1`."""
MESSAGES = TEXTS = 10_000_000
HOSTILE = (
    "tests/e2e/test_hostile_streams.py",
    "tests/e2e/test_hostile_hellos.py",
    "tests/relay/test_hostile_origins.py",
    "tests/inspect/commands/test_hostile_recordings.py",
    "tests/e2e/test_disks.py",
    "tests/wire/test_libraries.py",
    "tests/recording/cassette",
)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="tests/benchmarks/nightly", description=__doc__)
    parser.add_argument(
        "checks", nargs="*", metavar="CHECK", help=f"only these: {', '.join(commands(1))}"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="times the duration and the number of kills (1)"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("nightly.json"), metavar="FILE", help="nightly.json"
    )
    asked = parser.parse_args()
    if unknown := set(asked.checks) - set(commands(1)):
        parser.error(
            f"there is no check {sorted(unknown)[0]!r}; the checks: {', '.join(commands(1))}"
        )
    return asked


def commands(scale: float) -> dict[str, list[str]]:
    """Return the command of each check."""
    seconds = {name: f"{each * scale:.0f}" for name, each in SECONDS.items()}
    kills = max(1, round(KILLS * scale))
    pytest = [".venv/bin/pytest", "-q", "-m", "soak or not soak"]
    return {
        "soak": ["tests/benchmarks/soak", "--seconds", seconds["soak"]],
        "kills": ["env", f"KILLS={kills}", "tests/benchmarks/kills"],
        "growth": [".venv/bin/python", "tests/benchmarks/growth.py", str(round(MESSAGES * scale))],
        "limits": [*pytest, "tests/e2e/test_limits.py", "tests/e2e/test_byte_exact.py"],
        "hostile": [*pytest, *HOSTILE],
        "fuzz": ["tests/benchmarks/fuzz", "--seconds", seconds["fuzz"]],
        "decoders": ["tests/benchmarks/decoders", "--seconds", seconds["decoders"]],
        "sieve": ["tests/benchmarks/sieve", "--texts", str(round(TEXTS * scale))],
    }


def run(command: list[str]) -> dict[str, object]:
    """Run a command; return it with its duration in s, its exit code and the last line of its
    output."""
    began = time.monotonic()
    done = subprocess.run(
        command,
        cwd=FOLDER,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode:
        print(done.stdout[-8000:], flush=True)
    return {
        "command": " ".join(command),
        "seconds": round(time.monotonic() - began),
        "code": done.returncode,
        "result": lines[-1].strip("= ") if lines else "no output",
    }


def table(results: dict[str, dict[str, object]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| check | command | minutes | exit code | last line |"
    yield "|---|---|--:|--:|---|"
    for name, each in results.items():
        minutes = int(str(each["seconds"])) / 60
        yield (
            f"| {name} | `{each['command']}` | {minutes:.1f} | {each['code']} | {each['result']} |"
        )


def main() -> int:
    """Run what has no result yet, and print the table; return 1 if a check failed."""
    asked = arguments()
    results = json.loads(asked.results.read_text()) if asked.results.exists() else {}
    for name, command in commands(asked.scale).items():
        if name in results or (asked.checks and name not in asked.checks):
            continue
        print(f"{time.strftime('%H:%M:%S')} {name}: {' '.join(command)}", flush=True)
        results[name] = run(command)
        asked.results.write_text(json.dumps(results, indent=2) + "\n")
    print("\n".join(table(results)))
    return 1 if any(each["code"] for each in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
