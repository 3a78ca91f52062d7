"""The options of every command that prints a report of findings."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from a2a_proxy.cli.help_sections import FILE

_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--select",
        multiple=True,
        metavar="PREFIX",
        help="Only rules whose id begins with PREFIX: A2A-GEN, or GEN.",
    ),
    click.option(
        "--ignore", multiple=True, metavar="PREFIX", help="Omit rules whose id begins with PREFIX."
    ),
    click.option(
        "--fail-on",
        type=click.Choice(["error", "warning", "info", "never"]),
        default="error",
        show_default=True,
        help="Exit with 1 if a finding is at least this severe.",
    ),
    click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json", "junit", "sarif"]),
        default="text",
        show_default=True,
        help="Format of the report.",
    ),
    click.option(
        "--output",
        "-o",
        type=FILE,
        metavar="FILE",
        help="Write the report to FILE.",
    ),
    click.option(
        "--card-keys",
        type=FILE,
        metavar="FILE",
        help="Verify signatures of cards with these keys: JWK set, JWK or PEM (extra: cards).",
    ),
    click.option(
        "--suppressions",
        type=FILE,
        metavar="FILE",
        help="Findings to ignore, with reasons.",
    ),
)


def add_report_options(command: _Command) -> _Command:
    """Add the options of a report to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
