"""Options and arguments of `a2a-inspect archive`."""

from pathlib import Path
from typing import Any

import click

from a2a_inspect.cli.common_options import json_option
from a2a_proxy.cli.help_sections import FILE, SectionedGroup

_url_argument = click.argument("url", metavar="URL")
_verbose_option = click.option(
    "--verbose", "-v", is_flag=True, help="Print each request to the storage on stderr."
)


_QUERY_OPTIONS = (
    (
        "--since",
        "TIME",
        "Only traffic after TIME: 2h (ago), 2026-11-22, or 2026-11-22T08:30 (UTC).",
    ),
    ("--until", "TIME", "Only traffic before TIME, written as for --since."),
    ("--task", "ID", "Only exchanges of this task."),
    ("--context", "ID", "Only exchanges of this context."),
    ("--trace", "ID", "Only exchanges of this trace."),
)


def _add_query_options(command: Any) -> Any:
    """Add the options that select exchanges to a command."""
    for name, metavar, help_text in reversed(_QUERY_OPTIONS):
        command = click.option(name, default="", metavar=metavar, help=help_text)(command)
    return command


@click.group(cls=SectionedGroup)
def archive() -> None:
    """Store recordings of many machines in one place: s3://BUCKET/PREFIX or file:///FOLDER.

    Needs the extra `lake`: pip install 'a2a-proxy[lake]'. The archive consists of Parquet files,
    which DuckDB, ClickHouse and Spark read as well.
    """


@archive.command("put")
@click.argument("recording", type=FILE)
@_url_argument
@click.option(
    "--archive-id",
    default="",
    metavar="ID",
    help="Id of this proxy (default: the id in the state directory).",
)
@_verbose_option
@json_option
def put_recording(recording: Path, url: str, archive_id: str, verbose: bool, as_json: bool) -> None:
    """Upload the parts of RECORDING that the archive at URL does not have yet. Repeating the
    command changes nothing.

    A session that is still being recorded is uploaded up to this moment; run the command again to
    upload the rest.
    """
    from a2a_inspect.commands.archive import ArchiveOptions, upload_recording

    upload_recording(
        recording, url, ArchiveOptions(archive_id=archive_id, verbose=verbose, as_json=as_json)
    )


@archive.command("ls")
@_url_argument
@_add_query_options
@click.option(
    "--verify", is_flag=True, help="Read every segment completely and compare it with its manifest."
)
@_verbose_option
@json_option
def list_segments(url: str, verify: bool, verbose: bool, as_json: bool, **words: str) -> int:
    """List the segments at URL that may contain matching exchanges.

    \b
    Exit code: 0 no error, 1 with --verify: a segment is missing or was changed.
    """
    from a2a_inspect.commands.archive import ArchiveOptions, list_segments

    return list_segments(
        url, words, ArchiveOptions(verify=verify, verbose=verbose, as_json=as_json)
    )


@archive.command("fetch")
@_url_argument
@_add_query_options
@click.option(
    "--to",
    "into",
    type=FILE,
    required=True,
    metavar="FILE",
    help="The new recording.",
)
@_verbose_option
@json_option
def fetch_recording(url: str, into: Path, verbose: bool, as_json: bool, **words: str) -> None:
    """Download exchanges from URL into a new recording.

    Each matching exchange is downloaded completely, with its connection, task and findings. Without
    --since and --until the manifests of all days are read.
    """
    from a2a_inspect.commands.archive import ArchiveOptions, download_recording

    download_recording(url, words, into, ArchiveOptions(verbose=verbose, as_json=as_json))
