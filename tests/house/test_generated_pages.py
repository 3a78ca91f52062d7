"""The generated pages of the manual, and the man pages, equal what the code gives now."""

from __future__ import annotations

from pathlib import Path

import pytest

import support_command_pages
import support_schema_page

_MACROS = {"TH", "SH", "SS", "PP", "TP", "B", "I", "nf", "fi"}
_COMMANDS = support_command_pages.pages()


@pytest.mark.parametrize("path", _COMMANDS, ids=lambda path: str(path.name))
def test_pages_of_commands_equal_the_commands(path: Path) -> None:
    """After a change of a command: `python tests/support_command_pages.py`."""
    assert path.read_text("utf-8") == _COMMANDS[path]


def test_the_page_of_the_schema_equals_the_code() -> None:
    """After a change of the schema or a sample: `python tests/support_schema_page.py`."""
    assert support_schema_page.PAGE.read_text("utf-8") == support_schema_page.schema_page()


@pytest.mark.parametrize("program", support_command_pages.PROGRAMS)
def test_man_pages_have_only_known_requests(program: str) -> None:
    """A line of text that begins with a dot would be taken for a request."""
    lines = support_command_pages.man_page(program).splitlines()
    assert {line.split()[0][1:] for line in lines if line.startswith((".", "'"))} <= _MACROS
    assert lines[1:3] == [".SH NAME", lines[2]]
    assert r" \- " in lines[2]  # what `man -k` looks for


def test_every_command_is_on_its_page() -> None:
    page = support_command_pages.USAGE.read_text("utf-8")
    for program in support_command_pages.PROGRAMS:
        entries = list(support_command_pages.entries(program))
        assert len(entries) > 10
        for each in entries:
            assert f"# {' '.join(each.words)}\n" in page
