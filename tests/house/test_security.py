"""The numbers in SECURITY.md are those of the code and of the tests."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from support_hostile_streams import RECORDER_MIB, RELAY_MIB

_PAGE = (Path(__file__).parents[2] / "SECURITY.md").read_text()
_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ms": 0.001, "s": 1}
_ROWS = re.findall(r"\| ([\d,]+) ?(KiB|MiB|GiB|ms|s|) \| `([\w.]+)` \|$", _PAGE, re.MULTILINE)
_PER_SECOND = {"recorder.process._COMMIT_INTERVAL": 1e9}
"""Constants of another unit, and how many of it make a second."""


def _value(name: str) -> float:
    """The constant `package.module.NAME`, or the default of a field,
    `package.module.Class.field`."""
    parts = name.split(".")
    last = next(i for i, part in enumerate(parts) if part.lstrip("_")[0].isupper())
    found = importlib.import_module(".".join(("a2a_proxy", *parts[:last])))
    for part in parts[last:]:
        found = getattr(found() if isinstance(found, type) else found, part)
    return float(found) / _PER_SECOND.get(name, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("number", "unit", "name"), _ROWS, ids=[name for _, _, name in _ROWS])
def test_documented_limits_equal_the_code(number: str, unit: str, name: str) -> None:
    assert int(number.replace(",", "")) * _UNITS[unit] == pytest.approx(_value(name))


def test_every_row_of_the_limits_was_compared() -> None:
    limits = _PAGE.partition("## Limits")[2].partition("\n## ")[0]
    assert len(_ROWS) == limits.count("\n| ") - 1 > 15


def test_documented_memory_limits_equal_the_test() -> None:
    assert f"the relay below {RELAY_MIB} MiB and the recorder below {RECORDER_MIB} MiB" in _PAGE
