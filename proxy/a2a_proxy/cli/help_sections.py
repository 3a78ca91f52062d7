"""Help in sections: options and commands grouped by purpose, each command with its whole first
sentence; the type of parameters that name a file."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

FILE = click.Path(path_type=Path)
"""The type of options and arguments that name a file."""
Topics = Mapping[str, str]
"""A command -> its page of the manual."""
HelpSections = tuple[tuple[str, tuple[str, ...]], ...]
"""Headings, and the names of the parameters or commands under each; a heading without names gets
all remaining ones."""
_HelpLines = dict[str, tuple[str, str]]
_MIN_LIKENESS = 0.7
"""Likeness of a mistyped command (`shwo` and `show`: 0.75; `serve` and `drive`: 0.6)."""


class SectionedGroup(click.Group):
    """A group of commands whose help lists options and commands under headings; unlisted ones are
    last. The help of a command ends with its page of the manual."""

    def __init__(
        self,
        *names: Any,
        option_parts: HelpSections = (),
        command_parts: HelpSections = (),
        topics: Topics | None = None,
        **more: Any,
    ) -> None:
        self._topics = topics or {}
        super().__init__(*names, **more)
        self._option_sections = option_parts
        self._command_sections = command_parts

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with its page of the manual at the end of its help."""
        super().add_command(cmd, name)
        if topic := self._topics.get(name or cmd.name or ""):
            cmd.epilog = f"More: a2a-inspect help {topic}"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command. Raises UsageError with the names that are close to a wrong one."""
        name = args[0]
        if (
            self.get_command(ctx, name) is None
            and not name.startswith("-")
            and not ctx.resilient_parsing
        ):
            from difflib import get_close_matches

            close = get_close_matches(name, self.list_commands(ctx), cutoff=_MIN_LIKENESS)
            question = f". Did you mean {' or '.join(map(repr, close))}?" if close else ""
            if name == "help":  # as in a2a-inspect, where it is a command
                question = f". The manual: {' '.join(['a2a-inspect', *args])}"
            raise click.UsageError(f"No such command {name!r}{question}", ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        records = ((each.name or "", each.get_help_record(ctx)) for each in self.get_params(ctx))
        lines = {name: record for name, record in records if record is not None}
        _write_sections(
            formatter,
            lines,
            (*self._option_sections, ("Other options" if self._option_sections else "Options", ())),
        )
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each under its first heading only."""
        known = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        shown = (
            (name, command) for name, command in known if command is not None and not command.hidden
        )
        lines = {
            name: (name, command.get_short_help_str(_NO_LIMIT).removesuffix("."))
            for name, command in shown
        }
        _write_sections(
            formatter,
            lines,
            (
                *self._command_sections,
                ("Other commands" if self._command_sections else "Commands", ()),
            ),
        )


_NO_LIMIT = 1000
"""Characters of the longest first sentence: none is cut."""


def _write_sections(
    formatter: click.HelpFormatter,
    lines: _HelpLines,
    sections: Iterable[tuple[str, tuple[str, ...]]],
) -> None:
    """Write each section with its lines; a section without names gets all remaining lines."""
    left = dict(lines)
    for title, names in sections:
        rows = [left.pop(name) for name in names or tuple(left) if name in left]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
