"""The options of everything that follows a run: `--hook`, `--otlp...` and `--archive...`, the same
for each command."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from a2a_proxy.cli.span_options import add_span_options

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FOLLOWER_OPTIONS = (
    click.option(
        "--hook",
        multiple=True,
        metavar="NAME",
        envvar="A2A_PROXY_HOOK",
        help="Call this hook for each frame: an installed one, or module:Class. `a2a-inspect "
        "hooks` lists them.",
    ),
    click.option(
        "--archive",
        default="",
        metavar="URL",
        envvar="A2A_PROXY_ARCHIVE",
        help="Upload the traffic to an archive: s3://BUCKET/PREFIX, or "
        "file:///FOLDER (extra: lake).",
    ),
    click.option(
        "--archive-every",
        type=click.FloatRange(1),
        default=300.0,
        show_default=True,
        metavar="SECONDS",
        envvar="A2A_PROXY_ARCHIVE_EVERY",
        help="Upload after this time at the latest, whatever the size.",
    ),
    click.option(
        "--archive-id",
        default="",
        metavar="ID",
        envvar="A2A_PROXY_ARCHIVE_ID",
        help="Name of this proxy in the archive; the default is kept in the state directory.",
    ),
    click.option(
        "--otlp",
        is_flag=False,
        flag_value="",
        metavar="[URL]",
        envvar="A2A_PROXY_OTLP",
        help="Send a span for each call to this OpenTelemetry backend; without a URL to the one "
        "set by OTEL_* (extra: otlp).",
    ),
    click.option(
        "--otlp-protocol",
        type=click.Choice(["grpc", "http/protobuf"]),
        envvar="A2A_PROXY_OTLP_PROTOCOL",
        help="Protocol of the export; the default follows OTEL_EXPORTER_OTLP_PROTOCOL or the port "
        "(4317 is grpc).",
    ),
    click.option(
        "--otlp-kind",
        type=click.Choice(["internal", "server"]),
        default="internal",
        show_default=True,
        envvar="A2A_PROXY_OTLP_KIND",
        help="Kind of the spans: server if neither clients nor agents send spans of their own.",
    ),
    click.option(
        "--otlp-frames",
        is_flag=True,
        envvar="A2A_PROXY_OTLP_FRAMES",
        help="Also send a log record for each frame.",
    ),
    add_span_options("--otlp-", "A2A_PROXY_OTLP_"),
)


def add_follower_options(command: _Command) -> _Command:
    """Add all follower options to a command."""
    for option in reversed(_FOLLOWER_OPTIONS):
        command = option(command)
    return command
