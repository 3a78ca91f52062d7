"""Of many like cases CI tries some, a command all of them: `tests/run -m "soak or not soak" FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def thin(values: Iterable[Any], every: int) -> list[ParameterSet]:
    """Each value as a parameter; all but every so many-th are for the command."""
    return [
        pytest.param(value, marks=pytest.mark.soak if number % every else ()) for number, value in enumerate(values)
    ]
