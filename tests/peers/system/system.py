"""A system of four processes: this client asks the planner for two tasks at once, the planner asks
the broker, and the broker, which runs on Node.js, asks the worker.

Runs in the `sdk1` environment. Prints the answers as a JSON list, and ends with the given exit
code.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from links import ask

_FOLDER = Path(__file__).resolve().parent
_ORDERS = ("a table for two", "twelve red roses")


def start(*line: str, **variables: str) -> str:
    """Start an agent, which ends when this process does, and return its URL."""
    process = subprocess.Popen(
        line,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
    assert process.stdout is not None
    return "http://127.0.0.1:{http}".format(**json.loads(process.stdout.readline()))


async def main() -> None:
    """Start the agents, ask, and end."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--bindings",
        default="JSONRPC,GRPC,HTTP+JSON",
        help="of the three calls; the broker has gRPC only",
    )
    parser.add_argument("--node", required=True, help="the program of Node.js")
    parser.add_argument("--modules", required=True, help="see broker.mjs")
    parser.add_argument("--calls", type=Path, required=True, help="folder of the agents' lines")
    parser.add_argument("--past", action="store_true", help="the broker asks past the proxy")
    parser.add_argument("--exit-code", type=int, default=0)
    parser.add_argument("--wait", action="store_true", help="run until killed")
    args = parser.parse_args()
    to_planner, to_broker, to_worker = args.bindings.split(",")
    python, calls = sys.executable, args.calls
    seconds = "2" if args.past else "0"
    worker = start(
        python, str(_FOLDER / "worker.py"), "--calls", str(calls / "worker"), "--seconds", seconds
    )
    script = [
        args.node,
        str(_FOLDER / "broker.mjs"),
        "--modules",
        args.modules,
        "--calls",
        str(calls / "broker"),
    ]
    past = {"NODE_USE_ENV_PROXY": "0"} if args.past else {}
    broker = start(*script, "--next", worker, "--binding", to_worker, **past)
    script = [python, str(_FOLDER / "planner.py"), "--calls", str(calls / "planner")]
    planner = start(*script, "--next", broker, "--binding", to_broker)
    print(
        json.dumps(await asyncio.gather(*(ask(planner, to_planner, order) for order in _ORDERS))),
        flush=True,
    )
    if args.wait:
        await asyncio.Event().wait()
    sys.exit(args.exit_code)


if __name__ == "__main__":
    asyncio.run(main())
