from __future__ import annotations

import asyncio
import subprocess
import sys

from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.run import run_loop
from support_relay import SECONDS

HEAVY = (
    "aiohttp",
    "grpc",
    "google.protobuf",
    "sqlite_utils",
    "sqlite3",
    "textual",
    "hpack",
    "httptools",
    "opentelemetry",
)


def test_the_relay_imports_little() -> None:
    """Starting the relay with its journal loads none of the heavy libraries."""
    script = (
        "import sys, a2a_proxy.relay.server, a2a_proxy.relay.run, a2a_proxy.capture.journal;"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert result.stdout == "[]\n"


def test_run_uses_uvloop_if_installed() -> None:
    """`run` drives a coroutine to its result."""

    async def which() -> str:
        return type(asyncio.get_running_loop()).__module__

    try:
        import uvloop  # noqa: F401
    except ImportError:
        assert run_loop(which()).startswith("asyncio")
    else:
        assert run_loop(which()).startswith("uvloop")


def test_the_session_clock_is_monotonic() -> None:
    """Times of a session are in order even when read as fast as possible."""
    clock = session_clock()
    times = [clock() for _ in range(10_000)]
    assert times == sorted(times)
