"""`a2a-inspect archive`: what was typed, nothing else, as in `cli`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from a2a_proxy.cli.help_sections import SectionedGroup

_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with stable names.")
_url_argument = click.argument("url", metavar="URL")
_verbose_option = click.option("--verbose", "-v", is_flag=True, help="Tell each request to the storage, on stderr.")


_QUERY_OPTIONS = (
    ("--since", "TIME", "Only what was there after: 2h (ago), 2026-11-22, or 2026-11-22T08:30 (UTC)."),
    ("--until", "TIME", "Only what was there before; as --since."),
    ("--task", "ID", "Only what belongs to this task."),
    ("--context", "ID", "Only what belongs to this context."),
    ("--trace", "ID", "Only what belongs to this trace."),
)


def _add_query_options(command: Any) -> Any:
    """Options that say what is looked for."""
    for name, metavar, told in reversed(_QUERY_OPTIONS):
        command = click.option(name, default="", metavar=metavar, help=told)(command)
    return command


@click.group(cls=SectionedGroup)
def archive() -> None:
    """Recordings of many machines in one place: s3://BUCKET/PREFIX, or file:///FOLDER.

    Needs the extra `lake`: pip install 'a2a-proxy[lake]'. What is there is Parquet, which DuckDB, ClickHouse and Spark
    read as well.
    """


@archive.command("put")
@click.argument("recording", type=click.Path(path_type=Path))
@_url_argument
@click.option("--archive-id", default="", metavar="ID", help="Of this proxy; else that of the state directory.")
@_verbose_option
@_json_option
def put_recording(recording: Path, url: str, archive_id: str, verbose: bool, as_json: bool) -> None:
    """Put what the archive at URL does not have yet of a RECORDING. Doing it again changes nothing.

    A session that is being recorded is put as it is at this moment; what comes later is left to the next time.
    """
    from a2a_inspect.commands.archive import ArchiveOptions, upload_recording

    upload_recording(recording, url, ArchiveOptions(archive_id=archive_id, verbose=verbose, as_json=as_json))


@archive.command("ls")
@_url_argument
@_add_query_options
@click.option("--verify", is_flag=True, help="Read every segment as a whole, and compare it with its manifest.")
@_verbose_option
@_json_option
def list_segments(url: str, verify: bool, verbose: bool, as_json: bool, **words: str) -> int:
    """List the segments at URL that may have what is looked for.

    \b
    Exit code: 0 all is well, 1 with --verify a segment is missing or was changed.
    """
    from a2a_inspect.commands.archive import ArchiveOptions, list_segments

    return list_segments(url, words, ArchiveOptions(verify=verify, verbose=verbose, as_json=as_json))


@archive.command("fetch")
@_url_argument
@_add_query_options
@click.option("--to", "into", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The new recording.")
@_verbose_option
@_json_option
def fetch_recording(url: str, into: Path, verbose: bool, as_json: bool, **words: str) -> None:
    """Bring calls back from URL as a recording that every other command opens.

    Brought is each call that has to do with what is looked for, whole, with its connection, task and findings. Without
    --since and --until the manifests of all days are read.
    """
    from a2a_inspect.commands.archive import ArchiveOptions, download_recording

    download_recording(url, words, into, ArchiveOptions(verbose=verbose, as_json=as_json))
