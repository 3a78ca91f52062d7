"""A state directory of its own for each test, and recorders that end with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.capture.file_layout import STATE_VARIABLE
from support_recorder import Bench


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where journals lie."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes benches, each with a folder of its own."""
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        folder = tmp_path / f"bench-{len(made)}"
        folder.mkdir()
        made.append(Bench(folder, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
