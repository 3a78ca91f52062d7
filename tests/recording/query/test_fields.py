"""The table of fields, and the page of the manual that shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import a2a_proxy
from a2a_proxy.recording.query.errors import QueryError
from a2a_proxy.recording.query.fields import FIELDS
from a2a_proxy.recording.query.parser import parse_expression
from a2a_proxy.recording.query.tree import Match

PAGE = Path(a2a_proxy.__file__).parent / "manual" / "filters.md"


def rows() -> list[str]:
    """The table of the manual, a line per field."""
    return [
        f"| `{field.name}` | {field.about} | {field.kind.name} | `{' '.join(field.kind.ops)}` |"
        f" {'yes' if field.sides else ''} | `{field.example}` |"
        for field in FIELDS.values()
    ]


def test_the_manual_lists_every_field() -> None:
    """The same lines in the same order."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("| `") and line.count("|") == 7] == rows()


@pytest.mark.parametrize("name", FIELDS)
def test_every_example_uses_its_field(name: str) -> None:
    """It is valid as printed in the manual."""
    node = parse_expression(FIELDS[name].example)
    assert isinstance(node, Match)
    assert node.field == name


def test_manual_examples_parse() -> None:
    """Each line of its blocks: what stands after -f or --filter, and the expressions in the
    list."""
    text = PAGE.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("a2a-inspect ")]
    typed = [re.split("-f |--filter ", line)[-1].strip("'") for line in lines]
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("- `")]
    assert len(typed) > 3
    assert len(listed) > 8
    for expression in (*typed, *listed):
        parse_expression(expression)


def test_unknown_words_of_closed_lists_are_refused() -> None:
    """A word that a field does not know is an error for every one of them."""
    for field in FIELDS.values():
        if field.kind.words:
            with pytest.raises(QueryError):
                parse_expression(f"{field.name}:nonsense-word")
