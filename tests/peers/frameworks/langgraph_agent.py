"""A graph behind the development server of LangGraph, which serves it as an A2A agent.

The server is a process of its own, in a folder that is deleted with it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from ports import free_port, wait_for

HERE = Path(__file__).resolve().parent
QUIET = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}


def main() -> None:
    """Serve until stdin closes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory() as folder:
        graphs = {"answering": f"{HERE / 'langgraph_graph.py'}:graph"}
        Path(folder, "langgraph.json").write_text(
            json.dumps({"dependencies": ["."], "graphs": graphs})
        )
        port = free_port()
        program = str(Path(sys.executable).with_name("langgraph"))
        options = ["--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)]
        with subprocess.Popen(
            [program, "dev", *options],
            cwd=folder,
            env={**os.environ, **QUIET},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as server:
            try:
                wait_for(port)
                print(json.dumps({"http": port}), flush=True)
                sys.stdin.read()
            finally:
                server.kill()


if __name__ == "__main__":
    main()
