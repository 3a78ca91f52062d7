"""The options of everything that follows a run: `--hook`, `--otlp...` and `--archive...`, the same for each command."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from a2a_proxy.cli.errors import UserError
from a2a_proxy.cli.span_options import add_span_options, parse_span_options

if TYPE_CHECKING:
    from a2a_proxy.cli.archive import ArchiveConfig
    from a2a_proxy.telemetry.settings import OtlpSettings
    from a2a_proxy.telemetry.span_options import Compat, SpanKind

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FOLLOWER_OPTIONS = (
    click.option(
        "--hook",
        multiple=True,
        metavar="NAME",
        envvar="A2A_PROXY_HOOK",
        help="Call this hook for each frame: an installed one, or module:Class. `a2a-inspect hooks` lists them.",
    ),
    click.option(
        "--archive",
        default="",
        metavar="URL",
        envvar="A2A_PROXY_ARCHIVE",
        help="Upload the traffic to an archive: s3://BUCKET/PREFIX, or file:///FOLDER (extra: lake).",
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
        help="Send a span for each call to this OpenTelemetry backend; without a URL to the one set by OTEL_* "
        "(extra: otlp).",
    ),
    click.option(
        "--otlp-protocol",
        type=click.Choice(["grpc", "http/protobuf"]),
        envvar="A2A_PROXY_OTLP_PROTOCOL",
        help="Protocol of the export; the default follows OTEL_EXPORTER_OTLP_PROTOCOL or the port (4317 is grpc).",
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
        "--otlp-frames", is_flag=True, envvar="A2A_PROXY_OTLP_FRAMES", help="Also send a log record for each frame."
    ),
    add_span_options("--otlp-", "A2A_PROXY_OTLP_"),
)


def add_follower_options(command: _Command) -> _Command:
    """Add all follower options to a command."""
    for option in reversed(_FOLLOWER_OPTIONS):
        command = option(command)
    return command


class FollowerOptions(msgspec.Struct, frozen=True):
    """Everything that follows a run."""

    hooks: tuple[str, ...] = ()
    """Names of hooks: an entry point, or `module:Class`."""
    otlp: OtlpSettings | None = None
    """Export to an OpenTelemetry backend."""
    archive: ArchiveConfig | None = None


class FollowerArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The follower options as given; the members have the names of the options."""

    hook: tuple[str, ...] = ()
    otlp: str | None = None
    otlp_protocol: str | None = None
    otlp_kind: SpanKind = "internal"
    otlp_frames: bool = False
    otlp_content: bool = False
    otlp_compat: tuple[Compat, ...] = ()
    otlp_segment: str = ""
    archive: str = ""
    archive_every: float = 300.0
    archive_id: str = ""


def parse_follower_options(arguments: FollowerArguments) -> FollowerOptions:
    """Return the followers that the options request.

    Raises:
        UserError: a hook does not exist, an endpoint or archive is invalid, or a required package is not installed.
    """
    if arguments.hook:
        from a2a_proxy.cli.hooks import check_hooks

        check_hooks(arguments.hook)
    archive = None
    otlp = _parse_otlp_options(arguments)
    if arguments.archive or arguments.archive_id:
        from a2a_proxy.cli.archive import archive_config

        archive = archive_config(arguments.archive, arguments.archive_every, arguments.archive_id)
    return FollowerOptions(arguments.hook, otlp, archive)


def _parse_otlp_options(arguments: FollowerArguments) -> OtlpSettings | None:
    if arguments.otlp is not None:
        from a2a_proxy.cli.otlp import otlp_settings

        shape = parse_span_options(
            arguments.otlp_kind,
            content=arguments.otlp_content,
            compat=arguments.otlp_compat,
            segment=arguments.otlp_segment,
            segment_option="--otlp-segment",
        )
        return otlp_settings(arguments.otlp, arguments.otlp_protocol or "", shape, frames=arguments.otlp_frames)
    refinements = (arguments.otlp_protocol, arguments.otlp_frames, arguments.otlp_content, arguments.otlp_compat)
    if any(refinements) or arguments.otlp_segment:
        raise UserError("options --otlp-... have no effect without --otlp", "for example: --otlp http://localhost:4318")
    return None
