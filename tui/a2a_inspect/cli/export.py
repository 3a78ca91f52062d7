"""Options and arguments of `a2a-inspect export`, with one command for each format of the registry
and one for spans."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from a2a_inspect.arguments import is_recording_path
from a2a_inspect.formats.registry import DEFAULT_FORMAT, FORMATS, ExportFormat
from a2a_proxy.cli.arguments import SpanArguments
from a2a_proxy.cli.help_sections import FILE, SectionedGroup
from a2a_proxy.cli.options import add_options
from a2a_proxy.cli.redaction_options import add_redaction_options
from a2a_proxy.model.errors import UserError

_HELP = """Write a recording, or the exchanges that match, in a FORMAT to a file or to standard
output.

\b
  a2a-inspect export -o story.a2a.jsonl            the newest as a cassette
  a2a-inspect export jsonl RECORDING -f err        print failed exchanges
  a2a-inspect export html RECORDING -o story.html  a report for a browser

The default FORMAT is a cassette (jsonl). Matching exchanges are written completely,
with their tasks and findings.
"""


class _ExportGroup(SectionedGroup):
    """The group of export formats: `export RECORDING` means `export jsonl RECORDING`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the name of the default format if the user named none."""
        if not args and ctx.resilient_parsing:  # the shell completes the first word
            return super().parse_args(ctx, args)
        if not args or (
            args[0] not in (*self.commands, "-h", "--help")
            and (args[0][:1] == "-" or is_recording_path(args[0]))
        ):
            args = [DEFAULT_FORMAT, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a format. Raises UserError with the existing formats."""
        if args[0][:1] != "-" and args[0] not in self.commands and not ctx.resilient_parsing:
            formats = ", ".join(self.list_commands(ctx))
            raise UserError(
                f"export has no format {args[0]}",
                f"formats: {formats}; one call as curl, python or pytest: a2a-inspect show 2 --as "
                f"curl",
            )
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the formats that begin with a word; a file if there are none."""
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]


def add_common_options(command: Any) -> Any:
    """Add the argument and the options that every format has (see
    `commands.export.ExportOptions`)."""
    return click.argument("recording", required=False, type=FILE)(add_selection_options(command))


def add_selection_options(command: Any) -> Any:
    """Add the options that select and redact the exported exchanges."""
    where = click.option(
        "--filter",
        "-f",
        "where",
        default="",
        metavar="EXPR",
        help="Only exchanges that match: 'task:b2a4'.",
    )
    return where(add_redaction_options(command))


output_option = click.option(
    "--output",
    "-o",
    type=FILE,
    metavar="FILE",
    help="Write to FILE, not to standard output.",
)


@click.group(
    cls=_ExportGroup,
    command_parts=(("Formats", ()),),
    help=_HELP,
    options_metavar="",
    subcommand_metavar="[FORMAT] [RECORDING] [OPTIONS]",
)
def export() -> None:
    """See `_HELP`."""


_command_option = click.option(
    "--with-command", is_flag=True, help="Keep the command line and the process id of the proxy."
)

_dry_run_option = click.option(
    "--dry-run", "-n", is_flag=True, help="Print what --redact would remove; write nothing."
)


def _add_format_command(form: ExportFormat) -> None:
    @add_common_options
    @output_option
    def run(
        recording: Path | None,
        where: str,
        redact: tuple[str, ...],
        redact_policy: Path | None,
        output: Path | None,
        dry_run: bool = False,
        **options: bool,
    ) -> None:
        from a2a_inspect.commands.export import ExportOptions, export_recording
        from a2a_inspect.commands.scan import preview_redaction
        from a2a_inspect.data.redacted_view import RedactionOptions

        if dry_run:
            preview_redaction(recording, RedactionOptions(redact, redact_policy), where)
            return
        selected = ExportOptions(recording, where, RedactionOptions(redact, redact_policy))
        export_recording(selected, output, form.name, **options)

    if form.name == DEFAULT_FORMAT:
        run = _dry_run_option(_command_option(run))
    export.command(
        form.name, help=f"Write {form.description} (*{form.suffix}).", short_help=form.description
    )(run)


for _each in FORMATS.values():
    _add_format_command(_each)


@export.command("otlp", short_help="OpenTelemetry spans, to a backend or a file")
@click.argument("recordings", nargs=-1, metavar="[RECORDING]...", type=FILE)
@add_selection_options
@click.option(
    "--endpoint",
    default="",
    metavar="URL",
    help="The backend: http://localhost:4318 (default: from OTEL_*).",
)
@click.option(
    "--protocol",
    type=click.Choice(["grpc", "http/protobuf"]),
    help="Default: from OTEL_* or the port.",
)
@click.option(
    "--to",
    "-o",
    "--output",
    "output",
    type=FILE,
    metavar="FILE",
    help="Write OTLP JSON to FILE.",
)
@click.option(
    "--span-kind",
    type=click.Choice(["internal", "server"]),
    default="internal",
    show_default=True,
    help="Use server if neither clients nor agents send their own spans.",
)
@click.option("--unsent", is_flag=True, help="Send only what a2a-proxy --otlp has not sent.")
@click.option("--frames", is_flag=True, help="Send a log record for each frame as well.")
@add_options(SpanArguments, environment=False)
def otlp(recordings: tuple[Path, ...], **typed: Any) -> None:
    """Send the calls of a recording as spans with recorded times, or write them as OTLP JSON.

    Each call is one span, whose events are the events of the call. Ids are derived from the
    recording, so sending it twice yields the same spans. Several recordings of one conversation are
    linked with each other. Without --endpoint and --to, the backend is taken from
    OTEL_EXPORTER_OTLP_ENDPOINT.
    """
    from a2a_inspect.commands.otlp import OtlpExportOptions, export_otlp

    export_otlp(
        OtlpExportOptions(recording=next(iter(recordings), None), others=recordings[1:], **typed)
    )
