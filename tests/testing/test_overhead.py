"""Costs of the plug-in for test suites that do not use it, and for large ones."""

from __future__ import annotations

import subprocess
import sys


def test_pytest_loads_two_modules() -> None:
    """Its start takes some milliseconds longer, not what the import of aiohttp and grpc takes."""
    code = (
        "import sys, pytest; had = set(sys.modules); import a2a_proxy.testing.plugin; "
        "print(*set(sys.modules) - had)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    package = "a2a_proxy.testing"
    assert set(done.stdout.split()) == {
        "a2a_proxy",
        package,
        f"{package}.plugin",
        f"{package}.plugin_state",
    }


def test_collecting_loads_no_decoder() -> None:
    """Thousands of cassettes are looked for by their names; none is opened."""
    code = "import sys, a2a_proxy.testing.cassette_usage; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {
        "msgspec",
        "sqlite3",
        "asyncio",
        "aiohttp",
        "grpc",
        "google.protobuf",
        "a2a_proxy.recording",
    }
    assert set(done.stdout.split()) & heavy == set()
