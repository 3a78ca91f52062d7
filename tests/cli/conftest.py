"""An agent, and proxies that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import support_cli
from support_cli import Agent, Proxy


@pytest.fixture
def agent() -> Iterator[Agent]:
    """A plain agent."""
    with support_cli.agent() as one:
        yield one


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    """Starts proxies, each in a folder of its own but with one state directory."""
    made: list[Proxy] = []

    def start(*words: object, **options: Any) -> Proxy:
        made.append(Proxy(tmp_path, *words, **options))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.wait()
