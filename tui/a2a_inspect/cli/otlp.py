"""`a2a-inspect export otlp`: what was typed, nothing else, as in `cli`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from a2a_inspect.cli.export import add_selection_options
from a2a_proxy.cli.span_options import add_span_options


@click.command("otlp", short_help="spans of OpenTelemetry, to a backend or a file")
@click.argument("recordings", nargs=-1, metavar="[RECORDING]...", type=click.Path(path_type=Path))
@add_selection_options
@click.option("--endpoint", default="", metavar="URL", help="The backend: http://localhost:4318; else as OTEL_* say.")
@click.option("--protocol", type=click.Choice(["grpc", "http/protobuf"]), help="Else as a variable or the port says.")
@click.option(
    "--to", "-o", "--output", "output", type=click.Path(path_type=Path), metavar="FILE", help="OTLP JSON goes there."
)
@click.option(
    "--span-kind",
    type=click.Choice(["internal", "server"]),
    default="internal",
    show_default=True,
    help="server where neither clients nor agents send spans of their own.",
)
@click.option("--unsent", is_flag=True, help="Only what a2a-proxy --otlp has left, where it stopped.")
@click.option("--frames", is_flag=True, help="A log record for each frame as well.")
@add_span_options("--")
def otlp(recordings: tuple[Path, ...], **typed: Any) -> None:
    """Send the calls of a recording as spans, with recorded times, or write them as OTLP JSON.

    One span a call; what happened in it are its events. Ids are made from the recording: what is sent twice is the
    same span. Several recordings of one conversation get links from each to the others. Where neither --endpoint nor
    --to is given, OTEL_EXPORTER_OTLP_ENDPOINT says where.
    """
    from a2a_inspect.commands.otlp import OtlpExportOptions, export_otlp

    export_otlp(OtlpExportOptions(recording=next(iter(recordings), None), others=recordings[1:], **typed))
