"""Reduce many similar cases to some for CI; `tests/run -m "soak or not soak" FILE` runs all of
them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def thin(values: Iterable[Any], every: int) -> list[ParameterSet]:
    """Return each value as a parameter. One of `every` values runs in CI, the others have the mark
    `soak`."""
    return [
        pytest.param(value, marks=pytest.mark.soak if number % every else ())
        for number, value in enumerate(values)
    ]
