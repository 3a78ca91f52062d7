"""`a2a-inspect cassette`: what was typed, nothing else, as in `cli`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from a2a_proxy.cli.help_sections import SectionedGroup
from a2a_proxy.cli.redaction_options import add_redaction_options

_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with stable names.")
_filter_option = click.option(
    "--filter", "-f", "where", default="", metavar="EXPR", help="Only what matches: 'task:b2a4 err'."
)
_cassettes_argument = click.argument("cassettes", nargs=-1, required=True, type=click.Path(path_type=Path))


@click.group(cls=SectionedGroup)
def cassette() -> None:
    """Recordings as text files to commit (`*.a2a.jsonl`), which `export` writes."""


@cassette.command("read")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("recording", type=click.Path(path_type=Path))
def read_cassette(source: Path, recording: Path) -> None:
    """Read the cassette SOURCE into a new RECORDING."""
    from a2a_inspect.commands.cassette import import_cassette

    import_cassette(source, recording)


@cassette.command("fmt")
@_cassettes_argument
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 where a file is not as it should be.")
@click.option(
    "--blobs/--self-contained", default=None, help="Large payloads beside the file, or in it; else as they are."
)
def format_cassettes(cassettes: tuple[Path, ...], check: bool, blobs: bool | None) -> int:
    """Write CASSETTES in the one order and form, with digests that fit: after an edit by hand, say.

    A file that was cut, or has a line that makes no sense, is refused.
    """
    from a2a_inspect.commands.cassette import format_files

    return format_files(cassettes, blobs=blobs, check=check)


@cassette.command("migrate")
@_cassettes_argument
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 where a file is of an older format.")
def migrate_cassettes(cassettes: tuple[Path, ...], check: bool) -> int:
    """Bring CASSETTES of older formats to the newest. Reading takes older ones as they are; newer ones are refused."""
    from a2a_inspect.commands.cassette import migrate_files

    return migrate_files(cassettes, check=check)


@cassette.command("scan")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@add_redaction_options
@_json_option
def scan_files(files: tuple[Path, ...], redact: tuple[str, ...], redact_policy: Path | None, as_json: bool) -> int:
    """Prove that cassettes, or recordings, hold no secrets: tell each one, with its place and how it was found.

    Found are credentials by the name of their header or member, by their look, words that a machine made at random, and
    all of these wherever they stand again. A policy adds what is not to be there (pii, member:NAME), or leaves what may
    (keep:regex:TEST-.*).

    
    Exit code: 0 there is none, 1 there is one, 2 a file cannot be read.
    """
    from a2a_inspect.commands.scan import ScanOptions
    from a2a_inspect.commands.scan import scan_files as run
    from a2a_inspect.data.redacted_view import RedactionOptions

    return run(files, ScanOptions(RedactionOptions(redact, redact_policy), as_json))


@cassette.command("diff")
@click.argument("words", nargs=-1, metavar="LEFT [PLACE] [RIGHT] [PLACE]")
@click.option("--all", "everything", is_flag=True, help="Identifiers, times, addresses and the like as well.")
@_filter_option
@_json_option
def diff_cassettes(words: tuple[str, ...], everything: bool, where: str, as_json: bool) -> int:
    """The same as `a2a-inspect diff`: what two runs, or two places, say differently.

    \b
    Exit code: 0 nothing differs, 1 something does, 2 it cannot be compared.
    """
    from a2a_inspect.commands.diff import DiffOptions, print_diff

    return print_diff(DiffOptions(words, everything, where, as_json))


@cassette.command("trim")
@click.argument("words", nargs=-1, metavar="[RECORDING] [PLACE]...")
@click.option("--output", "-o", "target", required=True, type=click.Path(path_type=Path), metavar="FILE")
@_filter_option
@click.option("--exact", is_flag=True, help="Only what was chosen, though a replay of it may need more.")
@click.option("--overwrite", is_flag=True, help="FILE may exist: it is replaced.")
@add_redaction_options
@_json_option
def trim_recording(
    words: tuple[str, ...], target: Path, redact: tuple[str, ...], redact_policy: Path | None, **options: Any
) -> None:
    """Write a part of a recording, or of a cassette, to the cassette FILE, and say what was left out.

    PLACE is what `show` takes: an exchange (2, or 1:2), a session (1:), the beginning of a task's id. A span of time is
    a filter: -f 't:>+5s t:<+20s'. What a replay needs besides stays too: agent cards, the call that began a task, the
    one that registered its webhook.
    """
    from a2a_inspect.commands.trim import TrimOptions, trim_to_cassette
    from a2a_inspect.data.recording_choice import open_recording, split_words
    from a2a_inspect.data.redacted_view import RedactionOptions

    path, places = split_words(words)
    with open_recording(path) as source:
        trim_to_cassette(
            source, TrimOptions(target, places, redaction=RedactionOptions(redact, redact_policy), **options)
        )


@cassette.command("merge")
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.argument("recordings", metavar="RECORDING...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--overwrite", is_flag=True, help="OUT may exist: it is replaced.")
@click.option("--dry-run", "-n", is_flag=True, help="Say what would be merged; write nothing.")
@_json_option
def merge_files(target: Path, recordings: tuple[Path, ...], **options: bool) -> None:
    """Make one cassette OUT of several, recordings too, by whole sessions, as `a2a-inspect merge` does."""
    from a2a_inspect.commands.merge import MergeOptions, merge_cassettes

    merge_cassettes(target, recordings, MergeOptions(**options))
