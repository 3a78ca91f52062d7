"""The generated pages about commands: `manual/usage.md`, and man pages.
`python tests/support_command_pages.py` writes them; `tests/house` compares them with the commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, wrap
from typing import NamedTuple

import click

from a2a_inspect.cli.main import cli as inspect_cli
from a2a_proxy.cli.main import cli as proxy_cli

ROOT = Path(__file__).parents[1]
USAGE = ROOT / "proxy/a2a_proxy/manual/usage.md"
MAN = ROOT / "proxy/a2a_proxy/manual/man"

PROGRAMS = {"a2a-proxy": proxy_cli, "a2a-inspect": inspect_cli}
_ABOUT = {
    "a2a-proxy": "relay and record A2A traffic",
    "a2a-inspect": "inspect and check recordings of A2A traffic",
}
_WIDTH = 118

_INTRODUCTION = """# Every command and option

Generated from the programs: `a2a-proxy COMMAND --help` prints the same. \
[Commands](commands.md) is the overview, and
[options](options.md) explains the options of the proxy.
"""

_MAN_END = (
    "\n.SH ENVIRONMENT\n"
    r"Every option can be set in the environment: \fBA2A_PROXY_LISTEN\fR for \fB\-\-listen\fR"
    r""" of \fBa2a\-proxy\fR. The
command line takes precedence.
.TP
.B A2A_PROXY_CONFIG
Folder of \fIkeys.toml\fR and \fIviews.toml\fR; the default is \fI~/.config/a2a\-proxy\fR.
.SH FILES
.TP
.I ~/.local/state/a2a\-proxy/recordings
Recordings without \fB\-\-record\fR.
.SH SEE ALSO
The manual: \fBa2a\-inspect help\fR, \fBa2a\-inspect help \fITOPIC\fR.
"""
)


class Entry(NamedTuple):
    """A command as its pages show it."""

    words: tuple[str, ...]
    usage: str
    text: str
    """Paragraphs, separated by empty lines; a paragraph after `\\b` is preformatted."""
    options: list[tuple[str, str]]


def entries(program: str) -> Iterator[Entry]:
    """Yield the program, then its commands and theirs, in alphabetical order."""
    command = PROGRAMS[program]
    yield from _walk(command, click.Context(command, info_name=program, **command.context_settings))


def _walk(command: click.Command, context: click.Context) -> Iterator[Entry]:
    records = [
        record
        for each in command.get_params(context)
        if (record := each.get_help_record(context)) and each.name
    ]
    usage = " ".join(command.collect_usage_pieces(context))
    words = tuple(context.command_path.split())
    yield Entry(words, f"{context.command_path} {usage}", command.help or "", records)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _walk(
                    child,
                    click.Context(child, info_name=name, parent=context, **child.context_settings),
                )


def paragraphs(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the paragraphs of a help text: whether it is preformatted, and its lines."""
    for each in re.split(r"\n\s*\n", text.strip()):
        first, _, rest = each.partition("\n")
        yield (True, dedent(rest)) if first.strip() == "\b" else (False, " ".join(each.split()))


def usage_page() -> str:
    """Return the page of all commands."""
    return "\n".join(
        [
            _INTRODUCTION,
            *(line for program in PROGRAMS for each in entries(program) for line in _section(each)),
        ]
    )


def _section(entry: Entry) -> Iterator[str]:
    yield f"{'#' * (2 if len(entry.words) == 1 else 3)} {' '.join(entry.words)}\n"
    yield f"    {entry.usage}\n"
    for fixed, text in paragraphs(entry.text):
        if fixed:
            yield "\n".join(f"    {line}".rstrip() for line in text.splitlines()) + "\n"
        else:
            yield (
                "\n".join(
                    wrap(_escape(text), _WIDTH, break_long_words=False, break_on_hyphens=False)
                )
                + "\n"
            )
    if entry.options:
        yield "| option | meaning |\n|---|---|"
        for names, meaning in entry.options:
            yield f"| {_code(names)} | {_escape(' '.join(meaning.split()))} |"
        yield ""


def _code(text: str) -> str:
    return "`" + text.replace("|", r"\|") + "`"


def _escape(text: str) -> str:
    """Return plain text as Markdown: code stays code, other marks are escaped."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part.replace("|", r"\|")
        if part.startswith("`")
        else re.sub(r"([\\*_\[\]<>|])", r"\\\1", part)
        for part in parts
    )


def man_page(program: str) -> str:
    """Return the man page of a program, with all its commands."""
    first, *others = entries(program)
    lines = [
        f'.TH {program.upper()} 1 "" "a2a\\-proxy" "A2A traffic"',
        ".SH NAME",
        f"{_roff(program)} \\- {_ABOUT[program]}",
        ".SH SYNOPSIS",
        f".B {_roff(first.usage)}",
        ".SH DESCRIPTION",
        *_roff_paragraphs(first.text),
        ".SH OPTIONS",
        *_roff_options(first),
        ".SH COMMANDS",
    ]
    for each in others:
        lines += [f".SS {_roff(each.usage)}", *_roff_paragraphs(each.text), *_roff_options(each)]
    return "\n".join(lines) + _MAN_END


def _roff_paragraphs(text: str) -> Iterator[str]:
    for fixed, each in paragraphs(text):
        if fixed:
            yield from (".PP", ".nf", *map(_roff, each.splitlines()), ".fi")
        else:
            yield from (
                ".PP",
                *wrap(_roff(each), _WIDTH, break_long_words=False, break_on_hyphens=False),
            )


def _roff_options(entry: Entry) -> Iterator[str]:
    for names, meaning in entry.options:
        yield from (".TP", f".B {_roff(names)}")
        yield from wrap(
            _roff(" ".join(meaning.split())), _WIDTH, break_long_words=False, break_on_hyphens=False
        )


def _roff(text: str) -> str:
    """Return a line of text for troff: code in bold, hyphens that can be copied, no line that is a
    request."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text)
    return re.sub(r"(^|\s)([.'])", r"\1\\&\2", text)


def pages() -> dict[Path, str]:
    """Return the text of every generated page by its file."""
    return {
        USAGE: usage_page(),
        **{MAN / f"{program}.1": man_page(program) for program in PROGRAMS},
    }


if __name__ == "__main__":
    MAN.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, "utf-8")
