"""The help of both programs: each option and command once, in a section, within 80 columns."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from a2a_inspect.cli.main import cli as inspect
from a2a_inspect.commands.manual import list_pages
from a2a_proxy.cli.main import cli as proxy

ROOT = Path(__file__).parents[2]


def groups(command: click.Command, *words: str) -> list[tuple[str, click.Command]]:
    """A command and those below it that are shown, with what is typed for each."""
    below = command.commands.items() if isinstance(command, click.Group) else ()
    inner = [
        each for name, under in below if not under.hidden for each in groups(under, *words, name)
    ]
    return [(" ".join(words), command), *inner]


ALL = [(program, words) for program in (proxy, inspect) for words, _ in groups(program)]


def help_of(program: click.Command, words: str) -> str:
    ran = CliRunner().invoke(program, [*words.split(), "--help"], prog_name="x", terminal_width=80)
    assert ran.exit_code == 0
    return ran.output


@pytest.mark.parametrize("program", [proxy, inspect])
def test_help_lists_every_option_and_command_once(program: click.Group) -> None:
    text = help_of(program, "")
    options = [
        each for each in program.params if isinstance(each, click.Option) and not each.hidden
    ]
    for name in (each.opts[0] for each in options):
        assert len(re.findall(rf"^  (?:-\w, )?{name}\b(?!-)", text, re.MULTILINE)) == 1, name
    for name in (name for name, each in program.commands.items() if not each.hidden):
        assert len(re.findall(rf"^  {name} ", text, re.MULTILINE)) == 1, name


def test_unlisted_options_are_in_a_last_section() -> None:
    """Under a heading of its own, so that a new option is not forgotten."""
    text = help_of(proxy, "")
    headings = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    assert headings[0] == "Relay"
    assert headings[-2:] == ["Other options", "Commands"]
    others = text[text.index("Other options:") : text.index("Commands:")]
    assert re.findall(r"--[\w-]+", others) == ["--version", "--help"]
    assert "Other commands" not in help_of(inspect, "")


@pytest.mark.parametrize(("program", "words"), ALL)
def test_help_lines_fit_80_columns(program: click.Command, words: str) -> None:
    lines = help_of(program, words).splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if re.search(r"[a-z,]\.\.\.$", line)] == []


@pytest.mark.parametrize(("program", "words"), ALL, ids=str)
def test_help_names_an_existing_page_of_the_manual(program: click.Command, words: str) -> None:
    topics = re.findall(r"a2a-inspect help ([\w-]+)", help_of(program, words))
    assert set(topics) <= set(list_pages())


def test_messages_name_existing_pages_of_the_manual() -> None:
    """In the sources of both programs, also where a hint spans two strings."""
    sources = [path for package in ("proxy", "tui") for path in (ROOT / package).rglob("*.py")]
    texts = [re.sub(r"\"\s*\n\s*f?\"", "", path.read_text("utf-8")) for path in sources]
    topics = {
        topic for text in texts for topic in re.findall(r"a2a-inspect help ([a-z][\w-]*)", text)
    }
    assert {"filters", "run", "redaction"} <= topics
    assert topics <= set(list_pages())
