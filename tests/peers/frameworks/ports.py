"""Ports for servers that are told where to listen and do not say when they do. Standard library
only."""

from __future__ import annotations

import socket
import time

SECONDS = 60


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for(port: int) -> None:
    """Return when somebody listens on the port; TimeoutError if nobody does."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nothing listens on port {port}")
