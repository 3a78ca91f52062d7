"""Serves an agent of a framework on a port of its own; imports the standard library and uvicorn
only."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn


def serve(make: Callable[[int], Any]) -> None:
    """Serve the application that `make` returns for a port, until stdin closes; print
    `{"http": port}` before."""
    listener = socket.create_server(("127.0.0.1", 0))
    application = make(listener.getsockname()[1])
    asyncio.run(_serve(application, listener))


async def _serve(application: Any, listener: socket.socket) -> None:
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), end_with_stdin)
    print(json.dumps({"http": listener.getsockname()[1]}), flush=True)
    config = uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listener])


def end_with_stdin() -> None:
    """End this process if stdin is closed, so that no agent outlives a killed test run."""
    if not os.read(sys.stdin.fileno(), 4096):
        os._exit(0)
