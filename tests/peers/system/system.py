"""A system of three processes: this client asks the planner for two tasks at once, and the planner asks the worker.

Runs in the `sdk1` environment. Prints the answers as a JSON list, and ends with the given exit code.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from pathlib import Path

from links import ask

_FOLDER = Path(__file__).resolve().parent
_ORDERS = ("a table for two", "twelve red roses")


def start(name: str, *words: str) -> tuple[subprocess.Popen[str], str]:
    """Start an agent, and return it with its URL."""
    process = subprocess.Popen([sys.executable, str(_FOLDER / f"{name}.py"), *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, "http://127.0.0.1:{http}".format(**json.loads(process.stdout.readline()))


async def main() -> None:
    """Start the agents, ask, and end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--binding", default="JSONRPC")
    parser.add_argument("--calls", type=Path, required=True, help="folder of the agents' lines")
    parser.add_argument("--past", action="store_true", help="the planner asks past the proxy")
    parser.add_argument("--exit-code", type=int, default=0)
    args = parser.parse_args()
    past = ["--past"] if args.past else []
    worker, worker_url = start("worker", "--calls", str(args.calls / "worker"), "--seconds", "2" if args.past else "0")
    planner_words = ["--calls", str(args.calls / "planner"), "--next", worker_url, "--binding", args.binding, *past]
    planner, planner_url = start("planner", *planner_words)
    try:
        answers = await asyncio.gather(*(ask(planner_url, args.binding, order) for order in _ORDERS))
        print(json.dumps(answers), flush=True)
    finally:
        for process in (planner, worker):
            process.kill()
            process.wait()
    sys.exit(args.exit_code)


if __name__ == "__main__":
    asyncio.run(main())
