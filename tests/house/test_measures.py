"""Measures of the source tree that have reached their targets and stay there."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

_FILE = Path(__file__).with_name("measures.py")
_REACHED = (
    "scattered_private_names",
    "missing_documents",
    "import_circles",
    "small_modules",
    "long_parameter_lists",
    "complex_functions",
)


@pytest.fixture(scope="module")
def measures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measures", _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", _REACHED)
def test_a_target_that_was_reached_stays_reached(measures: ModuleType, name: str) -> None:
    """Import circles include imports for types only."""
    row = getattr(measures, name)()
    assert not row.places, f"{row.name}: {row.places}"


def test_few_functions_have_a_one_word_name(measures: ModuleType) -> None:
    """The target leaves room for the rules, whose functions have the name of the fault."""
    row = measures.one_word_functions()
    assert float(row.value.split()[0]) < 5, row.places
    assert row.places


def test_a_line_of_code_has_few_tokens(measures: ModuleType) -> None:
    """Short lines are read, long ones are decoded."""
    assert float(measures.tokens_per_line().value) <= 8.2


def test_few_files_name_a_field_of_an_exchange(measures: ModuleType) -> None:
    """The field table, where it is learned, and what shows it specially."""
    row = measures.field_spread()
    assert 1 <= int(row.value) <= 5, row.places


def test_few_classes_save_their_state_themselves(measures: ModuleType) -> None:
    """The others are Structs, whose fields are the state."""
    row = measures.state_methods()
    assert int(row.value) <= 12, row.places
