"""Where the live agent comes from: needed to record, and not started for anything else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def a2a_upstream() -> Iterator[str]:
    """The agent of the sample, started."""
    line = [sys.executable, str(Path(__file__).with_name("innkeeper.py"))]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        yield f"http://127.0.0.1:{int(agent.stdout.readline())}"
        agent.stdin.close()
