"""Options and arguments of `a2a-inspect export otlp`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from a2a_inspect.cli.export import add_selection_options
from a2a_proxy.cli.span_options import add_span_options


@click.command("otlp", short_help="OpenTelemetry spans, to a backend or a file")
@click.argument("recordings", nargs=-1, metavar="[RECORDING]...", type=click.Path(path_type=Path))
@add_selection_options
@click.option(
    "--endpoint", default="", metavar="URL", help="The backend: http://localhost:4318 (default: from OTEL_*)."
)
@click.option("--protocol", type=click.Choice(["grpc", "http/protobuf"]), help="Default: from OTEL_* or the port.")
@click.option(
    "--to", "-o", "--output", "output", type=click.Path(path_type=Path), metavar="FILE", help="Write OTLP JSON to FILE."
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
@add_span_options("--")
def otlp(recordings: tuple[Path, ...], **typed: Any) -> None:
    """Send the calls of a recording as spans with recorded times, or write them as OTLP JSON.

    Each call is one span, whose events are the events of the call. Ids are derived from the recording, so sending it
    twice yields the same spans. Several recordings of one conversation are linked with each other. Without --endpoint
    and --to, the backend is taken from OTEL_EXPORTER_OTLP_ENDPOINT.
    """
    from a2a_inspect.commands.otlp import OtlpExportOptions, export_otlp

    export_otlp(OtlpExportOptions(recording=next(iter(recordings), None), others=recordings[1:], **typed))
