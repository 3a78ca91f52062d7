"""Help in parts: options and commands by what they are for, and of each command its whole first sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

HelpSections = tuple[tuple[str, tuple[str, ...]], ...]
"""Headings, and the names of the parameters or commands under each; without names all that are left."""
_HelpLines = dict[str, tuple[str, str]]


class SectionedGroup(click.Group):
    """A group of commands whose help has its options and commands under headings; what no part names comes last."""

    def __init__(
        self, *names: Any, option_parts: HelpSections = (), command_parts: HelpSections = (), **more: Any
    ) -> None:
        super().__init__(*names, **more)
        self._option_sections = option_parts
        self._command_sections = command_parts

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        records = ((each.name or "", each.get_help_record(ctx)) for each in self.get_params(ctx))
        lines = {name: record for name, record in records if record is not None}
        _write_sections(
            formatter, lines, (*self._option_sections, ("Other options" if self._option_sections else "Options", ()))
        )
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands. One that another part names is not repeated."""
        known = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        shown = ((name, command) for name, command in known if command is not None and not command.hidden)
        lines = {name: (name, command.get_short_help_str(_NO_LIMIT).removesuffix(".")) for name, command in shown}
        _write_sections(
            formatter,
            lines,
            (*self._command_sections, ("Other commands" if self._command_sections else "Commands", ())),
        )


_NO_LIMIT = 1000
"""Characters: no sentence is cut."""


def _write_sections(
    formatter: click.HelpFormatter, lines: _HelpLines, sections: Iterable[tuple[str, tuple[str, ...]]]
) -> None:
    """Each part with its lines; a part without names has those that are left."""
    left = dict(lines)
    for title, names in sections:
        rows = [left.pop(name) for name in names or tuple(left) if name in left]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
