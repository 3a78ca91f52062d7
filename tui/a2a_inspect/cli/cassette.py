"""Options and arguments of `a2a-inspect cassette`."""

from pathlib import Path
from typing import Any

import click

from a2a_inspect.cli.common_options import filter_option, json_option
from a2a_inspect.cli.word_completion import complete_place
from a2a_proxy.cli.help_sections import FILE, SectionedGroup
from a2a_proxy.cli.redaction_options import add_redaction_options


@click.group(cls=SectionedGroup)
def cassette() -> None:
    """Edit and check cassettes: recordings as text files to commit (`*.a2a.jsonl`)."""


@cassette.command("read")
@click.argument("source", type=FILE)
@click.argument("recording", type=FILE)
def read_cassette(source: Path, recording: Path) -> None:
    """Read the cassette SOURCE into a new RECORDING."""
    from a2a_inspect.commands.cassette import import_cassette

    import_cassette(source, recording)


@cassette.command("fmt")
@click.argument("cassettes", nargs=-1, required=True, type=FILE)
@click.option(
    "--check", is_flag=True, help="Change nothing; exit with 1 if a file would be rewritten."
)
@click.option(
    "--blobs/--self-contained",
    default=None,
    help="Store large payloads next to the file, or in it (default: unchanged).",
)
def format_cassettes(cassettes: tuple[Path, ...], check: bool, blobs: bool | None) -> int:
    """Write CASSETTES in canonical order and form with matching digests, for example after editing
    one by hand.

    A file that is truncated or has an invalid line is rejected.
    """
    from a2a_inspect.commands.cassette import format_files

    return format_files(cassettes, blobs=blobs, check=check)


@cassette.command("scan")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@add_redaction_options
@json_option
def scan_files(
    files: tuple[Path, ...], redact: tuple[str, ...], redact_policy: Path | None, as_json: bool
) -> int:
    """List the secrets in cassettes or recordings, each with its place and the reason why it is
    one.

    Secrets are credentials, recognised by the name of their header or member or by their format,
    random-looking words, and further occurrences of both. A policy adds kinds of values to report
    (pii, member:NAME) or exempts values (keep:regex:TEST-.*).

    \b
    Exit code: 0 no secrets, 1 at least one secret, 2 a file cannot be read.
    """
    from a2a_inspect.commands.scan import scan_files as run
    from a2a_inspect.data.redacted_view import RedactionOptions

    return run(files, RedactionOptions(redact, redact_policy), as_json=as_json)


@cassette.command("trim")
@click.argument("words", nargs=-1, metavar="[RECORDING] [PLACE]...", shell_complete=complete_place)
@click.option("--output", "-o", "target", required=True, type=FILE, metavar="FILE")
@filter_option
@click.option(
    "--exact",
    is_flag=True,
    help="Write only the selected exchanges, even if a replay needs others.",
)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@add_redaction_options
@json_option
def trim_recording(
    words: tuple[str, ...],
    target: Path,
    redact: tuple[str, ...],
    redact_policy: Path | None,
    **options: Any,
) -> None:
    """Write selected exchanges of a recording or cassette to the cassette FILE, and print what was
    left out.

    PLACE has the form that `show` accepts: an exchange (2, or 1:2), a session (1:), or a prefix of
    a task id. To select a time span, use a filter: -f 't:>+5s t:<+20s'. Exchanges that a replay of
    the selection needs are written as well: agent cards, the call that created a task, and the call
    that registered its webhook.
    """
    from a2a_inspect.commands.trim import TrimOptions, trim_to_cassette
    from a2a_inspect.data.recording_choice import open_recording, split_words
    from a2a_inspect.data.redacted_view import RedactionOptions

    path, places = split_words(words)
    with open_recording(path) as source:
        trim_to_cassette(
            source,
            TrimOptions(
                target, places, redaction=RedactionOptions(redact, redact_policy), **options
            ),
        )
